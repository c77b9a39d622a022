/* Recipes of `pantheon quantize`: which type each tensor of a model becomes. Files of INI text (docs/quantize.md),
 * or one type for all matrices. */
#ifndef PN_RECIPE_H
#define PN_RECIPE_H

#include "tool.h"

typedef struct recipe recipe;

/* What a tensor becomes. */
typedef struct recipe_choice {
    const pn_quant *type; /* NULL: it stays as it is */
    char why[160];        /* the rule or reason, for people; "" when there is nothing to say */
} recipe_choice;

/* By a path (with '/' or ".ini"), the name of a loaded type that can be made, or the name of a recipe in the usual
 * folders; a type goes before a recipe. NULL after printing why not. */
recipe *recipe_open(const pn_runtime *runtime, const char *name);
void recipe_close(recipe *r);
/* 0, or 1 after printing why. `layers`: how many the model has. */
int recipe_choose(const recipe *r, const pn_file *file, const pn_tensor *tensor, uint32_t layers, recipe_choice *out);
/* Layers of a file: what it says, else one more than the highest number in a tensor's name. */
uint32_t recipe_layers(pn_file *file);
/* Types that can be made and recipes that are found, to stdout. */
void recipe_list(const pn_runtime *runtime);

#endif

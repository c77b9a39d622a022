/* A model: an open file, its architecture, its plan. Immutable and shared by sessions. */
#ifndef PN_MODEL_H
#define PN_MODEL_H

#include "plan.h"

struct pn_model {
    pn_runtime *runtime;
    pn_file *file;
    int owns_file;
    pn_plan *plan;
    char *arch;       /* as the file calls it */
    int32_t vocab;    /* logits per token */
    int32_t n_tokens; /* ids the embedding has rows for */
    int32_t context;  /* trained for, or 0 */
};

#endif

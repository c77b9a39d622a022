/* Recipes of `pantheon quantize`: reading them, finding them by name, and choosing the type of a tensor. */
#include "recipe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum condition_kind { FIRST, LAST, EVERY, ABSENT, PRESENT } condition_kind;

/* "3", or "1/8" of the layers. */
typedef struct share {
    uint32_t a, b; /* b = 0: a layers */
} share;

typedef struct condition {
    condition_kind kind;
    uint32_t every;
    share part; /* FIRST, LAST; EVERY: after */
    char *name; /* ABSENT, PRESENT */
} condition;

typedef struct rule {
    char *pattern;
    const pn_quant *type; /* NULL: keep */
    condition *conditions;
    size_t n_conditions; /* 0: always; else one of them must hold */
    size_t line;
} rule;

typedef struct fallback {
    char *from; /* NULL: any type */
    char *to;
} fallback;

struct recipe {
    const pn_runtime *runtime;
    char *name; /* begins messages */
    rule *rules;
    size_t n_rules;
    fallback *fallbacks;
    size_t n_fallbacks;
};

/* What every quantization leaves alone: norms, routers, small tables that are added. The type goes in at the end. */
static const char UNIFORM[] = "[tensors]\n"
                              "*norm.weight = keep\n"
                              "*.ffn_gate_inp*.weight = keep\n"
                              "position_embd.weight = keep\n"
                              "token_types.weight = keep\n"
                              "*.weight = ";

/* ---- types ------------------------------------------------------------------------------------------------------ */

enum { MOST_NAMES = 256 };

static size_t type_names(const pn_runtime *runtime, const char **names)
{
    pn_registration r = PN_OPTIONS_INIT(pn_registration);
    size_t n = 0;
    for (size_t i = 0; n < MOST_NAMES && pn_runtime_registration(runtime, i, &r, NULL) == PN_OK; i++)
        if (r.kind == PN_KIND_QUANT && ((const pn_quant *)r.item)->quantize) names[n++] = r.name;
    return n;
}

/* "a, b, c" into text. */
static const char *join(const char *const *names, size_t n, char *text, size_t capacity)
{
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < n && at < capacity - 1; i++)
        at += (size_t)snprintf(text + at, capacity - at, "%s%s", i ? ", " : "", names[i]);
    return text;
}

/* A type that can be made, or NULL with the error filled: `where` begins it. */
static const pn_quant *find_type(const pn_runtime *runtime, const char *where, const char *name, pn_error *err)
{
    const char *names[MOST_NAMES], *near;
    char all[1024];
    const pn_quant *q = pn_runtime_find(runtime, PN_KIND_QUANT, name);
    if (q && q->quantize) return q;
    size_t n = type_names(runtime, names);
    near = tool_nearest(name, names, n);
    if (q)
        pn_fail(err, PN_E_UNSUPPORTED, "%s: the plugin of type '%s' can only read it; types that can be made: %s",
                where, name, join(names, n, all, sizeof all));
    else
        pn_fail(err, PN_E_NOT_FOUND, "%s: no loaded type is called '%s'%s%s%s; types that can be made: %s", where, name,
                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", join(names, n, all, sizeof all));
    return NULL;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct reading {
    recipe *r;
    char where[600];
} reading;

static pn_status no_memory(pn_error *err)
{
    return pn_fail(err, PN_E_NOMEM, "no memory for a recipe");
}

/* "12" or "1/8"; 0 when it is neither. */
static int parse_share(const char *word, share *out)
{
    char *end;
    if (!word || !isdigit((unsigned char)*word)) return 0;
    unsigned long a = strtoul(word, &end, 10), b = 0;
    if (*end == '/') {
        if (!isdigit((unsigned char)end[1])) return 0;
        b = strtoul(end + 1, &end, 10);
        if (b < 1 || a > b) return 0;
    }
    if (*end || a > 100000 || b > 100000) return 0;
    *out = (share){(uint32_t)a, (uint32_t)b};
    return 1;
}

/* The next word of a text that is cut up, or NULL. */
static char *next_word(char **text)
{
    char *p = *text + strspn(*text, " \t"), *begin = p;
    if (!*p) return NULL;
    p += strcspn(p, " \t");
    if (*p) *p++ = 0;
    *text = p;
    return begin;
}

static pn_status bad_condition(const reading *g, const char *word, pn_error *err)
{
    return pn_fail(err, PN_E_CONFIG,
                   "%s: '%s' is no condition; wanted: first N, last N, every N, every N after M (N layers, or a share "
                   "of them such as 1/8), absent TENSOR, present TENSOR, several of them with 'or' between",
                   g->where, word ? word : "");
}

/* One condition whose first word was read; *after: the word behind it, or NULL. */
static pn_status parse_condition(const reading *g, char **text, char *word, condition *c, char **after, pn_error *err)
{
    static const char *const kinds[] = {"first", "last", "every", "absent", "present"};
    size_t kind = 0;
    share every;
    while (kind < 5 && strcmp(word, kinds[kind]) != 0) kind++;
    if (kind == 5) return bad_condition(g, word, err);
    c->kind = (condition_kind)kind;
    char *argument = next_word(text);
    *after = next_word(text);
    if (kind == ABSENT || kind == PRESENT) {
        if (!argument) return bad_condition(g, word, err);
        c->name = strdup(argument);
        return c->name ? PN_OK : no_memory(err);
    }
    if (kind != EVERY) return parse_share(argument, &c->part) ? PN_OK : bad_condition(g, argument, err);
    if (!parse_share(argument, &every) || every.b || !every.a) return bad_condition(g, argument, err);
    c->every = every.a;
    if (*after && strcmp(*after, "after") == 0) {
        argument = next_word(text);
        if (!parse_share(argument, &c->part)) return bad_condition(g, argument, err);
        *after = next_word(text);
    }
    return PN_OK;
}

/* "TYPE if CONDITION or CONDITION" */
static pn_status parse_rule(const reading *g, char *text, rule *out, pn_error *err)
{
    char *word = next_word(&text);
    if (!word) return pn_fail(err, PN_E_CONFIG, "%s: a type (or keep) is wanted", g->where);
    if (strcmp(word, "keep") != 0 && !(out->type = find_type(g->r->runtime, g->where, word, err))) return PN_E_CONFIG;
    word = next_word(&text);
    if (!word) return PN_OK;
    if (strcmp(word, "if") != 0)
        return pn_fail(err, PN_E_CONFIG, "%s: '%s' stands behind the type; wanted nothing, or: if CONDITION", g->where,
                       word);
    for (;;) {
        word = next_word(&text);
        if (!word) return bad_condition(g, word, err);
        condition *more = realloc(out->conditions, (out->n_conditions + 1) * sizeof *more);
        if (!more) return no_memory(err);
        out->conditions = more;
        condition *c = &more[out->n_conditions++];
        *c = (condition){0};
        pn_status st = parse_condition(g, &text, word, c, &word, err);
        if (st || !word) return st;
        if (strcmp(word, "or") != 0)
            return pn_fail(err, PN_E_CONFIG, "%s: '%s' stands behind a condition; wanted nothing, or: or CONDITION",
                           g->where, word);
    }
}

static pn_status add_rule(reading *g, const pn_ini_line *line, pn_error *err)
{
    recipe *r = g->r;
    rule *more = realloc(r->rules, (r->n_rules + 1) * sizeof *more);
    if (!more) return no_memory(err);
    r->rules = more;
    rule *new = &more[r->n_rules++];
    *new = (rule){.pattern = strdup(line->key), .line = line->line};
    char *text = strdup(line->value);
    pn_status st = new->pattern &&text ? parse_rule(g, text, new, err) : no_memory(err);
    free(text);
    return st;
}

static pn_status add_fallback(reading *g, const char *from, const char *to, pn_error *err)
{
    recipe *r = g->r;
    if (!*to) return pn_fail(err, PN_E_CONFIG, "%s: the name of a type is wanted", g->where);
    fallback *more = realloc(r->fallbacks, (r->n_fallbacks + 1) * sizeof *more);
    if (!more) return no_memory(err);
    r->fallbacks = more;
    fallback *new = &more[r->n_fallbacks++];
    *new = (fallback){from ? strdup(from) : NULL, strdup(to)};
    return (from && !new->from) || !new->to ? no_memory(err) : PN_OK;
}

static pn_status on_line(void *arg, const pn_ini_line *line, pn_error *err)
{
    static const char *const sections[] = {"recipe", "tensors"}, *const keys[] = {"summary", "fallback"};
    reading *g = arg;
    const char *near;
    snprintf(g->where, sizeof g->where, "%.500s:%zu", g->r->name, line->line);
    bool tensors = strcmp(line->section, "tensors") == 0;
    if (!tensors && strcmp(line->section, "recipe") != 0) {
        near = tool_nearest(line->section, sections, 2);
        return pn_fail(err, PN_E_CONFIG, "%s: a recipe has no section [%s]%s%s%s; it has [recipe] and [tensors]",
                       g->where, line->section, near ? "; did you mean [" : "", near ? near : "", near ? "]?" : "");
    }
    if (!line->key) return PN_OK;
    if (tensors) return add_rule(g, line, err);
    if (strcmp(line->key, "summary") == 0) return PN_OK;
    if (strcmp(line->key, "fallback") == 0) return add_fallback(g, NULL, line->value, err);
    if (strncmp(line->key, "fallback.", 9) == 0 && line->key[9])
        return add_fallback(g, line->key + 9, line->value, err);
    near = tool_nearest(line->key, keys, 2);
    return pn_fail(err, PN_E_CONFIG, "%s: [recipe] has no key '%s'%s%s%s; it has summary, fallback and fallback.TYPE",
                   g->where, line->key, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static recipe *read_text(const pn_runtime *runtime, const char *name, const char *text, size_t size)
{
    pn_error err = {0};
    recipe *r = calloc(1, sizeof *r);
    reading g = {.r = r};
    if (r) r->name = strdup(name);
    if (!r || !r->name) {
        tool_failf("no memory for a recipe");
        recipe_close(r);
        return NULL;
    }
    r->runtime = runtime;
    pn_status st = pn_ini_read(name, text, size, on_line, &g, &err);
    if (!st && !r->n_rules)
        st = pn_fail(&err, PN_E_CONFIG, "%s: the recipe has no rule; wanted a section [tensors] with PATTERN = TYPE",
                     name);
    if (!st) return r;
    tool_fail(&err);
    recipe_close(r);
    return NULL;
}

void recipe_close(recipe *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_rules; i++) {
        for (size_t k = 0; k < r->rules[i].n_conditions; k++) free(r->rules[i].conditions[k].name);
        free(r->rules[i].conditions);
        free(r->rules[i].pattern);
    }
    for (size_t i = 0; i < r->n_fallbacks; i++) {
        free(r->fallbacks[i].from);
        free(r->fallbacks[i].to);
    }
    free(r->rules);
    free(r->fallbacks);
    free(r->name);
    free(r);
}

/* ---- finding ---------------------------------------------------------------------------------------------------- */

enum { N_FOLDERS = 4, PATH_BYTES = 4096 };

/* Folder number `i` of those where recipes are looked for; "" when there is none. */
static const char *folder(size_t i, char *path)
{
    char program[PATH_BYTES - 64];
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    path[0] = 0;
    if (i == 0) {
        if (config && *config == '/') snprintf(path, PATH_BYTES, "%s/pantheon/quantize", config);
        else if (home && *home == '/') snprintf(path, PATH_BYTES, "%s/.config/pantheon/quantize", home);
        return path;
    }
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return path;
    program[n] = 0;
    for (size_t up = 0; up < (i == 3 ? 3u : 2u); up++) {
        char *slash = strrchr(program, '/');
        if (!slash) return path;
        *slash = 0;
    }
    /* Installed, or in a build tree: build/pantheon, build/VARIANT/pantheon. */
    snprintf(path, PATH_BYTES, "%s/%s", program, i == 1 ? "share/pantheon/conf/quantize" : "conf/quantize");
    return path;
}

static bool is_recipe(const char *file)
{
    size_t n = strlen(file);
    return n > 4 && file[0] != '.' && strcmp(file + n - 4, ".ini") == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the recipes that are found, sorted, each to be freed; with ".ini" cut off. */
static size_t recipe_names(char **names)
{
    char path[PATH_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < N_FOLDERS; i++) {
        DIR *d = *folder(i, path) ? opendir(path) : NULL;
        struct dirent *e;
        while (d && n < MOST_NAMES && (e = readdir(d)) != NULL) {
            size_t k = 0, length = strlen(e->d_name) - 4;
            if (!is_recipe(e->d_name)) continue;
            while (k < n && (strlen(names[k]) != length || memcmp(names[k], e->d_name, length) != 0)) k++;
            if (k == n && (names[n] = strndup(e->d_name, length)) != NULL) n++;
        }
        if (d) closedir(d);
    }
    qsort(names, n, sizeof *names, by_name);
    return n;
}

static recipe *read_path(const pn_runtime *runtime, const char *path)
{
    size_t size;
    char *text = tool_read_file(path, &size);
    recipe *r = text ? read_text(runtime, path, text, size) : NULL;
    free(text);
    return r;
}

/* The file of a recipe by its name (".ini" may be left out) in the usual folders; 1 when there is one. */
static int find_file(const char *name, char *path)
{
    char where[PATH_BYTES];
    for (size_t i = 0; i < N_FOLDERS; i++) {
        if (!*folder(i, where)) continue;
        int n = snprintf(path, PATH_BYTES, "%s/%s%s", where, name, is_recipe(name) ? "" : ".ini");
        if (n > 0 && n < PATH_BYTES && access(path, R_OK) == 0) return 1;
    }
    return 0;
}

static void unknown_name(const pn_runtime *runtime, const char *name)
{
    const char *types[MOST_NAMES], *both[2 * MOST_NAMES];
    char *recipes[MOST_NAMES], all_types[1024], all_recipes[1024];
    size_t n = type_names(runtime, types), m = recipe_names(recipes);
    for (size_t i = 0; i < n; i++) both[i] = types[i];
    for (size_t i = 0; i < m; i++) both[n + i] = recipes[i];
    const char *near = tool_nearest(name, both, n + m);
    tool_failf("no type that can be made and no recipe is called '%s'%s%s%s\ntypes: %s\nrecipes: %s", name,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
               join(types, n, all_types, sizeof all_types), join(both + n, m, all_recipes, sizeof all_recipes));
    for (size_t i = 0; i < m; i++) free(recipes[i]);
}

recipe *recipe_open(const pn_runtime *runtime, const char *name)
{
    char path[PATH_BYTES];
    pn_error err = {0};
    if (strchr(name, '/') || (is_recipe(name) && access(name, F_OK) == 0)) return read_path(runtime, name);
    const pn_quant *q = pn_runtime_find(runtime, PN_KIND_QUANT, name);
    if (q && q->quantize) {
        char text[sizeof UNIFORM + 256];
        int n = snprintf(text, sizeof text, "%s%s\n", UNIFORM, q->name);
        return read_text(runtime, q->name, text, (size_t)n);
    }
    if (find_file(name, path)) return read_path(runtime, path);
    if (q) {
        find_type(runtime, "quantize", name, &err);
        tool_fail(&err);
    } else {
        unknown_name(runtime, name);
    }
    return NULL;
}

void recipe_list(const pn_runtime *runtime)
{
    const char *types[MOST_NAMES];
    char *recipes[MOST_NAMES], path[PATH_BYTES];
    size_t n = type_names(runtime, types), m = recipe_names(recipes);
    printf("types:");
    for (size_t i = 0; i < n; i++) printf(" %s", types[i]);
    printf("\nrecipes:");
    for (size_t i = 0; i < m; i++) {
        printf(" ");
        tool_print_safe(stdout, recipes[i], strlen(recipes[i]), false);
        free(recipes[i]);
    }
    printf("\nfolders of recipes:");
    for (size_t i = 0; i < N_FOLDERS; i++)
        if (*folder(i, path) && access(path, R_OK) == 0) printf("\n  %s", path);
    printf("\n");
}

/* ---- choosing --------------------------------------------------------------------------------------------------- */

/* The number of the layer: the first part between dots that is one ("blk.12.attn_v.weight"). 0 when there is none. */
static int layer_of(const char *name, uint32_t *layer)
{
    for (const char *p = name; *p; p += *p == '.') {
        size_t n = strspn(p, "0123456789");
        if (n > 0 && n < 7 && p[n] == '.') {
            *layer = (uint32_t)strtoul(p, NULL, 10);
            return 1;
        }
        p += strcspn(p, ".");
    }
    return 0;
}

static int name_of(const pn_tensor *t, char *name, size_t capacity)
{
    if (!t->name.size || t->name.size >= capacity || memchr(t->name.data, 0, t->name.size)) return 0;
    memcpy(name, t->name.data, t->name.size);
    name[t->name.size] = 0;
    return 1;
}

uint32_t recipe_layers(pn_file *file)
{
    pn_role_value v = PN_OPTIONS_INIT(pn_role_value);
    char name[1024];
    int64_t said;
    uint32_t layer, layers = 0;
    for (size_t i = 0; i < pn_file_tensor_count(file); i++)
        if (name_of(pn_file_tensor_at(file, i), name, sizeof name) && layer_of(name, &layer) && layer >= layers)
            layers = layer + 1;
    if (pn_file_role(file, PN_ROLE_BLOCK_COUNT, &v, NULL) == PN_OK && v.present && pn_value_int(&v.value, &said) &&
        said > 0 && said < 1000000)
        layers = (uint32_t)said;
    return layers;
}

static bool holds(const condition *c, const pn_file *file, const char *name, uint32_t layers)
{
    uint32_t layer = 0;
    uint64_t a = c->part.a, b = c->part.b, part = b ? layers * a / b : a;
    if (c->kind == ABSENT) return pn_file_tensor(file, c->name) == NULL;
    if (c->kind == PRESENT) return pn_file_tensor(file, c->name) != NULL;
    if (!layer_of(name, &layer)) return false;
    switch (c->kind) {
    case FIRST: return layer < part;
    case LAST: return b ? layer >= layers * (b - a) / b : layer + a >= layers;
    default: return layer >= part && (layer - part + 1) % c->every == 0;
    }
}

static const rule *match(const recipe *r, const pn_file *file, const char *name, uint32_t layers)
{
    for (size_t i = 0; i < r->n_rules; i++) {
        const rule *x = &r->rules[i];
        bool good = x->n_conditions == 0;
        if (fnmatch(x->pattern, name, 0) != 0) continue;
        for (size_t k = 0; k < x->n_conditions && !good; k++) good = holds(&x->conditions[k], file, name, layers);
        if (good) return x;
    }
    return NULL;
}

static const char *fallback_of(const recipe *r, const char *type)
{
    const char *any = NULL;
    for (size_t i = r->n_fallbacks; i-- > 0;) { /* the last one given holds */
        if (!r->fallbacks[i].from) any = any ? any : r->fallbacks[i].to;
        else if (strcmp(r->fallbacks[i].from, type) == 0) return r->fallbacks[i].to;
    }
    return any;
}

/* Whole numbers are no weights. */
static bool is_integer_type(const char *type)
{
    return !strcmp(type, "i8") || !strcmp(type, "i16") || !strcmp(type, "i32") || !strcmp(type, "i64");
}

int recipe_choose(const recipe *r, const pn_file *file, const pn_tensor *t, uint32_t layers, recipe_choice *out)
{
    char name[1024];
    pn_error err = {0};
    *out = (recipe_choice){0};
    if (t->n_dims < 2 || !pn_tensor_elements(t) || (t->type && is_integer_type(t->type))) return 0;
    const rule *x = name_of(t, name, sizeof name) ? match(r, file, name, layers) : NULL;
    if (!x || !x->type) return 0;
    const pn_quant *q = x->type;
    uint64_t cols = t->dims[t->n_dims - 1];
    for (int steps = 0; !pn_quant_row_bytes(q, cols); steps++) {
        const char *next = fallback_of(r, q->name);
        snprintf(out->why, sizeof out->why, "rows of %llu do not divide into blocks of %u of %s",
                 (unsigned long long)cols, (unsigned)x->type->block_elems, x->type->name);
        if (!next || strcmp(next, q->name) == 0 || steps == 16) return 0;
        q = find_type(r->runtime, r->name, next, &err);
        if (!q) {
            pn_error_wrap(&err, "%s: %s, and its fallback", name, out->why);
            return tool_fail(&err);
        }
    }
    out->type = q;
    return 0;
}

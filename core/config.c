/* The store of configuration values: what each key is set to, by whom, and the public functions that ask for it. */
#include "alloc.h"
#include "config.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define uthash_malloc(size) pn_realloc(NULL, 1, size)
#define uthash_free(memory, size) pn_free(memory)
#include <uthash.h>

typedef struct value {
    char *name; /* the whole key, for keys with a part chosen by the user; else NULL */
    char *text, *source;
    uint32_t origin;
    size_t number;     /* its place in the slot's items */
    UT_hash_handle hh; /* by name */
} value;

/* What one key of the table is set to: no item (the built-in value), one, or many (lists, chosen names). */
typedef struct slot {
    value **items;
    size_t count, capacity;
    value *by_name;
} slot;

struct pn_config {
    slot slots[PN_KEY_COUNT_MAX];
    /* [sampling] bias as arrays, item by item as in its slot. */
    int32_t *bias_ids;
    float *bias_values;
    size_t bias_capacity;
};

static pn_status no_memory(pn_error *err, const char *source)
{
    return pn_fail(err, PN_E_NOMEM, "%s: no memory for the configuration", source);
}

static void value_free(value *v)
{
    if (!v) return;
    pn_free(v->name);
    pn_free(v->text);
    pn_free(v->source);
    pn_free(v);
}

static void slot_clear(slot *s)
{
    HASH_CLEAR(hh, s->by_name);
    for (size_t i = 0; i < s->count; i++) value_free(s->items[i]);
    pn_free(s->items);
    memset(s, 0, sizeof *s);
}

/* ---- making, copying --------------------------------------------------------------------------------------------- */

pn_status pn_config_create(pn_config **out, pn_error *err)
{
    pn_config *config = pn_calloc(1, sizeof *config);
    if (!config) return no_memory(err, "configuration");
    *out = config;
    return PN_OK;
}

void pn_config_destroy(pn_config *config)
{
    if (!config) return;
    for (size_t i = 0; i < PN_KEY_COUNT_MAX; i++) slot_clear(&config->slots[i]);
    pn_free(config->bias_ids);
    pn_free(config->bias_values);
    pn_free(config);
}

void pn_config_swap(pn_config *a, pn_config *b)
{
    pn_config c = *a;
    *a = *b;
    *b = c;
}

/* A value not yet in a slot, or NULL. */
static value *value_make(const char *name, const char *text, const char *source, uint32_t origin)
{
    value *v = pn_calloc(1, sizeof *v);
    if (!v) return NULL;
    v->name = name ? pn_strdup(name) : NULL;
    v->text = pn_strdup(text);
    v->source = pn_strdup(source);
    v->origin = origin;
    if (v->text && v->source && (v->name || !name)) return v;
    value_free(v);
    return NULL;
}

/* Room for one more item, in the bias arrays too. */
static bool slot_grow(pn_config *config, size_t key)
{
    slot *s = &config->slots[key];
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 4;
        value **items = pn_realloc(s->items, capacity, sizeof *items);
        if (!items) return false;
        s->items = items;
        s->capacity = capacity;
    }
    if (pn_key_at(key)->type == PN_KEY_FLOAT && pn_key_at(key)->flags & PN_KEY_PREFIX &&
        config->bias_capacity < s->capacity) {
        int32_t *ids = pn_realloc(config->bias_ids, s->capacity, sizeof *ids);
        if (!ids) return false;
        config->bias_ids = ids;
        float *values = pn_realloc(config->bias_values, s->capacity, sizeof *values);
        if (!values) return false;
        config->bias_values = values;
        config->bias_capacity = s->capacity;
    }
    return true;
}

/* Append `v`, which the slot owns from then on. */
static bool slot_append(pn_config *config, size_t key, value *v)
{
    slot *s = &config->slots[key];
    if (!slot_grow(config, key)) return false;
    v->number = s->count;
    if (v->name) {
        HASH_ADD_KEYPTR(hh, s->by_name, v->name, strlen(v->name), v);
        if (!v->hh.tbl) return false;
    }
    s->items[s->count++] = v;
    return true;
}

/* The numbers of a bias, which have been checked, into the arrays. */
static void note_bias(pn_config *config, size_t key, const value *v)
{
    const pn_key *k = pn_key_at(key);
    int64_t id;
    double bias;
    if (k->type != PN_KEY_FLOAT || !(k->flags & PN_KEY_PREFIX)) return;
    if (pn_key_parse_int(v->name + strlen(k->key), &id) && pn_key_parse_float(v->text, &bias)) {
        config->bias_ids[v->number] = (int32_t)id;
        config->bias_values[v->number] = bias < -FLT_MAX ? -INFINITY : (float)bias;
    }
}

pn_status pn_config_clone(const pn_config *config, pn_config **out, pn_error *err)
{
    pn_config *copy = NULL;
    pn_status status = pn_config_create(&copy, err);
    if (status != PN_OK) return status;
    for (size_t k = 0; k < pn_key_count(); k++)
        for (size_t i = 0; i < config->slots[k].count; i++) {
            const value *from = config->slots[k].items[i];
            value *v = value_make(from->name, from->text, from->source, from->origin);
            if (!v || !slot_append(copy, k, v)) {
                value_free(v);
                pn_config_destroy(copy);
                return no_memory(err, "configuration");
            }
            note_bias(copy, k, v);
        }
    *out = copy;
    return PN_OK;
}

/* ---- setting ----------------------------------------------------------------------------------------------------- */

/* The current folder, or NULL with `err` filled. */
static char *current_folder(const char *path, const char *where, pn_error *err)
{
    char *here = pn_calloc(PATH_MAX, 1);
    if (!here) {
        no_memory(err, where);
        return NULL;
    }
    if (getcwd(here, PATH_MAX)) return here;
    pn_fail(err, PN_E_CONFIG, "%s: the current folder has no path (%s), so '%.2000s' must be absolute", where,
            strerror(errno), path);
    pn_free(here);
    return NULL;
}

char *pn_config_path(const char *folder, const char *path, const char *where, pn_error *err)
{
    const char *base = folder, *rest = path;
    char *here = NULL, *joined;
    size_t size;
    if (!*path || *path == '/') base = "";
    else if (*path == '~' && (path[1] == '/' || !path[1])) {
        base = getenv("HOME");
        if (!base || *base != '/') {
            pn_fail(err, PN_E_CONFIG, "%s: '%.2000s' begins with ~, but the environment variable HOME names no folder",
                    where, path);
            return NULL;
        }
        rest = path[1] ? path + 2 : path + 1;
    } else if (!base) {
        base = here = current_folder(path, where, err);
        if (!here) return NULL;
    }
    while (*base && rest[0] == '.' && rest[1] == '/')
        for (rest += 2; *rest == '/';) rest++;
    size = strlen(base) + strlen(rest) + 2;
    joined = pn_calloc(size, 1);
    if (joined)
        snprintf(joined, size, "%s%s%s", base, *rest && *base && base[strlen(base) - 1] != '/' ? "/" : "", rest);
    else no_memory(err, where);
    pn_free(here);
    return joined;
}

/* Forget the items of a list that do not outrank `origin`. */
static void slot_forget(slot *s, uint32_t origin)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->items[i]->origin <= origin) {
            value_free(s->items[i]);
        } else {
            s->items[kept] = s->items[i];
            s->items[kept]->number = kept;
            kept++;
        }
    }
    s->count = kept;
}

/* The value that a new one of this key would replace, or NULL. */
static value *slot_find(const slot *s, const pn_key *key, const char *name)
{
    value *v = NULL;
    if (key->flags & PN_KEY_PREFIX) HASH_FIND(hh, s->by_name, name, strlen(name), v);
    else if (!(key->flags & PN_KEY_LIST) && s->count) v = s->items[0];
    return v;
}

static pn_status keep(pn_config *config, size_t k, const char *text, const pn_config_put_args *a, pn_error *err)
{
    const pn_key *key = pn_key_at(k);
    slot *s = &config->slots[k];
    value *old = slot_find(s, key, a->key), *v;
    if (old && old->origin > a->origin) return PN_OK;
    if (key->flags & PN_KEY_LIST && !*text) {
        slot_forget(s, a->origin);
        return PN_OK;
    }
    v = value_make(key->flags & PN_KEY_PREFIX ? a->key : NULL, text, a->source, a->origin);
    if (!v) return no_memory(err, a->source);
    if (old) { /* the old one stays where it is, with the new one's texts */
        char *t = old->text, *w = old->source;
        old->text = v->text;
        old->source = v->source;
        old->origin = v->origin;
        v->text = t;
        v->source = w;
        value_free(v);
        v = old;
    } else if (!slot_append(config, k, v)) {
        value_free(v);
        return no_memory(err, a->source);
    }
    note_bias(config, k, v);
    return PN_OK;
}

pn_status pn_config_put(pn_config *config, const pn_config_put_args *a, pn_error *err)
{
    size_t k = pn_key_find(a->section, a->key);
    const pn_key *key = pn_key_at(k);
    const char *text;
    char *path = NULL;
    pn_status status;
    if (!key) return pn_key_unknown(a->section, a->key, a->source, err);
    status = pn_key_check(key, a->key, a->value, a->source, &text, err);
    if (status != PN_OK) return status;
    if (key->flags & PN_KEY_PROSE && !a->quoted && strchr(text, '\\'))
        return pn_fail(err, PN_E_CONFIG,
                       "%s: [%s] %s: a backslash outside quotes; write \"...\" where \\n is a line feed and \\\\ "
                       "a backslash, or '...' where a backslash is just itself",
                       a->source, a->section, a->key);
    if (key->type == PN_KEY_PATH && *text) {
        path = pn_config_path(a->folder, text, a->source, err);
        if (!path) return err ? err->status : PN_E_CONFIG;
        text = path;
    }
    status = keep(config, k, text, a, err);
    pn_free(path);
    return status;
}

/* Could the key stand in an INI file? So everything that is set can be written down. */
static bool is_plain_key(const char *key)
{
    size_t n = strlen(key);
    if (!n || *key == ' ' || *key == '[' || *key == ';' || *key == '#' || key[n - 1] == ' ' || strpbrk(key, "=:"))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)key[i] < 0x20 || key[i] == 0x7f) return false;
    return pn_utf8_valid(key, n) == n;
}

pn_status pn_config_set_origin(pn_config *config, const char *name, const char *text, uint32_t origin, pn_error *err)
{
    static const char *const sources[] = {NULL, "model", "program", "command line"};
    const char *dot = strchr(name, '.');
    pn_config_put_args args = {.value = text, .origin = origin, .quoted = true};
    char *section;
    pn_status status;
    if (origin < PN_ORIGIN_MODEL || origin > PN_ORIGIN_COMMAND)
        return pn_fail(err, PN_E_ARGUMENT, "%.200s: %u is no origin that a value can be set with", name,
                       (unsigned)origin);
    args.source = sources[origin];
    if (!dot || dot == name || !dot[1])
        return pn_fail(err, PN_E_CONFIG, "%s: a key is given as section.key, for instance runtime.threads",
                       args.source);
    if (pn_utf8_valid(text, strlen(text)) != strlen(text))
        return pn_fail(err, PN_E_CONFIG, "%s: a value is not valid UTF-8", args.source);
    if (!is_plain_key(name) || !is_plain_key(dot + 1))
        return pn_fail(err, PN_E_CONFIG, "%s: the name of a key holds a character that no INI file could hold there",
                       args.source);
    section = pn_strndup(name, (size_t)(dot - name));
    if (!section) return no_memory(err, args.source);
    args.section = section;
    args.key = dot + 1;
    status = pn_config_put(config, &args, err);
    pn_free(section);
    return status;
}

pn_status pn_config_set(pn_config *config, const char *name, const char *text, pn_error *err)
{
    return pn_config_set_origin(config, name, text, PN_ORIGIN_COMMAND, err);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

const char *pn_config_text(const pn_config *config, const char *section, const char *name)
{
    size_t k = pn_key_find(section, name);
    const pn_key *key = pn_key_at(k);
    const slot *s;
    value *v;
    if (!key) return NULL;
    s = &config->slots[k];
    v = slot_find(s, key, name);
    if (key->flags & PN_KEY_LIST && s->count) v = s->items[0];
    return v ? v->text : key->fallback;
}

const char *pn_config_item(const pn_config *config, const char *section, const char *key, size_t index)
{
    size_t k = pn_key_find(section, key);
    if (k == SIZE_MAX || !(pn_key_at(k)->flags & PN_KEY_LIST) || index >= config->slots[k].count) return NULL;
    return config->slots[k].items[index]->text;
}

int64_t pn_config_int(const pn_config *config, const char *section, const char *key)
{
    const char *text = pn_config_text(config, section, key);
    int64_t i;
    double f;
    if (!text) return -1;
    if (pn_key_parse_int(text, &i)) return i;
    if (pn_key_parse_float(text, &f)) return f >= 9.2e18 ? INT64_MAX : f <= -9.2e18 ? INT64_MIN : (int64_t)f;
    return strcmp(text, "true") == 0 ? 1 : strcmp(text, "false") == 0 ? 0 : -1;
}

double pn_config_float(const pn_config *config, const char *section, const char *key)
{
    const char *text = pn_config_text(config, section, key);
    double f;
    return text && pn_key_parse_float(text, &f) ? f : (double)pn_config_int(config, section, key);
}

size_t pn_config_bias(const pn_config *config, const int32_t **ids, const float **values)
{
    *ids = config->bias_ids;
    *values = config->bias_values;
    return config->slots[pn_key_find("sampling", "bias.0")].count;
}

pn_status pn_config_entry_at(const pn_config *config, size_t index, pn_config_entry *out, pn_error *err)
{
    size_t at = index;
    for (size_t k = 0; k < pn_key_count(); k++) {
        const pn_key *key = pn_key_at(k);
        const slot *s = &config->slots[k];
        size_t shown = s->count || key->flags & PN_KEY_PREFIX ? s->count : 1;
        if (at >= shown) {
            at -= shown;
            continue;
        }
        const value *v = s->count ? s->items[at] : NULL;
        *out = (pn_config_entry){
            .struct_size = (uint32_t)sizeof *out,
            .origin = v ? v->origin : PN_ORIGIN_DEFAULT,
            .section = key->section,
            .key = v && v->name ? v->name : key->key,
            .value = v ? v->text : key->fallback,
            .source = v ? v->source : "default",
            .help = key->help,
        };
        return PN_OK;
    }
    return pn_fail(err, PN_E_RANGE, "the configuration has no entry %zu", index);
}

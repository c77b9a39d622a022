/* The registry: what is there under which name, pins and aliases, and the error for what is missing. Choice of
 * kernels: choice.c. */
#include "alloc.h"
#include "runtime.h"
#include "text.h"

#undef uthash_malloc
#undef uthash_free
#define uthash_malloc(size) pn_calloc(1, size)
#define uthash_free(memory, size) pn_free(memory)

#define KEY_MAX 288

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void free_reg(pn_reg *r)
{
    pn_free(r->note);
    pn_free(r);
}

void pn_registry_truncate(pn_runtime *rt, size_t count)
{
    while (rt->n_regs > count)
        free_reg(rt->regs[--rt->n_regs]);
}

void pn_registry_free(pn_runtime *rt)
{
    pn_claim *c, *next;
    HASH_ITER(hh, rt->claims, c, next)
    {
        HASH_DEL(rt->claims, c);
        pn_free(c);
    }
    pn_registry_truncate(rt, 0);
    pn_free(rt->regs);
    rt->regs = NULL;
    rt->cap_regs = 0;
}

pn_status pn_reg_note(pn_reg *reg, pn_error *err, const char *format, ...)
{
    char text[1024];
    size_t n = 0;
    va_list ap;
    if (reg->note)
        n = (size_t)snprintf(text, sizeof text, "%.500s; ", reg->note);
    va_start(ap, format);
    vsnprintf(text + n, sizeof text - n, format, ap);
    va_end(ap);
    char *copy = pn_strdup(text);
    if (!copy)
        return pn_fail(err, PN_E_NOMEM, "no memory for a note on %s '%s'", pn_kind_word(reg->e.kind), reg->e.name);
    pn_free(reg->note);
    reg->note = copy;
    return PN_OK;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

const char *pn_registry_pin(const pn_runtime *rt, uint32_t kind, const char *name, char *key, size_t capacity)
{
    char item[KEY_MAX];
    const char *section = kind == PN_KIND_QUANT ? "quant" : kind == PN_KIND_ARCH ? "arch" : "plugins";
    snprintf(key, capacity, "[%s] pin.%s", section, name);
    if ((size_t)snprintf(item, sizeof item, "pin.%s", name) >= sizeof item)
        return NULL;
    const char *value = pn_config_text(rt->config, section, item);
    return value && *value ? value : NULL;
}

/* The hash's key: the kind as a letter, then the name. 0 = too long to be anybody's. */
static size_t claim_key(char *key, size_t capacity, uint32_t kind, const char *name, size_t size)
{
    if (size + 1 > capacity)
        return 0;
    key[0] = (char)('a' + kind);
    if (size)
        memcpy(key + 1, name, size);
    return size + 1;
}

static pn_claim *find_claim(const pn_runtime *rt, uint32_t kind, const char *name, size_t size)
{
    char key[KEY_MAX];
    pn_claim *c = NULL;
    size_t n = claim_key(key, sizeof key, kind, name, size);
    if (n)
        HASH_FIND(hh, rt->claims, key, n, c);
    return c;
}

static pn_status add_claim(pn_runtime *rt, pn_reg *reg, const char *name, pn_error *err)
{
    size_t size = strlen(name);
    pn_claim *c = pn_calloc(1, sizeof *c + size + 1);
    if (!c)
        return pn_fail(err, PN_E_NOMEM, "no memory for the name '%s'", name);
    c->reg = reg;
    c->name = name;
    size_t n = claim_key(c->key, size + 1, reg->e.kind, name, size);
    HASH_ADD_KEYPTR(hh, rt->claims, c->key, n, c);
    if (!c->hh.tbl) {           /* uthash without memory leaves the item out */
        pn_free(c);
        return pn_fail(err, PN_E_NOMEM, "no memory for the name '%s'", name);
    }
    return PN_OK;
}

/* Which plugin holds (kind, name): the pinned one among those that claim it, else the only one. */
static pn_status settle_name(pn_runtime *rt, pn_reg *reg, const char *name, pn_error *err)
{
    char key[KEY_MAX + 32];
    const char *pin = pn_registry_pin(rt, reg->e.kind, name, key, sizeof key);
    uint32_t holder = reg->e.plugin;
    int rivals = 0, pinned = 0;
    for (size_t i = 0; i < rt->n_regs; i++) {
        const pn_reg *r = rt->regs[i];
        int claims = 0;
        for (uint32_t k = 0; r->e.kind == reg->e.kind && k < r->n_names; k++)
            claims |= !strcmp(r->names[k], name);
        if (!claims)
            continue;
        rivals |= r->e.plugin != reg->e.plugin;
        if (pin && !strcmp(rt->plugins[r->e.plugin]->id, pin)) {
            holder = r->e.plugin;
            pinned = 1;
        }
    }
    if (rivals && !pinned)
        return pn_fail(err, PN_E_CONFLICT, "several plugins bring %s '%s', and %s = %s names none of them",
                       pn_kind_word(reg->e.kind), name, key, pin ? pin : "");
    if (holder != reg->e.plugin)
        return pn_reg_note(reg, err, "'%s' is passed over: %s = %s", name, key, pin);
    if (rivals || pinned) {
        pn_status s = pn_reg_note(reg, err, "'%s' is pinned: %s = %s", name, key, pin);
        if (s != PN_OK)
            return s;
    } else if (pin) {
        pn_runtime_log(rt, PN_LOG_WARN, "%s = %s: that plugin brings no such %s; using %s", key, pin,
                       pn_kind_word(reg->e.kind), rt->plugins[reg->e.plugin]->id);
    }
    reg->n_active++;
    if (find_claim(rt, reg->e.kind, name, strlen(name)))
        return PN_OK;           /* another level of the same packing */
    return add_claim(rt, reg, name, err);
}

pn_status pn_registry_settle(pn_runtime *rt, pn_error *err)
{
    for (size_t i = 0; i < rt->n_regs; i++)
        for (uint32_t k = 0; k < rt->regs[i]->n_names; k++) {
            pn_status s = settle_name(rt, rt->regs[i], rt->regs[i]->names[k], err);
            if (s != PN_OK)
                return s;
        }
    return pn_choice_settle(rt, err);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

const pn_reg_entry *pn_registry_at(const pn_runtime *rt, uint32_t kind, size_t index)
{
    for (size_t i = 0; i < rt->n_regs; i++)
        if (rt->regs[i]->e.kind == kind && rt->regs[i]->n_active && index-- == 0)
            return &rt->regs[i]->e;
    return NULL;
}

const pn_reg_entry *pn_registry_find(const pn_runtime *rt, uint32_t kind, const char *name)
{
    const pn_reg *best;
    if (kind == PN_KIND_PACKING) {
        best = pn_registry_packing(rt, name);
        return best ? &best->e : NULL;
    }
    const pn_claim *c = find_claim(rt, kind, name, strlen(name));
    return c ? &c->reg->e : NULL;
}

const pn_reg_entry *pn_registry_arch(const pn_runtime *rt, pn_str name, const char **effective_name)
{
    char key[KEY_MAX];
    if (name.size && name.size < sizeof key - sizeof "alias." && !memchr(name.data, 0, name.size)) {
        snprintf(key, sizeof key, "alias.%.*s", (int)name.size, name.data);
        const char *alias = pn_config_text(rt->config, "arch", key);
        if (alias && *alias)
            name = pn_str_from(alias);
    }
    const pn_claim *c = find_claim(rt, PN_KIND_ARCH, name.data, name.size);
    if (c && effective_name)
        *effective_name = c->name;
    return c ? &c->reg->e : NULL;
}

const pn_reg_entry *pn_registry_tokenizer(const pn_runtime *rt, pn_str name)
{
    const pn_claim *c = find_claim(rt, PN_KIND_TOKENIZER, name.data, name.size);
    return c ? &c->reg->e : NULL;
}

/* [quant] alias.N names a type, or the plugin that brings one type. */
static const pn_quant *alias_target(const pn_runtime *rt, const char *value)
{
    const pn_reg_entry *e = pn_registry_find(rt, PN_KIND_QUANT, value);
    const pn_quant *only = NULL;
    if (e)
        return e->item;
    for (size_t i = 0; (e = pn_registry_at(rt, PN_KIND_QUANT, i)); i++)
        if (!strcmp(rt->plugins[e->plugin]->id, value)) {
            if (only)
                return NULL;
            only = e->item;
        }
    return only;
}

pn_status pn_registry_quant_alias(const pn_runtime *rt, uint64_t number, const char **name, uint32_t *elems,
                                  uint32_t *bytes, pn_error *err)
{
    char key[40];
    snprintf(key, sizeof key, "alias.%llu", (unsigned long long)number);
    const char *value = pn_config_text(rt->config, "quant", key);
    if (!value || !*value)
        return PN_OK;
    const pn_quant *q = alias_target(rt, value);
    if (!q) {
        pn_error local = {0};
        pn_registry_missing(rt, PN_KIND_QUANT, pn_str_from(value), &local);
        return pn_fail(err, PN_E_NOT_FOUND, "[quant] %s = %s: %s", key, value, local.message);
    }
    *name = q->name;
    if (elems)
        *elems = q->block_elems;
    if (bytes)
        *bytes = q->block_bytes;
    return PN_OK;
}

pn_status pn_registry_quant_number(const pn_runtime *rt, const char *name, uint64_t *number, pn_error *err)
{
    pn_config_entry e = PN_OPTIONS_INIT(pn_config_entry);
    const pn_reg_entry *wanted = pn_registry_find(rt, PN_KIND_QUANT, name);
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; wanted && !pn_config_entry_at(rt->config, i, &e, NULL); i++) {
        unsigned long long n;
        if (strcmp(e.section, "quant") || sscanf(e.key, "alias.%llu", &n) != 1) continue;
        const pn_quant *q = alias_target(rt, e.value);
        if (q && !strcmp(q->name, wanted->name) && n < least) least = n;
    }
    if (least == UINT64_MAX)
        return pn_fail(err, PN_E_NOT_FOUND, "no number stands for the type '%s': give it one with [quant] alias.N = %s",
                       name, name);
    *number = least;
    return PN_OK;
}

pn_status pn_registry_missing(const pn_runtime *rt, uint32_t kind, pn_str name, pn_error *err)
{
    char have[1024] = "", folders[1600];
    pn_text t = { have, sizeof have, 0 };
    size_t refused = 0;
    for (size_t i = 0; i < rt->n_regs; i++)
        for (uint32_t k = 0; rt->regs[i]->e.kind == kind && k < rt->regs[i]->n_names; k++)
            pn_text_add(&t, "%s%s", t.size ? ", " : "", rt->regs[i]->names[k]);
    for (size_t i = 0; i < rt->n_plugins; i++)
        refused += rt->plugins[i]->state == PN_PLUGIN_REFUSED;
    pn_runtime_folders_text(rt, folders, sizeof folders);
    int shown = name.size < 1000 ? (int)name.size : 1000;
    const char *what = name.data ? name.data : "";
    if (kind == PN_KIND_FORMAT)     /* the name is that of the file */
        pn_fail(err, PN_E_UNSUPPORTED, "%.*s: no plugin for its format; loaded: %s; searched: %s", shown, what,
                t.size ? have : "none", folders);
    else
        pn_fail(err, PN_E_UNSUPPORTED, "no plugin for %s '%.*s'; loaded: %s; searched: %s", pn_kind_word(kind), shown,
                what, t.size ? have : "none", folders);
    if (err && refused) {
        size_t n = strlen(err->message);
        snprintf(err->message + n, sizeof err->message - n, "; %zu plugin file%s refused (pantheon plugins says why)",
                 refused, refused == 1 ? " was" : "s were");
    }
    return PN_E_UNSUPPORTED;
}

/* The tokenizer of a model file: chooses the plugin that the file asks for and hands it what the configuration says. */
#include "tokenizer.h"

#include "alloc.h"
#include "registry.h"

struct pn_tokenizer {
    const pn_tokenizer_type *type;
    const pn_host *host;        /* the plugin's own table */
    void *state;
    pn_tokenizer_info info;
};

/* The file's own word for its kind of tokenizer. */
static pn_status kind_of(pn_file *file, pn_str *out, pn_error *err)
{
    pn_role_value r = { .struct_size = sizeof r };
    pn_status s = pn_file_role(file, PN_ROLE_TOKENIZER, &r, err);
    if (s)
        return s;
    if (!r.present)
        return pn_fail(err, PN_E_FORMAT, "%s says of no tokenizer (%s): text cannot be turned into tokens for it",
                       pn_file_path(file), r.key[0] ? r.key : "its format has no key for one");
    if (r.value.type != PN_T_STRING)
        return pn_fail(err, PN_E_FORMAT, "%s: %s is no string, so the kind of tokenizer is not known",
                       pn_file_path(file), r.key);
    *out = r.value.as.s;
    return PN_OK;
}

static pn_status open_state(pn_runtime *rt, pn_file *file, pn_tokenizer *t, pn_error *err)
{
    const pn_config *config = pn_runtime_config(rt);
    const char *add_bos = pn_config_text(config, "tokenizer", "add_bos");
    pn_tokenizer_options o = { .struct_size = sizeof o, .add_bos = -1 };
    pn_status s;
    if (add_bos && strcmp(add_bos, "auto"))
        o.add_bos = !strcmp(add_bos, "true");
    o.pattern = pn_config_text(config, "tokenizer", "pattern");
    if (o.pattern && !*o.pattern)
        o.pattern = NULL;
    o.pre = pn_config_text(config, "tokenizer", "pre");
    if (o.pre && !*o.pre)
        o.pre = NULL;
    s = t->type->open(t->host, file, &o, &t->state, err);
    if (s)
        pn_error_wrap(err, "%s", pn_file_path(file));
    return s;
}

pn_status pn_tokenizer_create(pn_runtime *rt, pn_file *file, pn_tokenizer **out, pn_error *err)
{
    static const pn_tokenizer_info nothing = { sizeof nothing, 0, -1, -1, -1, -1, -1, 0, 0 };
    const pn_reg_entry *entry;
    pn_tokenizer *t;
    pn_error own;
    pn_str kind;
    pn_status s;
    err = err ? err : &own;
    s = kind_of(file, &kind, err);
    if (s)
        return s;
    entry = pn_registry_tokenizer(rt, kind);
    if (!entry) {
        s = pn_registry_missing(rt, PN_KIND_TOKENIZER, kind, err);
        pn_error_wrap(err, "%s", pn_file_path(file));
        return s;
    }
    t = pn_calloc(1, sizeof *t);
    if (!t)
        return pn_fail(err, PN_E_NOMEM, "no memory for a tokenizer");
    t->type = entry->item;
    t->host = entry->host;
    if (!t->type->open || !t->type->info || !t->type->encode || !t->type->decode)
        s = pn_fail(err, PN_E_ABI, "the plugin of tokenizer %.*s lacks open, info, encode or decode",
                    (int)(kind.size < 80 ? kind.size : 80), kind.data);
    if (!s)
        s = open_state(rt, file, t, err);
    if (!s) {
        t->info = nothing;
        s = t->type->info(t->state, &t->info);
        if (s)
            pn_fail(err, s, "%s: the tokenizer says nothing about itself", pn_file_path(file));
    }
    if (s)
        pn_tokenizer_destroy(t);
    else
        *out = t;
    return s;
}

void pn_tokenizer_destroy(pn_tokenizer *t)
{
    if (!t)
        return;
    if (t->state && t->type->close)
        t->type->close(t->host, t->state);
    pn_free(t);
}

const pn_tokenizer_info *pn_tokenizer_get_info(const pn_tokenizer *t)
{
    return &t->info;
}

pn_status pn_tokenizer_encode(const pn_tokenizer *t, const char *text, size_t size, uint32_t flags, int32_t *ids,
                              size_t capacity, size_t *count, pn_error *err)
{
    pn_error own;
    return t->type->encode(t->host, t->state, text, size, flags, ids, capacity, count, err ? err : &own);
}

pn_status pn_tokenizer_decode(const pn_tokenizer *t, int32_t id, uint32_t flags, char *bytes, size_t capacity,
                              size_t *size, pn_error *err)
{
    pn_error own;
    return t->type->decode(t->state, id, flags, bytes, capacity, size, err ? err : &own);
}

int pn_tokenizer_ends(const pn_tokenizer *t, int32_t id)
{
    return id >= 0 && (id == t->info.eos || id == t->info.eot);
}

int32_t pn_tokenizer_token_type(const pn_tokenizer *t, int32_t id)
{
    return t->type->token_type ? t->type->token_type(t->state, id) : 0;
}

/* Most texts have fewer tokens than a third of their bytes; the others are asked for twice. */
pn_status pn_tokenizer_append(const pn_tokenizer *t, const char *text, size_t size, uint32_t flags, pn_ids *out,
                              pn_error *err)
{
    size_t capacity = size / 3 + 16, count = 0;
    int32_t *ids = NULL;
    pn_status s = PN_E_FULL;
    while (s == PN_E_FULL) {
        int32_t *more = pn_realloc(ids, capacity, sizeof *ids);
        if (!more) {
            s = pn_fail(err, PN_E_NOMEM, "no memory for the %zu tokens of a text", capacity);
            break;
        }
        ids = more;
        s = pn_tokenizer_encode(t, text, size, flags, ids, capacity, &count, err);
        if (s == PN_E_FULL && count <= capacity)
            s = pn_fail(err, PN_E_INTERNAL, "the tokenizer finds no room for %zu tokens in %zu", count, capacity);
        capacity = count;
    }
    if (!s)
        s = pn_ids_push(out, ids, count, err);
    pn_free(ids);
    return s;
}

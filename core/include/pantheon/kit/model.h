/* Reading a model's parameters: checked questions to a file by role, for architecture and tokenizer plugins.
 *
 *     st = pn_role_u32(host, file, PN_ROLE_BLOCK_COUNT, 1, 4096, &p->n_layers, err);
 *     st = pn_role_u32_or(host, file, PN_ROLE_KEY_LENGTH, p->width / p->n_heads, 1, 65536, &p->head_size, err);
 *     st = pn_role_layer_u32(host, file, PN_ROLE_FEED_FORWARD, layer, p->n_layers, 1, 1u << 24, &hidden, err);
 *
 * Every number is taken by its value, whatever integer or float type the file used for it. Each error names the file's
 * own key, what was found and the permitted range. On failure *out is unchanged.
 *
 *   required                 absent: fallback             what
 *   pn_role_u32              pn_role_u32_or               an integer; an array is accepted when all its items are equal
 *   pn_role_f32              pn_role_f32_or               a finite number; likewise
 *   pn_role_str              pn_role_str_or               text, not terminated, inside the file
 *                            pn_role_bool_or              a bool, or an integer 0 or 1
 *   pn_role_layer_u32        pn_role_layer_u32_or         of one layer: a scalar for all, or item `layer` of an array
 *   pn_role_layer_f32        pn_role_layer_f32_or         likewise
 *   pn_role_array            (its own flag)               an array of numbers or strings, for pn_value_at
 */
#ifndef PANTHEON_KIT_MODEL_H
#define PANTHEON_KIT_MODEL_H

#include <pantheon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The answer to a role. `required`: absence is an error that says what is missing. */
PN_UNUSED static inline pn_status pn_role_get(const pn_host *host, pn_file *file, const char *role, int required,
                                              pn_role_value *out, pn_error *err)
{
    pn_status st;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    st = pn_host_file_role(host, file, role, out, err);
    if (st == PN_OK && required && !out->present) {
        if (out->key[0])
            return pn_fail(err, PN_E_NOT_FOUND, "the model file lacks '%s' (%s), which this model needs", out->key,
                           role);
        return pn_fail(err, PN_E_NOT_FOUND, "the model file does not say its %s, which this model needs", role);
    }
    return st;
}

PN_UNUSED static inline const char *pn_role_key(const pn_role_value *v, const char *role)
{
    return v->key[0] ? v->key : role;
}

/* What a value is, in words, for messages: "text \"abc\"", "an array of 3 items", "7". Written to `text`. */
PN_UNUSED static inline const char *pn_value_words(const pn_value *v, char *text, size_t capacity)
{
    int n = v->type == PN_T_STRING && v->as.s.size < 40 ? (int)v->as.s.size : 40;
    switch (v->type) {
    case PN_T_NONE: snprintf(text, capacity, "nothing"); break;
    case PN_T_STRING: snprintf(text, capacity, "text \"%.*s\"", n, v->as.s.size ? v->as.s.data : ""); break;
    case PN_T_ARRAY: snprintf(text, capacity, "an array of %llu items", (unsigned long long)v->count); break;
    case PN_T_BOOL: snprintf(text, capacity, "%s", v->as.u ? "true" : "false"); break;
    case PN_T_F32: case PN_T_F64: snprintf(text, capacity, "%.9g", v->as.f); break;
    case PN_T_I8:
    case PN_T_I16:
    case PN_T_I32:
    case PN_T_I64: snprintf(text, capacity, "%lld", (long long)v->as.i); break;
    default: snprintf(text, capacity, "%llu", (unsigned long long)v->as.u); break;
    }
    return text;
}

/* One number of an answer: the scalar, or of an array item `layer` (layer < n_layers), or with n_layers = 0 the value
 * that all its items share. */
PN_UNUSED static inline pn_status pn_role_pick(const pn_role_value *v, const char *role, uint32_t layer,
                                               uint32_t n_layers, pn_value *out, pn_error *err)
{
    const char *key = pn_role_key(v, role);
    uint64_t i;
    double first = 0, other = 0;
    *out = v->value;
    if (v->value.type != PN_T_ARRAY)
        return PN_OK;
    if (v->value.count == 0)
        return pn_fail(err, PN_E_FORMAT, "'%s' is an empty array; wanted a number%s", key,
                       n_layers ? ", or one per layer" : "");
    if (n_layers) {
        if (v->value.count < n_layers || layer >= n_layers)
            return pn_fail(err, PN_E_FORMAT,
                           "'%s' has %llu items, but the model has %u layers: wanted a number, or one per layer", key,
                           (unsigned long long)v->value.count, (unsigned)n_layers);
        *out = pn_value_at(&v->value, layer);
        return PN_OK;
    }
    *out = pn_value_at(&v->value, 0);
    for (i = 0; i < v->value.count; i++) {
        pn_value item = pn_value_at(&v->value, i);
        if (!pn_value_float(&item, &other) || (i && other != first))
            return pn_fail(err, PN_E_UNSUPPORTED,
                           "'%s' is an array whose items differ or are no numbers (item %llu); wanted one number for "
                           "the whole model",
                           key, (unsigned long long)i);
        first = other;
    }
    return PN_OK;
}

PN_UNUSED static inline pn_status pn_role_as_u32(const pn_role_value *v, const char *role, uint32_t layer,
                                                 uint32_t n_layers, uint32_t min, uint32_t max, uint32_t *out,
                                                 pn_error *err)
{
    pn_value item;
    int64_t i = 0;
    char words[96];
    pn_status st = pn_role_pick(v, role, layer, n_layers, &item, err);
    if (st)
        return st;
    if (!pn_value_int(&item, &i) || i < (int64_t)min || i > (int64_t)max)
        return pn_fail(err, PN_E_RANGE, "'%s' is %s; wanted an integer from %u to %u", pn_role_key(v, role),
                       pn_value_words(&item, words, sizeof words), (unsigned)min, (unsigned)max);
    *out = (uint32_t)i;
    return PN_OK;
}

PN_UNUSED static inline pn_status pn_role_as_f32(const pn_role_value *v, const char *role, uint32_t layer,
                                                 uint32_t n_layers, double min, double max, float *out, pn_error *err)
{
    pn_value item;
    double d = 0;
    char words[96];
    pn_status st = pn_role_pick(v, role, layer, n_layers, &item, err);
    if (st)
        return st;
    if (!pn_value_float(&item, &d) || !(d >= min && d <= max) || !(d - d == 0))
        return pn_fail(err, PN_E_RANGE, "'%s' is %s; wanted a finite number from %g to %g", pn_role_key(v, role),
                       pn_value_words(&item, words, sizeof words), min, max);
    *out = (float)d;
    return PN_OK;
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

PN_UNUSED static inline pn_status pn_role_u32(const pn_host *host, pn_file *file, const char *role, uint32_t min,
                                              uint32_t max, uint32_t *out, pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 1, &v, err);
    return st ? st : pn_role_as_u32(&v, role, 0, 0, min, max, out, err);
}

/* The fallback is not checked against the range. */
PN_UNUSED static inline pn_status pn_role_u32_or(const pn_host *host, pn_file *file, const char *role,
                                                 uint32_t fallback, uint32_t min, uint32_t max, uint32_t *out,
                                                 pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 0, &v, err);
    if (st)
        return st;
    if (!v.present) {
        *out = fallback;
        return PN_OK;
    }
    return pn_role_as_u32(&v, role, 0, 0, min, max, out, err);
}

PN_UNUSED static inline pn_status pn_role_layer_u32(const pn_host *host, pn_file *file, const char *role,
                                                    uint32_t layer, uint32_t n_layers, uint32_t min, uint32_t max,
                                                    uint32_t *out, pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 1, &v, err);
    return st ? st : pn_role_as_u32(&v, role, layer, n_layers, min, max, out, err);
}

PN_UNUSED static inline pn_status pn_role_layer_u32_or(const pn_host *host, pn_file *file, const char *role,
                                                       uint32_t layer, uint32_t n_layers, uint32_t fallback,
                                                       uint32_t min, uint32_t max, uint32_t *out, pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 0, &v, err);
    if (st)
        return st;
    if (!v.present) {
        *out = fallback;
        return PN_OK;
    }
    return pn_role_as_u32(&v, role, layer, n_layers, min, max, out, err);
}

/* ---- floats ------------------------------------------------------------------------------------------------------ */

PN_UNUSED static inline pn_status pn_role_f32(const pn_host *host, pn_file *file, const char *role, double min,
                                              double max, float *out, pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 1, &v, err);
    return st ? st : pn_role_as_f32(&v, role, 0, 0, min, max, out, err);
}

PN_UNUSED static inline pn_status pn_role_f32_or(const pn_host *host, pn_file *file, const char *role, float fallback,
                                                 double min, double max, float *out, pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 0, &v, err);
    if (st)
        return st;
    if (!v.present) {
        *out = fallback;
        return PN_OK;
    }
    return pn_role_as_f32(&v, role, 0, 0, min, max, out, err);
}

PN_UNUSED static inline pn_status pn_role_layer_f32(const pn_host *host, pn_file *file, const char *role,
                                                    uint32_t layer, uint32_t n_layers, double min, double max,
                                                    float *out, pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 1, &v, err);
    return st ? st : pn_role_as_f32(&v, role, layer, n_layers, min, max, out, err);
}

PN_UNUSED static inline pn_status pn_role_layer_f32_or(const pn_host *host, pn_file *file, const char *role,
                                                       uint32_t layer, uint32_t n_layers, float fallback, double min,
                                                       double max, float *out, pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 0, &v, err);
    if (st)
        return st;
    if (!v.present) {
        *out = fallback;
        return PN_OK;
    }
    return pn_role_as_f32(&v, role, layer, n_layers, min, max, out, err);
}

/* ---- strings, bools, arrays -------------------------------------------------------------------------------------- */

PN_UNUSED static inline pn_status pn_role_as_str(const pn_role_value *v, const char *role, pn_str *out, pn_error *err)
{
    char words[96];
    if (v->value.type != PN_T_STRING)
        return pn_fail(err, PN_E_FORMAT, "'%s' is %s; wanted text", pn_role_key(v, role),
                       pn_value_words(&v->value, words, sizeof words));
    *out = v->value.as.s;
    return PN_OK;
}

PN_UNUSED static inline pn_status pn_role_str(const pn_host *host, pn_file *file, const char *role, pn_str *out,
                                              pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 1, &v, err);
    return st ? st : pn_role_as_str(&v, role, out, err);
}

/* `fallback` is static, or NULL for {NULL, 0}. */
PN_UNUSED static inline pn_status pn_role_str_or(const pn_host *host, pn_file *file, const char *role,
                                                 const char *fallback, pn_str *out, pn_error *err)
{
    pn_role_value v;
    pn_status st = pn_role_get(host, file, role, 0, &v, err);
    if (st)
        return st;
    if (!v.present) {
        *out = pn_str_from(fallback);
        return PN_OK;
    }
    return pn_role_as_str(&v, role, out, err);
}

PN_UNUSED static inline pn_status pn_role_bool_or(const pn_host *host, pn_file *file, const char *role, int fallback,
                                                  int *out, pn_error *err)
{
    uint32_t u = fallback ? 1 : 0;
    pn_status st = pn_role_u32_or(host, file, role, u, 0, 1, &u, err);
    if (st == PN_OK)
        *out = (int)u;
    return st;
}

/* An array whose items are numbers (strings = 0) or strings (strings = 1). Absent: an error when `required`, else an
 * empty value of type PN_T_NONE. */
PN_UNUSED static inline pn_status pn_role_array(const pn_host *host, pn_file *file, const char *role, int strings,
                                                int required, pn_value *out, pn_error *err)
{
    pn_role_value v;
    char words[96];
    pn_status st = pn_role_get(host, file, role, required, &v, err);
    if (st)
        return st;
    if (!v.present) {
        memset(out, 0, sizeof *out);
        return PN_OK;
    }
    if (v.value.type != PN_T_ARRAY ||
        (v.value.count && (strings ? v.value.item_type != PN_T_STRING : !pn_type_size(v.value.item_type))))
        return pn_fail(err, PN_E_FORMAT, "'%s' is %s; wanted an array of %s", pn_role_key(&v, role),
                       v.value.type == PN_T_ARRAY ? "an array of something else"
                                                  : pn_value_words(&v.value, words, sizeof words),
                       strings ? "strings" : "numbers");
    *out = v.value;
    return PN_OK;
}

#ifdef __cplusplus
}
#endif
#endif

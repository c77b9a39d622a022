/* The words in which an architecture plugin writes its plan: static inline wrappers over pn_host_plan_*, with an error
 * that sticks.
 *
 *     pn_words w = pn_words_begin(host, plan, err);
 *     pn_val x = pn_embed(&w, pn_matrix(&w, vocab, width, "token_embd.weight"));
 *     ...
 *     pn_output(&w, logits);
 *     return w.status;
 *
 * After the first failure every word does nothing and returns 0, so only the end needs a check.
 *
 * Neutral tensor names (format plugins map them to a file's own): "token_embd.weight", "output_norm.weight",
 * "output.weight", "rope_freqs.weight", and per layer N "blk.N." with attn_norm, attn_q, attn_k, attn_v, attn_qkv,
 * attn_output, ffn_norm, ffn_gate, ffn_up, ffn_down, each + ".weight" or ".bias".
 */
#ifndef PANTHEON_KIT_PLAN_H
#define PANTHEON_KIT_PLAN_H

#include <pantheon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_words {
    const pn_host *host;
    pn_plan *plan;
    pn_error *err;
    uint32_t layer;   /* set by the caller as it walks the layers */
    pn_status status; /* first failure */
} pn_words;

PN_UNUSED static inline pn_words pn_words_begin(const pn_host *host, pn_plan *plan, pn_error *err)
{
    pn_words w;
    memset(&w, 0, sizeof w);
    w.host = host;
    w.plan = plan;
    w.err = err;
    return w;
}

/* A weight of shape {rows, cols} (rows = 0 in n_dims 1: a vector of cols). `name` is a printf format, usually with the
 * layer. */
PN_UNUSED static inline pn_wt pn_weight_v(pn_words *w, uint32_t flags, uint32_t n_dims, uint64_t rows, uint64_t cols,
                                          const char *name, va_list ap)
{
    char text[128];
    pn_weight_request r;
    pn_wt out = 0;
    if (w->status) return 0;
    vsnprintf(text, sizeof text, name, ap);
    memset(&r, 0, sizeof r);
    r.struct_size = sizeof r;
    r.flags = flags;
    r.name = text;
    r.n_dims = n_dims;
    r.dims[0] = n_dims == 1 ? cols : rows;
    r.dims[1] = n_dims == 1 ? 0 : cols;
    w->status = pn_host_plan_weight(w->host, w->plan, &r, &out, w->err);
    return out;
}

/* A matrix {rows, cols} / a vector {n} that must be there, and the same that may be absent (0). */
PN_UNUSED PN_PRINTF(4, 5) static inline pn_wt
    pn_matrix(pn_words *w, uint64_t rows, uint64_t cols, const char *name, ...)
{
    va_list ap;
    pn_wt r;
    va_start(ap, name);
    r = pn_weight_v(w, 0, 2, rows, cols, name, ap);
    va_end(ap);
    return r;
}

PN_UNUSED PN_PRINTF(4, 5) static inline pn_wt
    pn_matrix_opt(pn_words *w, uint64_t rows, uint64_t cols, const char *name, ...)
{
    va_list ap;
    pn_wt r;
    va_start(ap, name);
    r = pn_weight_v(w, PN_WEIGHT_OPTIONAL, 2, rows, cols, name, ap);
    va_end(ap);
    return r;
}

PN_UNUSED PN_PRINTF(3, 4) static inline pn_wt pn_vector(pn_words *w, uint64_t n, const char *name, ...)
{
    va_list ap;
    pn_wt r;
    va_start(ap, name);
    r = pn_weight_v(w, 0, 1, 0, n, name, ap);
    va_end(ap);
    return r;
}

PN_UNUSED PN_PRINTF(3, 4) static inline pn_wt pn_vector_opt(pn_words *w, uint64_t n, const char *name, ...)
{
    va_list ap;
    pn_wt r;
    va_start(ap, name);
    r = pn_weight_v(w, PN_WEIGHT_OPTIONAL, 1, 0, n, name, ap);
    va_end(ap);
    return r;
}

/* Rows begin .. begin + count - 1 of a matrix {rows, cols}: one part of a fused projection. */
PN_UNUSED PN_PRINTF(6, 7) static inline pn_wt
    pn_matrix_part(pn_words *w, uint64_t rows, uint64_t cols, uint64_t begin, uint64_t count, const char *name, ...)
{
    char text[128];
    pn_weight_request r;
    pn_wt out = 0;
    va_list ap;
    if (w->status) return 0;
    va_start(ap, name);
    vsnprintf(text, sizeof text, name, ap);
    va_end(ap);
    memset(&r, 0, sizeof r);
    r.struct_size = sizeof r;
    r.name = text;
    r.n_dims = 2;
    r.dims[0] = rows;
    r.dims[1] = cols;
    r.row_begin = begin;
    r.rows = count;
    w->status = pn_host_plan_weight(w->host, w->plan, &r, &out, w->err);
    return out;
}

/* Any operation by name: the words below, and a plugin's own. */
PN_UNUSED static inline pn_val pn_word(pn_words *w, const char *op, const pn_val *inputs, uint32_t n_inputs,
                                       const pn_wt *weights, uint32_t n_weights, const void *params, size_t params_size)
{
    pn_op_call c;
    pn_val out = 0;
    if (w->status) return 0;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.layer = w->layer;
    c.op = op;
    c.inputs = inputs;
    c.n_inputs = n_inputs;
    c.weights = weights;
    c.n_weights = n_weights;
    c.params = params;
    c.params_size = params_size;
    w->status = pn_host_plan_op(w->host, w->plan, &c, &out, w->err);
    return out;
}

/* Row `token` of the table {vocabulary, width} for every token: [width]. */
PN_UNUSED static inline pn_val pn_embed(pn_words *w, pn_wt table)
{
    return pn_word(w, "embed", NULL, 0, &table, 1, NULL, 0);
}

/* x / sqrt(mean(x^2) + eps) * scale (Zhang and Sennrich 2019, arXiv:1910.07467): [n] -> [n]. */
PN_UNUSED static inline pn_val pn_rms_norm(pn_words *w, pn_val x, pn_wt scale, float eps)
{
    pn_norm_params p = {sizeof p, eps};
    return pn_word(w, "rms_norm", &x, 1, &scale, 1, &p, sizeof p);
}

/* (x - mean) / sqrt(variance + eps) * scale + bias (Ba et al. 2016, arXiv:1607.06450); bias may be 0: [n] -> [n]. */
PN_UNUSED static inline pn_val pn_layer_norm(pn_words *w, pn_val x, pn_wt scale, pn_wt bias, float eps)
{
    pn_norm_params p = {sizeof p, eps};
    pn_wt ws[2];
    ws[0] = scale;
    ws[1] = bias;
    return pn_word(w, "layer_norm", &x, 1, ws, 2, &p, sizeof p);
}

/* weight x + bias; bias may be 0: [cols] -> [rows]. */
PN_UNUSED static inline pn_val pn_linear(pn_words *w, pn_val x, pn_wt weight, pn_wt bias)
{
    pn_wt ws[2];
    ws[0] = weight;
    ws[1] = bias;
    return pn_word(w, "linear", &x, 1, ws, 2, NULL, 0);
}

/* Rotary embedding, see pn_rope_params; factors may be 0: [heads * head_size] -> the same. */
PN_UNUSED static inline pn_val pn_rope(pn_words *w, pn_val x, pn_wt factors, pn_wt long_factors,
                                       const pn_rope_params *p)
{
    pn_wt ws[2];
    ws[0] = factors;
    ws[1] = long_factors;
    return pn_word(w, "rope", &x, 1, ws, 2, p, sizeof *p);
}

/* Causal attention, see pn_attention_params: [n_heads * key_size], [n_kv * key_size], [n_kv * value_size] -> [n_heads *
 * value_size]. */
PN_UNUSED static inline pn_val pn_attention(pn_words *w, pn_val q, pn_val k, pn_val v, const pn_attention_params *p)
{
    pn_val in[3];
    in[0] = q;
    in[1] = k;
    in[2] = v;
    return pn_word(w, "attention", in, 3, NULL, 0, p, sizeof *p);
}

/* Element by element: [n], [n] -> [n]. */
PN_UNUSED static inline pn_val pn_add(pn_words *w, pn_val a, pn_val b)
{
    pn_val in[2];
    in[0] = a;
    in[1] = b;
    return pn_word(w, "add", in, 2, NULL, 0, NULL, 0);
}

PN_UNUSED static inline pn_val pn_mul(pn_words *w, pn_val a, pn_val b)
{
    pn_val in[2];
    in[0] = a;
    in[1] = b;
    return pn_word(w, "mul", in, 2, NULL, 0, NULL, 0);
}

PN_UNUSED static inline pn_val pn_scale(pn_words *w, pn_val x, float factor)
{
    pn_scale_params p = {sizeof p, factor};
    return pn_word(w, "scale", &x, 1, NULL, 0, &p, sizeof p);
}

/* PN_ACT_*: silu x / (1 + e^-x); gelu as tanh approximation or exact (Hendrycks and Gimpel 2016, arXiv:1606.08415);
 * relu. */
PN_UNUSED static inline pn_val pn_activation(pn_words *w, pn_val x, uint32_t kind)
{
    pn_activation_params p = {sizeof p, kind};
    return pn_word(w, "activation", &x, 1, NULL, 0, &p, sizeof p);
}

/* act(gate) * up (Shazeer 2020, arXiv:2002.05202): [n], [n] -> [n]. */
PN_UNUSED static inline pn_val pn_glu(pn_words *w, pn_val gate, pn_val up, uint32_t kind)
{
    pn_activation_params p = {sizeof p, kind};
    pn_val in[2];
    in[0] = gate;
    in[1] = up;
    return pn_word(w, "glu", in, 2, NULL, 0, &p, sizeof p);
}

/* Elements begin .. begin + width - 1: [n] -> [width]. */
PN_UNUSED static inline pn_val pn_slice(pn_words *w, pn_val x, uint32_t begin, uint32_t width)
{
    pn_slice_params p = {sizeof p, begin, width};
    return pn_word(w, "slice", &x, 1, NULL, 0, &p, sizeof p);
}

/* In the layer w->layer: linear with "blk.N.NAME.weight" {rows, cols} and "blk.N.NAME.bias" when the file has it. */
PN_UNUSED static inline pn_val pn_layer_linear(pn_words *w, pn_val x, uint64_t rows, uint64_t cols, const char *name)
{
    pn_wt weight = pn_matrix(w, rows, cols, "blk.%u.%s.weight", (unsigned)w->layer, name);
    return pn_linear(w, x, weight, pn_vector_opt(w, rows, "blk.%u.%s.bias", (unsigned)w->layer, name));
}

/* In the layer w->layer: rms_norm with "blk.N.NAME.weight". */
PN_UNUSED static inline pn_val pn_layer_rms_norm(pn_words *w, pn_val x, uint64_t width, const char *name, float eps)
{
    return pn_rms_norm(w, x, pn_vector(w, width, "blk.%u.%s.weight", (unsigned)w->layer, name), eps);
}

/* Only the tokens whose logits are wanted: what follows is computed for those alone. */
PN_UNUSED static inline pn_val pn_select(pn_words *w, pn_val x)
{
    return pn_word(w, "select", &x, 1, NULL, 0, NULL, 0);
}

/* The logits: [vocabulary]. */
PN_UNUSED static inline void pn_output(pn_words *w, pn_val logits)
{
    if (!w->status) w->status = pn_host_plan_output(w->host, w->plan, logits, PN_OUTPUT_LOGITS, w->err);
}

#ifdef __cplusplus
}
#endif
#endif

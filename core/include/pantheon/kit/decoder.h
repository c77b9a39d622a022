/* What the decoder-only architectures share: their parameters as a file gives them, rotated attention over the cache,
 * the gated feed-forward, the output head. For architecture plugins, on top of the words of kit/plan.h. */
#ifndef PANTHEON_KIT_DECODER_H
#define PANTHEON_KIT_DECODER_H

#include <pantheon/kit/model.h>
#include <pantheon/kit/plan.h>
#include <pantheon/kit/rope.h>

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_decoder {
    uint32_t n_layers;
    uint32_t width; /* of the residual stream */
    uint32_t n_heads, n_kv_heads;
    uint32_t key_size, value_size;
    uint32_t q_width, k_width, v_width; /* heads times sizes */
    uint32_t window;                    /* 0: every earlier token is seen */
    float eps;                          /* of the norms */
    float attn_scale;
    pn_rope_params rope;
    uint32_t *hidden; /* [n_layers] width of the feed-forward; memory of pn_host_alloc */
} pn_decoder;

PN_UNUSED static inline void pn_decoder_free(const pn_host *host, pn_decoder *d)
{
    pn_host_free(host, d->hidden, NULL);
    d->hidden = NULL;
}

/* Read and check everything. `eps_role`: PN_ROLE_RMS_EPS or PN_ROLE_NORM_EPS; `pairing`: "interleaved" or "halves", see
 * pn_rope_from_file. On failure nothing is held. */
PN_UNUSED static inline pn_status pn_decoder_read(const pn_host *host, pn_file *file, const char *eps_role,
                                                  const char *pairing, pn_decoder *d, pn_error *err)
{
    pn_status st;
    void *memory = NULL;
    uint32_t i;
    memset(d, 0, sizeof *d);
    if ((st = pn_role_u32(host, file, PN_ROLE_BLOCK_COUNT, 1, 4096, &d->n_layers, err)) ||
        (st = pn_role_u32(host, file, PN_ROLE_EMBEDDING_LENGTH, 1, 1u << 20, &d->width, err)) ||
        (st = pn_role_u32(host, file, PN_ROLE_HEAD_COUNT, 1, 4096, &d->n_heads, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_HEAD_COUNT_KV, d->n_heads, 1, d->n_heads, &d->n_kv_heads, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_KEY_LENGTH, d->width / d->n_heads, 1, 4096, &d->key_size, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_VALUE_LENGTH, d->key_size, 1, 4096, &d->value_size, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_SLIDING_WINDOW, 0, 0, INT32_MAX, &d->window, err)) ||
        (st = pn_role_f32(host, file, eps_role, 0, 1, &d->eps, err)))
        return st;
    if (!d->key_size || d->n_heads % d->n_kv_heads)
        return pn_fail(err, PN_E_FORMAT, "%u heads over a width of %u and %u key/value heads do not fit together",
                       (unsigned)d->n_heads, (unsigned)d->width, (unsigned)d->n_kv_heads);
    d->q_width = d->n_heads * d->key_size;
    d->k_width = d->n_kv_heads * d->key_size;
    d->v_width = d->n_kv_heads * d->value_size;
    if ((st = pn_role_f32_or(host, file, PN_ROLE_ATTN_SCALE, 1.0f / sqrtf((float)d->key_size), 1e-6, 1e6,
                             &d->attn_scale, err)) ||
        (st = pn_rope_from_file(host, file, d->key_size, pairing, &d->rope, err)) ||
        (st = pn_host_alloc(host, d->n_layers, sizeof *d->hidden, &memory, err)))
        return st;
    d->hidden = (uint32_t *)memory;
    for (i = 0; i < d->n_layers && !st; i++)
        st = pn_role_layer_u32(host, file, PN_ROLE_FEED_FORWARD, i, d->n_layers, 1, 1u << 24, &d->hidden[i], err);
    if (st) pn_decoder_free(host, d);
    return st;
}

/* pn_arch.configure and .release for architectures whose parameters are a pn_decoder and nothing else. */
PN_UNUSED static inline pn_status pn_decoder_configure(const pn_host *host, pn_file *file, const char *eps_role,
                                                       const char *pairing, void **params, pn_error *err)
{
    void *memory = NULL;
    pn_status st = pn_host_alloc(host, 1, sizeof(pn_decoder), &memory, err);
    if (st) return st;
    st = pn_decoder_read(host, file, eps_role, pairing, (pn_decoder *)memory, err);
    if (st) pn_host_free(host, memory, NULL);
    else *params = memory;
    return st;
}

PN_UNUSED static inline void pn_decoder_release(const pn_host *host, void *params)
{
    pn_decoder_free(host, (pn_decoder *)params);
    pn_host_free(host, params, NULL);
}

/* 1 in the last layer: after its attention only the tokens whose logits are wanted matter. */
PN_UNUSED static inline int pn_decoder_last(const pn_words *w, const pn_decoder *d)
{
    return w->layer + 1 == d->n_layers;
}

/* x, or in the last layer the selected tokens of x. */
PN_UNUSED static inline pn_val pn_decoder_select(pn_words *w, const pn_decoder *d, pn_val x)
{
    return pn_decoder_last(w, d) ? pn_select(w, x) : x;
}

/* Rotates q [q_width] and k [k_width], attends: [n_heads * value_size], selected in the last layer. */
PN_UNUSED static inline pn_val pn_decoder_attend(pn_words *w, const pn_decoder *d, pn_val q, pn_val k, pn_val v,
                                                 pn_wt factors, pn_wt long_factors)
{
    pn_attention_params a;
    memset(&a, 0, sizeof a);
    a.struct_size = sizeof a;
    a.n_heads = d->n_heads;
    a.n_kv_heads = d->n_kv_heads;
    a.key_size = d->key_size;
    a.value_size = d->value_size;
    a.window = d->window;
    a.scale = d->attn_scale;
    q = pn_rope(w, q, factors, long_factors, &d->rope);
    k = pn_rope(w, k, factors, long_factors, &d->rope);
    return pn_decoder_select(w, d, pn_attention(w, q, k, v, &a));
}

/* x [width] -> down(silu(gate x) * up x) [width], from ffn_gate, ffn_up, ffn_down. */
PN_UNUSED static inline pn_val pn_decoder_swiglu(pn_words *w, const pn_decoder *d, pn_val x)
{
    uint32_t hidden = d->hidden[w->layer];
    pn_val gate = pn_layer_linear(w, x, hidden, d->width, "ffn_gate");
    pn_val up = pn_layer_linear(w, x, hidden, d->width, "ffn_up");
    return pn_layer_linear(w, pn_glu(w, gate, up, PN_ACT_SILU), d->width, hidden, "ffn_down");
}

/* One pre-norm layer with separate projections: x + attention(norm x), then x + feed-forward(norm x). */
PN_UNUSED static inline pn_val pn_decoder_layer(pn_words *w, const pn_decoder *d, pn_val x, pn_wt factors)
{
    pn_val n = pn_layer_rms_norm(w, x, d->width, "attn_norm", d->eps);
    pn_val q = pn_layer_linear(w, n, d->q_width, d->width, "attn_q");
    pn_val k = pn_layer_linear(w, n, d->k_width, d->width, "attn_k");
    pn_val v = pn_layer_linear(w, n, d->v_width, d->width, "attn_v");
    pn_val o = pn_decoder_attend(w, d, q, k, v, factors, 0);
    x = pn_add(w, pn_decoder_select(w, d, x),
               pn_layer_linear(w, o, d->width, d->n_heads * d->value_size, "attn_output"));
    n = pn_layer_rms_norm(w, x, d->width, "ffn_norm", d->eps);
    return pn_add(w, x, pn_decoder_swiglu(w, d, n));
}

/* x [width] -> logits: "output.weight", or the embedding's table where the file has none (tied). */
PN_UNUSED static inline void pn_decoder_output(pn_words *w, const pn_decoder *d, pn_val x, pn_wt table)
{
    pn_wt head = pn_matrix_opt(w, 0, d->width, "output.weight");
    pn_output(w, pn_linear(w, x, head ? head : table, pn_vector_opt(w, 0, "output.bias")));
}

/* A whole model of such layers, with an RMS norm before the output. */
PN_UNUSED static inline pn_status pn_decoder_build(const pn_host *host, pn_plan *plan, const pn_decoder *d,
                                                   pn_error *err)
{
    pn_words w = pn_words_begin(host, plan, err);
    pn_wt table = pn_matrix(&w, 0, d->width, "token_embd.weight");
    pn_wt factors = pn_vector_opt(&w, d->rope.n_dims / 2, "rope_freqs.weight");
    pn_val x = pn_embed(&w, table);
    for (w.layer = 0; w.layer < d->n_layers && !w.status; w.layer++) x = pn_decoder_layer(&w, d, x, factors);
    pn_decoder_output(&w, d, pn_rms_norm(&w, x, pn_vector(&w, d->width, "output_norm.weight"), d->eps), table);
    return w.status;
}

#ifdef __cplusplus
}
#endif
#endif

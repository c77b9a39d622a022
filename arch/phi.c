/* The phi architectures. "phi" and "phi2" (Li et al. 2023, arXiv:2309.05463): one layer norm with bias, attention and
 * GELU feed-forward beside each other, biases everywhere, part of each head rotated. "phi3" (Abdin et al. 2024,
 * arXiv:2404.14219): llama's layers with query, key and value in one matrix, gate and up in another, and rotary factors
 * for long contexts. */
#include <pantheon/kit/decoder.h>

typedef struct phi_params {
    pn_decoder d;
    int third; /* 1: phi3 */
} phi_params;

static pn_status configure(const pn_host *host, pn_file *file, const char *name, void **params, pn_error *err)
{
    void *memory = NULL;
    pn_status st = pn_host_alloc(host, 1, sizeof(phi_params), &memory, err);
    if (st) return st;
    phi_params *p = memory;
    p->third = !strcmp(name, "phi3");
    st = pn_decoder_read(host, file, p->third ? PN_ROLE_RMS_EPS : PN_ROLE_NORM_EPS, "halves", &p->d, err);
    if (st) pn_host_free(host, p, NULL);
    else *params = p;
    return st;
}

static void release(const pn_host *host, void *params)
{
    pn_decoder_free(host, &((phi_params *)params)->d);
    pn_host_free(host, params, NULL);
}

/* Query, key and value: in three matrices or the rows of one. Grouped heads make the parts unequal. */
static void project(pn_words *w, const pn_decoder *d, pn_val x, pn_val *q, pn_val *k, pn_val *v)
{
    uint32_t i = w->layer, all = d->q_width + d->k_width + d->v_width;
    if (pn_matrix_opt(w, all, d->width, "blk.%u.attn_qkv.weight", i)) {
        pn_val fused[3];
        uint32_t begin = 0, widths[3] = {d->q_width, d->k_width, d->v_width};
        pn_wt bias = pn_vector_opt(w, all, "blk.%u.attn_qkv.bias", i);
        pn_val whole = bias ? pn_layer_linear(w, x, all, d->width, "attn_qkv") : 0;
        for (int part = 0; part < 3; begin += widths[part++])
            fused[part] =
                bias ? pn_slice(w, whole, begin, widths[part])
                     : pn_linear(w, x,
                                 pn_matrix_part(w, all, d->width, begin, widths[part], "blk.%u.attn_qkv.weight", i), 0);
        *q = fused[0];
        *k = fused[1];
        *v = fused[2];
        return;
    }
    *q = pn_layer_linear(w, x, d->q_width, d->width, "attn_q");
    *k = pn_layer_linear(w, x, d->k_width, d->width, "attn_k");
    *v = pn_layer_linear(w, x, d->v_width, d->width, "attn_v");
}

static pn_val layer_norm(pn_words *w, const pn_decoder *d, pn_val x, const char *name)
{
    pn_wt scale = pn_vector(w, d->width, "%s.weight", name);
    return pn_layer_norm(w, x, scale, pn_vector(w, d->width, "%s.bias", name), d->eps);
}

/* x + attention(n) + feed-forward(n), n = norm x */
static pn_val layer_2(pn_words *w, const pn_decoder *d, pn_val x)
{
    char name[32];
    pn_val q = 0, k = 0, v = 0;
    snprintf(name, sizeof name, "blk.%u.attn_norm", w->layer);
    pn_val n = layer_norm(w, d, x, name);
    project(w, d, n, &q, &k, &v);
    pn_val a = pn_decoder_attend(w, d, q, k, v, 0, 0);
    n = pn_decoder_select(w, d, n);
    a = pn_layer_linear(w, a, d->width, d->n_heads * d->value_size, "attn_output");
    pn_val h = pn_activation(w, pn_layer_linear(w, n, d->hidden[w->layer], d->width, "ffn_up"), PN_ACT_GELU_TANH);
    h = pn_layer_linear(w, h, d->width, d->hidden[w->layer], "ffn_down");
    return pn_add(w, pn_decoder_select(w, d, x), pn_add(w, a, h));
}

static pn_val layer_3(pn_words *w, const pn_decoder *d, pn_val x, pn_wt factors, pn_wt long_factors)
{
    uint32_t i = w->layer, hidden = d->hidden[i];
    pn_val q = 0, k = 0, v = 0;
    project(w, d, pn_layer_rms_norm(w, x, d->width, "attn_norm", d->eps), &q, &k, &v);
    pn_val a = pn_decoder_attend(w, d, q, k, v, factors, long_factors);
    x = pn_add(w, pn_decoder_select(w, d, x),
               pn_layer_linear(w, a, d->width, d->n_heads * d->value_size, "attn_output"));
    pn_val n = pn_layer_rms_norm(w, x, d->width, "ffn_norm", d->eps);
    /* The first half of the rows is the gate. */
    pn_val gate =
        pn_linear(w, n, pn_matrix_part(w, 2 * (uint64_t)hidden, d->width, 0, hidden, "blk.%u.ffn_up.weight", i), 0);
    pn_val up = pn_linear(
        w, n, pn_matrix_part(w, 2 * (uint64_t)hidden, d->width, hidden, hidden, "blk.%u.ffn_up.weight", i), 0);
    return pn_add(w, x, pn_layer_linear(w, pn_glu(w, gate, up, PN_ACT_SILU), d->width, hidden, "ffn_down"));
}

static pn_status build(const pn_host *host, pn_plan *plan, const void *params, pn_error *err)
{
    const phi_params *p = params;
    phi_params long_rope = *p; /* a file with factor tensors is scaled by them, whatever it calls that */
    pn_words w = pn_words_begin(host, plan, err);
    pn_wt table = pn_matrix(&w, 0, p->d.width, "token_embd.weight");
    pn_wt factors = pn_vector_opt(&w, p->d.rope.n_dims / 2, "rope_factors_short.weight");
    pn_wt long_factors = pn_vector_opt(&w, p->d.rope.n_dims / 2, "rope_factors_long.weight");
    pn_val x = pn_embed(&w, table);
    if (factors && long_factors) long_rope.d.rope.scaling = PN_ROPE_LONGROPE;
    for (w.layer = 0; w.layer < p->d.n_layers && !w.status; w.layer++)
        x = p->third ? layer_3(&w, &long_rope.d, x, factors, long_factors) : layer_2(&w, &p->d, x);
    x = p->third ? pn_rms_norm(&w, x, pn_vector(&w, p->d.width, "output_norm.weight"), p->d.eps)
                 : layer_norm(&w, &p->d, x, "output_norm");
    pn_decoder_output(&w, &p->d, x, table);
    return w.status;
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const char *const names[] = {"phi", "phi2", "phi3"};
    static const pn_arch arch = {.struct_size = sizeof arch,
                                 .n_names = 3,
                                 .names = names,
                                 .summary = "phi, phi2 and phi3",
                                 .configure = configure,
                                 .build = build,
                                 .release = release};
    return pn_host_register_arch(host, &arch, err);
}

PN_PLUGIN("org.pantheon.phi", "0.1.0", "MIT", "phi architectures", 0, start)

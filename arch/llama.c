/* The llama architecture (Touvron et al. 2023, arXiv:2302.13971) with grouped queries: RMS norms before each half of a layer, rotary
 * positions, SiLU-gated feed-forward. Describes; the core computes. */
#include <pantheon/kit/model.h>
#include <pantheon/kit/plan.h>
#include <pantheon/kit/rope.h>

#include <math.h>

typedef struct llama_params {
    uint32_t n_layers;
    uint32_t width;             /* of the residual stream */
    uint32_t n_heads, n_kv_heads;
    uint32_t key_size, value_size;
    uint32_t window;            /* 0: every earlier token is seen */
    float eps;
    float attn_scale;
    pn_rope_params rope;
    uint32_t *hidden;           /* [n_layers] width of the feed-forward */
} llama_params;

static pn_status read_shape(const pn_host *host, pn_file *file, llama_params *p, pn_error *err)
{
    pn_status st;
    if ((st = pn_role_u32(host, file, PN_ROLE_BLOCK_COUNT, 1, 4096, &p->n_layers, err)) ||
        (st = pn_role_u32(host, file, PN_ROLE_EMBEDDING_LENGTH, 1, 1u << 20, &p->width, err)) ||
        (st = pn_role_u32(host, file, PN_ROLE_HEAD_COUNT, 1, 4096, &p->n_heads, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_HEAD_COUNT_KV, p->n_heads, 1, p->n_heads, &p->n_kv_heads, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_KEY_LENGTH, p->width / p->n_heads, 1, 4096, &p->key_size, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_VALUE_LENGTH, p->key_size, 1, 4096, &p->value_size, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_SLIDING_WINDOW, 0, 0, INT32_MAX, &p->window, err)) ||
        (st = pn_role_f32(host, file, PN_ROLE_RMS_EPS, 0, 1, &p->eps, err)) ||
        (st = pn_role_f32_or(host, file, PN_ROLE_ATTN_SCALE, 1.0f / sqrtf((float)p->key_size), 1e-6, 1e6, &p->attn_scale, err)))
        return st;
    if (!p->key_size || p->n_heads % p->n_kv_heads)
        return pn_fail(err, PN_E_FORMAT, "%u heads over a width of %u and %u key/value heads do not fit together", (unsigned)p->n_heads,
                       (unsigned)p->width, (unsigned)p->n_kv_heads);
    return pn_rope_from_file(host, file, p->key_size, &p->rope, err);
}

static void release(const pn_host *host, void *params)
{
    llama_params *p = params;
    pn_host_free(host, p->hidden, NULL);
    pn_host_free(host, p, NULL);
}

static pn_status configure(const pn_host *host, pn_file *file, const char *name, void **params, pn_error *err)
{
    void *memory = NULL;
    (void)name;
    pn_status st = pn_host_alloc(host, 1, sizeof(llama_params), &memory, err);
    if (st)
        return st;
    llama_params *p = memory;
    st = read_shape(host, file, p, err);
    if (!st && !(st = pn_host_alloc(host, p->n_layers, sizeof *p->hidden, &memory, err))) {
        p->hidden = memory;
        for (uint32_t i = 0; i < p->n_layers && !st; i++)
            st = pn_role_layer_u32(host, file, PN_ROLE_FEED_FORWARD, i, p->n_layers, 1, 1u << 24, &p->hidden[i], err);
    }
    if (st)
        release(host, p);
    else
        *params = p;
    return st;
}

/* x [width] -> attention over the earlier tokens [width] */
static pn_val attention(pn_words *w, const llama_params *p, pn_val x, pn_wt rope_factors)
{
    uint32_t i = w->layer, q_width = p->n_heads * p->key_size, k_width = p->n_kv_heads * p->key_size, v_width = p->n_kv_heads * p->value_size;
    pn_attention_params a = { .struct_size = sizeof a, .n_heads = p->n_heads, .n_kv_heads = p->n_kv_heads, .key_size = p->key_size,
                              .value_size = p->value_size, .window = p->window, .scale = p->attn_scale };
    pn_val n = pn_rms_norm(w, x, pn_vector(w, p->width, "blk.%u.attn_norm.weight", i), p->eps);
    pn_val q = pn_linear(w, n, pn_matrix(w, q_width, p->width, "blk.%u.attn_q.weight", i), pn_vector_opt(w, q_width, "blk.%u.attn_q.bias", i));
    pn_val k = pn_linear(w, n, pn_matrix(w, k_width, p->width, "blk.%u.attn_k.weight", i), pn_vector_opt(w, k_width, "blk.%u.attn_k.bias", i));
    pn_val v = pn_linear(w, n, pn_matrix(w, v_width, p->width, "blk.%u.attn_v.weight", i), pn_vector_opt(w, v_width, "blk.%u.attn_v.bias", i));
    q = pn_rope(w, q, rope_factors, 0, &p->rope);
    k = pn_rope(w, k, rope_factors, 0, &p->rope);
    pn_val o = pn_attention(w, q, k, v, &a);
    /* After the last attention only the tokens whose logits are wanted matter. */
    if (i + 1 == p->n_layers)
        o = pn_select(w, o);
    return pn_linear(w, o, pn_matrix(w, p->width, p->n_heads * p->value_size, "blk.%u.attn_output.weight", i),
                     pn_vector_opt(w, p->width, "blk.%u.attn_output.bias", i));
}

/* x [width] -> down(silu(gate x) * up x) [width] */
static pn_val feed_forward(pn_words *w, const llama_params *p, pn_val x)
{
    uint32_t i = w->layer, hidden = p->hidden[i];
    pn_val n = pn_rms_norm(w, x, pn_vector(w, p->width, "blk.%u.ffn_norm.weight", i), p->eps);
    pn_val gate = pn_linear(w, n, pn_matrix(w, hidden, p->width, "blk.%u.ffn_gate.weight", i), pn_vector_opt(w, hidden, "blk.%u.ffn_gate.bias", i));
    pn_val up = pn_linear(w, n, pn_matrix(w, hidden, p->width, "blk.%u.ffn_up.weight", i), pn_vector_opt(w, hidden, "blk.%u.ffn_up.bias", i));
    pn_val h = pn_glu(w, gate, up, PN_ACT_SILU);
    return pn_linear(w, h, pn_matrix(w, p->width, hidden, "blk.%u.ffn_down.weight", i), pn_vector_opt(w, p->width, "blk.%u.ffn_down.bias", i));
}

static pn_status build(const pn_host *host, pn_plan *plan, const void *params, pn_error *err)
{
    const llama_params *p = params;
    pn_words w = pn_words_begin(host, plan, err);
    pn_wt table = pn_matrix(&w, 0, p->width, "token_embd.weight");
    pn_wt rope_factors = pn_vector_opt(&w, p->rope.n_dims / 2, "rope_freqs.weight");
    pn_val x = pn_embed(&w, table);
    for (w.layer = 0; w.layer < p->n_layers && !w.status; w.layer++) {
        pn_val a = attention(&w, p, x, rope_factors);
        if (w.layer + 1 == p->n_layers)
            x = pn_select(&w, x);
        x = pn_add(&w, x, a);
        x = pn_add(&w, x, feed_forward(&w, p, x));
    }
    x = pn_rms_norm(&w, x, pn_vector(&w, p->width, "output_norm.weight"), p->eps);
    pn_wt head = pn_matrix_opt(&w, 0, p->width, "output.weight");
    /* Tied: the embedding's table serves as output too. */
    pn_output(&w, pn_linear(&w, x, head ? head : table, pn_vector_opt(&w, 0, "output.bias")));
    return w.status;
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const char *const names[] = { "llama" };
    static const pn_arch arch = { .struct_size = sizeof arch, .n_names = 1, .names = names, .summary = "llama and files of its shape",
                                  .configure = configure, .build = build, .release = release };
    return pn_host_register_arch(host, &arch, err);
}

PN_PLUGIN("org.pantheon.llama", "0.1.0", "MIT", "llama architecture", 0, start)

/* The qwen2 architecture (Yang et al. 2024, arXiv:2407.10671): llama's layers, with a bias on queries, keys and values.
 */
#include <pantheon/kit/decoder.h>

static pn_status configure(const pn_host *host, pn_file *file, const char *name, void **params, pn_error *err)
{
    (void)name;
    return pn_decoder_configure(host, file, PN_ROLE_RMS_EPS, "halves", params, err);
}

static pn_status build(const pn_host *host, pn_plan *plan, const void *params, pn_error *err)
{
    const pn_decoder *d = params;
    pn_words w = pn_words_begin(host, plan, err);
    /* The layers take biases where a file has them; here a file without them is broken. */
    for (w.layer = 0; w.layer < d->n_layers; w.layer++) {
        pn_vector(&w, d->q_width, "blk.%u.attn_q.bias", w.layer);
        pn_vector(&w, d->k_width, "blk.%u.attn_k.bias", w.layer);
        pn_vector(&w, d->v_width, "blk.%u.attn_v.bias", w.layer);
    }
    return w.status ? w.status : pn_decoder_build(host, plan, d, err);
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const char *const names[] = {"qwen2"};
    static const pn_arch arch = {.struct_size = sizeof arch,
                                 .n_names = 1,
                                 .names = names,
                                 .summary = "qwen2",
                                 .configure = configure,
                                 .build = build,
                                 .release = pn_decoder_release};
    return pn_host_register_arch(host, &arch, err);
}

PN_PLUGIN("org.pantheon.qwen2", "0.1.0", "MIT", "qwen2 architecture", 0, start)

/* The llama architecture (Touvron et al. 2023, arXiv:2302.13971) with grouped queries: RMS norms before each half of a
 * layer, rotary positions, SiLU-gated feed-forward. Files of its shape with a sliding window or biases run too.
 * Describes; the core computes. */
#include <pantheon/kit/decoder.h>

static pn_status configure(const pn_host *host, pn_file *file, const char *name, void **params, pn_error *err)
{
    (void)name;
    return pn_decoder_configure(host, file, PN_ROLE_RMS_EPS, "interleaved", params, err);
}

static pn_status build(const pn_host *host, pn_plan *plan, const void *params, pn_error *err)
{
    return pn_decoder_build(host, plan, params, err);
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const char *const names[] = {"llama"};
    static const pn_arch arch = {.struct_size = sizeof arch,
                                 .n_names = 1,
                                 .names = names,
                                 .summary = "llama and files of its shape",
                                 .configure = configure,
                                 .build = build,
                                 .release = pn_decoder_release};
    return pn_host_register_arch(host, &arch, err);
}

PN_PLUGIN("org.pantheon.llama", "0.1.0", "MIT", "llama architecture", 0, start)

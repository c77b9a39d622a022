/* The mistral architecture (Jiang et al. 2023, arXiv:2310.06825): llama's layers with a sliding window over the keys.
 */
#include <pantheon/kit/decoder.h>

static pn_status configure(const pn_host *host, pn_file *file, const char *name, void **params, pn_error *err)
{
    (void)name;
    return pn_decoder_configure(host, file, PN_ROLE_RMS_EPS, "interleaved", params, err);
}

/* The window is among the parameters: query i sees the keys i - window + 1 .. i. */
static pn_status build(const pn_host *host, pn_plan *plan, const void *params, pn_error *err)
{
    return pn_decoder_build(host, plan, params, err);
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const char *const names[] = {"mistral"};
    static const pn_arch arch = {.struct_size = sizeof arch,
                                 .n_names = 1,
                                 .names = names,
                                 .summary = "mistral, with a sliding window",
                                 .configure = configure,
                                 .build = build,
                                 .release = pn_decoder_release};
    return pn_host_register_arch(host, &arch, err);
}

PN_PLUGIN("org.pantheon.mistral", "0.1.0", "MIT", "mistral architecture", 0, start)

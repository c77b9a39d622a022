/* Built for a later minor ABI: a larger descriptor and a larger struct, of which this host takes what it knows. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    struct {
        pn_quant known;
        uint64_t later[4];
    } q = {{.struct_size = sizeof q,
            .name = "test.minor",
            .block_elems = 1,
            .block_bytes = 1,
            .dequantize = odd_dequantize},
           {1, 2, 3, 4}};
    return pn_host_register_quant(host, &q.known, err);
}

ODD_NOTE(1, 7, "org.pantheon.test.abi_minor")
PN_API extern const struct later_plugin {
    pn_plugin known;
    uint64_t later[4];
} pantheon_plugin;
const struct later_plugin pantheon_plugin = {{ODD_MAGIC, sizeof(struct later_plugin), 1, 7,
                                              "org.pantheon.test.abi_minor", "1.0", "MIT", "newer minor", 0, start},
                                             {1, 2, 3, 4}};

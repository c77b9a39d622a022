/* Registers a type without its required callback, and passes the refusal on. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    pn_quant q = { .struct_size = sizeof q, .name = "test.bad_struct", .block_elems = 1, .block_bytes = 1 };
    return pn_host_register_quant(host, &q, err);
}

PN_PLUGIN("org.pantheon.test.bad_struct", "1.0", "MIT", "registers nonsense", 0, start)

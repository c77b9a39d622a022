/* A plugin with nothing wrong, beside which the wrong ones are tried. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    return odd_register_type(host, "test.good", err);
}

PN_PLUGIN("org.pantheon.test.good", "1.0", "MIT", "nothing wrong", 0, start)

/* The other that claims the type test.taken. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    return odd_register_type(host, "test.taken", err);
}

PN_PLUGIN("org.pantheon.test.taken_b", "1.0", "MIT", "second claim", 0, start)

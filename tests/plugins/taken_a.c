/* One of two that claim the type test.taken; the other passes the conflict on. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    return odd_register_type(host, "test.taken", err);
}

PN_PLUGIN("org.pantheon.test.taken_a", "1.0", "MIT", "first claim", 0, start)

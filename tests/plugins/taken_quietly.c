/* A third that claims the type test.taken and ignores that it is told no. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    (void)err;
    odd_register_type(host, "test.taken", NULL);
    return PN_OK;
}

PN_PLUGIN("org.pantheon.test.taken_quietly", "1.0", "MIT", "quiet claim", 0, start)

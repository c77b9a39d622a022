/* Fails without a word. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    (void)host;
    (void)err;
    return PN_E_UNSUPPORTED;
}

PN_PLUGIN("org.pantheon.test.init_silent", "1.0", "MIT", "init fails silently", 0, start)

/* Version 1.9 of a plugin that exists in several. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    return odd_register_type(host, "test.version_1_9", err);
}

PN_PLUGIN("org.pantheon.test.version", "1.9", "MIT", "version 1.9", 0, start)

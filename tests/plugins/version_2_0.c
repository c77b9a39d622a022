/* Version 2.0 of a plugin that exists in several; this one cannot start. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    (void)host;
    return pn_fail(err, PN_E_IO, "not today");
}

PN_PLUGIN("org.pantheon.test.version", "2.0", "MIT", "version 2.0", 0, start)

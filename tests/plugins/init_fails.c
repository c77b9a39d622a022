/* Registers a type, then fails: the type must be gone again. */
#include "odd.h"

static pn_status start(const pn_host *host, pn_error *err)
{
    pn_status s = odd_register_type(host, "test.rolled_back", err);
    return s == PN_OK ? pn_fail(err, PN_E_IO, "the moon is in the wrong phase") : s;
}

PN_PLUGIN("org.pantheon.test.init_fails", "1.0", "MIT", "init fails", 0, start)

/* Calls a function that exists nowhere, but only later: RTLD_NOW must find that at load. */
#include "odd.h"

extern pn_status pn_test_this_function_exists_nowhere(const pn_host *host);

static pn_status start(const pn_host *host, pn_error *err)
{
    (void)err;
    return getenv("PN_TEST_NEVER_SET") ? pn_test_this_function_exists_nowhere(host) : PN_OK;
}

PN_PLUGIN("org.pantheon.test.unresolved", "1.0", "MIT", "unresolved symbol", 0, start)

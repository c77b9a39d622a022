/* A version that cannot be compared number by number. */
#include "odd.h"

PN_PLUGIN("org.pantheon.test.bad_version", "1.0-beta", "MIT", "bad version", 0, odd_start)

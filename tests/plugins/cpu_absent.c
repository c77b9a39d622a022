/* Needs a CPU feature that no machine has. */
#include "odd.h"

PN_PLUGIN("org.pantheon.test.cpu_absent", "1.0", "MIT", "needs a future CPU", (UINT64_C(1) << 63), odd_start)

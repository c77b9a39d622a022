/* Built for the major ABI before the first. */
#include "odd.h"

ODD_NOTE(0, 9, "org.pantheon.test.abi_old")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), 0, 9, "org.pantheon.test.abi_old", "1.0", "MIT", "too old", 0, odd_start)

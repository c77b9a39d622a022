/* Built for the next major ABI. */
#include "odd.h"

ODD_NOTE(2, 0, "org.pantheon.test.abi_new")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), 2, 0, "org.pantheon.test.abi_new", "1.0", "MIT", "too new", 0, odd_start)

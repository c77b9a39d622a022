/* The note looks right, the descriptor says the next major ABI. */
#include "odd.h"

ODD_NOTE(1, 0, "org.pantheon.test.abi_descriptor")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), 2, 0, "org.pantheon.test.abi_descriptor", "1.0", "MIT", "too new inside",
               0, odd_start)

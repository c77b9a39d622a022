/* Descriptor without `init`. */
#include "odd.h"

ODD_NOTE(1, 0, "org.pantheon.test.no_init")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), PN_ABI_MAJOR, PN_ABI_MINOR, "org.pantheon.test.no_init", "1.0", "MIT",
               "no init", 0, NULL)

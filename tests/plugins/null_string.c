/* Descriptor whose licence is NULL. */
#include "odd.h"

ODD_NOTE(1, 0, "org.pantheon.test.null_string")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), PN_ABI_MAJOR, PN_ABI_MINOR, "org.pantheon.test.null_string", "1.0", NULL,
               "no licence", 0, odd_start)

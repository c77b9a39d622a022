/* Two notes: which would be believed? */
#include "odd.h"

ODD_NOTE(1, 0, "org.pantheon.test.two")
ODD_NOTE(2, 0, "org.pantheon.test.other")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), PN_ABI_MAJOR, PN_ABI_MINOR, "org.pantheon.test.two", "1.0", "MIT",
               "two notes", 0, odd_start)

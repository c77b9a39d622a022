/* Note and descriptor name different ids. */
#include "odd.h"

ODD_NOTE(1, 0, "org.pantheon.test.note")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), PN_ABI_MAJOR, PN_ABI_MINOR, "org.pantheon.test.descriptor", "1.0", "MIT",
               "two ids", 0, odd_start)

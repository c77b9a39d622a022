/* Descriptor that says it ends before `init`. */
#include "odd.h"

ODD_NOTE(1, 0, "org.pantheon.test.short_struct")
ODD_DESCRIPTOR(ODD_MAGIC, 24, PN_ABI_MAJOR, PN_ABI_MINOR, "org.pantheon.test.short_struct", "1.0", "MIT", "short", 0,
               odd_start)

/* Descriptor without the ELF note. */
#include "odd.h"

ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), PN_ABI_MAJOR, PN_ABI_MINOR, "org.pantheon.test.no_note", "1.0", "MIT",
               "no note", 0, odd_start)

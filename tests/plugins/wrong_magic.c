/* Descriptor with another magic. */
#include "odd.h"

ODD_NOTE(1, 0, "org.pantheon.test.wrong_magic")
ODD_DESCRIPTOR({ 'P', 'A', 'R', 'T', 'H', 'E', 'N', 'O' }, sizeof(pn_plugin), PN_ABI_MAJOR, PN_ABI_MINOR,
               "org.pantheon.test.wrong_magic", "1.0", "MIT", "wrong magic", 0, odd_start)

/* A note whose id has characters that an id may not have. */
#include "odd.h"

ODD_NOTE(1, 0, "org/../x")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), PN_ABI_MAJOR, PN_ABI_MINOR, "org/../x", "1.0", "MIT", "bad note", 0,
               odd_start)

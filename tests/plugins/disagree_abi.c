/* Note and descriptor name different minor ABIs. */
#include "odd.h"

ODD_NOTE(1, 3, "org.pantheon.test.disagree_abi")
ODD_DESCRIPTOR(ODD_MAGIC, sizeof(pn_plugin), 1, 0, "org.pantheon.test.disagree_abi", "1.0", "MIT", "two ABIs", 0,
               odd_start)

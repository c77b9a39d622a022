/* Note without the descriptor. */
#include "odd.h"

ODD_NOTE(1, 0, "org.pantheon.test.no_symbol")
PN_API int something_else;
int something_else = 1;

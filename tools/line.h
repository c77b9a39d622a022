/* Lines that the user types: with editing and history on a terminal, else as they come. */
#ifndef PN_LINE_H
#define PN_LINE_H

#include <stdbool.h>

typedef struct line_reader line_reader;

enum { LINE_OK = 0, LINE_END, LINE_INTERRUPTED /* Ctrl-C */, LINE_FAILED /* message printed */ };

/* NULL after printing why. On a terminal the history is kept in $XDG_STATE_HOME/pantheon/`history`. */
line_reader *line_open(const char *history);
/* Standard input is a terminal, and prompts are shown. */
bool line_interactive(const line_reader *r);
/* *out = the next line without its end; belongs to the reader until the next call. On a terminal a line that ends with
 * a backslash goes on in the next one. Returns LINE_*. */
int line_read(line_reader *r, const char *prompt, char **out);
void line_close(line_reader *r);

#endif

/* Files of numbers that appear when they are whole. */
#ifndef PN_OUTPUT_H
#define PN_OUTPUT_H

#include "tool.h"

/* A file that is written beside its final name and moved there when it is whole. */
typedef struct output {
    FILE *f;
    char *path;      /* final name, links followed */
    char *temporary; /* NULL: written directly (standard output, a device, a pipe) */
} output;

/* '-' is standard output. Until output_close, Ctrl-C and SIGTERM remove what was written. 0, or 1 after
 * printing why. */
int output_open(output *o, const char *path);
/* Little-endian float32. 0, or -1 with errno. */
int output_write(const output *o, const float *x, size_t n);
/* Finish the file and put it in its place, or remove it when `status` says that something failed. The new status. */
int output_close(output *o, const char *path, int status);

#endif

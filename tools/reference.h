/* Files of a reference run: a text's tokens and the logits of those that are scored (docs/cli.md has the layout). */
#ifndef PN_REFERENCE_H
#define PN_REFERENCE_H

#include "output.h"

typedef struct reference {
    FILE *f;
    const char *path;
    uint32_t vocab, context; /* of the windows */
    uint64_t tokens, rows;
    float *row; /* [vocab] */
    uint64_t next;
} reference;

/* Open and check everything but the rows. 0, or 1 after printing why. */
int reference_open(reference *r, const char *path);
/* Are these the tokens, vocabulary and windows of the reference? Once, before the first row. 0, or 1. */
int reference_check(reference *r, uint32_t vocab, uint32_t context, const int32_t *tokens, size_t n, uint64_t rows);
/* The next row into r->row: finite numbers, or minus infinity. 0, or 1 after printing why. */
int reference_row(reference *r);
void reference_close(reference *r);

/* The beginning of such a file; rows follow by output_write. 0, or 1 after printing why. */
int reference_begin(const output *o, const char *path, uint32_t vocab, uint32_t context, const int32_t *tokens,
                    size_t n, uint64_t rows);

#endif

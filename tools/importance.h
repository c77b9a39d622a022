/* Files of per-column statistics: for a tensor NAME, NAME.in_sum2 holds the sums of squares of what each column was
 * multiplied with, NAME.counts how many vectors those were. */
#ifndef PN_IMPORTANCE_H
#define PN_IMPORTANCE_H

#include "tool.h"

typedef struct importance importance;

/* NULL after printing why. */
importance *importance_open(pn_runtime *runtime, const char *path);
void importance_close(importance *imp);
/* Mean squares for the tensor's columns, *planes times cols of them, to be freed by the caller; NULL in *out where the
 * file has none. 0, or 1 after printing why. */
int importance_of(const importance *imp, const pn_tensor *tensor, float **out, uint64_t *planes);

#define IMPORTANCE_SUMS ".in_sum2"
#define IMPORTANCE_COUNTS ".counts"

#endif

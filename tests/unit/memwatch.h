/* An allocator that counts, bounds and fails, for pn_set_allocator. One at a time; not thread-safe but for counting. */
#ifndef MEMWATCH_H
#define MEMWATCH_H

#include <pantheon/pantheon.h>

/* Watch from now on; the n-th allocation (grow included) fails, and all after it; 0 = none does. */
void memwatch_begin(long fail_at);
void memwatch_end(void);
long memwatch_calls(void);      /* since memwatch_begin */
int64_t memwatch_live(void);    /* bytes allocated since and not freed */
int64_t memwatch_peak(void);    /* the most of them at a time */
int64_t memwatch_largest(void); /* the largest single request, also when it failed */

#endif

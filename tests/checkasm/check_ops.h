/* What the files of check_ops share: the state of one check, random inputs, guarded memory. */
#ifndef CHECK_OPS_H
#define CHECK_OPS_H

#include <ops.h>
#include <pantheon/kit/pack.h>

/* One check of one slot at one level. */
typedef struct co {
    const pn_ops *ops;
    const char *slot;
    uint64_t seed, state;
    int failures;
} co;

enum { CO_RANDOM, CO_NEAR_ZERO, CO_NEAR_MAX, CO_OUTLIER, CO_ZERO, CO_KINDS };
extern const char *const co_kinds[CO_KINDS];

uint64_t co_next(co *c);
size_t co_below(co *c, size_t n);       /* 0 .. n - 1 */
float co_unit(co *c);                   /* -1 .. 1 */
void co_fill(co *c, int kind, float *x, size_t n);
void co_fail(co *c, const char *format, ...) PN_PRINTF(2, 3);
int co_same(float a, float b);          /* same bits, or both NaN */
int co_near(float want, float got, double relative, double absolute);
float *co_floats(size_t n);
void co_release(co *c, float *x);       /* checks the guards */

/* check_attend.c */
void check_attend_f32(co *c);
void check_attend_f16(co *c);

/* bench_ops.c */
void bench_ops(uint64_t features);

/* The entry: returns the number of failed checks. */
int check_ops(uint64_t seed, int bench);

#endif

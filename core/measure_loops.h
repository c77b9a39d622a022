/* The body of measure_avx2.c and measure_avx512.c: MEASURE_CHAINS independent chains, so that no multiply-add waits for
 * another, and everything in registers. The steps are written as instructions, which no compiler merges or spills. */
#include "measure.h"

#ifdef __clang__
#define MEASURE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MEASURE_UNROLL _Pragma("GCC unroll 32")
#endif

/* A function that runs STEP(sum, x, y) on each chain, `each` multiply-adds a time. */
#define MEASURE_LOOP(name, vector, STEP, each)                           \
    static double name(uint32_t rounds)                                  \
    {                                                                    \
        vector sum[MEASURE_CHAINS], x = {0}, y = {0};                    \
        MEASURE_UNROLL                                                   \
        for (int i = 0; i < MEASURE_CHAINS; i++) sum[i] = (vector){0};   \
        for (uint32_t r = 0; r < rounds; r++) {                          \
            MEASURE_UNROLL                                               \
            for (int i = 0; i < MEASURE_CHAINS; i++) STEP(sum[i], x, y); \
        }                                                                \
        return (double)(each)*MEASURE_CHAINS * rounds;                   \
    }

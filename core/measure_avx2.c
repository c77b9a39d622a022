/* Multiply-adds in registers with AVX2 and FMA: integer products are summed by instructions of their own. */
#include <pantheon/plugin.h>
#include <immintrin.h>

#define MEASURE_CHAINS 10
#include "measure_loops.h"

/* y stands for the ones, too. */
#define STEP_I8(sum, x, y)                                                                   \
    do {                                                                                     \
        __m256i product;                                                                     \
        __asm__ volatile("vpmaddubsw %3, %2, %1\n\tvpmaddwd %3, %1, %1\n\tvpaddd %1, %0, %0" \
                         : "+x"(sum), "=&x"(product)                                         \
                         : "x"(x), "x"(y));                                                  \
    } while (0)
#define STEP_I16(sum, x, y)                                                                                        \
    do {                                                                                                           \
        __m256i product;                                                                                           \
        __asm__ volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(x), "x"(y)); \
    } while (0)
#define STEP_F32(sum, x, y) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y))

MEASURE_LOOP(loop_i8, __m256i, STEP_I8, 32)
MEASURE_LOOP(loop_i16, __m256i, STEP_I16, 16)
MEASURE_LOOP(loop_f32, __m256, STEP_F32, 8)

const pn_measure_loops pn_measure_avx2 = {PN_LEVEL_AVX2, {loop_i8, loop_i16, loop_f32}};

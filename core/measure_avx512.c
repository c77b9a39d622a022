/* Multiply-adds in registers with AVX-512 and VNNI. */
#include <pantheon/plugin.h>
#include <immintrin.h>

#define MEASURE_CHAINS 14
#include "measure_loops.h"

#define STEP_I8(sum, x, y) __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#define STEP_I16(sum, x, y) __asm__ volatile("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#define STEP_F32(sum, x, y) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))

MEASURE_LOOP(loop_i8, __m512i, STEP_I8, 64)
MEASURE_LOOP(loop_i16, __m512i, STEP_I16, 32)
MEASURE_LOOP(loop_f32, __m512, STEP_F32, 16)

const pn_measure_loops pn_measure_avx512 = {PN_LEVEL_AVX512, {loop_i8, loop_i16, loop_f32}};

/* Limits of one core with AVX512. */
#include <pantheon/kit/simd_avx512.h>
#define CHAINS 14
#include "limits_simd.h"

double pn_limit_i16_avx512(void)
{
    return limit_i16();
}

double pn_limit_f32_avx512(void)
{
    return limit_f32();
}

/* Limits of one core with AVX2. */
#include <pantheon/kit/simd_avx2.h>
#define CHAINS 10
#include "limits_simd.h"

double pn_limit_i16_avx2(void)
{
    return limit_i16();
}

double pn_limit_f32_avx2(void)
{
    return limit_f32();
}

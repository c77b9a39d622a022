/* f32 kernel for AVX2. */
#include <pantheon/kit/simd_avx2.h>
#include "f32_simd.h"

pn_status pn_f32_matmul_avx2(const pn_matmul_args *args)
{
    return pn_tile_f32_matmul(args, &f32_floats);
}

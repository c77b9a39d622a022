/* bf16 kernel for AVX2. */
#include <pantheon/kit/simd_avx2.h>
#include "bf16_simd.h"

pn_status pn_bf16_matmul_avx2(const pn_matmul_args *args)
{
    return pn_tile_f32_matmul(args, &bf16_floats);
}

/* q8_0 kernels for AVX512. */
#include <pantheon/kit/simd_avx512.h>
#include "q8_0_simd.h"

size_t pn_q8_0_scratch_avx512(size_t cols, size_t columns)
{
    return pn_tile_scratch_bytes(&q8_0_tile, cols, columns);
}

pn_status pn_q8_0_matmul_avx512(const pn_matmul_args *args)
{
    return pn_tile_i16_matmul(args, &q8_0_tile);
}

pn_status pn_q8_0_fast_avx512(const pn_matmul_args *args)
{
    return pn_tile_i8_matmul(args, &q8_0_tile);
}

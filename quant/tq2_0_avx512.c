/* tq2_0 kernels for AVX512. */
#include <pantheon/kit/simd_avx512.h>
#include "tq2_0_simd.h"

size_t pn_tq2_0_scratch_avx512(size_t cols, size_t columns)
{
    return pn_tile_scratch_bytes(&tq2_0_tile, cols, columns);
}

pn_status pn_tq2_0_matmul_avx512(const pn_matmul_args *args)
{
    return pn_tile_i16_matmul(args, &tq2_0_tile);
}

pn_status pn_tq2_0_fast_avx512(const pn_matmul_args *args)
{
    return pn_tile_i8_matmul(args, &tq2_0_tile);
}

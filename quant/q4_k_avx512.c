/* q4_k kernels for AVX512. */
#include <pantheon/kit/simd_avx512.h>
#include "q4_k_simd.h"

size_t pn_q4_k_scratch_avx512(size_t cols, size_t columns)
{
    return pn_tile_scratch_bytes(&q4_k_tile, cols, columns);
}

pn_status pn_q4_k_matmul_avx512(const pn_matmul_args *args)
{
    return pn_tile_i16_matmul(args, &q4_k_tile);
}

pn_status pn_q4_k_fast_avx512(const pn_matmul_args *args)
{
    return pn_tile_i8_matmul(args, &q4_k_tile);
}

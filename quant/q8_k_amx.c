/* q8_k kernels for AMX. */
#include <pantheon/kit/tile_amx.h>
#include "q8_k_simd.h"

size_t pn_q8_k_scratch_amx(size_t cols, size_t columns)
{
    return pn_amx_scratch_bytes(&q8_k_tile, cols, columns);
}

pn_status pn_q8_k_matmul_amx(const pn_matmul_args *args)
{
    return pn_amx_i16_matmul(args, &q8_k_tile, pn_q8_k_matmul_avx512);
}

pn_status pn_q8_k_fast_amx(const pn_matmul_args *args)
{
    return pn_amx_i8_matmul(args, &q8_k_tile, pn_q8_k_fast_avx512);
}

/* iq1_m kernels for AVX512. */
#include <pantheon/kit/simd_avx512.h>
#include <pantheon/kit/tile_rows.h>
#include "iq1_m.h"

size_t pn_iq1_m_scratch_avx512(size_t cols, size_t columns)
{
    (void)cols;
    return pn_tile_rows_scratch_bytes(columns);
}

pn_status pn_iq1_m_matmul_avx512(const pn_matmul_args *args)
{
    return pn_tile_rows_matmul(args, &iq1_m_block);
}

pn_status pn_iq1_m_fast_avx512(const pn_matmul_args *args)
{
    return pn_tile_rows_i8_matmul(args, &iq1_m_block, -9, 9);
}

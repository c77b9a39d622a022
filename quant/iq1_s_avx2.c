/* iq1_s kernels for AVX2. */
#include <pantheon/kit/simd_avx2.h>
#include <pantheon/kit/tile_rows.h>
#include "iq1_s.h"

size_t pn_iq1_s_scratch_avx2(size_t cols, size_t columns)
{
    (void)cols;
    return pn_tile_rows_scratch_bytes(columns);
}

pn_status pn_iq1_s_matmul_avx2(const pn_matmul_args *args)
{
    return pn_tile_rows_matmul(args, &iq1_s_block);
}

pn_status pn_iq1_s_fast_avx2(const pn_matmul_args *args)
{
    return pn_tile_rows_i8_matmul(args, &iq1_s_block, -9, 9);
}

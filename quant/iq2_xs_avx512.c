/* iq2_xs kernels for AVX512. */
#include <pantheon/kit/simd_avx512.h>
#include <pantheon/kit/tile_rows.h>
#include "iq2_xs.h"

size_t pn_iq2_xs_scratch_avx512(size_t cols, size_t columns)
{
    (void)cols;
    return pn_tile_rows_scratch_bytes(columns);
}

pn_status pn_iq2_xs_matmul_avx512(const pn_matmul_args *args)
{
    return pn_tile_rows_matmul(args, &iq2_xs_block);
}

pn_status pn_iq2_xs_fast_avx512(const pn_matmul_args *args)
{
    return pn_tile_rows_i8_matmul(args, &iq2_xs_block, -43, 43);
}

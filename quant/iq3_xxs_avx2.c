/* iq3_xxs kernels for AVX2. */
#include <pantheon/kit/simd_avx2.h>
#include <pantheon/kit/tile_rows.h>
#include "iq3_xxs.h"

size_t pn_iq3_xxs_scratch_avx2(size_t cols, size_t columns)
{
    (void)cols;
    return pn_tile_rows_scratch_bytes(columns);
}

pn_status pn_iq3_xxs_matmul_avx2(const pn_matmul_args *args)
{
    return pn_tile_rows_matmul(args, &iq3_xxs_block);
}

pn_status pn_iq3_xxs_fast_avx2(const pn_matmul_args *args)
{
    return pn_tile_rows_i8_matmul(args, &iq3_xxs_block, -62, 62);
}

/* iq4_xs kernels for AVX2. */
#include <pantheon/kit/simd_avx2.h>
#include "iq4_xs_simd.h"

size_t pn_iq4_xs_scratch_avx2(size_t cols, size_t columns)
{
    return pn_tile_scratch_bytes(&iq4_xs_tile, cols, columns);
}

pn_status pn_iq4_xs_matmul_avx2(const pn_matmul_args *args)
{
    return pn_tile_i16_matmul(args, &iq4_xs_tile);
}

pn_status pn_iq4_xs_fast_avx2(const pn_matmul_args *args)
{
    return pn_tile_i8_matmul(args, &iq4_xs_tile);
}

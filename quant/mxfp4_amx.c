/* mxfp4 kernels for AMX. */
#include <pantheon/kit/tile_amx.h>
#include "mxfp4_simd.h"

size_t pn_mxfp4_scratch_amx(size_t cols, size_t columns)
{
    return pn_amx_scratch_bytes(&mxfp4_tile, cols, columns);
}

pn_status pn_mxfp4_matmul_amx(const pn_matmul_args *args)
{
    return pn_amx_i16_matmul(args, &mxfp4_tile, pn_mxfp4_matmul_avx512);
}

pn_status pn_mxfp4_fast_amx(const pn_matmul_args *args)
{
    return pn_amx_i8_matmul(args, &mxfp4_tile, pn_mxfp4_fast_avx512);
}

/* mxfp4 kernels for AMX. */
#include <pantheon/kit/tile_amx.h>
#include "mxfp4_simd.h"

pn_status pn_mxfp4_matmul_amx(const pn_matmul_args *args)
{
    return pn_amx_i16_matmul(args, &mxfp4_tile, pn_mxfp4_matmul_avx512);
}

pn_status pn_mxfp4_fast_amx(const pn_matmul_args *args)
{
    return pn_amx_i8_matmul(args, &mxfp4_tile, pn_mxfp4_fast_avx512);
}

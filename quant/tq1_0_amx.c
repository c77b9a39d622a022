/* tq1_0 kernels for AMX. */
#include <pantheon/kit/tile_amx.h>
#include "tq1_0_simd.h"

pn_status pn_tq1_0_matmul_amx(const pn_matmul_args *args)
{
    return pn_amx_i16_matmul(args, &tq1_0_tile, pn_tq1_0_matmul_avx512);
}

pn_status pn_tq1_0_fast_amx(const pn_matmul_args *args)
{
    return pn_amx_i8_matmul(args, &tq1_0_tile, pn_tq1_0_fast_avx512);
}

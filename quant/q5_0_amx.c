/* q5_0 kernels for AMX. */
#include <pantheon/kit/tile_amx.h>
#include "q5_0_simd.h"

pn_status pn_q5_0_matmul_amx(const pn_matmul_args *args)
{
    return pn_amx_i16_matmul(args, &q5_0_tile, pn_q5_0_matmul_avx512);
}

pn_status pn_q5_0_fast_amx(const pn_matmul_args *args)
{
    return pn_amx_i8_matmul(args, &q5_0_tile, pn_q5_0_fast_avx512);
}

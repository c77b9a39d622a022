/* q8_1 kernels for AMX. */
#include <pantheon/kit/tile_amx.h>
#include "q8_1_simd.h"

pn_status pn_q8_1_matmul_amx(const pn_matmul_args *args)
{
    return pn_amx_i16_matmul(args, &q8_1_tile, pn_q8_1_matmul_avx512);
}

pn_status pn_q8_1_fast_amx(const pn_matmul_args *args)
{
    return pn_amx_i8_matmul(args, &q8_1_tile, pn_q8_1_fast_avx512);
}

/* iq4_xs kernels for AMX. */
#include <pantheon/kit/tile_amx.h>
#include "iq4_xs_simd.h"

pn_status pn_iq4_xs_matmul_amx(const pn_matmul_args *args)
{
    return pn_amx_i16_matmul(args, &iq4_xs_tile, pn_iq4_xs_matmul_avx512);
}

pn_status pn_iq4_xs_fast_amx(const pn_matmul_args *args)
{
    return pn_amx_i8_matmul(args, &iq4_xs_tile, pn_iq4_xs_fast_avx512);
}

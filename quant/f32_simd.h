/* How f32 loads into vectors; included after a vector layer by f32_avx2.c and f32_avx512.c. */
#include <pantheon/kit/tile_f32.h>
#include "f32.h"

PN_INLINE pn_vf pn_f32_load(const uint8_t *p)
{
    return pn_v_loadu_f(p);
}

static const pn_float_type f32_floats = {PN_F32_BYTES, pn_f32_load, pn_v_load_f32_n};

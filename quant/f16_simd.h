/* How f16 loads into vectors; included after a vector layer by f16_avx2.c and f16_avx512.c. */
#include <pantheon/kit/tile_f32.h>
#include "f16.h"

static const pn_float_type f16_floats = {PN_F16_BYTES, pn_v_load_f16, pn_v_load_f16_n};

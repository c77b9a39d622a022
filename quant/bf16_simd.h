/* How bf16 loads into vectors; included after a vector layer by bf16_avx2.c and bf16_avx512.c. */
#include <pantheon/kit/tile_f32.h>
#include "bf16.h"

static const pn_float_type bf16_floats = {PN_BF16_BYTES, pn_v_load_bf16, pn_v_load_bf16_n};

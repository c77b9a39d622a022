/* How q8_1 unpacks in vectors; included after a vector layer by q8_1_avx2.c and q8_1_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q8_1.h"

PN_INLINE void pn_q8_1_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    (void)m;
    d[0] = pn_v_half_lo(pn_v_word(rows, offset));
}

PN_INLINE void pn_q8_1_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    (void)unit;
    PN_UNROLL
    for (size_t h = 0; h < 2; h++) {
        pn_vi x[4];
        pn_v_words(rows, offset + offsetof(pn_q8_1_block, qs) + 16 * h, x);
        PN_UNROLL
        for (size_t g = 0; g < 4; g++) pn_unpack_bytes(x[g], w + 8 * h + 2 * g);
    }
}

static const pn_tile_type q8_1_tile = {
    .block_bytes = sizeof(pn_q8_1_block), .block_units = 1, .span = 1, .head = pn_q8_1_head, .codes = pn_q8_1_codes,
    .least = -128, .most = 127};

/* How q8_0 unpacks in vectors; included after a vector layer by q8_0_avx2.c and q8_0_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include "q8_0.h"

PN_INLINE void pn_q8_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    (void)m;
    d[0] = pn_v_half_lo(pn_v_word(rows, offset));
}

PN_INLINE void pn_q8_0_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    (void)unit;
    PN_UNROLL
    for (size_t h = 0; h < 2; h++) {
        pn_vi x[4];
        pn_v_words(rows, offset + offsetof(pn_q8_0_block, qs) + 16 * h, x);
        PN_UNROLL
        for (size_t g = 0; g < 4; g++) {
            w[8 * h + 2 * g] = pn_v_sra16(pn_v_sll16(x[g], 8), 8);
            w[8 * h + 2 * g + 1] = pn_v_sra16(x[g], 8);
        }
    }
}

static const pn_tile_type q8_0_tile = {
    .block_bytes = sizeof(pn_q8_0_block), .block_units = 1, .span = 1, .head = pn_q8_0_head, .codes = pn_q8_0_codes,
    .least = -128, .most = 127};

/* How q4_1 unpacks in vectors; included after a vector layer by q4_1_avx2.c and q4_1_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include "q4_1.h"

PN_INLINE void pn_q4_1_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    const pn_vi dm = pn_v_word(rows, offset);
    d[0] = pn_v_half_lo(dm);
    m[0] = pn_v_half_hi(dm);
}

PN_INLINE void pn_q4_1_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi mask = pn_v_set32(0x000f000f);
    pn_vi x[4];
    (void)unit;
    pn_v_words(rows, offset + offsetof(pn_q4_1_block, qs), x);
    PN_UNROLL
    for (size_t g = 0; g < 4; g++) {
        w[2 * g] = pn_v_and(x[g], mask);
        w[2 * g + 1] = pn_v_and(pn_v_srl16(x[g], 8), mask);
        w[2 * g + 8] = pn_v_and(pn_v_srl16(x[g], 4), mask);
        w[2 * g + 9] = pn_v_srl16(x[g], 12);
    }
}

static const pn_tile_type q4_1_tile = {.block_bytes = sizeof(pn_q4_1_block),
                                       .block_units = 1,
                                       .span = 1,
                                       .minimum = 1,
                                       .head = pn_q4_1_head,
                                       .codes = pn_q4_1_codes,
                                       .least = 0,
                                       .most = 15};

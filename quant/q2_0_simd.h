/* How q2_0 unpacks in vectors; included after a vector layer by q2_0_avx2.c and q2_0_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include "q2_0.h"

PN_INLINE void pn_q2_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    (void)m;
    d[0] = d[1] = pn_v_half_lo(pn_v_word(rows, offset));
}

/* 8 elements: element e in the low half of `x` has its partner e + 2 in the high half. */
PN_INLINE void pn_q2_0_part(pn_vi x, pn_vi *w)
{
    const pn_vi mask = pn_v_set32(0x00030003), one = pn_v_set32(0x00010001);
    w[0] = pn_v_sub16(pn_v_and(x, mask), one);
    w[1] = pn_v_sub16(pn_v_and(pn_v_srl16(x, 2), mask), one);
    w[2] = pn_v_sub16(pn_v_and(pn_v_srl16(x, 8), mask), one);
    w[3] = pn_v_sub16(pn_v_and(pn_v_srl16(x, 10), mask), one);
}

PN_INLINE void pn_q2_0_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi low = pn_v_set32(0x0000ffff);
    pn_vi x[4];
    (void)unit;
    pn_v_words(rows, offset + offsetof(pn_q2_0_block, qs), x);
    PN_UNROLL
    for (size_t i = 0; i < 4; i++) {
        pn_q2_0_part(pn_v_or(pn_v_and(x[i], low), pn_v_sll32(pn_v_srl32(x[i], 4), 16)), w + 8 * i);
        pn_q2_0_part(pn_v_or(pn_v_srl32(x[i], 16), pn_v_sll32(pn_v_srl32(x[i], 20), 16)), w + 8 * i + 4);
    }
}

static const pn_tile_type q2_0_tile = {
    .block_bytes = sizeof(pn_q2_0_block), .block_units = 2, .span = 2, .head = pn_q2_0_head, .codes = pn_q2_0_codes,
    .least = -1, .most = 2};

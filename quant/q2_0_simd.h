/* How q2_0 unpacks in vectors; included after a vector layer by q2_0_avx2.c, q2_0_avx512.c
 * and q2_0_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include "q2_0.h"

PN_INLINE void pn_q2_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)m, (void)keep;
    d[0] = d[1] = pn_v_half_lo(pn_v_word(rows, offset));
}

/* The four codes of byte `i` of each lane. */
PN_INLINE pn_vi pn_q2_0_word(pn_vi x, size_t i)
{
    const pn_vi byte = pn_v_spread(x, i), nibble = pn_v_set32(0x0000000f), other = pn_v_set32(0x000f0000);
    const pn_vi y = pn_v_or(pn_v_and(byte, nibble), pn_v_and(pn_v_srl32(byte, 4), other));
    return pn_v_and(pn_v_or(y, pn_v_sll32(y, 6)), pn_v_set32(0x03030303));
}

PN_INLINE void pn_q2_0_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[4];
    (void)unit, (void)keep;
    pn_v_words(rows, offset + offsetof(pn_q2_0_block, qs), x);
    PN_UNROLL
    for (size_t i = 0; i < 16; i++) w[i] = pn_q2_0_word(x[i / 4], i % 4);
}

static const pn_tile_type q2_0_tile = {
    .block_bytes = sizeof(pn_q2_0_block), .block_units = 2, .span = 2, .head = pn_q2_0_head, .bytes = pn_q2_0_bytes,
    .least = -1, .most = 2};

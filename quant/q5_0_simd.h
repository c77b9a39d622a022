/* How q5_0 unpacks in vectors; included after a vector layer by q5_0_avx2.c and q5_0_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q5_0.h"

PN_INLINE void pn_q5_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    (void)m;
    d[0] = pn_v_half_lo(pn_v_word(rows, offset));
}

PN_INLINE void pn_q5_0_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi middle = pn_v_set32(0x00100010);
    pn_vi x[4], high[16];
    (void)unit;
    pn_v_words(rows, offset + offsetof(pn_q5_0_block, qs), x);
    pn_unpack_nibbles(x, w);
    pn_unpack_bits(pn_v_word(rows, offset + offsetof(pn_q5_0_block, qh)), high);
    PN_UNROLL
    for (size_t i = 0; i < 16; i++) w[i] = pn_v_sub16(pn_v_or(w[i], high[i]), middle);
}

static const pn_tile_type q5_0_tile = {
    .block_bytes = sizeof(pn_q5_0_block), .block_units = 1, .span = 1, .head = pn_q5_0_head, .codes = pn_q5_0_codes,
    .least = -16, .most = 15};

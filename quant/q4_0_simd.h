/* How q4_0 unpacks in vectors; included after a vector layer by q4_0_avx2.c and q4_0_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include "q4_0.h"

PN_INLINE void pn_q4_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    (void)m;
    d[0] = pn_v_half_lo(pn_v_word(rows, offset));
}

/* The codes become signed here, so no correction by the activations' sum is needed. */
PN_INLINE void pn_q4_0_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi mask = pn_v_set32(0x000f000f), eight = pn_v_set32(0x00080008);
    pn_vi x[4];
    (void)unit;
    pn_v_words(rows, offset + offsetof(pn_q4_0_block, qs), x);
    PN_UNROLL
    for (size_t g = 0; g < 4; g++) {
        w[2 * g] = pn_v_sub16(pn_v_and(x[g], mask), eight);
        w[2 * g + 1] = pn_v_sub16(pn_v_and(pn_v_srl16(x[g], 8), mask), eight);
        w[2 * g + 8] = pn_v_sub16(pn_v_and(pn_v_srl16(x[g], 4), mask), eight);
        w[2 * g + 9] = pn_v_sub16(pn_v_srl16(x[g], 12), eight);
    }
}

static const pn_tile_type q4_0_tile = {
    .block_bytes = sizeof(pn_q4_0_block), .block_units = 1, .span = 1, .head = pn_q4_0_head, .codes = pn_q4_0_codes,
    .least = -8, .most = 7};

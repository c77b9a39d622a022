/* How q1_0 unpacks in vectors; included after a vector layer by q1_0_avx2.c and q1_0_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q1_0.h"

PN_INLINE void pn_q1_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    (void)m;
    d[0] = d[1] = d[2] = d[3] = pn_v_half_lo(pn_v_word(rows, offset));
}

PN_INLINE void pn_q1_0_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi one = pn_v_set32(0x00010001);
    pn_vi x[4];
    (void)unit;
    pn_v_words(rows, offset + offsetof(pn_q1_0_block, qs), x);
    PN_UNROLL
    for (size_t u = 0; u < 4; u++) {
        pn_unpack_bits(x[u], w + 16 * u);
        PN_UNROLL
        for (size_t i = 0; i < 16; i++) w[16 * u + i] = pn_v_sub16(pn_v_srl16(w[16 * u + i], 3), one); /* 2 b - 1 */
    }
}

static const pn_tile_type q1_0_tile = {
    .block_bytes = sizeof(pn_q1_0_block), .block_units = 4, .span = 4, .head = pn_q1_0_head, .codes = pn_q1_0_codes,
    .least = -1, .most = 1};

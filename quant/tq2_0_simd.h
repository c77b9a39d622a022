/* How tq2_0 unpacks in vectors; included after a vector layer by tq2_0_avx2.c, tq2_0_avx512.c
 * and tq2_0_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include "tq2_0.h"

PN_INLINE void pn_tq2_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)keep;
    pn_vi x[4];
    (void)m;
    pn_v_words(rows, offset + sizeof(pn_tq2_0_block) - 16, x); /* the last bytes: none behind the block are read */
    const pn_vf scale = pn_v_half_hi(x[3]);
    PN_UNROLL
    for (size_t i = 0; i < 8; i++) d[i] = scale;
}

PN_INLINE void pn_tq2_0_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    const pn_vi mask = pn_v_set32(0x03030303);
    (void)keep;
    PN_UNROLL
    for (size_t h = 0; h < 2; h++) {
        pn_vi x[4];
        pn_v_words(rows, offset + offsetof(pn_tq2_0_block, qs) + 8 * unit + 16 * h, x);
        PN_UNROLL
        for (size_t g = 0; g < 4; g++) {
            pn_vi *to = w + 4 * h + g; /* of the first of four units */
            to[0] = pn_v_and(x[g], mask);
            to[8] = pn_v_and(pn_v_srl16(x[g], 2), mask);
            to[16] = pn_v_and(pn_v_srl16(x[g], 4), mask);
            to[24] = pn_v_and(pn_v_srl16(x[g], 6), mask);
        }
    }
}

static const pn_tile_type tq2_0_tile = {
    .block_bytes = sizeof(pn_tq2_0_block), .block_units = 8, .span = 4, .head = pn_tq2_0_head, .bytes = pn_tq2_0_bytes,
    .least = -1, .most = 2};

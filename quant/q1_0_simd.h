/* How q1_0 unpacks in vectors; included after a vector layer by q1_0_avx2.c, q1_0_avx512.c
 * and q1_0_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q1_0.h"

PN_INLINE void pn_q1_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)m, (void)keep;
    d[0] = d[1] = d[2] = d[3] = pn_v_half_lo(pn_v_word(rows, offset));
}

/* 2 b, which is a code and 1. */
PN_INLINE void pn_q1_0_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[4];
    (void)unit, (void)keep;
    pn_v_words(rows, offset + offsetof(pn_q1_0_block, qs), x);
    PN_UNROLL
    for (size_t u = 0; u < 4; u++) pn_unpack_bits(x[u], 2, w + 8 * u);
}

static const pn_tile_type q1_0_tile = {
    .block_bytes = sizeof(pn_q1_0_block), .block_units = 4, .span = 4, .head = pn_q1_0_head, .bytes = pn_q1_0_bytes,
    .least = -1, .most = 1};

/* How q4_0 unpacks in vectors; included after a vector layer by q4_0_avx2.c, q4_0_avx512.c
 * and q4_0_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q4_0.h"

PN_INLINE void pn_q4_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)m, (void)keep;
    d[0] = pn_v_half_lo(pn_v_word(rows, offset));
}

PN_INLINE void pn_q4_0_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[4];
    (void)unit, (void)keep;
    pn_v_words(rows, offset + offsetof(pn_q4_0_block, qs), x);
    pn_unpack_nibbles(x, 4, 4, w);
}

static const pn_tile_type q4_0_tile = {
    .block_bytes = sizeof(pn_q4_0_block), .block_units = 1, .span = 1, .head = pn_q4_0_head, .bytes = pn_q4_0_bytes,
    .least = -8, .most = 7};

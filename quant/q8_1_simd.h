/* How q8_1 unpacks in vectors; included after a vector layer by q8_1_avx2.c, q8_1_avx512.c
 * and q8_1_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q8_1.h"

PN_INLINE void pn_q8_1_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)m, (void)keep;
    d[0] = pn_v_half_lo(pn_v_word(rows, offset));
}

PN_INLINE void pn_q8_1_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    (void)unit, (void)keep;
    pn_unpack_words(rows, offset + offsetof(pn_q8_1_block, qs), 2, w);
}

static const pn_tile_type q8_1_tile = {
    .block_bytes = sizeof(pn_q8_1_block), .block_units = 1, .span = 1, .head = pn_q8_1_head, .bytes = pn_q8_1_bytes,
    .least = -128, .most = 127};

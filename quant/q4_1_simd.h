/* How q4_1 unpacks in vectors; included after a vector layer by q4_1_avx2.c, q4_1_avx512.c
 * and q4_1_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q4_1.h"

PN_INLINE void pn_q4_1_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)keep;
    pn_v_half_both(pn_v_word(rows, offset), d, m);
}

PN_INLINE void pn_q4_1_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[4];
    (void)unit, (void)keep;
    pn_v_words(rows, offset + offsetof(pn_q4_1_block, qs), x);
    pn_unpack_nibbles(x, 4, 4, w);
}

static const pn_tile_type q4_1_tile = {.block_bytes = sizeof(pn_q4_1_block),
                                       .block_units = 1,
                                       .span = 1,
                                       .minimum = 1,
                                       .head = pn_q4_1_head,
                                       .bytes = pn_q4_1_bytes,
                                       .least = 0,
                                       .most = 15};

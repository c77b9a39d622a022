/* How iq4_nl unpacks in vectors; included after a vector layer by iq4_nl_avx2.c, iq4_nl_avx512.c
 * and iq4_nl_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "iq4_nl.h"

PN_INLINE void pn_iq4_nl_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)m, (void)keep;
    d[0] = pn_v_half_lo(pn_v_word(rows, offset));
}

PN_INLINE void pn_iq4_nl_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[4];
    (void)unit, (void)keep;
    pn_v_words(rows, offset + offsetof(pn_iq4_nl_block, qs), x);
    pn_unpack_book(pn_v_book(pn_iq4_book), x, 4, 4, w);
}

static const pn_tile_type iq4_nl_tile = {.block_bytes = sizeof(pn_iq4_nl_block),
                                         .block_units = 1,
                                         .span = 1,
                                         .head = pn_iq4_nl_head,
                                         .bytes = pn_iq4_nl_bytes,
                                         .least = -127,
                                         .most = 113};

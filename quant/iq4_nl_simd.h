/* How iq4_nl unpacks in vectors; included after a vector layer by iq4_nl_avx2.c and iq4_nl_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "iq4_nl.h"

PN_INLINE void pn_iq4_nl_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    (void)m;
    d[0] = pn_v_half_lo(pn_v_word(rows, offset));
}

PN_INLINE void pn_iq4_nl_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi book = pn_v_book(pn_iq4_book);
    pn_vi x[4];
    (void)unit;
    pn_v_words(rows, offset + offsetof(pn_iq4_nl_block, qs), x);
    PN_UNROLL
    for (size_t g = 0; g < 4; g++) pn_unpack_book(book, x[g], 8, w + 2 * g);
}

static const pn_tile_type iq4_nl_tile = {.block_bytes = sizeof(pn_iq4_nl_block),
                                         .block_units = 1,
                                         .span = 1,
                                         .head = pn_iq4_nl_head,
                                         .codes = pn_iq4_nl_codes,
                                         .least = -127,
                                         .most = 113};

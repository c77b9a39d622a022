/* How q5_1 unpacks in vectors; included after a vector layer by q5_1_avx2.c and q5_1_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q5_1.h"

PN_INLINE void pn_q5_1_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    const pn_vi dm = pn_v_word(rows, offset);
    d[0] = pn_v_half_lo(dm);
    m[0] = pn_v_half_hi(dm);
}

PN_INLINE void pn_q5_1_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    pn_vi x[4], high[16];
    (void)unit;
    pn_v_words(rows, offset + offsetof(pn_q5_1_block, qs), x);
    pn_unpack_nibbles(x, w);
    pn_unpack_bits(pn_v_word(rows, offset + offsetof(pn_q5_1_block, qh)), high);
    PN_UNROLL
    for (size_t i = 0; i < 16; i++) w[i] = pn_v_or(w[i], high[i]);
}

static const pn_tile_type q5_1_tile = {.block_bytes = sizeof(pn_q5_1_block),
                                       .block_units = 1,
                                       .span = 1,
                                       .minimum = 1,
                                       .head = pn_q5_1_head,
                                       .codes = pn_q5_1_codes,
                                       .least = 0,
                                       .most = 31};

/* How q8_k unpacks in vectors; included after a vector layer by q8_k_avx2.c and q8_k_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include "q8_k.h"

PN_INLINE void pn_q8_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    const pn_vf all = pn_v_bits_f(pn_v_word(rows, offset));
    (void)m;
    PN_UNROLL
    for (size_t i = 0; i < 8; i++) d[i] = all;
}

PN_INLINE void pn_q8_k_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const size_t at = offset + offsetof(pn_q8_k_block, qs) + unit * 32;
    pn_vi x[8];
    pn_v_words(rows, at, x);
    pn_v_words(rows, at + 16, x + 4);
    PN_UNROLL
    for (size_t g = 0; g < 8; g++) {
        w[2 * g] = pn_v_sra16(pn_v_sll16(x[g], 8), 8);
        w[2 * g + 1] = pn_v_sra16(x[g], 8);
    }
}

static const pn_tile_type q8_k_tile = {
    .block_bytes = sizeof(pn_q8_k_block), .block_units = 8, .span = 1, .head = pn_q8_k_head, .codes = pn_q8_k_codes,
    .least = -128, .most = 127};

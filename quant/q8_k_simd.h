/* How q8_k unpacks in vectors; included after a vector layer by q8_k_avx2.c, q8_k_avx512.c
 * and q8_k_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "q8_k.h"

PN_INLINE void pn_q8_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)keep;
    const pn_vf all = pn_v_bits_f(pn_v_word(rows, offset));
    (void)m;
    PN_UNROLL
    for (size_t i = 0; i < 8; i++) d[i] = all;
}

PN_INLINE void pn_q8_k_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    (void)keep;
    pn_unpack_words(rows, offset + offsetof(pn_q8_k_block, qs) + unit * 32, 2, w);
}

static const pn_tile_type q8_k_tile = {
    .block_bytes = sizeof(pn_q8_k_block), .block_units = 8, .span = 1, .head = pn_q8_k_head, .bytes = pn_q8_k_bytes,
    .least = -128, .most = 127};

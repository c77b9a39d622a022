/* How q4_k unpacks in vectors; included after a vector layer by q4_k_avx2.c, q4_k_avx512.c
 * and q4_k_amx.c. */
#include "k_scales_simd.h"
#include "q4_k.h"

PN_INLINE void pn_q4_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)keep;
    pn_k_head(rows, offset, d, m);
}

/* Units unit and unit + 1: the low and the high halves of the same 32 bytes. */
PN_INLINE void pn_q4_k_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[8];
    (void)keep;
    pn_unpack_words(rows, offset + offsetof(pn_q4_k_block, qs) + unit * 16, 2, x);
    pn_unpack_nibbles(x, 8, 8, w);
}

static const pn_tile_type q4_k_tile = {.block_bytes = sizeof(pn_q4_k_block),
                                       .block_units = 8,
                                       .span = 2,
                                       .minimum = 1,
                                       .head = pn_q4_k_head,
                                       .bytes = pn_q4_k_bytes,
                                       .least = 0,
                                       .most = 15};

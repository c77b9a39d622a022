/* How q6_k unpacks in vectors; included after a vector layer by q6_k_avx2.c and q6_k_avx512.c. */
#include "k_scales_simd.h"
#include "q6_k.h"

PN_INLINE void pn_q6_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    pn_vi w[4], last[4];
    (void)m;
    pn_v_words(rows, offset + offsetof(pn_q6_k_block, scales), w);
    pn_v_words(rows, offset + sizeof(pn_q6_k_block) - 16, last); /* d is the last half of the block */
    const pn_vf factor = pn_v_half_hi(last[3]);
    pn_unpack_words(rows, offset + offsetof(pn_q6_k_block, qh), 4, keep);
    PN_UNROLL
    for (size_t i = 0; i < 4; i++) pn_k_signed_bytes(w[i], factor, d + 4 * i);
}

/* Unit 0 .. 3 of each half of a block: a low or high half of ql, and two bits of qh. */
PN_INLINE void pn_q6_k_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    const pn_vi high = pn_v_set32(0x30303030);
    const pn_vi *h = keep + unit / 4 * 8;
    pn_vi x[8];
    pn_unpack_words(rows, offset + offsetof(pn_q6_k_block, ql) + unit / 4 * 64 + unit % 2 * 32, 2, x);
    PN_UNROLL
    for (size_t g = 0; g < 8; g++) {
        const pn_vi y = unit % 4 == 0   ? pn_v_sll32(h[g], 4)
                        : unit % 4 == 1 ? pn_v_sll32(h[g], 2)
                        : unit % 4 == 2 ? h[g]
                                        : pn_v_srl32(h[g], 2);
        w[g] = pn_v_or(unit % 4 < 2 ? pn_unpack_low(x[g]) : pn_unpack_high(x[g]), pn_v_and(y, high));
    }
}

static const pn_tile_type q6_k_tile = {.block_bytes = sizeof(pn_q6_k_block),
                                       .block_units = 8,
                                       .span = 1,
                                       .fine = 1,
                                       .head = pn_q6_k_head,
                                       .bytes = pn_q6_k_bytes,
                                       .least = -32,
                                       .most = 31};

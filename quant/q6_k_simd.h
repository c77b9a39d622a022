/* How q6_k unpacks in vectors; included after a vector layer by q6_k_avx2.c and q6_k_avx512.c. */
#include "k_scales_simd.h"
#include "q6_k.h"

PN_INLINE void pn_q6_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    pn_vi w[4], last[4];
    (void)m;
    pn_v_words(rows, offset + offsetof(pn_q6_k_block, scales), w);
    pn_v_words(rows, offset + sizeof(pn_q6_k_block) - 16, last); /* d is the last half of the block */
    const pn_vf factor = pn_v_half_hi(last[3]);
    PN_UNROLL
    for (size_t i = 0; i < 4; i++) pn_k_signed_bytes(w[i], factor, d + 4 * i);
}

/* Unit 0 .. 3 of each half of a block: a low or high half of ql, and two bits of qh. */
PN_INLINE void pn_q6_k_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi low = pn_v_set32(0x0f0f0f0f), high = pn_v_set32(0x30303030);
    const pn_vi byte = pn_v_set32(0x00ff00ff), bias = pn_v_set32(0x00200020);
    const size_t ql = offset + offsetof(pn_q6_k_block, ql) + unit / 4 * 64 + unit % 2 * 32;
    const size_t qh = offset + offsetof(pn_q6_k_block, qh) + unit / 4 * 32;
    pn_vi x[8], h[8];
    pn_v_words(rows, ql, x);
    pn_v_words(rows, ql + 16, x + 4);
    pn_v_words(rows, qh, h);
    pn_v_words(rows, qh + 16, h + 4);
    PN_UNROLL
    for (size_t g = 0; g < 8; g++) {
        const pn_vi y = unit % 4 == 0   ? pn_v_sll32(h[g], 4)
                        : unit % 4 == 1 ? pn_v_sll32(h[g], 2)
                        : unit % 4 == 2 ? h[g]
                                        : pn_v_srl32(h[g], 2);
        const pn_vi v = pn_v_or(pn_v_and(unit % 4 < 2 ? x[g] : pn_v_srl32(x[g], 4), low), pn_v_and(y, high));
        w[2 * g] = pn_v_sub16(pn_v_and(v, byte), bias);
        w[2 * g + 1] = pn_v_sub16(pn_v_srl16(v, 8), bias);
    }
}

static const pn_tile_type q6_k_tile = {.block_bytes = sizeof(pn_q6_k_block),
                                       .block_units = 8,
                                       .span = 1,
                                       .fine = 1,
                                       .head = pn_q6_k_head,
                                       .codes = pn_q6_k_codes,
                                       .least = -32,
                                       .most = 31};

/* How q3_k unpacks in vectors; included after a vector layer by q3_k_avx2.c and q3_k_avx512.c. */
#include "k_scales_simd.h"
#include "q3_k.h"

/* d[i] = factor * (byte i of each lane - 32); exact, as is every step. */
PN_INLINE void pn_q3_k_scales(pn_vi low, pn_vi high, pn_vf factor, pn_vf *d)
{
    const pn_vi four = pn_v_set32(0x0f0f0f0f), upper = pn_v_set32(0x30303030);
    const pn_vf bias = pn_v_mul(factor, pn_v_set_f(-32.0f));
    const pn_vi x = pn_v_or(pn_v_and(low, four), pn_v_and(high, upper)), byte = pn_v_set32(255);
    d[0] = pn_v_fma(factor, pn_v_float(pn_v_and(x, byte)), bias);
    d[1] = pn_v_fma(factor, pn_v_float(pn_v_and(pn_v_srl32(x, 8), byte)), bias);
    d[2] = pn_v_fma(factor, pn_v_float(pn_v_and(pn_v_srl32(x, 16), byte)), bias);
    d[3] = pn_v_fma(factor, pn_v_float(pn_v_srl32(x, 24)), bias);
}

PN_INLINE void pn_q3_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    pn_vi w[4], last[4];
    (void)m;
    pn_v_words(rows, offset + offsetof(pn_q3_k_block, scales) - 4, w); /* one word early: not beyond the block */
    pn_v_words(rows, offset + sizeof(pn_q3_k_block) - 16, last);       /* d is the last half of the block */
    const pn_vf factor = pn_v_half_hi(last[3]);
    pn_unpack_words(rows, offset + offsetof(pn_q3_k_block, hmask), 2, keep);
    pn_unpack_words(rows, offset + offsetof(pn_q3_k_block, qs), 4, keep + 8);
    pn_q3_k_scales(w[1], pn_v_sll32(w[3], 4), factor, d);
    pn_q3_k_scales(w[2], pn_v_sll32(w[3], 2), factor, d + 4);
    pn_q3_k_scales(pn_v_srl32(w[1], 4), w[3], factor, d + 8);
    pn_q3_k_scales(pn_v_srl32(w[2], 4), pn_v_srl32(w[3], 2), factor, d + 12);
}

/* Bit `unit` of each byte, moved to bit 2. */
PN_INLINE pn_vi pn_q3_k_high(pn_vi h, size_t unit)
{
    switch (unit) {
    case 0: return pn_v_sll32(h, 2);
    case 1: return pn_v_sll32(h, 1);
    case 2: return h;
    case 3: return pn_v_srl32(h, 1);
    case 4: return pn_v_srl32(h, 2);
    case 5: return pn_v_srl32(h, 3);
    case 6: return pn_v_srl32(h, 4);
    default: return pn_v_srl32(h, 5);
    }
}

/* Unit 0 .. 3 of each half of a block: two bits of the same 32 bytes, and one of hmask. */
PN_INLINE void pn_q3_k_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    const pn_vi two = pn_v_set32(0x03030303), third = pn_v_set32(0x04040404);
    const pn_vi *x = keep + 8 + unit / 4 * 8, *h = keep;
    (void)rows, (void)offset;
    PN_UNROLL
    for (size_t g = 0; g < 8; g++) {
        const pn_vi y = unit % 4 == 0   ? x[g]
                        : unit % 4 == 1 ? pn_v_srl32(x[g], 2)
                        : unit % 4 == 2 ? pn_v_srl32(x[g], 4)
                                        : pn_v_srl32(x[g], 6);
        w[g] = pn_v_or(pn_v_and(y, two), pn_v_and(pn_q3_k_high(h[g], unit), third));
    }
}

static const pn_tile_type q3_k_tile = {.block_bytes = sizeof(pn_q3_k_block),
                                       .block_units = 8,
                                       .span = 1,
                                       .fine = 1,
                                       .head = pn_q3_k_head,
                                       .bytes = pn_q3_k_bytes,
                                       .least = -4,
                                       .most = 3};

/* How q2_k unpacks in vectors; included after a vector layer by q2_k_avx2.c and q2_k_avx512.c. */
#include "k_scales_simd.h"
#include "q2_k.h"

PN_INLINE void pn_q2_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    const pn_vi four = pn_v_set32(0x0f0f0f0f);
    pn_vf factor, minimum;
    pn_vi w[4], last[4];
    pn_v_words(rows, offset + offsetof(pn_q2_k_block, scales), w);
    pn_v_words(rows, offset + sizeof(pn_q2_k_block) - 16, last); /* d and dmin are the last word of the block */
    pn_v_half_both(last[3], &factor, &minimum);
    minimum = pn_k_negative(minimum);
    pn_unpack_words(rows, offset + offsetof(pn_q2_k_block, qs), 4, keep);
    PN_UNROLL
    for (size_t i = 0; i < 4; i++) {
        pn_k_bytes(pn_v_and(w[i], four), factor, d + 4 * i);
        pn_k_bytes(pn_v_and(pn_v_srl32(w[i], 4), four), minimum, m + 4 * i);
    }
}

/* Unit 0 .. 3 of each half of a block: two bits of the same 32 bytes. */
PN_INLINE void pn_q2_k_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    const pn_vi two = pn_v_set32(0x03030303);
    const pn_vi *x = keep + unit / 4 * 8;
    (void)rows, (void)offset;
    PN_UNROLL
    for (size_t g = 0; g < 8; g++)
        w[g] = pn_v_and(unit % 4 == 0   ? x[g]
                        : unit % 4 == 1 ? pn_v_srl16(x[g], 2)
                        : unit % 4 == 2 ? pn_v_srl16(x[g], 4)
                                        : pn_v_srl16(x[g], 6),
                        two);
}

static const pn_tile_type q2_k_tile = {.block_bytes = sizeof(pn_q2_k_block),
                                       .block_units = 8,
                                       .span = 1,
                                       .fine = 1,
                                       .minimum = 1,
                                       .head = pn_q2_k_head,
                                       .bytes = pn_q2_k_bytes,
                                       .least = 0,
                                       .most = 3};

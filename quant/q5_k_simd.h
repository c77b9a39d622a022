/* How q5_k unpacks in vectors; included after a vector layer by q5_k_avx2.c and q5_k_avx512.c. */
#include "k_scales_simd.h"
#include "q5_k.h"

/* Units unit and unit + 1: the low and the high halves of the same 32 bytes, and bits unit and unit + 1 of qh. */
PN_INLINE void pn_q5_k_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi four = pn_v_set32(0x0f0f0f0f), bit = pn_v_set32(0x10101010), byte = pn_v_set32(0x00ff00ff);
    const size_t at = offset + offsetof(pn_q5_k_block, qs) + unit * 16, qh = offset + offsetof(pn_q5_k_block, qh);
    pn_vi x[8], h[8];
    pn_v_words(rows, at, x);
    pn_v_words(rows, at + 16, x + 4);
    pn_v_words(rows, qh, h);
    pn_v_words(rows, qh + 16, h + 4);
    PN_UNROLL
    for (size_t g = 0; g < 8; g++) {
        /* bits unit of the four bytes at 4, bits unit + 1 at 5 */
        const pn_vi y = unit == 0   ? pn_v_sll32(h[g], 4)
                        : unit == 2 ? pn_v_sll32(h[g], 2)
                        : unit == 4 ? h[g]
                                    : pn_v_srl32(h[g], 2);
        const pn_vi low = pn_v_or(pn_v_and(x[g], four), pn_v_and(y, bit));
        const pn_vi high = pn_v_or(pn_v_and(pn_v_srl32(x[g], 4), four), pn_v_and(pn_v_srl32(y, 1), bit));
        w[2 * g] = pn_v_and(low, byte);
        w[2 * g + 1] = pn_v_srl16(low, 8);
        w[2 * g + 16] = pn_v_and(high, byte);
        w[2 * g + 17] = pn_v_srl16(high, 8);
    }
}

static const pn_tile_type q5_k_tile = {.block_bytes = sizeof(pn_q5_k_block),
                                       .block_units = 8,
                                       .span = 2,
                                       .minimum = 1,
                                       .head = pn_k_head,
                                       .codes = pn_q5_k_codes,
                                       .least = 0,
                                       .most = 31};

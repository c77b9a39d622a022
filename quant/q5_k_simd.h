/* How q5_k unpacks in vectors; included after a vector layer by q5_k_avx2.c, q5_k_avx512.c
 * and q5_k_amx.c. */
#include "k_scales_simd.h"
#include "q5_k.h"

PN_INLINE void pn_q5_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    pn_unpack_words(rows, offset + offsetof(pn_q5_k_block, qh), 2, keep);
    pn_k_head(rows, offset, d, m);
}

/* Units unit and unit + 1: the low and the high halves of the same 32 bytes, and bits unit and unit + 1 of qh. */
PN_INLINE void pn_q5_k_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    const pn_vi bit = pn_v_set32(0x10101010);
    pn_vi x[8];
    pn_unpack_words(rows, offset + offsetof(pn_q5_k_block, qs) + unit * 16, 2, x);
    pn_unpack_nibbles(x, 8, 8, w);
    PN_UNROLL
    for (size_t g = 0; g < 8; g++) {
        /* bits unit of the four bytes at 4, bits unit + 1 at 5 */
        const pn_vi y = unit == 0   ? pn_v_sll32(keep[g], 4)
                        : unit == 2 ? pn_v_sll32(keep[g], 2)
                        : unit == 4 ? keep[g]
                                    : pn_v_srl32(keep[g], 2);
        w[g] = pn_v_or(w[g], pn_v_and(y, bit));
        w[8 + g] = pn_v_or(w[8 + g], pn_v_and(pn_v_srl32(y, 1), bit));
    }
}

static const pn_tile_type q5_k_tile = {.block_bytes = sizeof(pn_q5_k_block),
                                       .block_units = 8,
                                       .span = 2,
                                       .minimum = 1,
                                       .head = pn_q5_k_head,
                                       .bytes = pn_q5_k_bytes,
                                       .least = 0,
                                       .most = 31};

/* How q4_k unpacks in vectors; included after a vector layer by q4_k_avx2.c and q4_k_avx512.c. */
#include "k_scales_simd.h"
#include "q4_k.h"

/* Units unit and unit + 1: the low and the high halves of the same 32 bytes. */
PN_INLINE void pn_q4_k_codes(pn_rows rows, size_t offset, size_t unit, pn_vi *w)
{
    const pn_vi mask = pn_v_set32(0x000f000f);
    const size_t at = offset + offsetof(pn_q4_k_block, qs) + unit * 16;
    pn_vi x[8];
    pn_v_words(rows, at, x);
    pn_v_words(rows, at + 16, x + 4);
    PN_UNROLL
    for (size_t g = 0; g < 8; g++) {
        w[2 * g] = pn_v_and(x[g], mask);
        w[2 * g + 1] = pn_v_and(pn_v_srl16(x[g], 8), mask);
        w[2 * g + 16] = pn_v_and(pn_v_srl16(x[g], 4), mask);
        w[2 * g + 17] = pn_v_srl16(x[g], 12);
    }
}

static const pn_tile_type q4_k_tile = {.block_bytes = sizeof(pn_q4_k_block),
                                       .block_units = 8,
                                       .span = 2,
                                       .minimum = 1,
                                       .head = pn_k_head,
                                       .codes = pn_q4_k_codes,
                                       .least = 0,
                                       .most = 15};

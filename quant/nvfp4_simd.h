/* How nvfp4 unpacks in vectors; included after a vector layer by nvfp4_avx2.c and nvfp4_avx512.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "nvfp4.h"

/* Two scales of each row, in the low seven bits of its 16-bit lanes, as halfs: exponent and mantissa begin at the same
 * place, so the half is 2^-8 times the scale. 127 is 0. */
PN_INLINE pn_vi pn_nvfp4_halfs(pn_vi x)
{
    const pn_vi off = pn_v_sub16(x, pn_v_set32(0x007f007f));
    const pn_vi other = pn_v_sra16(pn_v_or(off, pn_v_sub16(pn_v_zero(), off)), 15);
    return pn_v_and(pn_v_and(pn_v_sll16(x, 7), pn_v_set32(0x3f803f80)), other);
}

PN_INLINE void pn_nvfp4_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)keep;
    const pn_vi x = pn_v_word(rows, offset);
    const pn_vi even = pn_nvfp4_halfs(pn_v_and(x, pn_v_set32(0x00ff00ff))), odd = pn_nvfp4_halfs(pn_v_srl16(x, 8));
    const pn_vf size = pn_v_set_f(128.0f); /* 2^8, halved for the doubled values */
    (void)m;
    pn_v_half_both(even, d, d + 2);
    pn_v_half_both(odd, d + 1, d + 3);
    PN_UNROLL
    for (size_t i = 0; i < 4; i++) d[i] = pn_v_mul(d[i], size);
}

PN_INLINE void pn_nvfp4_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[4];
    (void)keep;
    pn_v_words(rows, offset + offsetof(pn_nvfp4_block, qs) + 16 * unit, x);
    PN_UNROLL
    for (size_t i = 0; i < 4; i += 2) /* words 0 and 1 are the first 16 elements, 2 and 3 the others */
        pn_unpack_book(pn_v_book(pn_e2m1_above), x + i, 2, 2, w + 2 * i);
}

static const pn_tile_type nvfp4_tile = {.block_bytes = sizeof(pn_nvfp4_block),
                                        .block_units = 2,
                                        .span = 1,
                                        .fine = 1,
                                        .head = pn_nvfp4_head,
                                        .bytes = pn_nvfp4_bytes,
                                        .least = -12,
                                        .most = 12};

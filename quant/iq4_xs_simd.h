/* How iq4_xs unpacks in vectors; included after a vector layer by iq4_xs_avx2.c, iq4_xs_avx512.c
 * and iq4_xs_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "iq4_xs.h"

PN_INLINE void pn_iq4_xs_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)keep;
    const pn_vi low = pn_v_set32(15), high = pn_v_set32(0x30);
    pn_vi x[4], s[8];
    (void)m;
    pn_v_words(rows, offset, x);
    const pn_vi l = x[1], h = pn_v_srl32(x[0], 16);
    const pn_vf scale = pn_v_half_lo(x[0]), middle = pn_v_set_f(-32.0f);
    s[0] = pn_v_or(pn_v_and(l, low), pn_v_and(pn_v_sll32(h, 4), high));
    s[1] = pn_v_or(pn_v_and(pn_v_srl32(l, 4), low), pn_v_and(pn_v_sll32(h, 2), high));
    s[2] = pn_v_or(pn_v_and(pn_v_srl32(l, 8), low), pn_v_and(h, high));
    s[3] = pn_v_or(pn_v_and(pn_v_srl32(l, 12), low), pn_v_and(pn_v_srl32(h, 2), high));
    s[4] = pn_v_or(pn_v_and(pn_v_srl32(l, 16), low), pn_v_and(pn_v_srl32(h, 4), high));
    s[5] = pn_v_or(pn_v_and(pn_v_srl32(l, 20), low), pn_v_and(pn_v_srl32(h, 6), high));
    s[6] = pn_v_or(pn_v_and(pn_v_srl32(l, 24), low), pn_v_and(pn_v_srl32(h, 8), high));
    s[7] = pn_v_or(pn_v_srl32(l, 28), pn_v_and(pn_v_srl32(h, 10), high));
    PN_UNROLL
    for (size_t i = 0; i < 8; i++) /* s - 32 is exact, so this is rounded once */
        d[i] = pn_v_mul(scale, pn_v_fma(pn_v_set_f(1.0f), pn_v_float(s[i]), middle));
}

PN_INLINE void pn_iq4_xs_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[4];
    (void)keep;
    pn_v_words(rows, offset + offsetof(pn_iq4_xs_block, qs) + 16 * unit, x);
    pn_unpack_book(pn_v_book(pn_iq4_book), x, 4, 4, w);
}

static const pn_tile_type iq4_xs_tile = {.block_bytes = sizeof(pn_iq4_xs_block),
                                         .block_units = 8,
                                         .span = 1,
                                         .head = pn_iq4_xs_head,
                                         .bytes = pn_iq4_xs_bytes,
                                         .least = -127,
                                         .most = 113};

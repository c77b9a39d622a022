/* How mxfp4 unpacks in vectors; included after a vector layer by mxfp4_avx2.c, mxfp4_avx512.c
 * and mxfp4_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>
#include "mxfp4.h"

/* 2^(e - 127) / 2, from the bits of a float whose exponent is e: of 0 and 255 these must be made. */
PN_INLINE void pn_mxfp4_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)keep;
    const pn_vi e = pn_v_and(pn_v_word(rows, offset), pn_v_set32(255));
    const pn_vi first = pn_v_srl32(pn_v_add32(e, pn_v_set32(0xffffffff)), 31);
    const pn_vi last = pn_v_srl32(pn_v_add32(e, pn_v_set32(1)), 8);
    const pn_vi bits = pn_v_or(pn_v_sll32(e, 23), pn_v_sll32(pn_v_or(first, last), 22));
    (void)m;
    d[0] = pn_v_mul(pn_v_bits_f(bits), pn_v_set_f(0.5f));
}

PN_INLINE void pn_mxfp4_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    pn_vi x[4];
    (void)unit, (void)keep;
    pn_v_words(rows, offset + offsetof(pn_mxfp4_block, qs), x);
    pn_unpack_book(pn_v_book(pn_e2m1_above), x, 4, 4, w);
}

static const pn_tile_type mxfp4_tile = {
    .block_bytes = sizeof(pn_mxfp4_block), .block_units = 1, .span = 1, .head = pn_mxfp4_head, .bytes = pn_mxfp4_bytes,
    .least = -12, .most = 12};

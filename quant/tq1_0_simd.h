/* How tq1_0 unpacks in vectors; included after a vector layer by tq1_0_avx2.c, tq1_0_avx512.c
 * and tq1_0_amx.c. */
#include <pantheon/kit/tile_i8.h>
#include "tq1_0.h"

PN_INLINE void pn_tq1_0_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep)
{
    (void)keep;
    pn_vi x[4];
    (void)m;
    pn_v_words(rows, offset + sizeof(pn_tq1_0_block) - 16, x); /* the last bytes: none behind the block are read */
    const pn_vf scale = pn_v_half_hi(x[3]);
    PN_UNROLL
    for (size_t i = 0; i < 8; i++) d[i] = scale;
}

/* The digit of each byte that `power`, 3 to the number of digits before it, brings to the top: the product modulo 256
 * is the fraction that is left, kept in the high byte of a 16-bit lane. */
PN_INLINE pn_vi pn_tq1_0_digit(pn_vi x, uint32_t power)
{
    const pn_vi left = pn_v_set32(power * 0x01000100), three = pn_v_set32(0x00030003);
    const pn_vi even = pn_v_mulhi16u(pn_v_mullo16(x, left), three);
    const pn_vi odd = pn_v_mulhi16u(pn_v_mullo16(pn_v_srl16(x, 8), left), three);
    return pn_v_or(even, pn_v_sll16(odd, 8));
}

PN_INLINE void pn_tq1_0_bytes(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w)
{
    static const uint32_t power[5] = {1, 3, 9, 27, 81};
    pn_vi x[8];
    (void)keep;
    if (unit < 5) { /* a digit of each of the first 32 bytes */
        pn_v_words8(rows, offset, x);
        PN_UNROLL
        for (size_t g = 0; g < 8; g++) w[g] = pn_tq1_0_digit(x[g], power[unit]);
        return;
    }
    const size_t first = 2 * (unit - 5); /* two digits of each of the next 16; at last one, and four of the last 4 */
    pn_v_words(rows, offset + 32, x);
    PN_UNROLL
    for (size_t g = 0; g < 4; g++) w[g] = pn_tq1_0_digit(x[g], power[first]);
    if (unit < 7) {
        PN_UNROLL
        for (size_t g = 0; g < 4; g++) w[4 + g] = pn_tq1_0_digit(x[g], power[first + 1]);
    } else {
        pn_v_words(rows, offset + offsetof(pn_tq1_0_block, d) - 16, x);
        PN_UNROLL
        for (size_t g = 0; g < 4; g++) w[4 + g] = pn_tq1_0_digit(x[3], power[g]);
    }
}

static const pn_tile_type tq1_0_tile = {
    .block_bytes = sizeof(pn_tq1_0_block), .block_units = 8, .span = 1, .head = pn_tq1_0_head, .bytes = pn_tq1_0_bytes,
    .least = -1, .most = 1};

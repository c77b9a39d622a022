/* Unpackers in the words of the vector layer that several types share. Include a vector layer first. They write the 8
 * vectors of a unit of 32 elements: in each lane, number g holds the bytes of elements 4g .. 4g + 3 (tile_i16.h).
 *
 * Shifts are written out because their counts must be constants however little a compiler optimizes.
 */
#ifndef PANTHEON_KIT_UNPACK_H
#define PANTHEON_KIT_UNPACK_H

#include <pantheon/kit/words.h>

/* The words of `n` times 16 bytes of every row. */
PN_INLINE void pn_unpack_words(pn_rows rows, size_t offset, size_t n, pn_vi *w)
{
    PN_UNROLL
    for (size_t i = 0; i + 2 <= n; i += 2) pn_v_words8(rows, offset + 16 * i, w + 4 * i);
    if (n % 2) pn_v_words(rows, offset + 16 * (n - 1), w + 4 * (n - 1));
}

/* Low and high four bits of every byte. */
PN_INLINE pn_vi pn_unpack_low(pn_vi x)
{
    return pn_v_and(x, pn_v_set32(0x0f0f0f0f));
}
PN_INLINE pn_vi pn_unpack_high(pn_vi x)
{
    return pn_unpack_low(pn_v_srl16(x, 4));
}

/* `n` words of a row: the low four bits of their bytes to w[0 ..], the high ones to w[high ..]. */
PN_INLINE void pn_unpack_nibbles(const pn_vi *x, size_t n, size_t high, pn_vi *w)
{
    PN_UNROLL
    for (size_t g = 0; g < n; g++) {
        w[g] = pn_unpack_low(x[g]);
        w[high + g] = pn_unpack_high(x[g]);
    }
}

/* The same, through a code book. */
PN_INLINE void pn_unpack_book(pn_vi book, const pn_vi *x, size_t n, size_t high, pn_vi *w)
{
    PN_UNROLL
    for (size_t g = 0; g < n; g++) {
        w[g] = pn_v_lookup(book, pn_unpack_low(x[g]));
        w[high + g] = pn_v_lookup(book, pn_unpack_high(x[g]));
    }
}

/* 32 bits of a row, bit e belonging to element e, as 8 vectors of bytes that are 0 or `one`. */
PN_INLINE void pn_unpack_bits(pn_vi x, uint8_t one, pn_vi *w)
{
    const pn_vi low = pn_v_set32(0x08040201), high = pn_v_set32(0x80402010), ones = pn_v_set32(one * 0x01010101u);
    PN_UNROLL
    for (size_t i = 0; i < 4; i++) {
        const pn_vi byte = pn_v_spread(x, i);
        w[2 * i] = pn_v_where8(byte, low, ones);
        w[2 * i + 1] = pn_v_where8(byte, high, ones);
    }
}

#endif

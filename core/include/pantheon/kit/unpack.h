/* Unpackers in the words of the vector layer that several types share. Include a vector layer first. They write the 16
 * vectors of a unit of 32 elements: number 2g + h holds elements 4g + h and 4g + h + 2 (tile_i16.h).
 *
 * Shifts are written out because their counts must be constants however little a compiler optimizes.
 */
#ifndef PANTHEON_KIT_UNPACK_H
#define PANTHEON_KIT_UNPACK_H

#include <pantheon/kit/types.h>

#ifndef PN_LANES
#error "include pantheon/kit/simd_avx512.h or simd_avx2.h before unpack.h"
#endif

/* 16 bytes of a row as four words: element i in the low four bits of byte i, element 16 + i in the high four. */
PN_INLINE void pn_unpack_nibbles(const pn_vi x[4], pn_vi *w)
{
    const pn_vi mask = pn_v_set32(0x000f000f);
    PN_UNROLL
    for (size_t g = 0; g < 4; g++) {
        w[2 * g] = pn_v_and(x[g], mask);
        w[2 * g + 1] = pn_v_and(pn_v_srl16(x[g], 8), mask);
        w[2 * g + 8] = pn_v_and(pn_v_srl16(x[g], 4), mask);
        w[2 * g + 9] = pn_v_srl16(x[g], 12);
    }
}

/* Four signed bytes of a row as two vectors. */
PN_INLINE void pn_unpack_bytes(pn_vi x, pn_vi *w)
{
    w[0] = pn_v_sra16(pn_v_sll16(x, 8), 8);
    w[1] = pn_v_sra16(x, 8);
}

/* A word of eight codes of four bits through a code book: the low ones to w[0..1], the high ones to w[high..high + 1].
 */
PN_INLINE void pn_unpack_book(pn_vi book, pn_vi x, size_t high, pn_vi *w)
{
    const pn_vi mask = pn_v_set32(0x0f0f0f0f);
    pn_unpack_bytes(pn_v_lookup(book, pn_v_and(x, mask)), w);
    pn_unpack_bytes(pn_v_lookup(book, pn_v_and(pn_v_srl16(x, 4), mask)), w + high);
}

/* 16 bits of a row, those of elements e .. e + 15 in the low half of `x` and of e + 2 .. e + 17 in the high one, as 8
 * vectors of 0 or 16. */
PN_INLINE void pn_unpack_16_bits(pn_vi x, pn_vi *w)
{
    const pn_vi mask = pn_v_set32(0x00100010);
    w[0] = pn_v_and(pn_v_sll16(x, 4), mask);
    w[1] = pn_v_and(pn_v_sll16(x, 3), mask);
    w[2] = pn_v_and(x, mask);
    w[3] = pn_v_and(pn_v_srl16(x, 1), mask);
    w[4] = pn_v_and(pn_v_srl16(x, 4), mask);
    w[5] = pn_v_and(pn_v_srl16(x, 5), mask);
    w[6] = pn_v_and(pn_v_srl16(x, 8), mask);
    w[7] = pn_v_and(pn_v_srl16(x, 9), mask);
}

/* 32 bits of a row, bit e belonging to element e, as 16 vectors of 0 or 16. */
PN_INLINE void pn_unpack_bits(pn_vi x, pn_vi *w)
{
    const pn_vi low = pn_v_set32(0x0000ffff);
    pn_unpack_16_bits(pn_v_or(pn_v_and(x, low), pn_v_sll32(pn_v_srl32(x, 2), 16)), w);
    pn_unpack_16_bits(pn_v_or(pn_v_srl32(x, 16), pn_v_sll32(pn_v_srl32(x, 18), 16)), w + 8);
}

#endif

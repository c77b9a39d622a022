/* What the code-book types (iq1, iq2, iq3) share: code books written as packed numbers, and signs applied to eight codes at
 * once. Eight codes travel as a 64-bit number, code j in bits 8 j .. 8 j + 7.
 */
#ifndef PN_QUANT_IQ_BOOKS_H
#define PN_QUANT_IQ_BOOKS_H

#include <pantheon/kit/block.h>

/* Two bits of x to one of three bytes; eight of them. */
#define PN_IQ_OF_3(x, i, a, b, c)                                                                                      \
    ((uint64_t)(((x) >> 2 * (i)&3) == 0 ? (a) : ((x) >> 2 * (i)&3) == 1 ? (b) : (c)) << 8 * (i))
#define PN_IQ_8(x, a, b, c)                                                                                            \
    (PN_IQ_OF_3(x, 0, a, b, c) | PN_IQ_OF_3(x, 1, a, b, c) | PN_IQ_OF_3(x, 2, a, b, c) | PN_IQ_OF_3(x, 3, a, b, c) |   \
     PN_IQ_OF_3(x, 4, a, b, c) | PN_IQ_OF_3(x, 5, a, b, c) | PN_IQ_OF_3(x, 6, a, b, c) | PN_IQ_OF_3(x, 7, a, b, c))
/* Elements 8, 25, 43 of iq2. */
#define PN_IQ2(x) PN_IQ_8(x, 8, 25, 43)
/* Elements g = -1, 0, 1 of iq1 as 8 g + PN_IQ1_BIAS + 1: x = d / 8 * (8 g +- 1), so the shift by 1/8 stays an integer. */
#define PN_IQ1_BIAS 64
#define PN_IQ1(x) PN_IQ_8(x, 57, 65, 73)

/* Digit i of x as 8 digit + 4 (iq3_xxs; the last is 62) or 2 digit + 1 (iq3_s). */
#define PN_IQ3_XXS_BYTE(x, i) ((uint32_t)(8 * ((x) >> 4 * (i)&7) + 4 + 2 * (((x) >> 4 * (i)&7) == 7)) << 8 * (i))
#define PN_IQ3_XXS(x) (PN_IQ3_XXS_BYTE(x, 0) | PN_IQ3_XXS_BYTE(x, 1) | PN_IQ3_XXS_BYTE(x, 2) | PN_IQ3_XXS_BYTE(x, 3))
#define PN_IQ3_S_BYTE(x, i) ((uint32_t)(2 * ((x) >> 4 * (i)&7) + 1) << 8 * (i))
#define PN_IQ3_S(x) (PN_IQ3_S_BYTE(x, 0) | PN_IQ3_S_BYTE(x, 1) | PN_IQ3_S_BYTE(x, 2) | PN_IQ3_S_BYTE(x, 3))

/* Eight signs of which seven are stored: the eighth makes the number of minuses even. */
PN_UNUSED static inline unsigned pn_iq_signs(uint32_t seven)
{
    seven &= 127;
    return seven | (0x6996u >> ((seven ^ seven >> 4) & 15) & 1) << 7;
}

/* Eight codes of 1..127, code j negated where bit j of `signs` is set. */
PN_UNUSED static inline uint64_t pn_iq_signed(uint64_t codes, unsigned signs)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t bits = (signs & 255) * ones & UINT64_C(0x8040201008040201);
    const uint64_t minus = (bits + 127 * ones) >> 7 & ones;
    return (codes ^ minus * 255) + minus; /* a code is not 0, so nothing is carried into the next */
}

/* Eight codes of iq1: 8 (element + 1/8), or 8 (element - 1/8) if `minus` is 1, plus PN_IQ1_BIAS. */
PN_UNUSED static inline uint64_t pn_iq1_codes(uint64_t codes, unsigned minus)
{
    return codes - minus * UINT64_C(0x0202020202020202); /* the bias keeps bytes apart */
}

PN_UNUSED static inline void pn_iq_store(int8_t *out, uint64_t codes)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    codes = __builtin_bswap64(codes);
#endif
    memcpy(out, &codes, sizeof codes);
}

/* The 256 codes of a block as 16-bit numbers, less `bias`. */
PN_UNUSED static inline void pn_iq_widen(const int8_t *q, int bias, int16_t *code)
{
    for (size_t i = 0; i < 256; i++) code[i] = (int16_t)(q[i] - bias);
}

#endif

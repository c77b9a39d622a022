/* What the code-book types (iq1, iq2, iq3) share: code books written as packed numbers, and 32 codes at once with their
 * signs. Eight codes travel as a 64-bit number, code j in bits 8 j .. 8 j + 7.
 */
#ifndef PN_QUANT_IQ_BOOKS_H
#define PN_QUANT_IQ_BOOKS_H

#include <pantheon/kit/block.h>

/* Two bits of x to one of three bytes; eight of them. */
#define PN_IQ_OF_3(x, i, a, b, c)                                                                                      \
    ((uint64_t)(((x) >> 2 * (i) & 3) == 0 ? (a) : ((x) >> 2 * (i) & 3) == 1 ? (b) : (c)) << 8 * (i))
#define PN_IQ_8(x, a, b, c)                                                                                            \
    (PN_IQ_OF_3(x, 0, a, b, c) | PN_IQ_OF_3(x, 1, a, b, c) | PN_IQ_OF_3(x, 2, a, b, c) | PN_IQ_OF_3(x, 3, a, b, c) |   \
     PN_IQ_OF_3(x, 4, a, b, c) | PN_IQ_OF_3(x, 5, a, b, c) | PN_IQ_OF_3(x, 6, a, b, c) | PN_IQ_OF_3(x, 7, a, b, c))
/* Elements 8, 25, 43 of iq2. */
#define PN_IQ2(x) PN_IQ_8(x, 8, 25, 43)
/* Elements g = -1, 0, 1 of iq1 as 8 g + PN_IQ1_BIAS + 1: d * (g +- 1/8) is d / 8 * (8 g +- 1), an integer. */
#define PN_IQ1_BIAS 64
#define PN_IQ1(x) PN_IQ_8(x, 57, 65, 73)

/* Digit i of x as 8 digit + 4 (iq3_xxs; the last is 62) or 2 digit + 1 (iq3_s). */
#define PN_IQ3_XXS_BYTE(x, i) ((uint32_t)(8 * ((x) >> 4 * (i) & 7) + 4 + 2 * (((x) >> 4 * (i) & 7) == 7)) << 8 * (i))
#define PN_IQ3_XXS(x) (PN_IQ3_XXS_BYTE(x, 0) | PN_IQ3_XXS_BYTE(x, 1) | PN_IQ3_XXS_BYTE(x, 2) | PN_IQ3_XXS_BYTE(x, 3))
#define PN_IQ3_S_BYTE(x, i) ((uint32_t)(2 * ((x) >> 4 * (i) & 7) + 1) << 8 * (i))
#define PN_IQ3_S(x) (PN_IQ3_S_BYTE(x, 0) | PN_IQ3_S_BYTE(x, 1) | PN_IQ3_S_BYTE(x, 2) | PN_IQ3_S_BYTE(x, 3))

/* 32 signs, of which seven of each byte are given: the eighth makes the number of minuses even. */
PN_UNUSED static inline uint32_t pn_iq_even(uint32_t s)
{
    uint32_t odd = s ^ s >> 4; /* in bit 0 of each byte, once its bits are added */
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return s | (odd & 0x01010101) << 7;
}

/* The same, the sevens in the low 28 bits. */
PN_UNUSED static inline uint32_t pn_iq_signs(uint32_t s)
{
    return pn_iq_even((s & 0x7f) | (s << 1 & 0x7f00) | (s << 2 & 0x7f0000) | (s << 3 & 0x7f000000));
}

/* 32 signs in four bytes, the first lowest. */
PN_UNUSED static inline uint32_t pn_iq_bits(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Eight codes of iq1: 8 (element + 1/8), or 8 (element - 1/8) if `minus` is 1, plus PN_IQ1_BIAS. */
PN_UNUSED static inline uint64_t pn_iq1_codes(uint64_t codes, unsigned minus)
{
    return codes - minus * UINT64_C(0x0202020202020202); /* the bias keeps bytes apart */
}

#ifdef __AVX2__ /* the same as in C below */

#include <immintrin.h>

PN_UNUSED static inline void pn_iq_widen(__m256i codes, int bias, int16_t *out)
{
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    _mm512_storeu_si512(out, _mm512_sub_epi16(_mm512_cvtepi8_epi16(codes), _mm512_set1_epi16((short)bias)));
#else
    const __m256i b = _mm256_set1_epi16((short)bias);
    const __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(codes));
    const __m256i high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(codes, 1));
    _mm256_storeu_si256((__m256i_u *)out, _mm256_sub_epi16(low, b));
    _mm256_storeu_si256((__m256i_u *)(out + 16), _mm256_sub_epi16(high, b));
#endif
}

PN_UNUSED static inline void pn_iq_put(const uint64_t c[4], int bias, int16_t *out)
{
    pn_iq_widen(_mm256_set_epi64x((long long)c[3], (long long)c[2], (long long)c[1], (long long)c[0]), bias, out);
}

PN_UNUSED static inline void pn_iq_put_signed(const uint64_t c[4], uint32_t signs, int16_t *out)
{
    __m256i v = _mm256_set_epi64x((long long)c[3], (long long)c[2], (long long)c[1], (long long)c[0]);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    v = _mm256_mask_sub_epi8(v, signs, _mm256_setzero_si256(), v);
#else
    const __m256i bit = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i place = _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    __m256i minus = _mm256_shuffle_epi8(_mm256_set1_epi32((int)signs), place);
    minus = _mm256_cmpeq_epi8(_mm256_and_si256(minus, bit), bit);
    v = _mm256_sub_epi8(_mm256_xor_si256(v, minus), minus);
#endif
    pn_iq_widen(v, 0, out);
}

#else

/* 32 codes, eight in each of c[0..3], as 16-bit numbers, less `bias`. */
PN_UNUSED static inline void pn_iq_put(const uint64_t c[4], int bias, int16_t *out)
{
    int8_t q[32];
    for (size_t i = 0; i < 4; i++) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        const uint64_t x = __builtin_bswap64(c[i]);
#else
        const uint64_t x = c[i];
#endif
        memcpy(q + 8 * i, &x, sizeof x);
    }
    for (size_t i = 0; i < 32; i++) out[i] = (int16_t)(q[i] - bias);
}

/* The same of codes of 1..127, code i negated where bit i of `signs` is set. */
PN_UNUSED static inline void pn_iq_put_signed(const uint64_t c[4], uint32_t signs, int16_t *out)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t x[4];
    for (size_t i = 0; i < 4; i++) {
        const uint64_t bits = (signs >> 8 * i & 255) * ones & UINT64_C(0x8040201008040201);
        const uint64_t minus = (bits + 127 * ones) >> 7 & ones;
        x[i] = (c[i] ^ minus * 255) + minus; /* a code is not 0, so nothing is carried into the next */
    }
    pn_iq_put(x, 0, out);
}

#endif

#endif

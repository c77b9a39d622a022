/* The vector layer for AVX-512 (F, BW, DQ, VL, VNNI): the few operations that the tile loops (tile_i16.h, tile_f32.h)
 * and the types' unpackers are written in. simd_avx2.h offers the same names with half the lanes. Include one of them
 * per source file. */
#ifndef PANTHEON_KIT_SIMD_H
#define PANTHEON_KIT_SIMD_H

#include <pantheon/kit/types.h>
#include <immintrin.h>

#define PN_LANES 16
#define PN_TILE_COLUMNS 7 /* columns per register tile: 2 x 7 integer and 2 x 7 float sums, 2 weights, 1 activation */
#define PN_TILE_F32_COLUMNS 6 /* the same of tile_f32.h: 4 x 6 sums, 6 activations, 1 weight */
#define PN_INLINE static inline __attribute__((always_inline, unused))
/* Before a loop with a constant number of rounds: its arrays become registers. */
#ifdef __clang__
#define PN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PN_UNROLL _Pragma("GCC unroll 128")
#endif

typedef __m512i pn_vi; /* 16 x int32, or 32 x int16 */
typedef __m512 pn_vf;  /* 16 x float */

/* Rows of a weight, `stride` bytes apart; row number i is lane i. */
typedef struct pn_rows {
    const uint8_t *base;
    size_t stride;
} pn_rows;

PN_INLINE pn_vi pn_v_zero(void)
{
    return _mm512_setzero_si512();
}
PN_INLINE pn_vf pn_v_zero_f(void)
{
    return _mm512_setzero_ps();
}
PN_INLINE pn_vi pn_v_set32(uint32_t x)
{
    return _mm512_set1_epi32((int32_t)x);
}
PN_INLINE pn_vf pn_v_set_f(float x)
{
    return _mm512_set1_ps(x);
}
PN_INLINE pn_vi pn_v_and(pn_vi a, pn_vi b)
{
    return _mm512_and_si512(a, b);
}
PN_INLINE pn_vi pn_v_or(pn_vi a, pn_vi b)
{
    return _mm512_or_si512(a, b);
}
PN_INLINE pn_vi pn_v_xor(pn_vi a, pn_vi b)
{
    return _mm512_xor_si512(a, b);
}
PN_INLINE pn_vi pn_v_add32(pn_vi a, pn_vi b)
{
    return _mm512_add_epi32(a, b);
}
PN_INLINE pn_vi pn_v_sub8(pn_vi a, pn_vi b)
{
    return _mm512_sub_epi8(a, b);
}
PN_INLINE pn_vi pn_v_sub16(pn_vi a, pn_vi b)
{
    return _mm512_sub_epi16(a, b);
}
PN_INLINE pn_vi pn_v_add16(pn_vi a, pn_vi b)
{
    return _mm512_add_epi16(a, b);
}
/* Low 16 bits of the products of 16-bit lanes; high 16 bits of the unsigned ones. */
PN_INLINE pn_vi pn_v_mullo16(pn_vi a, pn_vi b)
{
    return _mm512_mullo_epi16(a, b);
}
PN_INLINE pn_vi pn_v_mulhi16u(pn_vi a, pn_vi b)
{
    return _mm512_mulhi_epu16(a, b);
}
/* A code book of 16 bytes, and the entry of each byte of `index`, whose bytes lie within 0..15. */
PN_INLINE pn_vi pn_v_book(const int8_t *entries)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i_u *)entries));
}
PN_INLINE pn_vi pn_v_lookup(pn_vi book, pn_vi index)
{
    return _mm512_shuffle_epi8(book, index);
}
/* Byte `i` of each 32-bit lane in all its four bytes; i is a constant. */
PN_INLINE pn_vi pn_v_spread(pn_vi a, size_t i)
{
    const int b = (int)i * 0x01010101;
    return _mm512_shuffle_epi8(a, _mm512_set4_epi32(0x0c0c0c0c + b, 0x08080808 + b, 0x04040404 + b, b));
}
/* Each byte of x where the same byte of a has one of the bits of `bits`, else 0. */
PN_INLINE pn_vi pn_v_where8(pn_vi a, pn_vi bits, pn_vi x)
{
    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(a, bits), x);
}
/* The same bits as floats. */
PN_INLINE pn_vf pn_v_bits_f(pn_vi a)
{
    return _mm512_castsi512_ps(a);
}
/* Shifts of 16- and 32-bit lanes; n is a constant. */
#define pn_v_sll16(a, n) _mm512_slli_epi16(a, n)
#define pn_v_srl16(a, n) _mm512_srli_epi16(a, n)
#define pn_v_sra16(a, n) _mm512_srai_epi16(a, n)
#define pn_v_srl32(a, n) _mm512_srli_epi32(a, n)
#define pn_v_sll32(a, n) _mm512_slli_epi32(a, n)
#define pn_v_sra32(a, n) _mm512_srai_epi32(a, n)

PN_INLINE pn_vf pn_v_fma(pn_vf a, pn_vf b, pn_vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
PN_INLINE pn_vf pn_v_mul(pn_vf a, pn_vf b)
{
    return _mm512_mul_ps(a, b);
}
PN_INLINE pn_vf pn_v_float(pn_vi a)
{
    return _mm512_cvtepi32_ps(a);
}

/* acc + a.lo * b.lo + a.hi * b.hi in each 32-bit lane. Written as the instruction because gcc 12 surrounds each
 * intrinsic of this kind with two register copies, which cost a quarter of the speed. */
PN_INLINE pn_vi pn_v_dot16(pn_vi acc, pn_vi a, pn_vi b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
}

/* acc + the four products of unsigned bytes of u and signed bytes of s in each 32-bit lane. */
PN_INLINE pn_vi pn_v_dot8(pn_vi acc, pn_vi u, pn_vi s)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(s));
    return acc;
}

/* Aligned to the vector. */
PN_INLINE pn_vi pn_v_load(const void *p)
{
    return _mm512_load_si512(p);
}
PN_INLINE void pn_v_store(void *p, pn_vi a)
{
    _mm512_store_si512(p, a);
}
PN_INLINE pn_vf pn_v_load_f(const float *p)
{
    return _mm512_load_ps(p);
}
PN_INLINE void pn_v_store_f(float *p, pn_vf a)
{
    _mm512_store_ps(p, a);
}
/* Any alignment. */
PN_INLINE pn_vf pn_v_loadu_f(const void *p)
{
    return _mm512_loadu_ps(p);
}
PN_INLINE void pn_v_storeu_f(float *p, pn_vf a)
{
    _mm512_storeu_ps(p, a);
}
/* 32 bits in every lane. */
PN_INLINE pn_vi pn_v_bcast32(const void *p)
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return _mm512_set1_epi32(x);
}

/* The first n < PN_LANES floats, or halfs, at p; zero in the other lanes. Nothing behind them is read. */
PN_INLINE pn_vf pn_v_load_f32_n(const uint8_t *p, size_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
PN_INLINE pn_vf pn_v_load_f16_n(const uint8_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), p));
}
PN_INLINE pn_vf pn_v_load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)p));
}
PN_INLINE pn_vf pn_v_load_bf16(const uint8_t *p)
{
    return pn_v_bits_f(pn_v_sll32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)p)), 16));
}
PN_INLINE pn_vf pn_v_load_bf16_n(const uint8_t *p, size_t n)
{
    return pn_v_bits_f(
        pn_v_sll32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), p)), 16));
}

/* `factor` times the sums of 16 and another 16 signed bytes. */
PN_INLINE void pn_v_sums8(const uint8_t *p, int factor, int32_t out[2])
{
    const __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i_u *)p), _mm256_set1_epi8(-128));
    const __m256i sums = _mm256_sad_epu8(x, _mm256_setzero_si256()); /* of 8 bytes, each 128 above */
    const __m256i pairs = _mm256_add_epi64(sums, _mm256_unpackhi_epi64(sums, sums));
    out[0] = factor * (_mm256_extract_epi32(pairs, 0) - 16 * 128);
    out[1] = factor * (_mm256_extract_epi32(pairs, 4) - 16 * 128);
}

/* Half in the low or high 16 bits of each 32-bit lane -> float. */
PN_INLINE pn_vf pn_v_half_lo(pn_vi a)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a));
}
PN_INLINE pn_vf pn_v_half_hi(pn_vi a)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(a, 16)));
}

/* Sum of the lanes in one fixed order: halves onto each other. */
PN_INLINE float pn_v_sum(pn_vf a)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

/* The 16 bytes at p, and at 4, 8 and 12 strides behind it, as the four quarters of a vector. */
PN_INLINE __m512i pn_v_quarters(const uint8_t *p0, const uint8_t *p4, const uint8_t *p8, const uint8_t *p12)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i_u *)p0));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i_u *)p4), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i_u *)p8), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i_u *)p12), 3);
}

/* w[i] = 32-bit word number i of the 16 bytes at `offset` of every row: a transposition. The addresses of rows 4, 8
 * and 12 are made anew each time, others are up to three strides behind them; the empty instruction enforces it: gcc
 * makes all sixteen otherwise, and keeps them in memory or in vector registers. */
PN_INLINE void pn_v_words(pn_rows rows, size_t offset, pn_vi w[4])
{
    size_t s = rows.stride, s3 = 3 * s;
    const uint8_t *p0 = rows.base + offset, *p4 = p0 + 4 * s, *p8 = p0 + 8 * s, *p12 = p4 + 8 * s;
    __asm__("" : "+r"(p4), "+r"(p8), "+r"(p12), "+r"(s3));
    __m512i a = pn_v_quarters(p0, p4, p8, p12), b = pn_v_quarters(p0 + s, p4 + s, p8 + s, p12 + s);
    __m512i c = pn_v_quarters(p0 + 2 * s, p4 + 2 * s, p8 + 2 * s, p12 + 2 * s);
    __m512i d = pn_v_quarters(p0 + s3, p4 + s3, p8 + s3, p12 + s3);
    __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    __m512i AB = _mm512_unpackhi_epi32(a, b), CD = _mm512_unpackhi_epi32(c, d);
    w[0] = _mm512_unpacklo_epi64(ab, cd);
    w[1] = _mm512_unpackhi_epi64(ab, cd);
    w[2] = _mm512_unpacklo_epi64(AB, CD);
    w[3] = _mm512_unpackhi_epi64(AB, CD);
}

/* The first of these words alone; all 16 bytes are read. */
PN_INLINE pn_vi pn_v_word(pn_rows rows, size_t offset)
{
    pn_vi w[4];
    pn_v_words(rows, offset, w);
    return w[0];
}

#endif

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
/* A function with registers of its own, which compilers give out better without other loops beside it. They know a
 * constant that all calls in a source file pass it. */
#define PN_APART static __attribute__((noinline, unused))
/* Before a loop with a constant number of rounds: its arrays become registers. */
#ifdef __clang__
#define PN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PN_UNROLL _Pragma("GCC unroll 128")
#endif

typedef __m512i pn_vi; /* 16 x int32, or 32 x int16 */
typedef __m512 pn_vf;  /* 16 x float */

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
/* Both. */
PN_INLINE void pn_v_half_both(pn_vi a, pn_vf *lo, pn_vf *hi)
{
    const __m512 x = _mm512_cvtph_ps(_mm512_castsi512_si256(a)), y = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(a, 1));
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    *lo = _mm512_permutex2var_ps(x, even, y);
    *hi = _mm512_permutex2var_ps(x, _mm512_or_si512(even, _mm512_set1_epi32(1)), y);
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

/* Rows 0, 4, 8 and 12. These addresses are made anew each time, and others are up to three strides behind them; the
 * empty instruction enforces it: gcc makes all sixteen otherwise, and keeps them in memory or in vector registers. */
typedef struct pn_v_places {
    const uint8_t *p0, *p4, *p8, *p12;
    size_t s, s3; /* one stride, and three */
} pn_v_places;

PN_INLINE pn_v_places pn_v_places_of(const uint8_t *first, size_t stride)
{
    pn_v_places p = {.p0 = first, .s = stride, .s3 = 3 * stride};
    p.p4 = p.p0 + 4 * p.s;
    p.p8 = p.p0 + 8 * p.s;
    p.p12 = p.p4 + 8 * p.s;
    __asm__("" : "+r"(p.p4), "+r"(p.p8), "+r"(p.p12), "+r"(p.s3));
    return p;
}

/* Words 0 .. 3 of each quarter of a, b, c and d: w[i] has word i of the first quarters in its first quarter, etc. */
PN_INLINE void pn_v_transpose(__m512i a, __m512i b, __m512i c, __m512i d, pn_vi w[4])
{
    const __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    const __m512i AB = _mm512_unpackhi_epi32(a, b), CD = _mm512_unpackhi_epi32(c, d);
    w[0] = _mm512_unpacklo_epi64(ab, cd);
    w[1] = _mm512_unpackhi_epi64(ab, cd);
    w[2] = _mm512_unpacklo_epi64(AB, CD);
    w[3] = _mm512_unpackhi_epi64(AB, CD);
}

/* In each lane the high half of a, and above it the low half of b. */
PN_INLINE pn_vi pn_v_across(pn_vi a, pn_vi b)
{
    return _mm512_ror_epi32(_mm512_mask_blend_epi16(0x55555555, a, b), 16);
}

/* w[i] = 32-bit word number i of the 16 bytes at `first` and at each `stride` behind it: a transposition. */
PN_INLINE void pn_v_load_words(const uint8_t *first, size_t stride, pn_vi w[4])
{
    const pn_v_places p = pn_v_places_of(first, stride);
    pn_v_transpose(pn_v_quarters(p.p0, p.p4, p.p8, p.p12),
                   pn_v_quarters(p.p0 + p.s, p.p4 + p.s, p.p8 + p.s, p.p12 + p.s),
                   pn_v_quarters(p.p0 + 2 * p.s, p.p4 + 2 * p.s, p.p8 + 2 * p.s, p.p12 + 2 * p.s),
                   pn_v_quarters(p.p0 + p.s3, p.p4 + p.s3, p.p8 + p.s3, p.p12 + p.s3), w);
}

/* The 32 bytes at p, and those at q. */
PN_INLINE __m512i pn_v_halves(const uint8_t *p, const uint8_t *q)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i_u *)p)),
                              _mm256_loadu_si256((const __m256i_u *)q), 1);
}

/* The same for 32 bytes, with a fifth less work than twice 16. */
PN_INLINE void pn_v_load_words8(const uint8_t *first, size_t stride, pn_vi w[8])
{
    pn_vi low[4], high[4]; /* quarters: a word of rows 0-3, its fourth after, both of rows 4-7; of rows 8-15 */
    const pn_v_places p = pn_v_places_of(first, stride);
    pn_v_transpose(pn_v_halves(p.p0, p.p4), pn_v_halves(p.p0 + p.s, p.p4 + p.s),
                   pn_v_halves(p.p0 + 2 * p.s, p.p4 + 2 * p.s), pn_v_halves(p.p0 + p.s3, p.p4 + p.s3), low);
    pn_v_transpose(pn_v_halves(p.p8, p.p12), pn_v_halves(p.p8 + p.s, p.p12 + p.s),
                   pn_v_halves(p.p8 + 2 * p.s, p.p12 + 2 * p.s), pn_v_halves(p.p8 + p.s3, p.p12 + p.s3), high);
    PN_UNROLL
    for (size_t i = 0; i < 4; i++) {
        w[i] = _mm512_shuffle_i32x4(low[i], high[i], 0x88);
        w[4 + i] = _mm512_shuffle_i32x4(low[i], high[i], 0xdd);
    }
}

#endif

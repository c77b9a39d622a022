/* The vector layer for AVX2, FMA and F16C: the same names as simd_avx512.h with 8 lanes. */
#ifndef PANTHEON_KIT_SIMD_H
#define PANTHEON_KIT_SIMD_H

#include <pantheon/kit/types.h>
#include <immintrin.h>

#define PN_LANES 8
#define PN_TILE_COLUMNS 4 /* 2 x 4 integer sums, 2 weights, 1 activation, 1 product; float sums go through the stack \
                           */
#define PN_TILE_F32_COLUMNS 3 /* 4 x 3 sums, 3 activations, 1 weight */
#define PN_INLINE static inline __attribute__((always_inline, unused))
#define PN_APART static __attribute__((noinline, unused))
/* Before a loop with a constant number of rounds: its arrays become registers. */
#ifdef __clang__
#define PN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PN_UNROLL _Pragma("GCC unroll 128")
#endif

typedef __m256i pn_vi;
typedef __m256 pn_vf;

PN_INLINE pn_vi pn_v_zero(void)
{
    return _mm256_setzero_si256();
}
PN_INLINE pn_vf pn_v_zero_f(void)
{
    return _mm256_setzero_ps();
}
PN_INLINE pn_vi pn_v_set32(uint32_t x)
{
    return _mm256_set1_epi32((int32_t)x);
}
PN_INLINE pn_vf pn_v_set_f(float x)
{
    return _mm256_set1_ps(x);
}
PN_INLINE pn_vi pn_v_and(pn_vi a, pn_vi b)
{
    return _mm256_and_si256(a, b);
}
PN_INLINE pn_vi pn_v_or(pn_vi a, pn_vi b)
{
    return _mm256_or_si256(a, b);
}
PN_INLINE pn_vi pn_v_xor(pn_vi a, pn_vi b)
{
    return _mm256_xor_si256(a, b);
}
PN_INLINE pn_vi pn_v_add32(pn_vi a, pn_vi b)
{
    return _mm256_add_epi32(a, b);
}
PN_INLINE pn_vi pn_v_sub8(pn_vi a, pn_vi b)
{
    return _mm256_sub_epi8(a, b);
}
PN_INLINE pn_vi pn_v_sub16(pn_vi a, pn_vi b)
{
    return _mm256_sub_epi16(a, b);
}
PN_INLINE pn_vi pn_v_add16(pn_vi a, pn_vi b)
{
    return _mm256_add_epi16(a, b);
}
PN_INLINE pn_vi pn_v_mullo16(pn_vi a, pn_vi b)
{
    return _mm256_mullo_epi16(a, b);
}
PN_INLINE pn_vi pn_v_mulhi16u(pn_vi a, pn_vi b)
{
    return _mm256_mulhi_epu16(a, b);
}
PN_INLINE pn_vi pn_v_book(const int8_t *entries)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i_u *)entries));
}
PN_INLINE pn_vi pn_v_lookup(pn_vi book, pn_vi index)
{
    return _mm256_shuffle_epi8(book, index);
}
PN_INLINE pn_vi pn_v_spread(pn_vi a, size_t i)
{
    const int b = (int)i * 0x01010101, c = 0x04040404 + b, d = 0x08080808 + b, e = 0x0c0c0c0c + b;
    return _mm256_shuffle_epi8(a, _mm256_setr_epi32(b, c, d, e, b, c, d, e));
}
/* Here `bits` must be one bit in each byte. */
PN_INLINE pn_vi pn_v_where8(pn_vi a, pn_vi bits, pn_vi x)
{
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(a, bits), bits), x);
}
PN_INLINE pn_vf pn_v_bits_f(pn_vi a)
{
    return _mm256_castsi256_ps(a);
}
#define pn_v_sll16(a, n) _mm256_slli_epi16(a, n)
#define pn_v_srl16(a, n) _mm256_srli_epi16(a, n)
#define pn_v_sra16(a, n) _mm256_srai_epi16(a, n)
#define pn_v_srl32(a, n) _mm256_srli_epi32(a, n)
#define pn_v_sll32(a, n) _mm256_slli_epi32(a, n)
#define pn_v_sra32(a, n) _mm256_srai_epi32(a, n)

PN_INLINE pn_vf pn_v_fma(pn_vf a, pn_vf b, pn_vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
PN_INLINE pn_vf pn_v_mul(pn_vf a, pn_vf b)
{
    return _mm256_mul_ps(a, b);
}
PN_INLINE pn_vf pn_v_float(pn_vi a)
{
    return _mm256_cvtepi32_ps(a);
}

/* Written as instructions so that gcc 12 keeps the sums in place: it gives every sum two registers, and then spills. */
PN_INLINE pn_vi pn_v_dot16(pn_vi acc, pn_vi a, pn_vi b)
{
    pn_vi product;
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(acc), "=&x"(product) : "x"(a), "x"(b));
    return acc;
}

/* Products of unsigned bytes of u and signed bytes of s, added in pairs to 16-bit lanes. Those saturate: see who calls
 * (tile_i8.h, tile_i16.h). */
PN_INLINE pn_vi pn_v_pairs8(pn_vi u, pn_vi s)
{
    return _mm256_maddubs_epi16(u, s);
}
/* The same added to acc in 16 bits; as instructions for the reason of pn_v_dot16. */
PN_INLINE pn_vi pn_v_add_pairs8(pn_vi acc, pn_vi u, pn_vi s)
{
    pn_vi product;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(acc), "=&x"(product) : "x"(u), "x"(s));
    return acc;
}
/* acc + lo + hi of the 16-bit lanes of a. */
PN_INLINE pn_vi pn_v_widen16(pn_vi acc, pn_vi a)
{
    return pn_v_dot16(acc, a, _mm256_set1_epi16(1));
}
/* Magnitudes of bytes (128 of -128); bytes of b with the sign of those of a, 0 where a is 0. */
PN_INLINE pn_vi pn_v_abs8(pn_vi a)
{
    return _mm256_abs_epi8(a);
}
PN_INLINE pn_vi pn_v_sign8(pn_vi b, pn_vi a)
{
    return _mm256_sign_epi8(b, a);
}

PN_INLINE pn_vi pn_v_load(const void *p)
{
    return _mm256_load_si256((const __m256i *)p);
}
PN_INLINE void pn_v_store(void *p, pn_vi a)
{
    _mm256_store_si256((__m256i *)p, a);
}
PN_INLINE pn_vf pn_v_load_f(const float *p)
{
    return _mm256_load_ps(p);
}
PN_INLINE void pn_v_store_f(float *p, pn_vf a)
{
    _mm256_store_ps(p, a);
}
PN_INLINE pn_vf pn_v_loadu_f(const void *p)
{
    return _mm256_loadu_ps((const float *)p);
}
PN_INLINE void pn_v_storeu_f(float *p, pn_vf a)
{
    _mm256_storeu_ps(p, a);
}
PN_INLINE pn_vi pn_v_bcast32(const void *p)
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return _mm256_set1_epi32(x);
}

PN_INLINE pn_vf pn_v_load_f32_n(const uint8_t *p, size_t n)
{
    float part[8] = {0};
    memcpy(part, p, n * 4);
    return _mm256_loadu_ps(part);
}
PN_INLINE pn_vf pn_v_load_f16_n(const uint8_t *p, size_t n)
{
    uint16_t part[8] = {0};
    memcpy(part, p, n * 2);
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)part));
}
PN_INLINE pn_vf pn_v_load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p));
}
PN_INLINE pn_vf pn_v_load_bf16(const uint8_t *p)
{
    return pn_v_bits_f(pn_v_sll32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)p)), 16));
}
PN_INLINE pn_vf pn_v_load_bf16_n(const uint8_t *p, size_t n)
{
    uint8_t part[16] = {0};
    memcpy(part, p, n * 2);
    return pn_v_load_bf16(part);
}

PN_INLINE pn_vf pn_v_half_lo(pn_vi a)
{
    a = _mm256_and_si256(a, _mm256_set1_epi32(0xffff));
    return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
}
PN_INLINE pn_vf pn_v_half_hi(pn_vi a)
{
    a = _mm256_srli_epi32(a, 16);
    return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
}

PN_INLINE void pn_v_half_both(pn_vi a, pn_vf *lo, pn_vf *hi)
{
    *lo = pn_v_half_lo(a);
    *hi = pn_v_half_hi(a);
}

PN_INLINE float pn_v_sum(pn_vf a)
{
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

PN_INLINE __m256i pn_v_halves(const uint8_t *p, size_t stride)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i_u *)p));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i_u *)(p + 4 * stride)), 1);
}

PN_INLINE pn_vi pn_v_across(pn_vi a, pn_vi b)
{
    return _mm256_or_si256(_mm256_srli_epi32(a, 16), _mm256_slli_epi32(b, 16));
}

PN_INLINE void pn_v_load_words(const uint8_t *p, size_t stride, pn_vi w[4])
{
    __m256i a = pn_v_halves(p, stride), b = pn_v_halves(p + stride, stride);
    __m256i c = pn_v_halves(p + 2 * stride, stride), d = pn_v_halves(p + 3 * stride, stride);
    __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
    __m256i AB = _mm256_unpackhi_epi32(a, b), CD = _mm256_unpackhi_epi32(c, d);
    w[0] = _mm256_unpacklo_epi64(ab, cd);
    w[1] = _mm256_unpackhi_epi64(ab, cd);
    w[2] = _mm256_unpacklo_epi64(AB, CD);
    w[3] = _mm256_unpackhi_epi64(AB, CD);
}

PN_INLINE void pn_v_load_words8(const uint8_t *p, size_t stride, pn_vi w[8])
{
    pn_v_load_words(p, stride, w);
    pn_v_load_words(p + 16, stride, w + 4);
}

#endif

/* The vectors of ops_vec.h and ops_attend_vec.h in AVX-512: 16 floats. Only for files named *_avx512.c. */
#ifndef PN_VEC_AVX512_H
#define PN_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VL 16               /* floats per vector */
#define VEC static inline __attribute__((always_inline, unused))

#define ATTEND_QUERIES 6    /* register tile of attention: queries ... */
#define ATTEND_VECTORS 4    /* ... times vectors: 24 accumulators of 32 registers */

typedef __m512 vf;          /* floats */
typedef __m512d vd;         /* doubles, half as many */
typedef __mmask16 vm;       /* one bit per float */

VEC vm v_first(size_t n) { return (vm)(n >= VL ? 0xffffu : (1u << n) - 1); }

VEC vf v_zero(void) { return _mm512_setzero_ps(); }
VEC vf v_set(float x) { return _mm512_set1_ps(x); }
VEC vf v_load(const float *p) { return _mm512_loadu_ps(p); }
VEC void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
/* The first n < VL; the others are 0 and not touched. */
VEC vf v_load_n(const float *p, size_t n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
VEC void v_store_n(float *p, vf x, size_t n) { _mm512_mask_storeu_ps(p, v_first(n), x); }
VEC vf v_load_half(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
VEC vf v_load_half_n(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(v_first(n), p));
}
VEC __m256i v_halves(vf x) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VEC void v_store_half(uint16_t *p, vf x) { _mm256_storeu_si256((__m256i *)(void *)p, v_halves(x)); }
VEC void v_store_half_n(uint16_t *p, vf x, size_t n) { _mm256_mask_storeu_epi16(p, v_first(n), v_halves(x)); }

VEC vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VEC vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VEC vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VEC vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VEC vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }     /* ab + c */
VEC vf v_fms(vf a, vf b, vf c) { return _mm512_fmsub_ps(a, b, c); }     /* ab - c */
VEC vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }   /* c - ab */
VEC vf v_fmaddsub(vf a, vf b, vf c) { return _mm512_fmaddsub_ps(a, b, c); } /* ab - c at even places, ab + c at odd */
/* b when either is NaN or both are 0. */
VEC vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
VEC vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
VEC vf v_abs(vf x) { return _mm512_abs_ps(x); }
VEC vf v_round(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* x 2^n for a whole n, rounded once: subnormal, 0 or infinite at the ends. */
VEC vf v_scale2(vf x, vf n) { return _mm512_scalef_ps(x, n); }
/* The size of x >= 0 with the sign of s. */
VEC vf v_sign_of(vf x, vf s) { return _mm512_or_ps(x, _mm512_and_ps(s, _mm512_set1_ps(-0.0f))); }

VEC vm v_less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VEC vm v_negative(vf x) { return _mm512_movepi32_mask(_mm512_castps_si512(x)); }
VEC vf v_choose(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
/* Places i with begin <= base + i < end; all three at most 64. */
VEC vm v_range(size_t base, size_t begin, size_t end)
{
    uint64_t below_end = end >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << end) - 1;
    uint64_t below_begin = begin >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << begin) - 1;
    return (vm)((below_end & ~below_begin) >> base);
}

/* Sums and largest in a fixed order: halves upon halves. */
VEC float v_sum(vf x)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
VEC float v_largest(vf x)
{
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

/* n <= VL / 2 floats, each twice; a b c d ... -> b a d c ... */
VEC vf v_load_twice(const float *p, size_t n)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(v_first(n), p));
}
VEC vf v_swap_pairs(vf x) { return _mm512_permute_ps(x, 0xb1); }

VEC vd d_zero(void) { return _mm512_setzero_pd(); }
VEC vd d_set(double x) { return _mm512_set1_pd(x); }
VEC vd d_low(vf x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
VEC vd d_high(vf x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }
VEC vf v_of_doubles(vd low, vd high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}
VEC vd d_add(vd a, vd b) { return _mm512_add_pd(a, b); }
VEC vd d_sub(vd a, vd b) { return _mm512_sub_pd(a, b); }
VEC vd d_mul(vd a, vd b) { return _mm512_mul_pd(a, b); }
VEC vd d_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
VEC double d_sum(vd x)
{
    __m256d h = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1));
    __m128d q = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
    return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
}

/* Largest |x| per lane as bits, so that infinite and NaN come out above all numbers. `largest` is such a result. */
typedef __m512i vbits;
VEC vbits b_zero(void) { return _mm512_setzero_si512(); }
VEC vbits b_largest(vbits largest, vf x)
{
    return _mm512_max_epu32(largest, _mm512_castps_si512(v_abs(x)));
}
VEC uint32_t b_first(vbits x)
{
    __m256i h = _mm256_max_epu32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    __m128i q = _mm_max_epu32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    q = _mm_max_epu32(q, _mm_shuffle_epi32(q, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(q, _mm_shuffle_epi32(q, 0xb1)));
}

/* 16 floats times `factor` to whole numbers (even on ties) in the order of kit/pack.h, and as high and low bytes in
 * their own order; returns their sum. */
VEC int32_t v_quantize16(const float *x, float factor, int16_t *q, int8_t *high, uint8_t *low)
{
    __m512i v = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(factor)));
    __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    _mm256_storeu_si256((__m256i *)(void *)q, _mm512_cvtsepi32_epi16(_mm512_shuffle_epi32(v, _MM_PERM_DBCA)));
    _mm_storeu_si128((__m128i *)(void *)high, _mm512_cvtepi32_epi8(_mm512_srai_epi32(v, 8)));
    _mm_storeu_si128((__m128i *)(void *)low, _mm512_cvtepi32_epi8(v));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* The same to bytes in their own order. */
VEC int32_t v_quantize8(const float *x, float factor, int8_t *q)
{
    __m512i v = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(factor)));
    __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    _mm_storeu_si128((__m128i *)(void *)q, _mm512_cvtsepi32_epi8(v));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

#endif

/* The vectors of ops_vec.h and ops_attend_vec.h in AVX2 with FMA and F16C: 8 floats. Only for files named *_avx2.c.
 * What each function does is said in vec_avx512.h. */
#ifndef PN_VEC_AVX2_H
#define PN_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VL 8
#define VEC static inline __attribute__((always_inline, unused))

#define ATTEND_QUERIES 3    /* 12 accumulators of 16 registers */
#define ATTEND_VECTORS 4

typedef __m256 vf;
typedef __m256d vd;
typedef __m256 vm;          /* all bits of a place or none */

VEC __m256i v_places(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
VEC __m256i v_first(size_t n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < VL ? (int)n : VL), v_places()); }

VEC vf v_zero(void) { return _mm256_setzero_ps(); }
VEC vf v_set(float x) { return _mm256_set1_ps(x); }
VEC vf v_load(const float *p) { return _mm256_loadu_ps(p); }
VEC void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
VEC vf v_load_n(const float *p, size_t n) { return _mm256_maskload_ps(p, v_first(n)); }
VEC void v_store_n(float *p, vf x, size_t n) { _mm256_maskstore_ps(p, v_first(n), x); }
VEC vf v_load_half(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }
VEC vf v_load_half_n(const uint16_t *p, size_t n)
{
    uint16_t whole[VL] = { 0 };
    memcpy(whole, p, n * sizeof *p);
    return v_load_half(whole);
}
VEC void v_store_half(uint16_t *p, vf x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
VEC void v_store_half_n(uint16_t *p, vf x, size_t n)
{
    uint16_t whole[VL];
    v_store_half(whole, x);
    memcpy(p, whole, n * sizeof *p);
}

VEC vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
VEC vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
VEC vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
VEC vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
VEC vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
VEC vf v_fms(vf a, vf b, vf c) { return _mm256_fmsub_ps(a, b, c); }
VEC vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
VEC vf v_fmaddsub(vf a, vf b, vf c) { return _mm256_fmaddsub_ps(a, b, c); }
VEC vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
VEC vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
VEC vf v_abs(vf x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
VEC vf v_round(vf x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VEC vf v_power2(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
/* In two steps, for one factor could not reach the ends; the first is exact. |n| <= 250, x within a factor 2 of 1. */
VEC vf v_scale2(vf x, vf n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    return _mm256_mul_ps(_mm256_mul_ps(x, v_power2(half)), v_power2(_mm256_sub_epi32(whole, half)));
}
VEC vf v_sign_of(vf x, vf s) { return _mm256_or_ps(x, _mm256_and_ps(s, _mm256_set1_ps(-0.0f))); }

VEC vm v_less(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
VEC vm v_negative(vf x) { return x; }    /* a blend looks at the sign alone */
VEC vf v_choose(vm m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, m); }
VEC vm v_range(size_t base, size_t begin, size_t end)
{
    __m256i place = _mm256_add_epi32(_mm256_set1_epi32((int)base), v_places());
    __m256i after = _mm256_cmpgt_epi32(place, _mm256_set1_epi32((int)begin - 1));
    return _mm256_castsi256_ps(_mm256_and_si256(after, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)end), place)));
}

VEC float v_sum(vf x)
{
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
VEC float v_largest(vf x)
{
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

VEC vf v_load_twice(const float *p, size_t n)
{
    return _mm256_permutevar8x32_ps(v_load_n(p, n), _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
}
VEC vf v_swap_pairs(vf x) { return _mm256_permute_ps(x, 0xb1); }

VEC vd d_zero(void) { return _mm256_setzero_pd(); }
VEC vd d_set(double x) { return _mm256_set1_pd(x); }
VEC vd d_low(vf x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
VEC vd d_high(vf x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
VEC vf v_of_doubles(vd low, vd high) { return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)); }
VEC vd d_add(vd a, vd b) { return _mm256_add_pd(a, b); }
VEC vd d_sub(vd a, vd b) { return _mm256_sub_pd(a, b); }
VEC vd d_mul(vd a, vd b) { return _mm256_mul_pd(a, b); }
VEC vd d_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
VEC double d_sum(vd x)
{
    __m128d q = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
}

typedef __m256i vbits;
VEC vbits b_zero(void) { return _mm256_setzero_si256(); }
VEC vbits b_largest(vbits largest, vf x)
{
    return _mm256_max_epu32(largest, _mm256_castps_si256(v_abs(x)));
}
VEC uint32_t b_first(vbits x)
{
    __m128i q = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    q = _mm_max_epu32(q, _mm_shuffle_epi32(q, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(q, _mm_shuffle_epi32(q, 0xb1)));
}

VEC int32_t v_quantize16(const float *x, float factor, int16_t *q, int8_t *high, uint8_t *low)
{
    const __m256 f = _mm256_set1_ps(factor);
    const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), f));
    const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), f));
    const __m256i h = _mm256_add_epi32(a, b), v = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    const __m256i swapped = _mm256_packs_epi32(_mm256_shuffle_epi32(a, 0xd8), _mm256_shuffle_epi32(b, 0xd8));
    const __m256i up = _mm256_srai_epi16(v, 8), down = _mm256_and_si256(v, _mm256_set1_epi16(255));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    _mm256_storeu_si256((__m256i *)(void *)q, _mm256_permute4x64_epi64(swapped, 0xd8));
    _mm_storeu_si128((__m128i *)(void *)high,
                     _mm_packs_epi16(_mm256_castsi256_si128(up), _mm256_extracti128_si256(up, 1)));
    _mm_storeu_si128((__m128i *)(void *)low,
                     _mm_packus_epi16(_mm256_castsi256_si128(down), _mm256_extracti128_si256(down, 1)));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

VEC int32_t v_quantize8(const float *x, float factor, int8_t *q)
{
    __m256 f = _mm256_set1_ps(factor);
    __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), f));
    __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), f));
    __m256i h = _mm256_add_epi32(a, b);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    _mm_storeu_si128((__m128i *)(void *)q,
                     _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

#endif

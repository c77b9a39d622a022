/* How many multiply-adds this CPU can do: independent chains in registers. The limit that attention is held against. */
#include <immintrin.h>
#include <stddef.h>

double ops_peak_avx2(size_t rounds, float *sink);

/* Returns the number of floating-point operations done. */
double ops_peak_avx2(size_t rounds, float *sink)
{
    __m256 a[12], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
    _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++)
        a[i] = _mm256_set1_ps((float)i);
    for (size_t r = 0; r < rounds; r++) {
        _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++)
            a[i] = _mm256_fmadd_ps(a[i], x, y);
        __asm__ volatile("" : "+x"(x));
    }
    _Pragma("GCC unroll 12") for (int i = 1; i < 12; i++)
        a[0] = _mm256_add_ps(a[0], a[i]);
    _mm256_storeu_ps(sink, a[0]);
    return (double)rounds * 12 * 8 * 2;
}

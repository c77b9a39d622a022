/* How many multiply-adds this CPU can do: independent chains in registers. The limit that attention is held against. */
#include <immintrin.h>
#include <stddef.h>

double ops_peak_avx512(size_t rounds, float *sink);

/* Returns the number of floating-point operations done. */
double ops_peak_avx512(size_t rounds, float *sink)
{
    __m512 a[24], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-3f);
    _Pragma("GCC unroll 24") for (int i = 0; i < 24; i++)
        a[i] = _mm512_set1_ps((float)i);
    for (size_t r = 0; r < rounds; r++) {
        _Pragma("GCC unroll 24") for (int i = 0; i < 24; i++)
            a[i] = _mm512_fmadd_ps(a[i], x, y);
        __asm__ volatile("" : "+v"(x));
    }
    _Pragma("GCC unroll 24") for (int i = 1; i < 24; i++)
        a[0] = _mm512_add_ps(a[0], a[i]);
    _mm512_storeu_ps(sink, a[0]);
    return (double)rounds * 24 * 16 * 2;
}

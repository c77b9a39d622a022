/* Needs AVX-512, which PANTHEON_CPU can take away. */
#include "odd.h"

PN_PLUGIN("org.pantheon.test.cpu_avx512", "1.0", "MIT", "needs AVX-512", PN_CPU_AVX512, odd_start)

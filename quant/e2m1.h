/* The four-bit numbers of mxfp4 and nvfp4: sign, two bits of exponent, one of mantissa. The book holds them doubled, so
 * that they are integers; scales are halved in exchange. */
#ifndef PN_QUANT_E2M1_H
#define PN_QUANT_E2M1_H

#include <pantheon/kit/block.h>

static const int8_t pn_e2m1_book[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
static const int8_t pn_e2m1_above[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}; /* above -12 */

/* Code of the (doubled) value nearest to v. */
PN_UNUSED static inline unsigned pn_e2m1_nearest(float v)
{
    const float a = v < 0.0f ? -v : v;
    const unsigned code = (a > 0.5f) + (a > 1.5f) + (a > 2.5f) + (a > 3.5f) + (a > 5.0f) + (a > 7.0f) + (a > 10.0f);
    return v < 0.0f && code ? code | 8u : code;
}

/* Weighted squared error of n numbers with (halved) scale d. */
PN_UNUSED static inline double pn_e2m1_error(const float *x, const float *importance, size_t n, float d)
{
    const float inverse = pn_inverse(d);
    double error = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = (double)x[i] - (double)d * pn_e2m1_book[pn_e2m1_nearest(x[i] * inverse)];
        error += (importance ? (double)importance[i] : 1.0) * e * e;
    }
    return error;
}

#endif

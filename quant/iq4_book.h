/* The code book of iq4_nl and iq4_xs: 16 values, denser near zero; and the choice of scales for it. */
#ifndef PN_QUANT_IQ4_BOOK_H
#define PN_QUANT_IQ4_BOOK_H

#include <pantheon/kit/block.h>

static const int8_t pn_iq4_book[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

#define PN_IQ4_STARTS 14
#define PN_IQ4_ROUNDS 2

/* Code of the value nearest to v. */
PN_UNUSED static inline unsigned pn_iq4_nearest(float v)
{
    unsigned code = v < (float)pn_iq4_book[8] ? 0 : 8;
    code += v < (float)pn_iq4_book[code + 4] ? 0 : 4;
    code += v < (float)pn_iq4_book[code + 2] ? 0 : 2;
    code += v < (float)pn_iq4_book[code + 1] ? 0 : 1;
    return code < 15 && v + v > (float)(pn_iq4_book[code] + pn_iq4_book[code + 1]) ? code + 1 : code;
}

/* Weighted sums of n numbers with the codes that scale d gives: x * value, and value squared. */
PN_UNUSED static inline void pn_iq4_sums(const float *x, const float *importance, size_t n, float d, double *xv,
                                         double *vv)
{
    const float inverse = pn_inverse(d);
    double a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = pn_iq4_book[pn_iq4_nearest(x[i] * inverse)], w = importance ? (double)importance[i] : 1.0;
        a += w * v * (double)x[i];
        b += w * v * v;
    }
    *xv = a;
    *vv = b;
}

/* The scale for n finite numbers whose squared error is smallest, near enough; `largest` is the one farthest from zero.
 * Least squares from several starts; of either sign, for the book is not symmetric. */
PN_UNUSED static inline float pn_iq4_fit(const float *x, const float *importance, size_t n, float largest)
{
    float best = largest / -127.0f;
    double most = 0;
    for (int start = 0; start < 2 * PN_IQ4_STARTS && largest != 0.0f; start++) {
        float d = largest / (start % 2 ? 113.0f : -127.0f) * (0.75f + 0.025f * (float)(start / 2));
        for (int round = 0; round < PN_IQ4_ROUNDS; round++) {
            double xv, vv;
            pn_iq4_sums(x, importance, n, d, &xv, &vv);
            if (!(vv > 0)) break;
            if (xv * xv > most * vv) { /* what the least squares scale takes from the error */
                most = xv * xv / vv;
                best = (float)(xv / vv);
            }
            d = (float)(xv / vv);
        }
    }
    return best;
}

#endif

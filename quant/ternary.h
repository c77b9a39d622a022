/* Choosing the scale of a ternary type: codes -1, 0, 1 times d. */
#ifndef PN_QUANT_TERNARY_H
#define PN_QUANT_TERNARY_H

#include <pantheon/kit/fit.h>

#define PN_TERNARY_STARTS 12
#define PN_TERNARY_ROUNDS 3

/* The scale, as it is stored, for n finite numbers whose squared error is smallest, near enough: least squares from
 * scales that fall from the largest number's. Numbers that are ternary already come back as they are. */
PN_UNUSED static inline float pn_ternary_fit(const float *x, const float *importance, size_t n, float largest)
{
    float best = 0, start = largest;
    double most = 0;
    for (int s = 0; s < PN_TERNARY_STARTS && largest > 0; s++, start *= 0.8f) {
        double d = (double)start;
        for (int round = 0; round < PN_TERNARY_ROUNDS; round++) {
            const float dh = pn_fit_round(d), inverse = pn_inverse(dh);
            double xq = 0, qq = 0;
            for (size_t i = 0; i < n; i++) {
                const double q = pn_fit_code(x[i], inverse, 0.0f, -1, 1), w = (double)pn_fit_weight(importance, i);
                xq += w * q * (double)x[i];
                qq += w * q * q;
            }
            const double gain = (double)dh * (2 * xq - (double)dh * qq); /* what is taken from the error */
            if (gain > most) {
                most = gain;
                best = dh;
            }
            if (!(qq > 0)) break;
            d = xq / qq;
        }
    }
    return best;
}

#endif

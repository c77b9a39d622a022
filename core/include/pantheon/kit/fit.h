/* Choosing scales when quantizing: the d (and m) that make the weighted squared error of d * code (+ m) smallest, near
 * enough.
 *
 * From several starting scales around the one that covers the range: codes are the nearest ones, then scale and minimum
 * are the least squares solution for these codes, a few times over. The numbers are judged as they will be stored, in
 * half precision.
 */
#ifndef PANTHEON_KIT_FIT_H
#define PANTHEON_KIT_FIT_H

#include <pantheon/kit/block.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PN_FIT_STARTS 16
#define PN_FIT_ROUNDS 4

/* Nearest code to x between low and high; d and m as they are stored. `inverse` is 1 / d. */
PN_UNUSED static inline int pn_fit_code(float x, float inverse, float m, int low, int high)
{
    float q = (x - m) * inverse;
    q += q < 0.0f ? -0.5f : 0.5f;
    return !(q > (float)low) ? low : q >= (float)high ? high : (int)q;
}

PN_UNUSED static inline float pn_fit_weight(const float *importance, size_t i)
{
    return importance ? importance[i] : 1.0f;
}

/* Weighted squared error of n numbers by d and m. */
PN_UNUSED static inline double pn_fit_error(const float *x, const float *importance, size_t n, int low, int high,
                                            float d, float m)
{
    const float inverse = pn_inverse(d);
    double error = 0;
    for (size_t i = 0; i < n; i++) {
        double e = (double)x[i] - ((double)d * pn_fit_code(x[i], inverse, m, low, high) + (double)m);
        error += (double)pn_fit_weight(importance, i) * e * e;
    }
    return error;
}

PN_UNUSED static inline float pn_fit_round(double v)
{
    return pn_half_to_float(pn_float_to_half((float)v));
}

/* One step: the least squares scale (and minimum, if `affine`) of the codes that d and m give. Returns 0 when they have
 * none. */
PN_UNUSED static inline int pn_fit_step(const float *x, const float *importance, size_t n, int low, int high,
                                        int affine, double *d, double *m)
{
    const float inverse = pn_inverse((float)*d);
    double w = 0, wq = 0, wqq = 0, wx = 0, wqx = 0, det;
    for (size_t i = 0; i < n; i++) {
        const double q = pn_fit_code(x[i], inverse, (float)*m, low, high), u = (double)pn_fit_weight(importance, i);
        w += u;
        wq += u * q;
        wqq += u * q * q;
        wx += u * (double)x[i];
        wqx += u * q * (double)x[i];
    }
    det = affine ? w * wqq - wq * wq : wqq;
    if (!(det > 1e-12 * w * wqq)) return 0;
    *d = affine ? (w * wqx - wq * wx) / det : wqx / wqq;
    *m = affine ? (wqq * wx - wq * wqx) / det : 0.0;
    return 1;
}

/* *d and *m (0 unless `affine`), rounded to half, for n finite numbers with codes low..high; *d and *m hold the scale
 * and minimum that cover the range, which are kept when nothing is better. Numbers that no half can hold are never
 * chosen in their place. */
PN_UNUSED static inline void pn_fit(const float *x, const float *importance, size_t n, int low, int high, int affine,
                                    float *d, float *m)
{
    const float d0 = *d, m0 = *m;
    double best;
    *d = pn_fit_round((double)d0);
    *m = pn_fit_round((double)m0);
    best = pn_fit_error(x, importance, n, low, high, *d, *m);
    for (int start = 0; start < PN_FIT_STARTS && d0 != 0.0f; start++) {
        const double factor = 0.75 + 0.025 * start;
        double dd = (double)d0 * factor, mm = affine ? (double)m0 + ((double)d0 - dd) * (high - low) / 2 : 0.0;
        for (int round = 0; round < PN_FIT_ROUNDS && pn_fit_step(x, importance, n, low, high, affine, &dd, &mm);
             round++) {
            const float dh = pn_fit_round(dd), mh = pn_fit_round(mm);
            const double error = pn_fit_error(x, importance, n, low, high, dh, mh);
            if (error < best) {
                best = error;
                *d = dh;
                *m = mh;
            }
        }
    }
}

#ifdef __cplusplus
}
#endif
#endif

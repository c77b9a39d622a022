/* Quantizing superblocks: 256 elements in groups, each group with an integer scale (and minimum), times a factor of the
 * block in half precision.
 *
 * Each group gets the scale and minimum that fit it best as real numbers: from several starts, the nearest codes, then
 * the least squares solution for these codes. The largest ones set the block's factors. Then by turns: the integers of
 * each group, by trying the neighbours of the present ones with the nearest codes, and the factors, by least squares
 * over the block. What is judged is the weighted squared error of the numbers as they will be read.
 */
#ifndef PN_QUANT_K_FIT_H
#define PN_QUANT_K_FIT_H

#include <pantheon/kit/fit.h>

#define PN_K_ELEMS 256
#define PN_K_LANES 8 /* sums run in lanes, so that compilers make vectors of them */
#define PN_K_STARTS 10
#define PN_K_STEPS 2
#define PN_K_TURNS 3

/* What a type can store. Codes of types with minima begin at 0; scales of those without are signed. */
typedef struct pn_k_shape {
    const char *name;
    size_t groups;
    int low, high;             /* of a code */
    int scale_low, scale_high; /* of a group's scale */
    int minimum_high;          /* of a group's minimum, from 0; 0: the type has none */
} pn_k_shape;

/* x = d * scale[group] * code - dmin * minimum[group] */
typedef struct pn_k_block {
    float d, dmin; /* rounded to half */
    int scale[16], minimum[16];
    int code[PN_K_ELEMS];
} pn_k_block;

/* A group: numbers, weights, and what their codes may be. */
typedef struct pn_k_group {
    const float *x, *w;
    size_t n;
    float low, high;
    int affine;
} pn_k_group;

PN_UNUSED static inline float pn_k_code(float x, float inverse, float offset, float low, float high)
{
    float q = (x - offset) * inverse;
    q = q > low ? q : low; /* what is no number too */
    q = q < high ? q : high;
    return q + 12582912.0f - 12582912.0f; /* 1.5 * 2^23: to the nearest integer */
}

PN_UNUSED static inline float pn_k_sum(const float lane[PN_K_LANES])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

PN_UNUSED static inline float pn_k_error(const pn_k_group *g, float scale, float offset)
{
    const float inverse = pn_inverse(scale);
    float lane[PN_K_LANES] = {0};
    for (size_t k = 0; k < g->n; k += PN_K_LANES)
        for (size_t i = 0; i < PN_K_LANES; i++) {
            const float e = g->x[k + i] - (scale * pn_k_code(g->x[k + i], inverse, offset, g->low, g->high) + offset);
            lane[i] += g->w[k + i] * e * e;
        }
    return pn_k_sum(lane);
}

/* Codes of *scale and *offset, then the least squares solution for them; an offset is never positive. Returns 0 when
 * there is none. */
PN_UNUSED static inline int pn_k_step(const pn_k_group *g, float *scale, float *offset)
{
    const float inverse = pn_inverse(*scale), shift = *offset;
    float lw[PN_K_LANES] = {0}, lq[PN_K_LANES] = {0}, lqq[PN_K_LANES] = {0}, lx[PN_K_LANES] = {0},
          lqx[PN_K_LANES] = {0};
    for (size_t k = 0; k < g->n; k += PN_K_LANES)
        for (size_t i = 0; i < PN_K_LANES; i++) {
            const float x = g->x[k + i], q = pn_k_code(x, inverse, shift, g->low, g->high), wq = g->w[k + i] * q;
            lw[i] += g->w[k + i];
            lx[i] += g->w[k + i] * x;
            lq[i] += wq;
            lqq[i] += wq * q;
            lqx[i] += wq * x;
        }
    const float w = pn_k_sum(lw), q = pn_k_sum(lq), qq = pn_k_sum(lqq), x = pn_k_sum(lx), qx = pn_k_sum(lqx);
    const float det = w * qq - q * q;
    if (!(qq > 0.0f)) return 0;
    *scale = qx / qq;
    *offset = 0.0f;
    if (g->affine && det > 1e-5f * w * qq && qq * x < q * qx) {
        *scale = (w * qx - q * x) / det;
        *offset = (qq * x - q * qx) / det;
    }
    return *scale - *scale == 0.0f && *offset - *offset == 0.0f;
}

/* The best real scale and offset of a group. */
PN_UNUSED static inline void pn_k_group_fit(const pn_k_group *g, float *scale, float *offset)
{
    float low = 0.0f, high = g->x[0], best; /* an offset is never positive, so neither is `low` */
    for (size_t i = 0; i < g->n; i++) {
        low = g->x[i] < low ? g->x[i] : low;
        high = g->x[i] > high ? g->x[i] : high;
    }
    /* With signed codes the number farthest from 0 gets the lowest code, the one farthest from 0. */
    const float covering = g->affine ? (high - low) / g->high : (high > -low ? high : low) / g->low;
    const float other = g->affine || g->low < -4.0f ? 0.0f : -covering;
    *scale = covering;
    *offset = g->affine ? low : 0.0f;
    best = pn_k_error(g, *scale, *offset);
    for (int start = 0; start < 2 * PN_K_STARTS && covering != 0.0f; start++) {
        const float factor = 0.65f + 0.05f * (float)(start / 2), from = start % 2 ? other : covering;
        float s = factor * from, o = g->affine ? low + (1.0f - factor) * (high - low) / 2 : 0.0f;
        o = o < 0.0f ? o : 0.0f;
        for (int step = 0; step < PN_K_STEPS && from != 0.0f && pn_k_step(g, &s, &o); step++) {
            const float error = pn_k_error(g, s, o);
            if (error < best) {
                best = error;
                *scale = s;
                *offset = o;
            }
        }
    }
}

PN_UNUSED static inline int pn_k_nearest(float v, int low, int high)
{
    return (int)pn_k_code(v, 1.0f, 0.0f, (float)low, (float)high);
}

/* Moves the integers of group i to the best neighbours; returns the error. */
PN_UNUSED static inline float pn_k_choose(const pn_k_shape *s, const pn_k_group *g, pn_k_block *b, size_t i)
{
    const int scale = b->scale[i], minimum = b->minimum[i], reach = s->minimum_high ? 1 : 0;
    float best = pn_k_error(g, b->d * (float)scale, -(b->dmin * (float)minimum));
    for (int u = scale - 1; u <= scale + 1; u++)
        for (int v = minimum - reach; v <= minimum + reach; v++) {
            if (u < s->scale_low || u > s->scale_high || v < 0 || v > s->minimum_high) continue;
            const float error = pn_k_error(g, b->d * (float)u, -(b->dmin * (float)v));
            if (error < best) {
                best = error;
                b->scale[i] = u;
                b->minimum[i] = v;
            }
        }
    return best;
}

/* The largest factors that a half holds stand for those beyond. */
PN_UNUSED static inline float pn_k_half(float v)
{
    return pn_fit_round((double)(v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v));
}

/* A first factor. Among the smallest halfs the next larger one, where the nearest is so much smaller that the integers
 * would not reach. */
PN_UNUSED static inline float pn_k_reaching_half(float v)
{
    const uint16_t nearest = pn_float_to_half(pn_k_half(v));
    const float half = pn_half_to_float(nearest), size = v < 0.0f ? -v : v;
    if (size > 65504.0f || (half < 0.0f ? -half : half) >= 0.99f * size) return half;
    return pn_half_to_float((uint16_t)(nearest + 1));
}

/* The block's factors by least squares, for the codes of its present ones. */
PN_UNUSED static inline void pn_k_factors(const pn_k_shape *s, const pn_k_group *groups, pn_k_block *b)
{
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (size_t i = 0; i < s->groups; i++) {
        const pn_k_group *g = &groups[i];
        const float scale = b->d * (float)b->scale[i], offset = -(b->dmin * (float)b->minimum[i]);
        const float inverse = pn_inverse(scale);
        for (size_t k = 0; k < g->n; k++) {
            const double u = (double)b->scale[i] * (double)pn_k_code(g->x[k], inverse, offset, g->low, g->high);
            const double v = -(double)b->minimum[i], w = (double)g->w[k], x = (double)g->x[k];
            aa += w * u * u;
            ab += w * u * v;
            bb += w * v * v;
            ax += w * u * x;
            bx += w * v * x;
        }
    }
    const double det = aa * bb - ab * ab;
    const int both = det > 1e-9 * aa * bb;
    const double d = both ? (ax * bb - bx * ab) / det : ax / aa, m = both ? (aa * bx - ab * ax) / det : 0.0;
    if (!(aa > 0.0) || !(d - d == 0.0) || !(m - m == 0.0)) return;
    if (s->minimum_high && !both) return;
    b->d = pn_k_half((float)d);
    b->dmin = pn_k_half((float)m);
}

/* First factors and integers: those of the real numbers. */
PN_UNUSED static inline void pn_k_begin(const pn_k_shape *s, const pn_k_group *groups, pn_k_block *b)
{
    float scale[16], offset[16], most = 0.0f, least = 0.0f;
    for (size_t i = 0; i < s->groups; i++) {
        pn_k_group_fit(&groups[i], &scale[i], &offset[i]);
        if (scale[i] * scale[i] > most * most || most == 0.0f) most = scale[i];
        least = offset[i] < least ? offset[i] : least;
    }
    b->d = pn_k_reaching_half(most / (float)(s->scale_low < 0 ? s->scale_low : s->scale_high));
    b->dmin = s->minimum_high ? pn_k_reaching_half(-least / (float)s->minimum_high) : 0.0f;
    for (size_t i = 0; i < s->groups; i++) {
        b->scale[i] = pn_k_nearest(scale[i] * pn_inverse(b->d), s->scale_low, s->scale_high);
        b->minimum[i] = pn_k_nearest(-offset[i] * pn_inverse(b->dmin), 0, s->minimum_high);
    }
}

PN_UNUSED static inline pn_status pn_k_check(const pn_k_shape *s, const float *x, pn_error *err)
{
    float low = 0, high = 0;
    pn_status status = pn_range_of(x, PN_K_ELEMS, &low, &high, err);
    if (status != PN_OK) return status;
    const float most = 65504.0f * (float)(s->minimum_high ? s->scale_high * s->high : s->scale_low * s->low);
    const float least = s->minimum_high ? -65504.0f * (float)s->minimum_high : -most;
    if (low < least || high > most)
        return pn_fail(err, PN_E_RANGE, "%s cannot hold values from %g to %g: its blocks reach from %g to %g", s->name,
                       (double)low, (double)high, (double)least, (double)most);
    return PN_OK;
}

/* Fits one block of 256 numbers; `importance`, one weight per number, may be NULL. */
PN_UNUSED static inline pn_status pn_k_fit(const pn_k_shape *s, const float *x, const float *importance, pn_k_block *b,
                                           pn_error *err)
{
    const size_t n = PN_K_ELEMS / s->groups;
    float even[PN_K_ELEMS / 8], best = 0.0f;
    pn_k_group groups[16];
    pn_k_block now;
    pn_status status = pn_k_check(s, x, err);
    if (status != PN_OK) return status;
    for (size_t i = 0; i < PN_K_ELEMS / 8; i++) even[i] = 1.0f;
    for (size_t i = 0; i < s->groups; i++)
        groups[i] = (pn_k_group){x + i * n, importance ? importance + i * n : even, n, (float)s->low, (float)s->high,
                                 s->minimum_high > 0};
    pn_k_begin(s, groups, &now);
    *b = now;
    for (int turn = 0; turn < PN_K_TURNS; turn++) {
        float error = 0.0f;
        if (turn) pn_k_factors(s, groups, &now);
        for (size_t i = 0; i < s->groups; i++) error += pn_k_choose(s, &groups[i], &now, i);
        if (turn && !(error < best)) break;
        best = error;
        *b = now;
    }
    for (size_t i = 0; i < PN_K_ELEMS; i++) {
        const float scale = b->d * (float)b->scale[i / n], offset = -(b->dmin * (float)b->minimum[i / n]);
        b->code[i] = (int)pn_k_code(x[i], pn_inverse(scale), offset, (float)s->low, (float)s->high);
    }
    return PN_OK;
}

#endif

/* Attention over one block of keys and values, in C: the reference for the other levels. */
#include "ops_impl.h"

#include <math.h>

#define TILE 8      /* queries that share one conversion of the block's halves */
#define DIMS 64     /* elements of a value row converted at once */

static void load(const void *from, size_t offset, size_t n, int half, float *to)
{
    if (half) {
        const uint16_t *p = (const uint16_t *)from + offset;
        for (size_t i = 0; i < n; i++)
            to[i] = pn_float_of_half(p[i]);
    } else {
        memcpy(to, (const float *)from + offset, n * sizeof *to);
    }
}

/* Scores of query t to probabilities e^(s - m'), in place; updates m and l. Returns what to multiply acc with. */
static float soften(const pn_attend *a, size_t t, float *s)
{
    size_t begin = a->begin[t], end = a->end[t];
    float m = a->m[t], l, shrink;
    for (size_t j = begin; j < end; j++) {
        s[j] *= a->scale;
        if (a->softcap > 0)
            s[j] = a->softcap * (float)tanh((double)(s[j] / a->softcap));
        m = s[j] > m ? s[j] : m;
    }
    shrink = expf(a->m[t] - m);
    l = a->l[t] * shrink;
    for (size_t j = begin; j < end; j++) {
        s[j] = expf(s[j] - m);
        l += s[j];
    }
    a->m[t] = m;
    a->l[t] = l;
    return shrink;
}

/* Queries first .. first + n - 1, n <= TILE. */
static void attend_tile(const pn_attend *a, size_t first, size_t n, int half)
{
    float s[TILE][PN_KV_BLOCK] = { { 0 } }, shrink[TILE], row[DIMS];
    size_t low = PN_KV_BLOCK, high = 0;
    for (size_t i = 0; i < a->d; i++) {
        load(a->k, i * PN_KV_BLOCK, PN_KV_BLOCK, half, row);
        for (size_t t = 0; t < n; t++) {
            float q = a->q[first + t][i];
            for (size_t j = 0; j < PN_KV_BLOCK; j++)
                s[t][j] += q * row[j];
        }
    }
    for (size_t t = 0; t < n; t++) {
        size_t begin = a->begin[first + t], end = a->end[first + t];
        shrink[t] = soften(a, first + t, s[t]);
        low = begin < low ? begin : low;
        high = end > high ? end : high;
    }
    for (size_t e = 0; e < a->dv; e += DIMS) {
        size_t width = a->dv - e < DIMS ? a->dv - e : DIMS;
        for (size_t t = 0; t < n; t++)
            for (size_t i = 0; i < width; i++)
                a->acc[first + t][e + i] *= shrink[t];
        for (size_t j = low; j < high; j++) {
            load(a->v, j * a->dv + e, width, half, row);
            for (size_t t = 0; t < n; t++) {
                float *acc = a->acc[first + t] + e;
                if (j < a->begin[first + t] || j >= a->end[first + t])
                    continue;
                for (size_t i = 0; i < width; i++)
                    acc[i] += s[t][j] * row[i];
            }
        }
    }
}

static void attend(const pn_attend *a, int half)
{
    for (size_t t = 0; t < a->n; t += TILE)
        attend_tile(a, t, a->n - t < TILE ? a->n - t : TILE, half);
}

void pn_attend_f32_c(const pn_attend *a)
{
    attend(a, 0);
}

void pn_attend_f16_c(const pn_attend *a)
{
    attend(a, 1);
}

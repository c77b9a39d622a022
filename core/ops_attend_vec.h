/* Attention over one block of keys and values, over the vectors of a level: included by ops_vec.h.
 *
 * A tile of up to ATTEND_QUERIES queries goes through three steps: scores (keys in lanes), softmax, and values
 * (elements in lanes), each with its sums in registers. A query takes the same steps in a tile of any size.
 */
#ifndef PN_OPS_ATTEND_VEC_H
#define PN_OPS_ATTEND_VEC_H

#include "ops.h"
#include "vec_math.h"

#include <math.h>

#define ATTEND_SPAN (ATTEND_VECTORS * VL)   /* keys, or elements of a value, in one register tile */
#define KEY_VECTORS (PN_KV_BLOCK / VL)
#define UNROLL _Pragma("GCC unroll 8")

/* The slot of that name; attention needs it too. */
static void f32_from_f16(const uint16_t *x, size_t n, float *y)
{
    size_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(y + i, v_load_half(x + i));
    if (i < n)
        v_store_n(y + i, v_load_half_n(x + i, n - i), n - i);
}

/* Scores of a tile, then its probabilities, and the sums that they change. */
typedef struct attend_tile {
    const pn_attend *a;
    size_t first, n;                        /* queries */
    float s[ATTEND_QUERIES][PN_KV_BLOCK];
    float shrink[VL];                       /* what acc and l are multiplied with first */
} attend_tile;

VEC vf attend_load(const void *p, size_t at, size_t n, int half)
{
    if (half)
        return n >= VL ? v_load_half((const uint16_t *)p + at) : v_load_half_n((const uint16_t *)p + at, n);
    return n >= VL ? v_load((const float *)p + at) : v_load_n((const float *)p + at, n);
}

/* s[t][j] = q[t] . K[.][j] for ATTEND_SPAN keys from `key` on; n is a constant where this is called. */
VEC void attend_scores_n(attend_tile *tile, size_t key, size_t n, int half)
{
    const pn_attend *a = tile->a;
    const float *const *q = a->q + tile->first;
    vf sum[ATTEND_QUERIES][ATTEND_VECTORS];
    UNROLL for (size_t t = 0; t < n; t++)
        UNROLL for (size_t g = 0; g < ATTEND_VECTORS; g++)
            sum[t][g] = v_zero();
    for (size_t i = 0; i < a->d; i++) {
        vf k[ATTEND_VECTORS];
        UNROLL for (size_t g = 0; g < ATTEND_VECTORS; g++)
            k[g] = attend_load(a->k, i * PN_KV_BLOCK + key + g * VL, VL, half);
        UNROLL for (size_t t = 0; t < n; t++) {
            vf x = v_set(q[t][i]);
            UNROLL for (size_t g = 0; g < ATTEND_VECTORS; g++)
                sum[t][g] = v_fma(x, k[g], sum[t][g]);
        }
    }
    UNROLL for (size_t t = 0; t < n; t++)
        UNROLL for (size_t g = 0; g < ATTEND_VECTORS; g++)
            v_store(tile->s[t] + key + g * VL, sum[t][g]);
}

/* The tile's scores to probabilities e^(s - m'), 0 outside a query's range; updates m and l. */
VEC void attend_soften(attend_tile *tile)
{
    const pn_attend *a = tile->a;
    const uint8_t *begin = a->begin + tile->first, *end = a->end + tile->first;
    float *m = a->m + tile->first, *l = a->l + tile->first, grown[VL] = { 0 };
    for (size_t t = 0; t < tile->n; t++) {
        float *s = tile->s[t], old = m[t];
        vf largest = v_set(old);
        UNROLL for (size_t g = 0; g < KEY_VECTORS; g++) {
            vf x = v_mul(v_load(s + g * VL), v_set(a->scale));
            if (a->softcap > 0)
                x = v_mul(v_set(a->softcap), v_tanh(v_div(x, v_set(a->softcap))));
            v_store(s + g * VL, x);
            largest = v_choose(v_range(g * VL, begin[t], end[t]), v_max(x, largest), largest);
        }
        m[t] = v_largest(largest);
        grown[t] = old - m[t];
    }
    v_store(tile->shrink, v_exp(v_load(grown)));
    for (size_t t = 0; t < tile->n; t++) {
        float *s = tile->s[t];
        vf sum = v_zero(), most = v_set(m[t]);
        UNROLL for (size_t g = 0; g < KEY_VECTORS; g++) {
            vf p = v_exp(v_sub(v_load(s + g * VL), most));
            p = v_choose(v_range(g * VL, begin[t], end[t]), p, v_zero());
            v_store(s + g * VL, p);
            sum = v_add(sum, p);
        }
        l[t] = l[t] * tile->shrink[t] + v_sum(sum);
    }
}

/* acc[t][e..] = acc[t][e..] * shrink + sum of p[t][j] V[j][e..] over begin <= j < end, for n queries from tile query t0
 * on; n, vectors and half are constants where this is called; width: elements that there are. */
VEC void attend_values_n(attend_tile *tile, size_t t0, size_t n, size_t vectors, size_t e, size_t width, size_t begin,
                         size_t end, int shrink, int half)
{
    const pn_attend *a = tile->a;
    float *const *acc = a->acc + tile->first + t0;
    vf sum[ATTEND_QUERIES][ATTEND_VECTORS];
    UNROLL for (size_t t = 0; t < n; t++)
        UNROLL for (size_t g = 0; g < vectors; g++) {
            float *p = acc[t] + e + g * VL;
            sum[t][g] = width >= VL ? v_load(p) : v_load_n(p, width);
            if (shrink)
                sum[t][g] = v_mul(sum[t][g], v_set(tile->shrink[t0 + t]));
        }
    for (size_t j = begin; j < end; j++) {
        vf v[ATTEND_VECTORS];
        UNROLL for (size_t g = 0; g < vectors; g++)
            v[g] = attend_load(a->v, j * a->dv + e + g * VL, width, half);
        UNROLL for (size_t t = 0; t < n; t++) {
            vf p = v_set(tile->s[t0 + t][j]);
            UNROLL for (size_t g = 0; g < vectors; g++)
                sum[t][g] = v_fma(p, v[g], sum[t][g]);
        }
    }
    UNROLL for (size_t t = 0; t < n; t++)
        UNROLL for (size_t g = 0; g < vectors; g++) {
            float *p = acc[t] + e + g * VL;
            if (width >= VL)
                v_store(p, sum[t][g]);
            else
                v_store_n(p, sum[t][g], width);
        }
}

/* One instance per number of queries: the compiler then keeps the sums in registers. */
#if ATTEND_QUERIES == 6
#define ATTEND_CASES(n, call) \
    switch (n) { case 1: call(1); break; case 2: call(2); break; case 3: call(3); break; case 4: call(4); break; \
                 case 5: call(5); break; default: call(6); break; }
#else
#define ATTEND_CASES(n, call) \
    switch (n) { case 1: call(1); break; case 2: call(2); break; default: call(3); break; }
#endif

VEC void attend_scores(attend_tile *tile, int half)
{
#define CALL(n) attend_scores_n(tile, key, n, half)
    for (size_t key = 0; key < PN_KV_BLOCK; key += ATTEND_SPAN)
        ATTEND_CASES(tile->n, CALL)
#undef CALL
}

/* All elements, for n queries from t on. */
VEC void attend_values(attend_tile *tile, size_t t, size_t n, size_t begin, size_t end, int shrink, int half)
{
    size_t e = 0, dv = tile->a->dv;
#define CALL(n) attend_values_n(tile, t, n, ATTEND_VECTORS, e, VL, begin, end, shrink, half)
    for (; e + ATTEND_SPAN <= dv; e += ATTEND_SPAN)
        ATTEND_CASES(n, CALL)
#undef CALL
#define CALL(n) attend_values_n(tile, t, n, 1, e, dv - e, begin, end, shrink, half)
    for (; e < dv; e += VL)
        ATTEND_CASES(n, CALL)
#undef CALL
}

/* Not inlined: the compiler should give its registers to these loops alone. */
#define ATTEND_LOOP static __attribute__((noinline))

ATTEND_LOOP void attend_scores_f32(attend_tile *tile)
{
    attend_scores(tile, 0);
}

ATTEND_LOOP void attend_scores_f16(attend_tile *tile)
{
    attend_scores(tile, 1);
}

ATTEND_LOOP void attend_values_f32(attend_tile *tile, size_t t, size_t n, size_t begin, size_t end, int shrink)
{
    attend_values(tile, t, n, begin, end, shrink, 0);
}

ATTEND_LOOP void attend_values_f16(attend_tile *tile, size_t t, size_t n, size_t begin, size_t end, int shrink)
{
    attend_values(tile, t, n, begin, end, shrink, 1);
}

/* Keys that all queries of the tile see are walked for all at once, those before and after query by query: always
 * ascending, and never a value row that a query does not see. */
VEC void attend(const pn_attend *a, void (*scores)(attend_tile *),
                void (*values)(attend_tile *, size_t, size_t, size_t, size_t, int))
{
    attend_tile tile = { .a = a };
    for (size_t first = 0; first < a->n; first += tile.n) {
        const uint8_t *begin = a->begin + first, *end = a->end + first;
        size_t low = 0, high = PN_KV_BLOCK;
        tile.first = first;
        tile.n = a->n - first < ATTEND_QUERIES ? a->n - first : ATTEND_QUERIES;
        scores(&tile);
        attend_soften(&tile);
        for (size_t t = 0; t < tile.n; t++) {
            low = begin[t] > low ? begin[t] : low;
            high = end[t] < high ? end[t] : high;
        }
        if (low >= high) {
            for (size_t t = 0; t < tile.n; t++)
                values(&tile, t, 1, begin[t], end[t], 1);
            continue;
        }
        for (size_t t = 0; t < tile.n; t++)
            if (begin[t] < low) {
                values(&tile, t, 1, begin[t], low, 1);
                tile.shrink[t] = 1;
            }
        values(&tile, 0, tile.n, low, high, 1);
        for (size_t t = 0; t < tile.n; t++)
            if (end[t] > high)
                values(&tile, t, 1, high, end[t], 0);
    }
}

static void attend_f32(const pn_attend *a)
{
    attend(a, attend_scores_f32, attend_values_f32);
}

/* Widest head whose block is converted to floats as a whole. */
#define ATTEND_WHOLE 256

/* For many queries: the block in floats once, in place of once per tile. The numbers are the same. */
static __attribute__((noinline)) void attend_whole(const pn_attend *a)
{
    _Alignas(64) float k[ATTEND_WHOLE * PN_KV_BLOCK], v[PN_KV_BLOCK * ATTEND_WHOLE];
    pn_attend b = *a;
    size_t low = PN_KV_BLOCK, high = 0;
    for (size_t t = 0; t < a->n; t++) {
        low = a->begin[t] < low ? a->begin[t] : low;
        high = a->end[t] > high ? a->end[t] : high;
    }
    f32_from_f16(a->k, a->d * PN_KV_BLOCK, k);
    f32_from_f16((const uint16_t *)a->v + low * a->dv, (high - low) * a->dv, v + low * a->dv);
    b.k = k;
    b.v = v;
    attend_f32(&b);
}

static void attend_f16(const pn_attend *a)
{
    if (a->n > 2 * ATTEND_QUERIES && a->d <= ATTEND_WHOLE && a->dv <= ATTEND_WHOLE)
        attend_whole(a);
    else
        attend(a, attend_scores_f16, attend_values_f16);
}

#endif

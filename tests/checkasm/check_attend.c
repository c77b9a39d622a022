/* Attention over a block at every level: against C, and a query's result the same bits in any company. */
#include "check_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 20     /* queries */
#define BLOCKS 2
#define WIDEST 256

/* A problem: `n` queries over two blocks, and room for the results of one way to compute it. */
typedef struct problem {
    size_t n, d, dv;
    int half;
    float scale, softcap;
    float *k[BLOCKS], *v[BLOCKS];               /* floats, or halves in their first half */
    float *q[MOST];
    uint8_t begin[BLOCKS][MOST], end[BLOCKS][MOST];
} problem;

typedef struct result {
    float m[MOST], l[MOST], *acc[MOST];
} result;

static void store(const problem *p, float *to, size_t at, float x)
{
    uint16_t h;
    if (!p->half) {
        to[at] = x;
        return;
    }
    pn_ops_at(0)->f16_from_f32(&x, 1, &h);
    ((uint16_t *)to)[at] = h;
}

static float fetch(const problem *p, const float *from, size_t at)
{
    float x;
    if (!p->half)
        return from[at];
    pn_ops_at(0)->f32_from_f16((const uint16_t *)from + at, 1, &x);
    return x;
}

/* Fill key j and value j of a block: keep what is seen by some query, garbage elsewhere. */
static void fill_block(co *c, problem *p, size_t b, const int *seen, float size)
{
    static const float garbage[] = { NAN, INFINITY, -INFINITY, 6e4f };
    for (size_t j = 0; j < PN_KV_BLOCK; j++) {
        for (size_t i = 0; i < p->d; i++)
            store(p, p->k[b], i * PN_KV_BLOCK + j, seen[j] ? co_unit(c) * size : garbage[co_below(c, 4)]);
        for (size_t i = 0; i < p->dv; i++)
            store(p, p->v[b], j * p->dv + i, seen[j] ? co_unit(c) * 2 : garbage[co_below(c, 3)]);
    }
}

static void make(co *c, problem *p, int half)
{
    static const size_t widths[] = { 1, 3, 8, 16, 17, 31, 32, 33, 48, 64, 65, 80, 96, 100, 128, 192, 256 };
    float size = co_below(c, 6) == 0 ? 3e4f : 1;     /* scores that no half could hold */
    memset(p, 0, sizeof *p);
    p->half = half;
    p->n = 1 + co_below(c, MOST);
    p->d = widths[co_below(c, sizeof widths / sizeof widths[0])];
    p->dv = widths[co_below(c, sizeof widths / sizeof widths[0])];
    p->scale = 1 / sqrtf((float)p->d);
    p->softcap = co_below(c, 3) == 0 ? 5 : 0;
    for (size_t t = 0; t < p->n; t++) {
        p->q[t] = co_floats(p->d);
        co_fill(c, CO_RANDOM, p->q[t], p->d);
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        int seen[PN_KV_BLOCK] = { 0 }, shape = (int)co_below(c, 3);
        size_t start = co_below(c, PN_KV_BLOCK);
        for (size_t t = 0; t < p->n; t++) {
            size_t begin = co_below(c, PN_KV_BLOCK), end = begin + 1 + co_below(c, PN_KV_BLOCK - begin);
            if (shape == 0) {           /* all of it */
                begin = 0;
                end = PN_KV_BLOCK;
            } else if (shape == 1) {    /* causal, some heads per position */
                begin = 0;
                end = start + 1 + t / 3 < PN_KV_BLOCK ? start + 1 + t / 3 : PN_KV_BLOCK;
            }
            p->begin[b][t] = (uint8_t)begin;
            p->end[b][t] = (uint8_t)end;
            for (size_t j = begin; j < end; j++)
                seen[j] = 1;
        }
        p->k[b] = co_floats(p->d * PN_KV_BLOCK);
        p->v[b] = co_floats(p->dv * PN_KV_BLOCK);
        fill_block(c, p, b, seen, size);
    }
}

static void drop(co *c, problem *p)
{
    for (size_t t = 0; t < p->n; t++)
        co_release(c, p->q[t]);
    for (size_t b = 0; b < BLOCKS; b++) {
        co_release(c, p->k[b]);
        co_release(c, p->v[b]);
    }
}

static void start(const problem *p, result *r)
{
    for (size_t t = 0; t < p->n; t++) {
        r->m[t] = -INFINITY;
        r->l[t] = 0;
        r->acc[t] = co_floats(p->dv);
        memset(r->acc[t], 0, p->dv * 4);
    }
}

static void stop(co *c, const problem *p, result *r)
{
    for (size_t t = 0; t < p->n; t++)
        co_release(c, r->acc[t]);
}

/* Queries first .. first + n - 1 through block b. */
static void run(const pn_ops *ops, const problem *p, result *r, size_t b, size_t first, size_t n)
{
    pn_attend a = {
        .k = p->k[b], .v = p->v[b], .d = p->d, .dv = p->dv, .n = n,
        .q = (const float *const *)p->q + first, .begin = p->begin[b] + first, .end = p->end[b] + first,
        .m = r->m + first, .l = r->l + first, .acc = r->acc + first, .scale = p->scale, .softcap = p->softcap,
    };
    (p->half ? ops->attend_f16 : ops->attend_f32)(&a);
}

/* Room for a score's rounding: of each product and of each sum, in both. */
static double score_room(const problem *p, size_t t)
{
    double most = 0;
    for (size_t b = 0; b < BLOCKS; b++)
        for (size_t j = p->begin[b][t]; j < p->end[b][t]; j++) {
            double sum = 0;
            for (size_t i = 0; i < p->d; i++)
                sum += fabs((double)p->q[t][i] * (double)fetch(p, p->k[b], i * PN_KV_BLOCK + j));
            most = sum * (double)p->scale > most ? sum * (double)p->scale : most;
        }
    return most * 6e-8 * (4 + sqrt((double)p->d));
}

static void compare(co *c, const problem *p, const result *want, const result *got)
{
    for (size_t t = 0; t < p->n; t++) {
        double room = score_room(p, t), most = (4 * room + 4e-6) * 2;
        if (!co_near(want->m[t], got->m[t], 1e-6, room)) {
            co_fail(c, "n = %zu, d = %zu, dv = %zu, softcap %g: m of query %zu: %.9g, wanted %.9g", p->n, p->d, p->dv,
                    (double)p->softcap, t, (double)got->m[t], (double)want->m[t]);
            return;
        }
        for (size_t i = 0; i < p->dv; i++) {
            float a = want->acc[t][i] / want->l[t], b = got->acc[t][i] / got->l[t];
            if (!isfinite(a) || !co_near(a, b, 0, most)) {
                co_fail(c, "n = %zu, d = %zu, dv = %zu, softcap %g: query %zu, element %zu: %.9g, not %.9g within %.3g",
                        p->n, p->d, p->dv, (double)p->softcap, t, i, (double)b, (double)a, most);
                return;
            }
        }
    }
}

static void expect_query(co *c, const problem *p, const result *want, const result *got, size_t t, const char *what)
{
    int same = co_same(want->m[t], got->m[t]) && co_same(want->l[t], got->l[t]);
    for (size_t i = 0; i < p->dv; i++)
        same = same && co_same(want->acc[t][i], got->acc[t][i]);
    if (!same)
        co_fail(c, "n = %zu, d = %zu, dv = %zu: query %zu has other bits %s", p->n, p->d, p->dv, t, what);
}

/* Each query by itself, with everything that it does not see made NaN. */
static void check_alone(co *c, problem *p, const result *want)
{
    result alone;
    float *k[BLOCKS], *v[BLOCKS];
    start(p, &alone);
    for (size_t t = 0; t < p->n; t++)
        for (size_t b = 0; b < BLOCKS; b++) {
            k[b] = p->k[b];
            v[b] = p->v[b];
            p->k[b] = co_floats(p->d * PN_KV_BLOCK);
            p->v[b] = co_floats(p->dv * PN_KV_BLOCK);
            memcpy(p->k[b], k[b], p->d * PN_KV_BLOCK * 4);
            memcpy(p->v[b], v[b], p->dv * PN_KV_BLOCK * 4);
            for (size_t j = 0; j < PN_KV_BLOCK; j++) {
                if (j >= p->begin[b][t] && j < p->end[b][t])
                    continue;
                for (size_t i = 0; i < p->d; i++)
                    store(p, p->k[b], i * PN_KV_BLOCK + j, NAN);
                for (size_t i = 0; i < p->dv; i++)
                    store(p, p->v[b], j * p->dv + i, NAN);
            }
            run(c->ops, p, &alone, b, t, 1);
            co_release(c, p->k[b]);
            co_release(c, p->v[b]);
            p->k[b] = k[b];
            p->v[b] = v[b];
        }
    for (size_t t = 0; t < p->n; t++)
        expect_query(c, p, want, &alone, t, "when it is alone");
    stop(c, p, &alone);
}

/* In two parts, cut anywhere; and with one query that is NaN, which must not spread. */
static void check_company(co *c, problem *p, const result *want)
{
    result parts, sick;
    size_t cut = co_below(c, p->n), who = co_below(c, p->n);
    float kept;
    start(p, &parts);
    start(p, &sick);
    for (size_t b = 0; b < BLOCKS; b++) {
        run(c->ops, p, &parts, b, cut, p->n - cut);
        if (cut)
            run(c->ops, p, &parts, b, 0, cut);
    }
    kept = p->q[who][0];
    p->q[who][0] = NAN;
    for (size_t b = 0; b < BLOCKS; b++)
        run(c->ops, p, &sick, b, 0, p->n);
    p->q[who][0] = kept;
    for (size_t t = 0; t < p->n; t++) {
        expect_query(c, p, want, &parts, t, "in other company");
        if (t != who)
            expect_query(c, p, want, &sick, t, "beside a NaN");
        else if (!isnan(sick.l[t]) || !isnan(sick.acc[t][p->dv - 1]))
            co_fail(c, "n = %zu, d = %zu, dv = %zu: a query of NaN gives numbers", p->n, p->d, p->dv);
    }
    stop(c, p, &parts);
    stop(c, p, &sick);
}

static void check_attend(co *c, int half)
{
    for (int trial = 0; trial < 60; trial++) {
        problem p;
        result want, got;
        make(c, &p, half);
        start(&p, &want);
        start(&p, &got);
        for (size_t b = 0; b < BLOCKS; b++) {
            run(pn_ops_at(0), &p, &want, b, 0, p.n);
            run(c->ops, &p, &got, b, 0, p.n);
        }
        compare(c, &p, &want, &got);
        check_alone(c, &p, &got);
        check_company(c, &p, &got);
        stop(c, &p, &want);
        stop(c, &p, &got);
        drop(c, &p);
    }
}

void check_attend_f32(co *c)
{
    check_attend(c, 0);
}

void check_attend_f16(co *c)
{
    check_attend(c, 1);
}

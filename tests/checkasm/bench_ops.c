/* Times the slots of pn_ops at every level of this CPU: figures to read, never to test. */
#include "check_ops.h"

#include <pantheon/pantheon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 4096
#define HEADS 3         /* query heads per kv head in the attention runs */
#define MOST (64 * HEADS)
#define WIDEST 128

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What a call works on. */
typedef struct work {
    const pn_ops *ops;
    float *x, *y, *z;
    uint16_t *h;
    void *packed;
    float turn[64];     /* cosines, sines */
    uint32_t kind;
    pn_attend attend;
    float *m, *l, *acc[MOST];
    const float *q[MOST];
    uint8_t begin[MOST], end[MOST];
} work;

/* Seconds of one call, the best of some rounds. */
static double time_of(void (*run)(work *), work *w)
{
    double best = 1;
    size_t calls = 1;
    for (int round = 0; round < 12; round++) {
        double begin = now(), took;
        for (size_t i = 0; i < calls; i++)
            run(w);
        took = now() - begin;
        if (took < 1e-3) {
            calls *= 2;
            round = 0;
            continue;
        }
        took /= (double)calls;
        best = took < best ? took : best;
    }
    return best;
}

static void run_rms_norm(work *w) { w->ops->rms_norm(w->x, w->z, 1e-5f, N, w->y); }
static void run_layer_norm(work *w) { w->ops->layer_norm(w->x, w->z, w->z, 1e-5f, N, w->y); }
static void run_add(work *w) { w->ops->add(w->x, w->z, N, w->y); }
static void run_mul(work *w) { w->ops->mul(w->x, w->z, N, w->y); }
static void run_scale(work *w) { w->ops->scale(w->x, 1.5f, N, w->y); }
static void run_activation(work *w) { w->ops->activation(w->kind, w->x, N, w->y); }
static void run_glu(work *w) { w->ops->glu(w->kind, w->x, w->z, N, w->y); }
static void run_rope(work *w) { w->ops->rope(w->y, N / 64, 64, 64, w->kind, w->turn, w->turn + 32); }
static void run_store_key_f32(work *w) { w->ops->store_key_f32(w->x, 128, 5, w->y); }
static void run_store_key_f16(work *w) { w->ops->store_key_f16(w->x, 128, 5, w->h); }
static void run_f16_from_f32(work *w) { w->ops->f16_from_f32(w->x, N, w->h); }
static void run_f32_from_f16(work *w) { w->ops->f32_from_f16(w->h, N, w->y); }
static void run_dot(work *w) { w->y[0] = w->ops->dot(w->x, w->z, N); }
static void run_pack_f32(work *w) { w->ops->pack_f32(w->x, N, w->packed); }
static void run_pack_i16(work *w) { w->ops->pack_i16(w->x, N, w->packed); }
static void run_pack_i8(work *w) { w->ops->pack_i8(w->x, N, w->packed); }
static void run_attend_f32(work *w) { w->ops->attend_f32(&w->attend); }
static void run_attend_f16(work *w) { w->ops->attend_f16(&w->attend); }

static const struct run {
    const char *name;
    void (*run)(work *);
    uint32_t kind;
    double bytes;       /* read and written */
} runs[] = {
    { "rms_norm", run_rms_norm, 0, 12 * N },
    { "layer_norm", run_layer_norm, 0, 16 * N },
    { "add", run_add, 0, 12 * N },
    { "mul", run_mul, 0, 12 * N },
    { "scale", run_scale, 0, 8 * N },
    { "activation silu", run_activation, PN_ACT_SILU, 8 * N },
    { "activation gelu tanh", run_activation, PN_ACT_GELU_TANH, 8 * N },
    { "activation gelu erf", run_activation, PN_ACT_GELU_ERF, 8 * N },
    { "activation relu", run_activation, PN_ACT_RELU, 8 * N },
    { "glu silu", run_glu, PN_ACT_SILU, 12 * N },
    { "rope interleaved", run_rope, PN_ROPE_INTERLEAVED, 8 * N },
    { "rope halves", run_rope, PN_ROPE_HALVES, 8 * N },
    { "store_key_f32", run_store_key_f32, 0, 8 * 128 },
    { "store_key_f16", run_store_key_f16, 0, 6 * 128 },
    { "f16_from_f32", run_f16_from_f32, 0, 6 * N },
    { "f32_from_f16", run_f32_from_f16, 0, 6 * N },
    { "dot", run_dot, 0, 8 * N },
    { "pack_f32", run_pack_f32, 0, 8 * N },
    { "pack_i16", run_pack_i16, 0, 6 * N },
    { "pack_i8", run_pack_i8, 0, 5 * N },
};

/* Aligned as the library's own memory is. */
static float *room(size_t n)
{
    float *p = aligned_alloc(64, n * sizeof *p);
    if (!p)
        exit(2);
    return p;
}

static void bench_attend(work *w, size_t n, size_t d, const char *what, double limit)
{
    w->attend = (pn_attend){ .k = w->h, .v = w->h, .d = d, .dv = d, .n = n, .q = w->q, .begin = w->begin, .end = w->end,
                             .m = w->m, .l = w->l, .acc = w->acc, .scale = 0.01f };
    for (int half = 0; half < 2; half++) {
        double flops, t;
        if (!half)
            w->attend.k = w->attend.v = w->y;
        else
            w->attend.k = w->attend.v = w->h;
        t = time_of(half ? run_attend_f16 : run_attend_f32, w);
        flops = 4.0 * PN_KV_BLOCK * (double)d * (double)n;
        printf("#   attend_%s %-12s head %-3zu %10.1f ns  %7.2f GFLOP/s", half ? "f16" : "f32", what, d, t * 1e9,
               flops / t / 1e9);
        printf(limit > 0 ? "  %3.0f%% of the multiply-add limit\n" : "\n", 100 * flops / t / (limit > 0 ? limit : 1));
    }
}

void bench_ops(uint64_t features)
{
    const pn_ops *ops;
    co c = { .state = 1 };
    work w = { .x = room(N), .y = room(64 * WIDEST), .z = room(N) };
    float *q = room(MOST * WIDEST), *acc = room(MOST * WIDEST);
    w.h = (uint16_t *)room(64 * WIDEST / 2);
    w.m = room(MOST);
    w.l = room(MOST);
    w.packed = room(N);
    co_fill(&c, CO_RANDOM, q, MOST * WIDEST);
    memset(acc, 0, MOST * WIDEST * 4);
    for (size_t i = 0; i < MOST; i++) {
        w.q[i] = q + i * WIDEST;
        w.acc[i] = acc + i * WIDEST;
        w.m[i] = -INFINITY;
        w.l[i] = 0;
        w.end[i] = PN_KV_BLOCK;
    }
    for (size_t l = 0; (ops = pn_ops_at(l)) != NULL; l++) {
        double limit;   /* operations a second that the level's multiply-adds allow; 0 = not known */
        if (ops->cpu_features & ~features)
            continue;
        w.ops = ops;
        limit = 2 * pn_measure_multiply(PN_ARITHMETIC_F32, ops->cpu_features, 1, 5);
        printf("# ops.%s (%d elements, in cache", ops->level, N);
        printf(limit > 0 ? "; multiply-add limit %.0f GFLOP/s):\n" : "):\n", limit / 1e9);
        co_fill(&c, CO_RANDOM, w.x, N);
        co_fill(&c, CO_RANDOM, w.z, N);
        co_fill(&c, CO_RANDOM, w.y, 64 * WIDEST);
        for (size_t i = 0; i < 32; i++) {
            w.turn[i] = cosf((float)i);
            w.turn[32 + i] = sinf((float)i);
        }
        for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
            double t;
            w.kind = runs[i].kind;
            t = time_of(runs[i].run, &w);
            printf("#   %-33s %10.1f ns  %7.2f GB/s\n", runs[i].name, t * 1e9, runs[i].bytes / t / 1e9);
        }
        co_fill(&c, CO_RANDOM, w.y, 64 * WIDEST);
        for (size_t i = 0; i < MOST; i++)
            w.m[i] = -INFINITY;
        pn_ops_at(0)->f16_from_f32(w.y, 64 * WIDEST, w.h);
        for (size_t d = 64; d <= 128; d += 64) {
            bench_attend(&w, MOST, d, "64 x 3 heads", limit);
            bench_attend(&w, HEADS, d, "1 x 3 heads", limit);
            bench_attend(&w, 1, d, "1 head", limit);
        }
    }
}

/* Every slot of pn_ops at every level of this CPU against the C table (attention: check_attend.c). With a slot that has
 * no test it does not compile. */
#include "check_ops.h"

#include <cpu.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- tools ------------------------------------------------------------------------------------------------------- */

uint64_t co_next(co *c)
{
    uint64_t z = (c->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

size_t co_below(co *c, size_t n)
{
    return (size_t)(co_next(c) % n);
}

float co_unit(co *c)
{
    return (float)((double)(co_next(c) >> 11) * 0x1p-52 - 1.0);
}

void co_fail(co *c, const char *format, ...)
{
    va_list ap;
    if (c->failures++ > 4)
        return;
    printf("# %s.%s: ", c->slot, c->ops->level);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf(" (seed %llu)\n", (unsigned long long)c->seed);
}

int co_same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

int co_near(float want, float got, double relative, double absolute)
{
    if (co_same(want, got))
        return 1;
    return fabs((double)want - (double)got) <= relative * fabs((double)want) + absolute;
}

const char *const co_kinds[CO_KINDS] = { "random", "near zero", "near max", "outlier", "zero" };

void co_fill(co *c, int kind, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float u = co_unit(c);
        switch (kind) {
        case CO_NEAR_ZERO: x[i] = u * (i % 3 ? 1e-37f : 1e-42f); break;
        case CO_NEAR_MAX: x[i] = u * 3.4e38f; break;
        case CO_ZERO: x[i] = i % 5 == 4 ? -0.0f : 0; break;
        default: x[i] = u * 3; break;
        }
    }
    if (kind == CO_OUTLIER && n)
        x[co_below(c, n)] = 3e4f;
}

#define GUARD 64
#define GUARD_BYTE 0xa5

/* Memory for n floats at an address that is a multiple of 4 and no more, between guards. */
float *co_floats(size_t n)
{
    unsigned char *p = malloc(n * 4 + 2 * GUARD + 64);
    if (!p)
        exit(2);
    memset(p, GUARD_BYTE, n * 4 + 2 * GUARD + 64);
    memcpy(p, &n, sizeof n);
    return (float *)(void *)(p + GUARD + 4);
}

void co_release(co *c, float *x)
{
    unsigned char *p = (unsigned char *)x - GUARD - 4;
    size_t n;
    memcpy(&n, p, sizeof n);
    for (size_t i = sizeof n; i < GUARD + 4; i++)
        if (p[i] != GUARD_BYTE)
            co_fail(c, "wrote %zu bytes before the output", GUARD + 4 - i);
    for (size_t i = 0; i < GUARD + 60; i++)
        if (p[GUARD + 4 + n * 4 + i] != GUARD_BYTE) {
            co_fail(c, "wrote %zu bytes past the output of %zu", i, n * 4);
            break;
        }
    free(p);
}

static const size_t lengths[] = { 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 65, 100, 255, 256, 257,
                                  511, 576, 577, 1000, 1029 };
#define N_LENGTHS (sizeof lengths / sizeof lengths[0])

/* A want and a got array of n floats with an input x and more inputs, for each kind and length. */
typedef struct pair {
    float *x, *a, *b, *want, *got;
    size_t n;
    int kind;
} pair;

static void pair_begin(co *c, pair *p, int kind, size_t n)
{
    p->n = n;
    p->kind = kind;
    p->x = co_floats(n);
    p->a = co_floats(n);
    p->b = co_floats(n);
    p->want = co_floats(n);
    p->got = co_floats(n);
    co_fill(c, kind, p->x, n);
    co_fill(c, CO_RANDOM, p->a, n);
    co_fill(c, CO_RANDOM, p->b, n);
}

static void pair_end(co *c, pair *p)
{
    co_release(c, p->x);
    co_release(c, p->a);
    co_release(c, p->b);
    co_release(c, p->want);
    co_release(c, p->got);
}

#define EACH_PAIR(c, p)                                                                     \
    for (int kind_ = 0; kind_ < CO_KINDS; kind_++)                                          \
        for (size_t l_ = 0, once_; l_ < N_LENGTHS; l_++)                                    \
            for (once_ = (pair_begin(c, &(p), kind_, lengths[l_]), 1); once_; once_ = (pair_end(c, &(p)), 0))

static void expect_near(co *c, const pair *p, double relative, const float *absolute, double factor, const char *what)
{
    for (size_t i = 0; i < p->n; i++)
        if (!co_near(p->want[i], p->got[i], relative, absolute ? factor * fabs((double)absolute[i]) : factor)) {
            co_fail(c, "%s, %s, n = %zu, element %zu: %.9g, wanted %.9g", what, co_kinds[p->kind], p->n, i,
                    (double)p->got[i], (double)p->want[i]);
            return;
        }
}

static void expect_same(co *c, const pair *p, const float *got, const char *what)
{
    for (size_t i = 0; i < p->n; i++)
        if (!co_same(p->want[i], got[i])) {
            co_fail(c, "%s, %s, n = %zu, element %zu: %.9g, wanted exactly %.9g", what, co_kinds[p->kind], p->n, i,
                    (double)got[i], (double)p->want[i]);
            return;
        }
}

/* ---- norms and elementwise --------------------------------------------------------------------------------------- */

static void check_rms_norm(co *c)
{
    pair p;
    EACH_PAIR(c, p) {
        for (int with = 0; with < 2; with++) {
            const float *scale = with ? p.a : NULL;
            pn_ops_at(0)->rms_norm(p.x, scale, 1e-5f, p.n, p.want);
            c->ops->rms_norm(p.x, scale, 1e-5f, p.n, p.got);
            expect_near(c, &p, 1e-6, NULL, 1e-45, with ? "scaled" : "plain");
            memcpy(p.want, p.got, p.n * 4);
            memcpy(p.got, p.x, p.n * 4);
            c->ops->rms_norm(p.got, scale, 1e-5f, p.n, p.got);
            expect_same(c, &p, p.got, "in place");
        }
    }
}

static void check_layer_norm(co *c)
{
    pair p;
    EACH_PAIR(c, p) {
        for (int with = 0; with < 4; with++) {
            const float *scale = with & 1 ? p.a : NULL, *bias = with & 2 ? p.b : NULL;
            pn_ops_at(0)->layer_norm(p.x, scale, bias, 1e-5f, p.n, p.want);
            c->ops->layer_norm(p.x, scale, bias, 1e-5f, p.n, p.got);
            expect_near(c, &p, 1e-6, bias, bias ? 1e-6 : 1e-12, "normed");
            memcpy(p.want, p.got, p.n * 4);
            memcpy(p.got, p.x, p.n * 4);
            c->ops->layer_norm(p.got, scale, bias, 1e-5f, p.n, p.got);
            expect_same(c, &p, p.got, "in place");
        }
    }
}

static void check_add(co *c)
{
    pair p;
    EACH_PAIR(c, p) {
        pn_ops_at(0)->add(p.x, p.a, p.n, p.want);
        c->ops->add(p.x, p.a, p.n, p.got);
        expect_same(c, &p, p.got, "sum");
        c->ops->add(p.x, p.a, p.n, p.x);
        expect_same(c, &p, p.x, "in place");
    }
}

static void check_mul(co *c)
{
    pair p;
    EACH_PAIR(c, p) {
        pn_ops_at(0)->mul(p.x, p.a, p.n, p.want);
        c->ops->mul(p.x, p.a, p.n, p.got);
        expect_same(c, &p, p.got, "product");
        c->ops->mul(p.a, p.x, p.n, p.x);
        expect_same(c, &p, p.x, "in place");
    }
}

static void check_scale(co *c)
{
    pair p;
    EACH_PAIR(c, p) {
        pn_ops_at(0)->scale(p.x, -1.7f, p.n, p.want);
        c->ops->scale(p.x, -1.7f, p.n, p.got);
        expect_same(c, &p, p.got, "scaled");
        c->ops->scale(p.x, -1.7f, p.n, p.x);
        expect_same(c, &p, p.x, "in place");
    }
}

static const char *const act_names[] = { "unknown", "silu", "gelu (tanh)", "gelu (erf)", "relu" };
#define ACTS 5
/* What was measured (2.4e-7, 2.7e-7, 4.4e-7) and little more. Of subnormal results a few last places may differ. */
static const double act_relative[ACTS] = { 0, 2.6e-7, 3e-7, 4.8e-7, 0 };
#define ACT_ABSOLUTE 2e-43
#define PRODUCT 1.2e-7  /* roundings of a product of two that may differ */

/* Many points over all that is not 0 or x. */
static void sweep_activation(co *c, uint32_t kind)
{
    enum { STEPS = 1024 };
    float x[STEPS], want[STEPS], got[STEPS], from = co_unit(c);
    for (int part = -104; part < 104; part++) {
        for (int i = 0; i < STEPS; i++)
            x[i] = from + (float)part + (float)i / STEPS;
        pn_ops_at(0)->activation(kind, x, STEPS, want);
        c->ops->activation(kind, x, STEPS, got);
        for (int i = 0; i < STEPS; i++)
            if (!co_near(want[i], got[i], act_relative[kind], ACT_ABSOLUTE)) {
                co_fail(c, "%s(%.9g) = %.9g, wanted %.9g", act_names[kind], (double)x[i], (double)got[i],
                        (double)want[i]);
                break;
            }
    }
}

static void check_activation(co *c)
{
    static const float specials[] = { 0, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f, 88.7f,
                                      -88.7f, -87.4f, -103.9f, -104.5f, 14.3f, -14.3f, -13.1f, -5.6f, 20, -20, 30, -31,
                                      1, -1 };
    pair p;
    for (uint32_t kind = 0; kind < ACTS; kind++) {
        sweep_activation(c, kind);
        EACH_PAIR(c, p) {
            if (p.n >= 100 && p.kind == CO_RANDOM)
                for (size_t i = 0; i < p.n; i++)
                    p.x[i] = co_unit(c) * (i % 2 ? 120 : 12);
            if (p.n >= 100 && p.kind == CO_OUTLIER)
                for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
                    p.x[i * 4] = specials[i];
            pn_ops_at(0)->activation(kind, p.x, p.n, p.want);
            c->ops->activation(kind, p.x, p.n, p.got);
            expect_near(c, &p, act_relative[kind], NULL, kind == PN_ACT_RELU ? 0 : ACT_ABSOLUTE, act_names[kind]);
            memcpy(p.want, p.got, p.n * 4);
            for (size_t i = 0; i < p.n; i++)
                c->ops->activation(kind, p.x + i, 1, p.got + i);
            expect_same(c, &p, p.got, "alone and in a vector");
            c->ops->activation(kind, p.x, p.n, p.x);
            expect_same(c, &p, p.x, "in place");
        }
    }
}

static void check_glu(co *c)
{
    pair p;
    for (uint32_t kind = 0; kind < ACTS; kind++) {
        EACH_PAIR(c, p) {
            pn_ops_at(0)->glu(kind, p.x, p.a, p.n, p.want);
            c->ops->glu(kind, p.x, p.a, p.n, p.got);
            expect_near(c, &p, act_relative[kind] + PRODUCT, NULL, ACT_ABSOLUTE, act_names[kind]);
            /* The activation and the product must be those of the other slots. */
            c->ops->activation(kind, p.x, p.n, p.want);
            c->ops->mul(p.want, p.a, p.n, p.want);
            expect_same(c, &p, p.got, "activation, then product");
            c->ops->glu(kind, p.x, p.a, p.n, p.x);
            expect_same(c, &p, p.x, "into gate");
            co_fill(c, p.kind, p.x, p.n);
            c->ops->glu(kind, p.x, p.a, p.n, p.want);
            c->ops->glu(kind, p.x, p.a, p.n, p.a);
            expect_same(c, &p, p.a, "into up");
        }
    }
}

static void check_rope(co *c)
{
    static const size_t sizes[] = { 2, 3, 6, 16, 18, 31, 32, 34, 64, 80, 96, 100, 128 };
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (uint32_t pairing = PN_ROPE_INTERLEAVED; pairing <= PN_ROPE_HALVES; pairing++)
            for (int trial = 0; trial < 4; trial++) {
                size_t size = sizes[s], heads = 1 + co_below(c, 3), n = heads * size, half = size / 2;
                size_t dims = trial ? 2 * (1 + co_below(c, half)) : 2 * half;
                float *x = co_floats(n), *want = co_floats(n), *got = co_floats(n);
                float *cosine = co_floats(half), *sine = co_floats(half);
                co_fill(c, trial == 3 ? CO_OUTLIER : CO_RANDOM, x, n);
                for (size_t i = 0; i < half; i++) {
                    cosine[i] = cosf((float)(trial * 7 + 1) * 0.3f * (float)i);
                    sine[i] = sinf((float)(trial * 7 + 1) * 0.3f * (float)i);
                }
                memcpy(want, x, n * 4);
                memcpy(got, x, n * 4);
                pn_ops_at(0)->rope(want, heads, size, dims, pairing, cosine, sine);
                c->ops->rope(got, heads, size, dims, pairing, cosine, sine);
                for (size_t h = 0; h < heads; h++)
                    for (size_t i = 0; i < size; i++) {
                        size_t at = h * size + i, half_dims = dims / 2;
                        size_t across = i < half_dims ? i + half_dims : i - half_dims;
                        size_t other = h * size + (pairing == PN_ROPE_INTERLEAVED ? i ^ 1 : across);
                        double room = i < dims ? 2e-7 * (fabs((double)x[at]) + fabs((double)x[other])) : 0;
                        if (!co_near(want[at], got[at], 0, room)) {
                            co_fail(c, "pairing %u, %zu heads of %zu, %zu turned, element %zu: %.9g, not %.9g", pairing,
                                    heads, size, dims, at, (double)got[at], (double)want[at]);
                            i = size;
                        }
                    }
                co_release(c, x);
                co_release(c, want);
                co_release(c, got);
                co_release(c, cosine);
                co_release(c, sine);
            }
}

/* ---- keys, halves, sums, packings -------------------------------------------------------------------------------- */

static void check_store_key(co *c, int half)
{
    for (size_t l = 0; l < N_LENGTHS && lengths[l] <= 257; l++) {
        size_t n = lengths[l], j = co_below(c, PN_KV_BLOCK), size = n * PN_KV_BLOCK;
        float *x = co_floats(n), *want = co_floats(size), *got = co_floats(size);
        co_fill(c, CO_OUTLIER, x, n);
        x[n - 1] = 1e6f;
        memset(want, 0x11, size * 4);
        memset(got, 0x11, size * 4);
        if (half) {
            pn_ops_at(0)->store_key_f16(x, n, j, (uint16_t *)want);
            c->ops->store_key_f16(x, n, j, (uint16_t *)got);
        } else {
            pn_ops_at(0)->store_key_f32(x, n, j, want);
            c->ops->store_key_f32(x, n, j, got);
        }
        if (memcmp(want, got, size * 4))
            co_fail(c, "n = %zu, column %zu: the block differs", n, j);
        co_release(c, x);
        co_release(c, want);
        co_release(c, got);
    }
}

static void check_store_key_f32(co *c) { check_store_key(c, 0); }
static void check_store_key_f16(co *c) { check_store_key(c, 1); }

static void check_f32_from_f16(co *c)
{
    static uint16_t all[65537];
    static uint32_t want[65536], got[65537];
    uint16_t *odd = all + 1;    /* two bytes past what malloc would give */
    for (size_t i = 0; i < 65536; i++)
        odd[i] = (uint16_t)i;
    pn_ops_at(0)->f32_from_f16(odd, 65536, (float *)(void *)want);
    c->ops->f32_from_f16(odd, 65536, (float *)(void *)(got + 1));
    for (size_t i = 0; i < 65536; i++)
        if (want[i] != got[1 + i])
            co_fail(c, "half %04zx: %08x, wanted %08x", i, got[1 + i], want[i]);
    for (size_t n = 1; n < 40; n++) {
        float *y = co_floats(n);
        c->ops->f32_from_f16(odd + 0x3c00, n, y);
        if (memcmp(y, want + 0x3c00, n * 4))
            co_fail(c, "n = %zu: differs", n);
        co_release(c, y);
    }
}

static void check_f16_from_f32(co *c)
{
    enum { N = 1 << 16 };
    static uint32_t bits[N + 1];
    static uint16_t want[N], got[N + 1];
    /* Each exponent and sign with: ends of the mantissa, around each rounding boundary, and random. */
    for (size_t i = 0; i < N; i++) {
        uint32_t m = (uint32_t)co_next(c) & 0x7fffff;
        if (i >> 9 & 3)
            m = ((m & 0x7fe000) + (i & 0x4000 ? 0x1000 : 0) + (uint32_t)(i >> 9 & 3) - 2) & 0x7fffff;
        bits[i] = (uint32_t)(i & 0x1ff) << 23 | m;
    }
    for (uint32_t i = 0; i < 64; i++)   /* subnormals and ties of the smallest halves */
        bits[i * 97] = 0x33000000 + (i << 20) + (i & 3) - 1;
    pn_ops_at(0)->f16_from_f32((float *)(void *)bits, N, want);
    c->ops->f16_from_f32((float *)(void *)bits, N, got + 1);
    for (size_t i = 0; i < N; i++)
        if (want[i] != got[1 + i])
            co_fail(c, "float %08x: %04x, wanted %04x", bits[i], got[1 + i], want[i]);
    for (size_t n = 1; n < 40; n++) {
        float *y = co_floats((n + 1) / 2);
        uint16_t *h = (uint16_t *)y;
        if (n & 1)
            memset(h + n, 0x5a, 2);
        c->ops->f16_from_f32((float *)(void *)(bits + 1), n, h);
        if (memcmp(h, want + 1, n * 2) || (n & 1 && h[n] != 0x5a5a))
            co_fail(c, "n = %zu: differs, or wrote past the end", n);
        co_release(c, y);
    }
}

static void check_dot(co *c)
{
    pair p;
    EACH_PAIR(c, p) {
        double size = 0;
        float want, got;
        if (p.kind == CO_NEAR_MAX)
            c->ops->scale(p.x, 1e-4f, p.n, p.x);
        for (size_t i = 0; i < p.n; i++)
            size += fabs((double)p.x[i] * (double)p.a[i]);
        want = pn_ops_at(0)->dot(p.x, p.a, p.n);
        got = c->ops->dot(p.x, p.a, p.n);
        if (!co_near(want, got, 1e-7, 1e-6 * size + 1e-42))
            co_fail(c, "%s, n = %zu: %.9g, wanted %.9g", co_kinds[p.kind], p.n, (double)got, (double)want);
    }
}

static void compare_packed(co *c, const pair *p, size_t bytes, void (*pack_c)(const float *, size_t, void *),
                           void (*pack)(const float *, size_t, void *), const char *what)
{
    unsigned char *want = aligned_alloc(64, bytes), *got = aligned_alloc(64, bytes + 64);
    if (!want || !got)
        exit(2);
    memset(want, 0x77, bytes);
    memset(got, 0x88, bytes + 64);
    pack_c(p->x, p->n, want);
    pack(p->x, p->n, got);
    for (size_t i = 0; i < bytes; i++)
        if (want[i] != got[i]) {
            co_fail(c, "%s, %s, n = %zu: byte %zu of %zu is %02x, wanted %02x", what, co_kinds[p->kind], p->n, i, bytes,
                    got[i], want[i]);
            break;
        }
    for (size_t i = bytes; i < bytes + 64; i++)
        if (got[i] != 0x88) {
            co_fail(c, "%s, n = %zu: wrote past the end", what, p->n);
            break;
        }
    free(want);
    free(got);
}

static void check_pack_f32(co *c)
{
    pair p;
    EACH_PAIR(c, p)
        compare_packed(c, &p, (p.n + 15) / 16 * 64, pn_ops_at(0)->pack_f32, c->ops->pack_f32, "as it is");
}

static void check_pack_i16(co *c)
{
    pair p;
    EACH_PAIR(c, p) {
        size_t bytes = pn_i16_layout_of(p.n).bytes, at = co_below(c, p.n);
        void (*want)(const float *, size_t, void *) = pn_ops_at(0)->pack_i16, (*got)(const float *, size_t, void *) =
            c->ops->pack_i16;
        compare_packed(c, &p, bytes, want, got, "as it is");
        if (p.kind == CO_RANDOM) {  /* with a largest of 32767 the others are ties */
            for (size_t i = 0; i < p.n; i++)
                p.x[i] = (float)(int)(co_unit(c) * 32000) + 0.5f;
            p.x[at] = -32767;
            compare_packed(c, &p, bytes, want, got, "ties");
            for (size_t i = 0; i < p.n; i++)
                p.x[i] = i % 7 ? 0.3f : i % 2 ? 5 : -5;
            compare_packed(c, &p, bytes, want, got, "several largest");
        }
        p.x[at] = p.n % 3 == 0 ? NAN : p.n % 3 == 1 ? INFINITY : -INFINITY;
        compare_packed(c, &p, bytes, want, got, "not finite");
        co_fill(c, CO_ZERO, p.x, p.n);
        p.x[at] = p.n % 2 ? PN_I16_TINY : nextafterf(PN_I16_TINY, 0);
        compare_packed(c, &p, bytes, want, got, "around the smallest");
    }
}

static void check_pack_i8(co *c)
{
    pair p;
    EACH_PAIR(c, p) {
        size_t bytes = pn_i8_bytes(p.n), at = co_below(c, p.n);
        void (*want)(const float *, size_t, void *) = pn_ops_at(0)->pack_i8, (*got)(const float *, size_t, void *) =
            c->ops->pack_i8;
        compare_packed(c, &p, bytes, want, got, "as it is");
        if (p.kind == CO_RANDOM) {  /* with a largest of 127 the others are ties */
            for (size_t i = 0; i < p.n; i++)
                p.x[i] = i % 32 == at % 32 ? -127 : (float)(int)(co_unit(c) * 126) + 0.5f;
            compare_packed(c, &p, bytes, want, got, "ties");
        }
        p.x[at] = p.n % 3 == 0 ? NAN : p.n % 3 == 1 ? INFINITY : -INFINITY;
        compare_packed(c, &p, bytes, want, got, "not finite");
        co_fill(c, CO_ZERO, p.x, p.n);
        p.x[at] = p.n % 2 ? PN_I8_TINY : nextafterf(PN_I8_TINY, 0);
        compare_packed(c, &p, bytes, want, got, "around the smallest");
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

typedef struct check {
    size_t offset;
    const char *name;
    void (*run)(co *c);
} check;

#define SLOT(name) { offsetof(pn_ops, name), #name, check_##name }

static const check checks[] = {
    SLOT(rms_norm), SLOT(layer_norm), SLOT(add), SLOT(mul), SLOT(scale), SLOT(activation), SLOT(glu), SLOT(rope),
    SLOT(attend_f32), SLOT(attend_f16), SLOT(store_key_f32), SLOT(store_key_f16), SLOT(f16_from_f32),
    SLOT(f32_from_f16), SLOT(dot), SLOT(pack_f32), SLOT(pack_i16), SLOT(pack_i8),
};
#define N_CHECKS (sizeof checks / sizeof checks[0])

_Static_assert(sizeof(pn_ops) == offsetof(pn_ops, rms_norm) + N_CHECKS * sizeof(void (*)(void)),
               "a slot of pn_ops has no test here");

int check_ops(uint64_t seed, int bench)
{
    uint64_t features = pn_cpu_detect();
    const pn_ops *ops;
    int bad = 0;
    for (size_t l = 0; (ops = pn_ops_at(l)) != NULL; l++) {
        if (ops->cpu_features & ~features) {
            printf("skip - ops.%s: this CPU lacks its features\n", ops->level);
            continue;
        }
        for (size_t i = 0; i < N_CHECKS; i++) {
            co c = { .ops = ops, .slot = checks[i].name, .seed = seed, .state = seed + i };
            if (checks[i].offset != checks[0].offset + i * sizeof(void (*)(void)))
                co_fail(&c, "two slots share a test, or they are out of order");
            checks[i].run(&c);
            printf("%sok - ops.%s.%s\n", c.failures ? "not " : "", ops->level, checks[i].name);
            bad += c.failures != 0;
        }
    }
    if (bench)
        bench_ops(features);
    return bad;
}

/* The core's operations against what mathematics and kit/pack.h say, at every level of this CPU. (checkasm compares the
 * levels with C; this compares all of them with something else.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cpu.h>
#include <math.h>
#include <ops.h>
#include <pantheon/kit/pack.h>
#include <stdlib.h>

static uint64_t seed = 12345;

static float noise(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)((double)(seed >> 11) * 0x1p-52 - 1.0);
}

/* The levels that this CPU has, one after the other; NULL at the end. */
static const pn_ops *level(size_t index)
{
    uint64_t features = pn_cpu_detect();
    const pn_ops *ops;
    for (size_t i = 0; (ops = pn_ops_at(i)) != NULL; i++)
        if (!(ops->cpu_features & ~features) && index-- == 0)
            return ops;
    return NULL;
}

#define EACH_LEVEL(ops) \
    const pn_ops *ops;  \
    for (size_t level_ = 0; (ops = level(level_)) != NULL; level_++)

static void near(const pn_ops *ops, double want, double got, double room)
{
    if (!(fabs(want - got) <= room))
        fail_msg("level %s: %.9g, wanted %.9g within %.3g", ops->level, got, want, room);
}

static void test_choice(void **state)
{
    (void)state;
    assert_string_equal(pn_ops_for(0)->level, "c");
    assert_ptr_equal(pn_ops_for(0), pn_ops_at(0));
    assert_int_equal(pn_ops_at(0)->cpu_features, 0);
    assert_null(pn_ops_at(100));
#ifdef PN_HAVE_X86
    assert_string_equal(pn_ops_for(PN_CPU_AVX2)->level, "c");
    assert_string_equal(pn_ops_for(PN_LEVEL_AVX2)->level, "avx2");
    assert_string_equal(pn_ops_for(PN_LEVEL_AVX2 | PN_CPU_AVX512)->level, "avx2");
    assert_string_equal(pn_ops_for(PN_LEVEL_AVX512)->level, "avx512");
    assert_string_equal(pn_ops_for(~UINT64_C(0))->level, "avx512");
    assert_string_equal(pn_ops_for(PN_CPU_AVX512 | PN_CPU_AVX512_VNNI)->level, "c");
#endif
}

static void test_norms(void **state)
{
    enum { N = 601 };
    float x[N], s[N], b[N], y[N];
    double sum = 0, squares = 0, mean, variance;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        x[i] = noise() * 5 + 1;
        s[i] = noise();
        b[i] = noise();
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    mean = sum / N;
    variance = squares / N - mean * mean;
    EACH_LEVEL(ops) {
        ops->rms_norm(x, s, 0.5f, N, y);
        for (size_t i = 0; i < N; i++)
            near(ops, (double)x[i] / sqrt(squares / N + 0.5) * (double)s[i], (double)y[i], 1e-6);
        ops->layer_norm(x, s, b, 0.5f, N, y);
        for (size_t i = 0; i < N; i++)
            near(ops, ((double)x[i] - mean) / sqrt(variance + 0.5) * (double)s[i] + (double)b[i], (double)y[i], 2e-6);
    }
}

static void test_activations(void **state)
{
    /* Values to 12 digits from a program for any precision. */
    static const struct {
        uint32_t kind;
        float x;
        double want;
    } known[] = {
        { PN_ACT_SILU, 0.5f, 0.311229665601 },
        { PN_ACT_SILU, 1.0f, 0.73105857863 },
        { PN_ACT_SILU, -1.0f, -0.26894142137 },
        { PN_ACT_SILU, 5.0f, 4.96653574538 },
        { PN_ACT_SILU, -5.0f, -0.0334642546214 },
        { PN_ACT_SILU, -20.0f, -4.12230723638e-8 },
        { PN_ACT_SILU, -60.0f, -5.25390645762e-25 },
        { PN_ACT_SILU, -90.0f, -7.37461136159e-38 },
        { PN_ACT_SILU, 1e-10f, 5.00000006701e-11 },
        { PN_ACT_GELU_TANH, 0.5f, 0.345714009825 },
        { PN_ACT_GELU_TANH, 1.0f, 0.841191990608 },
        { PN_ACT_GELU_TANH, -1.0f, -0.158808009392 },
        { PN_ACT_GELU_TANH, 3.0f, 2.99636260792 },
        { PN_ACT_GELU_TANH, -3.0f, -0.00363739208177 },
        { PN_ACT_GELU_TANH, -6.0f, -8.43964670076e-11 },
        { PN_ACT_GELU_TANH, -8.5f, -1.01744473086e-24 },
        { PN_ACT_GELU_TANH, 1e-10f, 5.00000006716e-11 },
        { PN_ACT_GELU_ERF, 0.5f, 0.345731230637 },
        { PN_ACT_GELU_ERF, 1.0f, 0.841344746069 },
        { PN_ACT_GELU_ERF, -1.0f, -0.158655253931 },
        { PN_ACT_GELU_ERF, 3.0f, 2.99595030591 },
        { PN_ACT_GELU_ERF, -3.0f, -0.00404969409489 },
        { PN_ACT_GELU_ERF, -6.0f, -5.91952587023e-9 },
        { PN_ACT_GELU_ERF, -13.0f, -7.95231371941e-38 },
        { PN_ACT_GELU_ERF, 1e-10f, 5.00000006716e-11 },
        { PN_ACT_RELU, 2.5f, 2.5 },
        { PN_ACT_RELU, -2.5f, 0 },
    };
    (void)state;
    EACH_LEVEL(ops) {
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            float y, up = 3, z;
            ops->activation(known[i].kind, &known[i].x, 1, &y);
            near(ops, known[i].want, (double)y, 1e-6 * fabs(known[i].want) + 1e-43);
            ops->glu(known[i].kind, &known[i].x, &up, 1, &z);
            near(ops, 3 * known[i].want, (double)z, 3e-6 * fabs(known[i].want) + 3e-43);
        }
        for (uint32_t kind = PN_ACT_SILU; kind <= PN_ACT_RELU; kind++) {
            float x[3] = { NAN, INFINITY, 0 }, y[3];
            ops->activation(kind, x, 3, y);
            assert_true(isnan(y[0]) && isinf(y[1]) && y[2] == 0);
        }
    }
}

/* Turning q by position a and k by position b leaves a product that depends on a - b alone; lengths stay. */
static void test_rope(void **state)
{
    enum { D = 80, DIMS = 72 };
    float q[D], k[D], turned_q[2][D], turned_k[2][D], c[DIMS / 2], s[DIMS / 2];
    (void)state;
    for (size_t i = 0; i < D; i++) {
        q[i] = noise();
        k[i] = noise();
    }
    EACH_LEVEL(ops) {
        for (uint32_t pairing = PN_ROPE_INTERLEAVED; pairing <= PN_ROPE_HALVES; pairing++) {
            double product[2] = { 0, 0 }, size = 0, turned = 0;
            for (int shift = 0; shift < 2; shift++)
                for (int which = 0; which < 2; which++) {
                    float *to = which ? turned_k[shift] : turned_q[shift];
                    double position = (which ? 3 : 7) + shift * 11;
                    for (size_t i = 0; i < DIMS / 2; i++) {
                        c[i] = (float)cos(position * pow(100, -2.0 * (double)i / DIMS));
                        s[i] = (float)sin(position * pow(100, -2.0 * (double)i / DIMS));
                    }
                    memcpy(to, which ? k : q, sizeof q);
                    ops->rope(to, 1, D, DIMS, pairing, c, s);
                }
            for (size_t i = 0; i < D; i++) {
                product[0] += (double)turned_q[0][i] * (double)turned_k[0][i];
                product[1] += (double)turned_q[1][i] * (double)turned_k[1][i];
                size += (double)q[i] * (double)q[i];
                turned += (double)turned_q[1][i] * (double)turned_q[1][i];
            }
            near(ops, product[0], product[1], 1e-5);
            near(ops, size, turned, 1e-5);
            assert_memory_equal(q + DIMS, turned_q[0] + DIMS, (D - DIMS) * sizeof *q);
            assert_true(product[0] != 0 && turned_q[0][0] != q[0]);
        }
        /* A quarter turn: (a, b) -> (-b, a). */
        float x[4] = { 1, 2, 3, 4 }, h[4] = { 1, 2, 3, 4 }, zero[2] = { 0, 0 }, one[2] = { 1, 1 };
        const float want_x[4] = { -2, 1, -4, 3 }, want_h[4] = { -3, -4, 1, 2 };
        ops->rope(x, 1, 4, 4, PN_ROPE_INTERLEAVED, zero, one);
        ops->rope(h, 1, 4, 4, PN_ROPE_HALVES, zero, one);
        assert_memory_equal(x, want_x, sizeof x);
        assert_memory_equal(h, want_h, sizeof h);
    }
}

/* Two blocks of keys against softmax written out in double. */
static void test_attention(void **state)
{
    enum { D = 40, DV = 24, N = 7, KEYS = 2 * PN_KV_BLOCK };
    static float k[KEYS][D], v[KEYS][DV], kb[2][D * PN_KV_BLOCK];
    static uint16_t kh[2][D * PN_KV_BLOCK], vh[2][PN_KV_BLOCK * DV];
    float q[N][D];
    (void)state;
    EACH_LEVEL(ops) {
        for (size_t j = 0; j < KEYS; j++) {
            uint16_t h[D];
            for (size_t i = 0; i < D; i++)
                k[j][i] = noise() * 3;
            for (size_t i = 0; i < DV; i++)
                v[j][i] = noise();
            ops->f16_from_f32(k[j], D, h);  /* both functions then see the same numbers */
            ops->f32_from_f16(h, D, k[j]);
            ops->f16_from_f32(v[j], DV, vh[j / PN_KV_BLOCK] + j % PN_KV_BLOCK * DV);
            ops->f32_from_f16(vh[j / PN_KV_BLOCK] + j % PN_KV_BLOCK * DV, DV, v[j]);
            ops->store_key_f32(k[j], D, j % PN_KV_BLOCK, kb[j / PN_KV_BLOCK]);
            ops->store_key_f16(k[j], D, j % PN_KV_BLOCK, kh[j / PN_KV_BLOCK]);
        }
        for (size_t t = 0; t < N; t++)
            for (size_t i = 0; i < D; i++)
                q[t][i] = noise();
        for (int run = 0; run < 4; run++) {
            float m[N], l[N], acc[N][DV], *accs[N], softcap = run & 2 ? 2 : 0;
            const float *qs[N];
            uint8_t begin[2][N], end[2][N];
            for (size_t t = 0; t < N; t++) {
                m[t] = -INFINITY;
                l[t] = 0;
                memset(acc[t], 0, sizeof acc[t]);
                qs[t] = q[t];
                accs[t] = acc[t];
                begin[0][t] = (uint8_t)(t * 5);
                end[0][t] = PN_KV_BLOCK;
                begin[1][t] = 0;
                end[1][t] = (uint8_t)(1 + t * 9);
            }
            for (size_t b = 0; b < 2; b++) {
                pn_attend a = { .d = D, .dv = DV, .n = N, .q = qs, .begin = begin[b], .end = end[b], .m = m, .l = l,
                                .acc = accs, .scale = 0.25f, .softcap = softcap };
                a.k = run & 1 ? (const void *)kh[b] : kb[b];
                a.v = run & 1 ? (const void *)vh[b] : v[b * PN_KV_BLOCK];
                (run & 1 ? ops->attend_f16 : ops->attend_f32)(&a);
            }
            for (size_t t = 0; t < N; t++) {
                double sum = 0, want[DV] = { 0 };
                for (size_t j = begin[0][t]; j < PN_KV_BLOCK + (size_t)end[1][t]; j++) {
                    double s = 0, p;
                    for (size_t i = 0; i < D; i++)
                        s += (double)q[t][i] * (double)k[j][i] * 0.25;
                    p = exp(softcap > 0 ? (double)softcap * tanh(s / (double)softcap) : s);
                    sum += p;
                    for (size_t i = 0; i < DV; i++)
                        want[i] += p * (double)v[j][i];
                }
                for (size_t i = 0; i < DV; i++)
                    near(ops, want[i] / sum, (double)(acc[t][i] / l[t]), 2e-6);
            }
        }
    }
}

static void test_halves(void **state)
{
    static const struct {
        float x;
        uint16_t want;
    } known[] = {
        { 0, 0 }, { -0.0f, 0x8000 }, { 1, 0x3c00 }, { -2, 0xc000 }, { 65504, 0x7bff }, { 65519.99f, 0x7bff },
        { 65520, 0x7c00 }, { INFINITY, 0x7c00 }, { -INFINITY, 0xfc00 }, { 1e10f, 0x7c00 },
        { 0x1p-14f, 0x0400 }, { 0x1p-24f, 1 },
        { 0x1p-25f, 0 }, { 0x1.8p-25f, 1 }, { 0x1.8p-24f, 2 }, { 0x1.4p-23f, 2 }, { 0x1.cp-23f, 4 }, { 1e-10f, 0 },
        { 0x1.ffcp-15f, 0x0400 }, { 0x1.ff8p-15f, 0x03ff }, { 0x1.002p0f, 0x3c00 }, { 0x1.006p0f, 0x3c02 },
        { 0x1.002002p0f, 0x3c01 }, { 0x1.ffep0f, 0x4000 },
    };
    (void)state;
    EACH_LEVEL(ops) {
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            uint16_t h;
            ops->f16_from_f32(&known[i].x, 1, &h);
            if (h != known[i].want)
                fail_msg("level %s: %a is half %04x, wanted %04x", ops->level, (double)known[i].x, h, known[i].want);
        }
        for (uint32_t i = 0; i < 65536; i++) {
            uint16_t h = (uint16_t)i, back;
            uint32_t exponent = i >> 10 & 31, mantissa = i & 1023;
            double want = exponent ? ldexp(1024 + mantissa, (int)exponent - 25) : ldexp(mantissa, -24);
            float x;
            ops->f32_from_f16(&h, 1, &x);
            ops->f16_from_f32(&x, 1, &back);
            if (exponent == 31) {
                assert_true(mantissa ? isnan(x) : isinf(x));
                assert_int_equal(back, mantissa ? h | 0x200 : h);
                continue;
            }
            assert_true((double)x == (i & 0x8000 ? -want : want));
            assert_int_equal(back, h);
        }
    }
}

static void test_dot(void **state)
{
    enum { N = 5003 };
    static float a[N], b[N];
    double want = 0, size = 0;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        a[i] = noise();
        b[i] = noise() + 0.3f;
        want += (double)a[i] * (double)b[i];
        size += fabs((double)a[i] * (double)b[i]);
    }
    EACH_LEVEL(ops) {
        near(ops, want, (double)ops->dot(a, b, N), 3e-7 * size);
        assert_true(ops->dot(a, b, 0) == 0);
        assert_true(ops->dot(a, b, 1) == a[0] * b[0]);
    }
    near(pn_ops_at(0), want, (double)pn_ops_at(0)->dot(a, b, N), 6e-8 * fabs(want));  /* reference: one rounding */
}

/* What kit/pack.h promises about one packed column. */
static void check_packed(const pn_ops *ops, const float *x, size_t cols)
{
    pn_i16_layout l = pn_i16_layout_of(cols);
    unsigned char *p = aligned_alloc(64, l.bytes), *used = calloc(l.bytes, 1);
    const float *scale = (const float *)(void *)(p + l.scale), *sum32 = (const float *)(void *)(p + l.sum32);
    const float *sum16 = (const float *)(void *)(p + l.sum16);
    const int16_t *q = (const int16_t *)(void *)(p + l.q);
    assert_non_null(used);
    memset(p, 0xee, l.bytes);
    ops->pack_i16(x, cols, p);
    for (size_t c = 0; c < l.n256; c++) {
        float largest = 0;
        int reached = 0;
        for (size_t k = c * 256; k < cols && k < c * 256 + 256; k++)
            largest = fabsf(x[k]) > largest ? fabsf(x[k]) : largest;
        assert_true(scale[c] == (largest < PN_I16_TINY ? 0 : largest / 32767.0f));
        for (size_t k = c * 256; k < cols && k < c * 256 + 256; k++) {
            int v = q[pn_i16_place(k)];
            assert_in_range(v + 32767, 0, 65534);
            reached |= v == 32767 || v == -32767;
            near(ops, (double)x[k], (double)scale[c] * v, (double)scale[c] * 0.51 + 1e-30);
        }
        assert_int_equal(reached, largest >= PN_I16_TINY);
    }
    for (size_t b = 0; b < l.n32; b++) {
        int sum[2] = { 0, 0 };
        for (size_t k = 0; k < 32; k++) {
            sum[k / 16] += q[b * 32 + k];
            if (b * 32 + k >= cols)
                assert_int_equal(q[pn_i16_place(b * 32 + k)], 0);
            assert_int_equal(256 * (int8_t)p[l.high + b * 32 + k] + p[l.low + b * 32 + k], q[pn_i16_place(b * 32 + k)]);
        }
        assert_true(sum16[2 * b] == (float)sum[0] && sum16[2 * b + 1] == (float)sum[1]);
        assert_true(sum32[b] == (float)(sum[0] + sum[1]));
    }
    memset(used + l.scale, 1, l.n256 * 4);
    memset(used + l.sum32, 1, l.n32 * 4);
    memset(used + l.sum16, 1, l.n32 * 8);
    memset(used + l.q, 1, l.n32 * 64);
    memset(used + l.high, 1, l.n32 * 32);
    memset(used + l.low, 1, l.n32 * 32);
    for (size_t i = 0; i < l.bytes; i++)
        if (!used[i])
            assert_int_equal(p[i], 0);
    free(p);
    free(used);
}

static void test_pack_i16(void **state)
{
    enum { N = 1100 };
    static float x[N];
    (void)state;
    EACH_LEVEL(ops) {
        for (size_t cols = 1; cols <= N; cols += cols < 70 ? 1 : 47) {
            for (size_t i = 0; i < cols; i++)
                x[i] = noise() * (i < 256 ? 3e38f : i < 512 ? 1e-31f : i < 768 ? 1 : 0);
            if (cols > 800)
                x[800] = -1e-30f;
            check_packed(ops, x, cols);
        }
    }
}

/* A column that is not finite says so by its scale, in that chunk alone. */
static void test_pack_i16_not_finite(void **state)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    static _Alignas(64) unsigned char p[4096];
    static float x[512];
    (void)state;
    assert_true(pn_i16_layout_of(512).bytes <= sizeof p);
    EACH_LEVEL(ops) {
        for (size_t b = 0; b < 3; b++)
            for (size_t at = 0; at < 512; at += 37) {
                const float *scale = (const float *)(void *)p;
                for (size_t i = 0; i < 512; i++)
                    x[i] = noise();
                x[at] = bad[b];
                ops->pack_i16(x, 512, p);
                assert_true(isnan(scale[at / 256]));
                assert_true(scale[1 - at / 256] > 0);
            }
    }
}

/* What kit/pack.h promises about a column of "i8"; a record that is not finite says so by a scale, alone. */
static void test_pack_i8(void **state)
{
    enum { N = 600 };
    static _Alignas(64) unsigned char p[4096];
    static float x[N];
    (void)state;
    EACH_LEVEL(ops) {
        for (size_t cols = 1; cols <= N; cols += cols < 70 ? 1 : 47) {
            size_t bytes = pn_i8_bytes(cols), bad = cols > 300 ? 290 : N;
            const pn_i8_chunk *c = (const void *)p;
            assert_true(bytes + 64 <= sizeof p);
            for (size_t i = 0; i < cols; i++)
                x[i] = noise() * (i < 64 ? 3e38f : i < 128 ? 1e-31f : i < 192 ? 1 : i < 256 ? 0 : 1e-3f);
            if (bad < cols)
                x[bad] = cols % 2 ? NAN : -INFINITY;
            memset(p, 0xee, sizeof p);
            ops->pack_i8(x, cols, p);
            for (size_t k = 0; k < (cols + 255) / 256 * 256; k++) {
                const pn_i8_chunk *r = c + k / 256;
                float scale = r->scale[k % 256 / 32];
                int q = r->q[k % 256];
                assert_in_range(q + 127, 0, 254);
                if (k >= cols)
                    assert_int_equal(q, 0);
                else if (k / 32 == bad / 32)
                    assert_true(isnan(scale) && q == 0);
                else
                    near(ops, (double)x[k], (double)scale * q, (double)scale * 0.5001 + 1e-30);
            }
            for (size_t i = bytes; i < bytes + 64; i++)
                assert_int_equal(p[i], 0xee);
        }
    }
}

static void test_pack_f32(void **state)
{
    float x[40], out[48];
    (void)state;
    EACH_LEVEL(ops) {
        for (size_t cols = 1; cols <= 40; cols++) {
            for (size_t i = 0; i < 48; i++)
                out[i] = -7;
            for (size_t i = 0; i < cols; i++)
                x[i] = noise();
            ops->pack_f32(x, cols, out);
            for (size_t i = 0; i < 48; i++)
                assert_true(out[i] == (i < cols ? x[i] : i < (cols + 15) / 16 * 16 ? 0 : -7));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),   cmocka_unit_test(test_norms),     cmocka_unit_test(test_activations),
        cmocka_unit_test(test_rope),     cmocka_unit_test(test_attention), cmocka_unit_test(test_halves),
        cmocka_unit_test(test_dot),      cmocka_unit_test(test_pack_i16),  cmocka_unit_test(test_pack_i16_not_finite),
        cmocka_unit_test(test_pack_i8),  cmocka_unit_test(test_pack_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

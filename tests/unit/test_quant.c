/* Quantization types by their published definitions: single blocks, every half, errors of quantizing against an
 * independent implementation's blocks, refusals, byte order; and what their kernels ask for. */
#include "fixture.h"

#include <math.h>
#include <pantheon/kit/half.h>

#define GOLDEN_ELEMENTS (6 * 1024)

static pn_runtime *rt;

static const pn_quant *type_of(const char *name)
{
    const pn_quant *q = pn_runtime_find(rt, PN_KIND_QUANT, name);
    if (!q) fail_msg("the type %s is not registered", name);
    return q;
}

/* ---- published values -------------------------------------------------------------------------------------------- */

/* One block of bytes (37 i + 11) mod 256, its first half-precision field 0.5 and the second 0.25. */
typedef struct one_block {
    const char *name;
    size_t bytes, halfs;
    float first[8], last[2], sum;
} one_block;

static const one_block blocks[] = {
    {"q4_0", 18, 1, {-1.5f, 1, 3.5f, -2, 0.5f, 3, -2.5f, 0}, {-1.5f, 0}, -10.5f},
    {"q4_1", 20, 2, {7.75f, 2.25f, 4.75f, 7.25f, 1.75f, 4.25f, 6.75f, 1.25f}, {5.25f, 6.25f}, 130.5f},
    {"q8_0", 34, 1, {42.5f, 61, -48.5f, -30, -11.5f, 7, 25.5f, 44}, {-42.5f, -24}, -88},
};

static void make_block(const one_block *b, uint8_t *block)
{
    static const uint16_t fields[] = {0x3800, 0x3400};
    for (size_t i = 0; i < b->bytes; i++) block[i] = (uint8_t)(37 * i + 11);
    memcpy(block, fields, 2 * b->halfs);
}

static void test_one_block(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof blocks / sizeof *blocks; t++) {
        const one_block *b = &blocks[t];
        const pn_quant *q = type_of(b->name);
        uint8_t block[64];
        float x[32], sum = 0;
        assert_int_equal(q->block_bytes, b->bytes);
        assert_int_equal(q->block_elems, 32);
        make_block(b, block);
        q->dequantize(block, x, 32);
        for (size_t i = 0; i < 32; i++) sum += x[i];
        assert_memory_equal(x, b->first, sizeof b->first);
        assert_memory_equal(x + 30, b->last, sizeof b->last);
        assert_true(sum == b->sum);
        assert_memory_equal(&sum, &b->sum, sizeof sum);
    }
}

/* Only the halfs are wider than a byte. */
static void test_byteswap(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof blocks / sizeof *blocks; t++) {
        uint8_t block[64], swapped[64];
        make_block(&blocks[t], block);
        memcpy(swapped, block, sizeof swapped);
        type_of(blocks[t].name)->byteswap(swapped, 32);
        for (size_t i = 0; i < blocks[t].bytes; i++)
            assert_int_equal(swapped[i], block[i < 2 * blocks[t].halfs ? i ^ 1 : i]);
    }
    uint8_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8}, want32[] = {4, 3, 2, 1, 8, 7, 6, 5},
            want16[] = {3, 4, 1, 2, 7, 8, 5, 6};
    type_of("f32")->byteswap(numbers, 2);
    assert_memory_equal(numbers, want32, 8);
    type_of("f16")->byteswap(numbers, 4);
    assert_memory_equal(numbers, want16, 8);
}

/* ---- halfs ------------------------------------------------------------------------------------------------------- */

/* The number that a half stands for, by its definition. */
static double half_value(unsigned h)
{
    const int exponent = (int)(h >> 10 & 31), mantissa = (int)(h & 1023);
    const double size = exponent == 31 ? INFINITY
                        : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                                       : ldexp(mantissa, -24);
    return h & 0x8000 ? -size : size;
}

static void test_every_half(void **state)
{
    (void)state;
    const pn_quant *q = type_of("f16");
    for (unsigned h = 0; h < 65536; h++) {
        const uint16_t half = (uint16_t)h;
        uint16_t back;
        float x;
        q->dequantize(&half, &x, 1);
        if ((h & 0x7fff) > 0x7c00) {
            assert_true(isnan(x));
            assert_true(isnan(pn_half_to_float(pn_float_to_half(x))));
            continue;
        }
        assert_true((double)x == half_value(h) && !signbit(x) == !(h & 0x8000));
        assert_int_equal(q->quantize(&x, NULL, &back, 1, NULL), PN_OK);
        assert_int_equal(back, half);
    }
}

/* Between two neighbours: to the nearer, and from the middle to the even one. */
static void test_half_rounding(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x7c00; h++) {
        const double low = half_value(h), high = h == 0x7bff ? 65536.0 : half_value(h + 1);
        const float middle = (float)((low + high) / 2); /* exact: one bit more than a half */
        assert_int_equal(pn_float_to_half(middle), h & 1 ? h + 1 : h);
        assert_int_equal(pn_float_to_half(nextafterf(middle, 0)), h);
        assert_int_equal(pn_float_to_half(nextafterf(middle, INFINITY)), h + 1);
        assert_int_equal(pn_float_to_half(-middle), 0x8000 | (h & 1 ? h + 1 : h));
    }
    assert_int_equal(pn_float_to_half(INFINITY), 0x7c00);
    assert_int_equal(pn_float_to_half(-INFINITY), 0xfc00);
    assert_int_equal(pn_float_to_half(3e38f), 0x7c00);
    assert_int_equal(pn_float_to_half(1e-45f), 0);
}

/* ---- quantizing -------------------------------------------------------------------------------------------------- */

static void read_floats(const char *path, float *x, size_t n)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    assert_int_equal(fread(x, sizeof *x, n, f), n);
    fclose(f);
}

static double square_error(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

/* At most 2 % above the error of the blocks that an independent quantizer made of the same numbers. */
static void test_quantize_golden(void **state)
{
    (void)state;
    static const char *const names[] = {"f16", "q8_0", "q4_0", "q4_1"};
    static float source[GOLDEN_ELEMENTS], golden[GOLDEN_ELEMENTS], ours[GOLDEN_ELEMENTS];
    read_floats("tests/data/quant/f32.f32", source, GOLDEN_ELEMENTS);
    for (size_t t = 0; t < sizeof names / sizeof *names; t++) {
        const pn_quant *q = type_of(names[t]);
        char path[64];
        uint8_t *row = malloc(GOLDEN_ELEMENTS / q->block_elems * q->block_bytes);
        snprintf(path, sizeof path, "tests/data/quant/%s.f32", names[t]);
        read_floats(path, golden, GOLDEN_ELEMENTS);
        assert_ok(q->quantize(source, NULL, row, GOLDEN_ELEMENTS, err));
        q->dequantize(row, ours, GOLDEN_ELEMENTS);
        free(row);
        const double want = square_error(source, golden, GOLDEN_ELEMENTS),
                     got = square_error(source, ours, GOLDEN_ELEMENTS);
        if (!(got <= 1.02 * 1.02 * want))
            fail_msg("%s: squared error %g, independent blocks have %g", names[t], got, want);
    }
}

static void test_quantize_refuses(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof blocks / sizeof *blocks; t++) {
        static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1.1e7f};
        const pn_quant *q = type_of(blocks[t].name);
        uint8_t block[64];
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            float x[32] = {1.0f};
            pn_error err = {0};
            x[17] = bad[i];
            assert_int_equal(q->quantize(x, NULL, block, 32, &err), PN_E_RANGE);
            assert_true(err.message[0]);
        }
    }
}

/* Numbers so small that a half holds no scale for them come back as zero, not as NaN. */
static void test_quantize_tiny(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof blocks / sizeof *blocks; t++) {
        const pn_quant *q = type_of(blocks[t].name);
        for (float size = 1e-3f; size > 0; size /= 16) {
            uint8_t block[64];
            float x[32], y[32];
            for (size_t i = 0; i < 32; i++) x[i] = size * (i % 2 ? -1.0f : 1.0f) / (float)(1 + i);
            assert_ok(q->quantize(x, NULL, block, 32, err));
            q->dequantize(block, y, 32);
            for (size_t i = 0; i < 32; i++) assert_true(fabsf(y[i] - x[i]) <= 0.2f * size + 1e-6f);
        }
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Each type has a kernel in C and one for each level of vectors, exact, and if it is of integers fast ones too; their
 * scratch is bounded whatever the row's length. */
static void test_kernels(void **state)
{
    (void)state;
    static const char *const names[] = {"f32", "f16", "q8_0", "q4_0", "q4_1"};
    for (size_t t = 0; t < sizeof names / sizeof *names; t++) {
        pn_registration g = {.struct_size = sizeof g};
        uint64_t levels[2][4];
        size_t n[2] = {0, 0}, of_integers = t >= 2;
        for (size_t i = 0; pn_runtime_registration(rt, i, &g, NULL) == PN_OK; i++) {
            const pn_kernel *k = g.item;
            if (g.kind != PN_KIND_KERNEL || strcmp(k->quant, names[t])) continue;
            const size_t fast = !strcmp(k->packing, "i8");
            assert_true(n[fast] < 4);
            assert_int_equal(k->max_columns, 512);
            assert_true(!k->scratch_bytes || k->scratch_bytes(65536, 512) <= 256 << 10);
            assert_true(!k->scratch_bytes || k->scratch_bytes(65536, 512) == k->scratch_bytes(32, 512));
            levels[fast][n[fast]++] = k->cpu_features;
        }
        for (size_t fast = 0; fast <= of_integers; fast++) {
            assert_true(n[fast] >= 1 && levels[fast][0] == 0);
#ifdef PN_HAVE_X86
            assert_int_equal(n[fast], of_integers ? 4 : 3);
            assert_true(levels[fast][1] == PN_LEVEL_AVX2 && levels[fast][2] == PN_LEVEL_AVX512);
            assert_true(!of_integers || levels[fast][3] == PN_LEVEL_AMX);
#endif
        }
        assert_true(of_integers || n[1] == 0);
    }
}

static int set_up(void **state)
{
    (void)state;
    rt = fixture_runtime(NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pn_runtime_destroy(rt);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_block),       cmocka_unit_test(test_byteswap),
        cmocka_unit_test(test_every_half),      cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_quantize_golden), cmocka_unit_test(test_quantize_refuses),
        cmocka_unit_test(test_quantize_tiny),   cmocka_unit_test(test_kernels),
    };
    return cmocka_run_group_tests_name("quant", tests, set_up, tear_down);
}

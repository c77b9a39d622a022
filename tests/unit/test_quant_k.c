/* Types with superblocks of 256 by their published definitions: single blocks, byte order, errors of quantizing against
 * an independent implementation's blocks, importance, refusals, small numbers; q8_k by its own definition. */
#include "fixture.h"

#include <math.h>
#include <string.h>

#define ELEMS 256
#define GOLDEN_ELEMENTS (6 * 1024)

static pn_runtime *rt;

/* One block of bytes (37 i + 11) mod 256, the half `d` 0.5 and the half `dmin` (if it has one) 0.25. */
typedef struct k_type {
    const char *name;
    size_t bytes, d, dmin; /* where the fields lie; dmin 0: none */
    float first[8], last[2];
    double sum;
} k_type;

static const k_type types[] = {
    {"q2_k", 84, 80, 82, {16.5f, 0, 5.5f, 11, 16.5f, 0, 5.5f, 11}, {2.25f, 2.25f}, 1029.5},
    {"q3_k", 110, 108, 0, {40.5f, -54, 13.5f, -27, 40.5f, -54, 13.5f, -27}, {-14, 21}, 479},
    {"q4_k", 144, 0, 2, {157.75f, -12.75f, 64.75f, 142.25f, 219.75f, 49.25f, 126.75f, 204.25f}, {18.25f, 24.25f},
     27220},
    {"q5_k", 176, 0, 2, {405.75f, -12.75f, 312.75f, 142.25f, 467.75f, 49.25f, 374.75f, 204.25f}, {48.25f, 54.25f},
     58108},
    {"q6_k", 210, 208, 0, {-715.5f, 848, 291.5f, -265, -821.5f, 742, 185.5f, -371}, {-20, -30}, 2306},
};
#define TYPES (sizeof types / sizeof *types)

static const pn_quant *type_of(const char *name)
{
    const pn_quant *q = pn_runtime_find(rt, PN_KIND_QUANT, name);
    if (!q) fail_msg("the type %s is not registered", name);
    return q;
}

static void make_block(const k_type *t, uint8_t *block)
{
    const uint16_t d = 0x3800, dmin = 0x3400;
    for (size_t i = 0; i < t->bytes; i++) block[i] = (uint8_t)(37 * i + 11);
    memcpy(block + t->d, &d, 2);
    if (t->dmin) memcpy(block + t->dmin, &dmin, 2);
}

static void test_one_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPES; i++) {
        const k_type *t = &types[i];
        const pn_quant *q = type_of(t->name);
        uint8_t block[256];
        float x[ELEMS];
        double sum = 0;
        assert_int_equal(q->block_bytes, t->bytes);
        assert_int_equal(q->block_elems, ELEMS);
        make_block(t, block);
        q->dequantize(block, x, ELEMS);
        for (size_t k = 0; k < ELEMS; k++) sum += (double)x[k];
        assert_memory_equal(x, t->first, sizeof t->first);
        assert_memory_equal(x + 254, t->last, sizeof t->last);
        assert_true(sum == t->sum);
    }
}

/* Only the halfs are wider than a byte. */
static void test_byteswap(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPES; i++) {
        const k_type *t = &types[i];
        uint8_t block[256], swapped[256];
        make_block(t, block);
        memcpy(swapped, block, sizeof swapped);
        type_of(t->name)->byteswap(swapped, ELEMS);
        for (size_t k = 0; k < t->bytes; k++) {
            const int wide = k - t->d < 2 || (t->dmin && k - t->dmin < 2);
            assert_int_equal(swapped[k], block[wide ? k ^ 1 : k]);
        }
    }
}

/* ---- quantizing ------------------------------------------------------------------------------------------------- */

static void read_floats(const char *path, float *x, size_t n)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    assert_int_equal(fread(x, sizeof *x, n, f), n);
    fclose(f);
}

/* Sum of weighted squared errors; weights of 1 when there are none. */
static double square_error(const float *a, const float *b, const float *weight, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = (double)a[i] - (double)b[i];
        sum += (weight ? (double)weight[i] : 1.0) * e * e;
    }
    return sum;
}

static void round_trip(const pn_quant *q, const float *x, const float *importance, float *y, size_t n)
{
    uint8_t *row = malloc(n / ELEMS * q->block_bytes);
    assert_ok(q->quantize(x, importance, row, n, err));
    q->dequantize(row, y, n);
    free(row);
}

/* At most 2 % above the error of the blocks that an independent quantizer made of the same numbers. */
static void test_quantize_golden(void **state)
{
    (void)state;
    static float source[GOLDEN_ELEMENTS], golden[GOLDEN_ELEMENTS], ours[GOLDEN_ELEMENTS];
    read_floats("tests/data/quant/f32.f32", source, GOLDEN_ELEMENTS);
    for (size_t i = 0; i < TYPES; i++) {
        char path[64];
        snprintf(path, sizeof path, "tests/data/quant/%s.f32", types[i].name);
        read_floats(path, golden, GOLDEN_ELEMENTS);
        round_trip(type_of(types[i].name), source, NULL, ours, GOLDEN_ELEMENTS);
        const double want = square_error(source, golden, NULL, GOLDEN_ELEMENTS);
        const double got = square_error(source, ours, NULL, GOLDEN_ELEMENTS);
        if (!(got <= 1.02 * want))
            fail_msg("%s: squared error %g, independent blocks have %g", types[i].name, got, want);
    }
}

/* Numbers that matter more come back better, by the measure in which they do. Weights differ within each group. */
static void test_importance(void **state)
{
    (void)state;
    static float source[GOLDEN_ELEMENTS], weight[GOLDEN_ELEMENTS], plain[GOLDEN_ELEMENTS], ours[GOLDEN_ELEMENTS];
    read_floats("tests/data/quant/f32.f32", source, GOLDEN_ELEMENTS);
    for (size_t i = 0; i < GOLDEN_ELEMENTS; i++) weight[i] = i % 5 == 2 ? 30.0f : 0.5f;
    for (size_t i = 0; i < TYPES; i++) {
        const pn_quant *q = type_of(types[i].name);
        round_trip(q, source, NULL, plain, GOLDEN_ELEMENTS);
        round_trip(q, source, weight, ours, GOLDEN_ELEMENTS);
        const double without = square_error(source, plain, weight, GOLDEN_ELEMENTS);
        const double with = square_error(source, ours, weight, GOLDEN_ELEMENTS);
        if (!(with <= 0.97 * without))
            fail_msg("%s: weighted error %g with importance, %g without", types[i].name, with, without);
        for (size_t k = 0; k < GOLDEN_ELEMENTS; k++) weight[k] *= 1e-12f; /* only their ratios count */
        round_trip(q, source, weight, plain, GOLDEN_ELEMENTS);
        for (size_t k = 0; k < GOLDEN_ELEMENTS; k++) weight[k] *= 1e12f;
        assert_true(square_error(source, plain, weight, GOLDEN_ELEMENTS) <= 1.02 * with);
        static const float none[ELEMS];
        round_trip(q, source, none, plain, ELEMS);
        assert_true(square_error(source, plain, NULL, ELEMS) <= 2 * square_error(source, ours, NULL, ELEMS) + 1.0);
    }
}

static void test_quantize_refuses(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e9f, -1e9f};
    for (size_t i = 0; i < TYPES; i++)
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            uint8_t block[256];
            float x[ELEMS] = {1.0f};
            pn_error err = {0};
            x[170] = bad[k];
            assert_int_equal(type_of(types[i].name)->quantize(x, NULL, block, ELEMS, &err), PN_E_RANGE);
            assert_true(err.message[0]);
        }
}

/* Large and small numbers come back near; those too small for the scale that is a half's smallest number as zeros. */
static void test_quantize_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPES; i++)
        for (float size = 1e5f; size > 0; size /= 16) {
            float x[ELEMS], y[ELEMS];
            for (size_t k = 0; k < ELEMS; k++) x[k] = size * (k % 2 ? -1.0f : 1.0f) / (float)(1 + k % 13);
            round_trip(type_of(types[i].name), x, NULL, y, ELEMS);
            for (size_t k = 0; k < ELEMS; k++)
                if (!(fabsf(y[k] - x[k]) <= 0.4f * size + 1e-7f))
                    fail_msg("%s: %g of %g comes back as %g", types[i].name, (double)x[k], (double)size, (double)y[k]);
        }
}

/* Numbers that a block holds exactly come back exactly, whatever their scales and minima. */
static void test_quantize_exact(void **state)
{
    (void)state;
    static const int codes[] = {4, 8, 16, 32, 64}, most[] = {15, 32, 63, 63, 128};
    for (size_t i = 0; i < TYPES; i++) {
        const int low = types[i].dmin ? 0 : -codes[i] / 2, groups = codes[i] > 8 && types[i].dmin ? 8 : 16;
        float x[ELEMS], y[ELEMS];
        for (int k = 0; k < ELEMS; k++) {
            const int group = k / (ELEMS / groups), in = k % (ELEMS / groups), scale = most[i] - group;
            const int code = in == 0 ? 0 : in == 1 ? codes[i] - 1 : 7 * k % codes[i];
            const int minimum = types[i].dmin ? most[i] - (5 * group + 10) % groups : 0;
            x[k] = 0.25f * (float)(scale * (low + code)) - 0.0625f * (float)minimum;
        }
        round_trip(type_of(types[i].name), x, NULL, y, ELEMS);
        for (size_t k = 0; k < ELEMS; k++)
            if (x[k] != y[k])
                fail_msg("%s: element %zu, %g comes back as %g", types[i].name, k, (double)x[k], (double)y[k]);
    }
}

/* ---- q8_k ------------------------------------------------------------------------------------------------------- */

static void test_q8_k(void **state)
{
    (void)state;
    const pn_quant *q = type_of("q8_k");
    uint8_t block[292], swapped[292];
    float x[ELEMS], y[ELEMS], d = 0.375f;
    assert_int_equal(q->block_bytes, sizeof block);
    assert_int_equal(q->block_elems, ELEMS);
    for (size_t i = 0; i < sizeof block; i++) block[i] = (uint8_t)(37 * i + 11);
    memcpy(block, &d, 4);
    q->dequantize(block, x, ELEMS);
    for (size_t i = 0; i < ELEMS; i++) assert_true(x[i] == d * (float)(int8_t)block[4 + i]);
    memcpy(swapped, block, sizeof swapped);
    q->byteswap(swapped, ELEMS);
    for (size_t i = 0; i < sizeof block; i++)
        assert_int_equal(swapped[i], block[i < 4 ? 3 - i : i < 260 ? i : i ^ 1]);

    for (size_t i = 0; i < ELEMS; i++) x[i] = 3.0f * sinf((float)(i * i));
    x[77] = -12.7f;
    assert_ok(q->quantize(x, NULL, block, ELEMS, err));
    q->dequantize(block, y, ELEMS);
    for (size_t i = 0; i < ELEMS; i++) assert_true(fabsf(x[i] - y[i]) <= 0.0501f);
    for (size_t g = 0; g < 16; g++) {
        int16_t sum;
        int want = 0;
        memcpy(&sum, block + 260 + 2 * g, 2);
        for (size_t i = 0; i < 16; i++) want += (int8_t)block[4 + 16 * g + i];
        assert_int_equal(sum, want);
    }
    x[5] = NAN;
    assert_int_equal(q->quantize(x, NULL, block, ELEMS, NULL), PN_E_RANGE);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

/* Each type has a kernel in C, and one for each level of vectors, AMX only with scales of 32 elements and more; their
 * scratch is bounded, however long the row. */
static void test_kernels(void **state)
{
    (void)state;
    static const char *const names[] = {"q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "q8_k"};
    for (size_t t = 0; t < sizeof names / sizeof *names; t++) {
        pn_registration g = {.struct_size = sizeof g};
        size_t n = 0, vectors = 0;
        for (size_t i = 0; pn_runtime_registration(rt, i, &g, NULL) == PN_OK; i++) {
            const pn_kernel *k = g.item;
            if (g.kind != PN_KIND_KERNEL || strcmp(k->quant, names[t]) || strcmp(k->packing, "i16")) continue;
            assert_true(k->scratch_bytes(65536, 512) <= 256 << 10);
            assert_int_equal(k->scratch_bytes(65536, 512), k->scratch_bytes(256, 512));
            n++;
            vectors += k->cpu_features != 0;
        }
        assert_int_equal(n - vectors, 1);
#ifdef PN_HAVE_X86
        assert_int_equal(vectors, strchr("236", names[t][1]) ? 2 : 3);
#endif
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
        cmocka_unit_test(test_one_block),        cmocka_unit_test(test_byteswap),
        cmocka_unit_test(test_quantize_golden),  cmocka_unit_test(test_importance),
        cmocka_unit_test(test_quantize_refuses), cmocka_unit_test(test_quantize_sizes),
        cmocka_unit_test(test_quantize_exact),   cmocka_unit_test(test_q8_k),
        cmocka_unit_test(test_kernels),
    };
    return cmocka_run_group_tests_name("quant_k", tests, set_up, tear_down);
}

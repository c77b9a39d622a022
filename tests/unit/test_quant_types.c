/* Quantization types of one scale per small block, ternary types, four-bit floats, bf16 and plain numbers: published
 * values, edges of their scales, errors of quantizing against an independent implementation's blocks, byte order. */
#include "fixture.h"

#include <math.h>
#include <pantheon/kit/half.h>
#include <pantheon/kit/pack.h>

#define N (6 * 1024)
#define COUNT(a) (sizeof(a) / sizeof *(a))

static pn_runtime *rt;

static const pn_quant *type_of(const char *name)
{
    const pn_quant *q = pn_runtime_find(rt, PN_KIND_QUANT, name);
    if (!q) fail_msg("the type %s is not registered", name);
    return q;
}

/* ---- published values ------------------------------------------------------------------------------------------- */

/* One block of bytes (37 i + 11) mod 256 with 0.5 at byte `d` and 0.25 at byte `m`. */
typedef struct one_block {
    const char *name;
    uint32_t elems, bytes;
    int d, m;
    float first[8], last[2], sum;
} one_block;

static const one_block blocks[] = {
    {"q5_0", 32, 22, 0, -1, {4.5f, -1, 1.5f, -4, 6.5f, -7, 3.5f, -2}, {7, 0.5f}, 7.5f},
    {"q5_1", 32, 24, 0, 2, {9.75f, 12.25f, 14.75f, 9.25f, 11.75f, 6.25f, 0.75f, 11.25f}, {1.75f, 2.75f}, 260.5f},
    {"tq1_0", 256, 54, 52, -1, {-0.5f, -0.5f, -0.5f, 0, 0, 0.5f, 0.5f, -0.5f}, {-0.5f, -0.5f}, -1},
    {"tq2_0", 256, 66, 64, -1, {1, -0.5f, 0, 0.5f, 1, -0.5f, 0, 0.5f}, {-0.5f, -0.5f}, 64.5f},
    {"iq4_nl", 32, 18, 0, -1, {-17.5f, 12.5f, 56.5f, -24.5f, 6.5f, 44.5f, -32.5f, 0.5f}, {-17.5f, 0.5f}, -128.5f},
    {"iq4_xs", 256, 136, 0, -1, {32.5f, -0.5f, -34.5f, 41.5f, 5, -26.5f, 52, 11}, {176, -8}, -5502.5f},
    {"mxfp4", 32, 17, -1, -1, {0, 12, -4, -24, 8, -2, -16, 6}, {6, 12}, 50},
};

static void make_block(const one_block *b, uint8_t *block)
{
    static const uint16_t half = 0x3800, quarter = 0x3400;
    for (size_t i = 0; i < b->bytes; i++) block[i] = (uint8_t)(37 * i + 11);
    if (b->d >= 0) memcpy(block + b->d, &half, 2);
    else block[0] = 129; /* the power of two */
    if (b->m >= 0) memcpy(block + b->m, &quarter, 2);
}

static void test_one_block(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(blocks); t++) {
        const one_block *b = &blocks[t];
        const pn_quant *q = type_of(b->name);
        uint8_t block[256];
        float x[256], sum = 0;
        assert_int_equal(q->block_bytes, b->bytes);
        assert_int_equal(q->block_elems, b->elems);
        make_block(b, block);
        q->dequantize(block, x, b->elems);
        for (size_t i = 0; i < b->elems; i++) sum += x[i];
        for (size_t i = 0; i < 8; i++)
            if (x[i] != b->first[i]) fail_msg("%s: element %zu is %g", b->name, i, (double)x[i]);
        assert_true(x[b->elems - 2] == b->last[0] && x[b->elems - 1] == b->last[1]);
        if (sum != b->sum) fail_msg("%s: the sum is %g", b->name, (double)sum);
    }
}

static void test_byteswap(void **state)
{
    static const struct {
        const char *name;
        size_t begin, end, width; /* fields that are wider than a byte */
        size_t begin2, width2;
    } fields[] = {{"q5_0", 0, 2, 2, 2, 4},   {"q5_1", 0, 4, 2, 4, 4},    {"iq4_nl", 0, 2, 2, 0, 0},
                  {"iq4_xs", 0, 4, 2, 0, 0}, {"q8_1", 0, 4, 2, 0, 0},    {"q1_0", 0, 2, 2, 0, 0},
                  {"q2_0", 0, 2, 2, 0, 0},   {"tq1_0", 52, 54, 2, 0, 0}, {"tq2_0", 64, 66, 2, 0, 0},
                  {"bf16", 0, 2, 2, 0, 0},   {"i16", 0, 2, 2, 0, 0},     {"i32", 0, 4, 4, 0, 0},
                  {"i64", 0, 8, 8, 0, 0},    {"f64", 0, 8, 8, 0, 0}};
    static const char *const without[] = {"mxfp4", "nvfp4", "i8"};
    (void)state;
    for (size_t t = 0; t < COUNT(fields); t++) {
        const pn_quant *q = type_of(fields[t].name);
        uint8_t block[256];
        for (size_t i = 0; i < q->block_bytes; i++) block[i] = (uint8_t)i;
        q->byteswap(block, q->block_elems);
        for (size_t i = 0; i < q->block_bytes; i++) {
            const size_t b2 = fields[t].begin2, w2 = fields[t].width2, w = fields[t].width;
            size_t want = i;
            if (i >= fields[t].begin && i < fields[t].end) want = i - i % w + (w - 1 - i % w);
            else if (i >= b2 && i < b2 + w2) want = b2 + w2 - 1 - (i - b2);
            if (block[i] != want) fail_msg("%s: byte %zu came from %d", fields[t].name, i, block[i]);
        }
    }
    for (size_t t = 0; t < COUNT(without); t++) assert_null(type_of(without[t])->byteswap);
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void test_bf16(void **state)
{
    const pn_quant *q = type_of("bf16");
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        const uint16_t v = (uint16_t)h;
        uint16_t back;
        float x;
        uint32_t bits;
        q->dequantize(&v, &x, 1);
        memcpy(&bits, &x, sizeof bits);
        assert_int_equal(bits, h << 16);
        assert_int_equal(q->quantize(&x, NULL, &back, 1, NULL), PN_OK);
        assert_int_equal(back, isnan(x) ? h | 0x40 : h);
        if ((h & 0x7fff) >= 0x7f80) continue;
        const float below = float_of(h << 16 | 0x7fff), middle = float_of(h << 16 | 0x8000),
                    above = float_of(h << 16 | 0x8001);
        assert_int_equal(q->quantize(&below, NULL, &back, 1, NULL), PN_OK);
        assert_int_equal(back, h);
        assert_int_equal(q->quantize(&middle, NULL, &back, 1, NULL), PN_OK);
        assert_int_equal(back, h + (h & 1));
        assert_int_equal(q->quantize(&above, NULL, &back, 1, NULL), PN_OK);
        assert_int_equal(back, h + 1);
    }
    const float nan = float_of(0x7f800001); /* its payload lies below what is kept */
    uint16_t back;
    assert_int_equal(q->quantize(&nan, NULL, &back, 1, NULL), PN_OK);
    assert_int_equal(back, 0x7fc0);
}

static void test_plain(void **state)
{
    static const int8_t i8[] = {-128, -1, 0, 127};
    static const int16_t i16[] = {-32768, -1, 2, 32767};
    static const int32_t i32[] = {INT32_MIN, -1, 16777217, 3};
    static const int64_t i64[] = {INT64_MIN, -1, INT64_C(1) << 40, 4};
    static const double f64[] = {-0.1, 1e300, 1e-320, 0.5};
    static const float want[][4] = {{-128, -1, 0, 127},
                                    {-32768, -1, 2, 32767},
                                    {-2147483648.0f, -1, 16777216, 3},
                                    {-9223372036854775808.0f, -1, 1099511627776.0f, 4},
                                    {-0.1f, INFINITY, 0, 0.5f}};
    static const struct {
        const char *name;
        const void *data;
        uint32_t bytes;
    } types[] = {{"i8", i8, 1}, {"i16", i16, 2}, {"i32", i32, 4}, {"i64", i64, 8}, {"f64", f64, 8}};
    (void)state;
    for (size_t t = 0; t < COUNT(types); t++) {
        const pn_quant *q = type_of(types[t].name);
        float x[4];
        assert_int_equal(q->block_elems, 1);
        assert_int_equal(q->block_bytes, types[t].bytes);
        q->dequantize(types[t].data, x, 4);
        assert_memory_equal(x, want[t], sizeof x);
    }
}

static void test_scales(void **state)
{
    uint8_t mx[17] = {127, 0x72}, nv[36] = {0, [4] = 0x72};
    float x[64];
    (void)state;
    type_of("mxfp4")->dequantize(mx, x, 32);
    assert_true(x[0] == 1.0f && x[16] == 6.0f && x[1] == 0);
    for (int e = 0; e < 255; e++) {
        mx[0] = (uint8_t)e;
        type_of("mxfp4")->dequantize(mx, x, 32);
        assert_true(x[0] == ldexpf(1, e - 127) && x[16] == ldexpf(6, e - 127));
    }
    mx[0] = 255;
    type_of("mxfp4")->dequantize(mx, x, 32);
    for (size_t i = 0; i < 32; i++) assert_true(isnan(x[i]));
    for (int code = 0; code < 256; code++) {
        const int e = code >> 3 & 15, m = code & 7;
        const float d = code == 127 ? 0 : e ? ldexpf(1 + (float)m / 8, e - 7) : ldexpf((float)m, -9);
        nv[0] = (uint8_t)code;
        type_of("nvfp4")->dequantize(nv, x, 64);
        assert_true(x[0] == d && x[8] == 6 * d);
    }
}

/* ---- kernels at the edges of scales ----------------------------------------------------------------------------- */

typedef void (*kernel_test)(const pn_kernel *k, const pn_matmul_args *a, pn_qweight *w, uint8_t *block);

/* Calls `test` for each kernel of the type, with one row of one block and activations that are all 1. */
static void with_kernels(const char *name, kernel_test test)
{
    const pn_quant *q = type_of(name);
    pn_registration g = {.struct_size = sizeof g};
    uint8_t block[256];
    float ones[256], out = 0;
    size_t tested = 0;
    for (size_t i = 0; i < 256; i++) ones[i] = 1;
    pn_qweight w = {.struct_size = sizeof w,
                    .type = q,
                    .data = block,
                    .rows = 1,
                    .cols = q->block_elems,
                    .row_stride = q->block_bytes,
                    .planes = 1};
    for (size_t i = 0; pn_runtime_registration(rt, i, &g, NULL) == PN_OK; i++) {
        const pn_kernel *k = g.item;
        if (g.kind != PN_KIND_KERNEL || strcmp(k->quant, name) || !g.usable) continue;
        const pn_packing *p = pn_runtime_find(rt, PN_KIND_PACKING, k->packing);
        assert_non_null(p);
        const size_t bytes = (k->scratch_bytes(q->block_elems, 1) + 63) / 64 * 64;
        void *packed = aligned_alloc(64, p->column_bytes(q->block_elems)), *scratch = aligned_alloc(64, bytes);
        pn_matmul_args a = {.struct_size = sizeof a,
                            .weight = &w,
                            .row_end = 1,
                            .packed = packed,
                            .packed_stride = p->column_bytes(q->block_elems),
                            .columns = 1,
                            .out = &out,
                            .out_stride = 1,
                            .scratch = scratch,
                            .scratch_bytes = bytes};
        p->pack(ones, q->block_elems, packed);
        memset(block, 0, sizeof block);
        test(k, &a, &w, block);
        free(packed);
        free(scratch);
        tested++;
    }
    assert_true(tested >= 1);
}

static void mxfp4_edges(const pn_kernel *k, const pn_matmul_args *a, pn_qweight *w, uint8_t *block)
{
    (void)w;
    for (int e = 0; e < 224; e++) { /* beyond, the integer sum times the scale is no float */
        block[0] = (uint8_t)e;
        block[1] = 0x72;
        assert_int_equal(k->matmul(a), PN_OK);
        const float want = ldexpf(7, e - 127), tolerance = 1e-4f * want + (e < 8 ? ldexpf(1, -127) : 0);
        if (!(fabsf(*a->out - want) <= tolerance))
            fail_msg("%s, exponent %d: %g, wanted %g", k->name, e, (double)*a->out, (double)want);
    }
    block[0] = 255;
    assert_int_equal(k->matmul(a), PN_OK);
    if (!isnan(*a->out)) fail_msg("%s: exponent 255 gives %g", k->name, (double)*a->out);
}

static void nvfp4_edges(const pn_kernel *k, const pn_matmul_args *a, pn_qweight *w, uint8_t *block)
{
    const float scale = 0.375f;
    pn_tensor side = {.struct_size = sizeof side, .type = "f32", .data = &scale, .size = sizeof scale};
    const pn_tensor *sides[] = {&side};
    for (int code = 0; code < 256; code++)
        for (size_t g = 0; g < 4; g++) {
            float x[64], want = 0;
            memset(block, 0, 36);
            block[g] = (uint8_t)code;
            block[4 + 8 * g] = 0x72;
            type_of("nvfp4")->dequantize(block, x, 64);
            for (size_t i = 0; i < 64; i++) want += x[i];
            assert_int_equal(k->matmul(a), PN_OK);
            if (!(fabsf(*a->out - want) <= 1e-4f * want))
                fail_msg("%s, scale %d: %g, wanted %g", k->name, code, (double)*a->out, (double)want);
        }
    memset(block, 0x33, 36);
    assert_int_equal(k->matmul(a), PN_OK);
    const float bare = *a->out;
    w->side = sides;
    w->n_side = 1;
    assert_int_equal(k->matmul(a), PN_OK);
    if (*a->out != bare * scale) fail_msg("%s: the tensor's own scale is not honoured", k->name);
    side.type = "f16";
    assert_int_equal(k->matmul(a), PN_E_UNSUPPORTED);
    sides[0] = NULL;
    assert_int_equal(k->matmul(a), PN_OK);
    assert_true(*a->out == bare);
    w->n_side = 0;
}

static void test_kernel_edges(void **state)
{
    (void)state;
    with_kernels("mxfp4", mxfp4_edges);
    with_kernels("nvfp4", nvfp4_edges);
}

/* Each type has an exact kernel in C and one for each level of vectors, except those that are only data; AMX is for
 * integers with scales of 32 elements and more. */
static void test_kernels(void **state)
{
    static const char *const names[] = {"q5_0",  "q5_1", "bf16", "iq4_nl", "iq4_xs", "mxfp4",
                                        "nvfp4", "q8_1", "q1_0", "q2_0",   "tq1_0",  "tq2_0"};
    (void)state;
    for (size_t t = 0; t < COUNT(names); t++) {
        pn_registration g = {.struct_size = sizeof g};
        size_t n = 0;
        for (size_t i = 0; pn_runtime_registration(rt, i, &g, NULL) == PN_OK; i++) {
            const pn_kernel *k = g.item;
            if (g.kind != PN_KIND_KERNEL || strcmp(k->quant, names[t])) continue;
            n += !strcmp(k->packing, strcmp(names[t], "bf16") ? "i16" : "f32");
        }
#ifdef PN_HAVE_X86
        assert_int_equal(n, strcmp(names[t], "bf16") && strcmp(names[t], "nvfp4") ? 4 : 3);
#else
        assert_true(n >= 1);
#endif
    }
}

/* ---- quantizing ------------------------------------------------------------------------------------------------- */

static const char *const made[] = {"q5_0",  "q5_1",  "bf16", "iq4_nl", "iq4_xs",
                                   "mxfp4", "nvfp4", "q8_1", "tq1_0",  "tq2_0"};

/* The n bytes at the end of a file, before the padding to a multiple of 32. */
static void read_tail(const char *path, void *data, size_t n)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    assert_int_equal(fseek(f, -(long)((n + 31) / 32 * 32), SEEK_END), 0);
    assert_int_equal(fread(data, 1, n, f), n);
    fclose(f);
}

static double square_error(const float *a, const float *b, const float *weight, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (weight ? (double)weight[i] : 1) * ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

/* Mean squared error at most 2 % above that of an independent quantizer's blocks; with importance, the weighted error
 * is smaller than without. */
static void test_quantize_golden(void **state)
{
    static float source[N], golden[N], ours[N], importance[N];
    (void)state;
    read_tail("tests/data/quant/f32.f32", source, sizeof source);
    for (size_t i = 0; i < N; i++) importance[i] = (i * 2654435761u >> 7) % 16 ? 1 : 50;
    for (size_t t = 0; t < COUNT(made); t++) {
        const pn_quant *q = type_of(made[t]);
        const size_t bytes = N / q->block_elems * q->block_bytes;
        uint8_t *row = malloc(bytes);
        char path[64];
        snprintf(path, sizeof path, "tests/data/quant/%s.gguf", made[t]);
        read_tail(path, row, bytes);
        q->dequantize(row, golden, N);
        assert_ok(q->quantize(source, NULL, row, N, err));
        q->dequantize(row, ours, N);
        double worst = 0;
        for (size_t i = 0; i < N; i += 1024) { /* rows: of very different size */
            const double want = square_error(source + i, golden + i, NULL, 1024);
            const double got = square_error(source + i, ours + i, NULL, 1024);
            if (!(got <= 1.02 * want))
                fail_msg("%s, row %zu: squared error %g, independent blocks %g", made[t], i / 1024, got, want);
            if (want > 0) worst = fmax(worst, got / want);
        }
        const double plain = square_error(source, ours, importance, N);
        assert_ok(q->quantize(source, importance, row, N, err));
        q->dequantize(row, ours, N);
        const double weighted = square_error(source, ours, importance, N);
        free(row);
        print_message("%s: at most %.4f of the independent error, by importance %.4f of plain\n", made[t], worst,
                      weighted / plain);
        if (strcmp(made[t], "bf16") && strcmp(made[t], "q8_1") && !(weighted < plain))
            fail_msg("%s: importance leaves the error at %g of %g", made[t], weighted, plain);
    }
}

static void test_quantize_refuses(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    (void)state;
    for (size_t t = 0; t < COUNT(made); t++) {
        const pn_quant *q = type_of(made[t]);
        const size_t kinds = !strcmp(made[t], "mxfp4") ? 3 : COUNT(bad); /* it holds every finite size */
        if (q->flags & PN_QUANT_FLOAT) continue;
        for (size_t i = 0; i < kinds; i++) {
            uint8_t block[256];
            float x[256] = {1.0f};
            pn_error err = {0};
            x[q->block_elems - 15] = bad[i];
            assert_int_equal(q->quantize(x, NULL, block, q->block_elems, &err), PN_E_RANGE);
            assert_true(err.message[0]);
        }
    }
}

/* Numbers so small that there is no scale for them come back as about zero, not as NaN; so do the largest. */
static void test_quantize_sizes(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(made); t++) {
        const pn_quant *q = type_of(made[t]);
        const float rough = !strncmp(made[t], "tq", 2) ? 0.5f : 0.2f, least = !strcmp(made[t], "nvfp4") ? 6e-3f : 1e-4f;
        for (float size = 1e3f; size > 0; size /= 16) {
            uint8_t block[512];
            float x[256], y[256];
            const size_t n = 256 / q->block_elems * q->block_elems;
            for (size_t i = 0; i < n; i++) x[i] = size * (i % 2 ? -1.0f : 1.0f) / (float)(1 + i % 32);
            assert_ok(q->quantize(x, NULL, block, n, err));
            q->dequantize(block, y, n);
            for (size_t i = 0; i < n; i++)
                if (!(fabsf(y[i] - x[i]) <= rough * size + least))
                    fail_msg("%s: %g becomes %g", made[t], (double)x[i], (double)y[i]);
        }
    }
}

/* Numbers that a type holds come back as they are: trained ternary weights, powers of two, sums. */
static void test_quantize_exact(void **state)
{
    static const char *const names[] = {"tq1_0", "tq2_0", "mxfp4", "nvfp4"};
    uint8_t block[512];
    float x[256], y[256];
    (void)state;
    for (size_t t = 0; t < COUNT(names); t++) {
        const pn_quant *q = type_of(names[t]);
        for (size_t i = 0; i < 256; i++)
            x[i] = t < 2 ? 0.75f * (float)((int)(i * i % 7 % 3) - 1) : 0.25f * (float)((int)(i * 5 % 9) - 4);
        x[0] = x[64] = x[128] = x[192] = t < 2 ? 0.75f : 1.5f;
        assert_ok(q->quantize(x, NULL, block, 256, err));
        q->dequantize(block, y, 256);
        for (size_t i = 0; i < 256; i++)
            if (x[i] != y[i]) fail_msg("%s: %g becomes %g", names[t], (double)x[i], (double)y[i]);
    }
    const pn_quant *q = type_of("q8_1");
    float sum = 0;
    assert_ok(q->quantize(x, NULL, block, 32, err));
    q->dequantize(block, y, 32);
    for (size_t i = 0; i < 32; i++) sum += y[i];
    assert_true(fabsf(pn_half_to_float((uint16_t)(block[2] | block[3] << 8)) - sum) <= 1e-3f * fabsf(sum));
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
        cmocka_unit_test(test_one_block),
        cmocka_unit_test(test_byteswap),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_kernel_edges),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_quantize_golden),
        cmocka_unit_test(test_quantize_refuses),
        cmocka_unit_test(test_quantize_sizes),
        cmocka_unit_test(test_quantize_exact),
    };
    return cmocka_run_group_tests_name("quant types", tests, set_up, tear_down);
}

/* The code-book types iq1, iq2 and iq3 by their published values: single blocks, special scales, byte order; and their
 * kernels. */
#include "fixture.h"

#include <math.h>
#include <pantheon/kit/block.h>

static pn_runtime *rt;

/* One block of bytes (37 i + 11) mod 256, its half-precision scale 0.5. */
typedef struct one_block {
    const char *name;
    size_t bytes;
    float first[8], last[2], sum;
    size_t swap16[40], swap32[9]; /* where fields of 16 and 32 bits begin, ended by NONE */
} one_block;

#define NONE SIZE_MAX

static const one_block blocks[] = {
    {"iq2_xxs", 66, {-29.5625f, 29.5625f, 17.1875f, -17.1875f, 17.1875f, -5.5f, -17.1875f, 5.5f},
     {7.5f, -40.3125f}, 381.875f, {0, NONE}, {6, 14, 22, 30, 38, 46, 54, 62, NONE}},
    {"iq2_xs", 74, {-5.5f, 17.1875f, -5.5f, -29.5625f, -5.5f, -17.1875f, 5.5f, -5.5f}, {9.5f, -9.5f}, 745.25f,
     {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32,
      34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, NONE}, {NONE}},
    {"iq2_s", 82, {-72.5625f, 42.1875f, -13.5f, 13.5f, -13.5f, -72.5625f, -42.1875f, -13.5f},
     {-39.0625f, 39.0625f}, -400.3125f, {0, NONE}, {NONE}},
    {"iq3_xxs", 98, {-6.5f, 4.5f, -3.5f, 1.5f, -7.75f, 3.5f, 2.5f, -2.5f}, {4.5f, -7.5f}, -342,
     {0, NONE}, {66, 70, 74, 78, 82, 86, 90, 94, NONE}},
    {"iq3_s", 110, {-40.5f, 121.5f, -175.5f, -94.5f, -175.5f, -94.5f, 13.5f, -40.5f}, {62.5f, 112.5f}, 728,
     {0, NONE}, {NONE}},
    {"iq1_s", 50, {-1.3125f, 0.1875f, 1.6875f, 1.6875f, 1.6875f, 0.1875f, 1.6875f, 0.1875f},
     {0.3125f, -2.1875f}, 10, {0, 34, 36, 38, 40, 42, 44, 46, 48, NONE}, {NONE}},
    {"iq1_m", 56, {-0.4375f, 3.0625f, -0.4375f, -0.4375f, 3.0625f, -0.4375f, -3.9375f, -0.4375f},
     {6.5625f, -0.9375f}, 20.5f, {48, 50, 52, 54, NONE}, {NONE}},
};
#define BLOCKS (sizeof blocks / sizeof *blocks)

static const pn_quant *type_of(const char *name)
{
    const pn_quant *q = pn_runtime_find(rt, PN_KIND_QUANT, name);
    if (!q) fail_msg("the type %s is not registered", name);
    return q;
}

static void make_block(const one_block *b, uint16_t half, uint8_t *block)
{
    for (size_t i = 0; i < b->bytes; i++) block[i] = (uint8_t)(37 * i + 11);
    if (strcmp(b->name, "iq1_m")) memcpy(block, &half, sizeof half);
    else /* a digit in the high half of every second byte from 49, the lowest first */
        for (size_t i = 0; i < 4; i++)
            block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 15) | (half >> 4 * i & 15) << 4);
}

static void test_one_block(void **state)
{
    (void)state;
    for (size_t t = 0; t < BLOCKS; t++) {
        const one_block *b = &blocks[t];
        const pn_quant *q = type_of(b->name);
        uint8_t block[128];
        float x[256];
        double sum = 0;
        assert_int_equal(q->block_bytes, b->bytes);
        assert_int_equal(q->block_elems, 256);
        make_block(b, 0x3800, block);
        q->dequantize(block, x, 256);
        for (size_t i = 0; i < 256; i++) sum += (double)x[i];
        assert_memory_equal(x, b->first, sizeof b->first);
        assert_memory_equal(x + 254, b->last, sizeof b->last);
        if (sum != (double)b->sum) fail_msg("%s: sum %g, published %g", b->name, sum, (double)b->sum);
    }
}

/* Values follow the scale exactly, down to the smallest half, through its sign, and when it is no number. */
static void test_scales(void **state)
{
    static const uint16_t halfs[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
    (void)state;
    for (size_t t = 0; t < BLOCKS; t++) {
        const pn_quant *q = type_of(blocks[t].name);
        uint8_t block[128];
        float x[256], y[256];
        make_block(&blocks[t], 0x3c00, block);
        q->dequantize(block, x, 256);
        for (size_t h = 0; h < sizeof halfs / sizeof *halfs; h++) {
            const float d = pn_half_to_float(halfs[h]);
            make_block(&blocks[t], halfs[h], block);
            q->dequantize(block, y, 256);
            for (size_t i = 0; i < 256; i++) {
                const float want = d * x[i];
                if (isnan(want) ? !isnan(y[i]) : memcmp(&y[i], &want, sizeof want) != 0)
                    fail_msg("%s: scale %g: element %zu is %g, not %g", blocks[t].name, (double)d, i, (double)y[i],
                             (double)want);
            }
        }
    }
}

static void test_byteswap(void **state)
{
    (void)state;
    for (size_t t = 0; t < BLOCKS; t++) {
        const one_block *b = &blocks[t];
        uint8_t rows[2 * 128], swapped[2 * 128];
        for (size_t i = 0; i < 2; i++) make_block(b, 0x3456, rows + i * b->bytes);
        memcpy(swapped, rows, 2 * b->bytes);
        type_of(b->name)->byteswap(swapped, 512);
        for (size_t i = 0; i < 2; i++) {
            uint8_t *want = rows + i * b->bytes;
            for (size_t k = 0; b->swap16[k] != NONE; k++) pn_swap16(want + b->swap16[k]);
            for (size_t k = 0; b->swap32[k] != NONE; k++) pn_swap32(want + b->swap32[k]);
        }
        if (memcmp(swapped, rows, 2 * b->bytes)) fail_msg("%s: other bytes were swapped", b->name);
    }
}

/* A kernel in C and one for each level of vectors, exact and fast; their scratch is bounded whatever the row's length.
 */
static void test_kernels(void **state)
{
    (void)state;
    for (size_t t = 0; t < BLOCKS; t++) {
        pn_registration g = {.struct_size = sizeof g};
        uint64_t levels = 0;
        size_t n = 0;
        for (size_t i = 0; pn_runtime_registration(rt, i, &g, NULL) == PN_OK; i++) {
            const pn_kernel *k = g.item;
            if (g.kind != PN_KIND_KERNEL || strcmp(k->quant, blocks[t].name)) continue;
            assert_true(k->scratch_bytes(65536, 512) <= 256 << 10);
            assert_true(k->scratch_bytes(65536, 512) == k->scratch_bytes(256, 512));
            levels |= k->cpu_features;
            n++;
        }
#ifdef PN_HAVE_X86
        assert_int_equal(n, 6);
        assert_true(levels == (PN_LEVEL_AVX2 | PN_LEVEL_AVX512));
#else
        assert_true(n >= 2);
        (void)levels;
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
        cmocka_unit_test(test_one_block),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_byteswap),
        cmocka_unit_test(test_kernels),
    };
    return cmocka_run_group_tests_name("quant_books", tests, set_up, tear_down);
}

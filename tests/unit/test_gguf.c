/* The GGUF reader through the library: every value type, every way to be wrong, bounded memory. */
#include "file.h"
#include "ggufmake.h"
#include "memwatch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static pn_runtime *rt;
static gguf g;

/* Open the bytes of `g` at the very end of an allocation, so that a sanitizer sees a read past them. */
static unsigned char *exact;
static pn_file *f;

static pn_status try_open(pn_error *err)
{
    free(exact);
    exact = malloc(g.size ? g.size : 1);
    assert_non_null(exact);
    memcpy(exact, g.data, g.size);
    f = NULL;
    return pn_file_open_buffer(rt, "made.gguf", exact, g.size, &f, err);
}

static void opens(void)
{
    pn_error err = { 0 };
    if (try_open(&err))
        fail_msg("wanted it to open: %s", err.message);
}

/* It must fail, say the file's name and every word, and leave nothing allocated. */
static void refuses(pn_status status, const char *word, const char *other)
{
    pn_error err = { 0 };
    memwatch_begin(0);
    pn_status st = try_open(&err);
    int64_t live = memwatch_live(), peak = memwatch_peak();
    memwatch_end();
    if (st == PN_OK) {
        pn_file_destroy(f);
        fail_msg("opened, wanted an error with '%s'", word);
    }
    assert_int_equal(st, status);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, "made.gguf") || !strstr(err.message, word) || (other && !strstr(err.message, other)))
        fail_msg("wanted '%s' and '%s' in: %s", word, other ? other : "", err.message);
    assert_int_equal(live, 0);
    /* Never sized by a count in the file: these files have some hundred bytes. */
    assert_true(peak < 300 * 1024);
}

static void closes(void)
{
    pn_file_destroy(f);
    f = NULL;
}

static int setup(void **state)
{
    (void)state;
    rt = test_runtime();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pn_runtime_destroy(rt);
    g_free(&g);
    free(exact);
    return 0;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void all_value_types(void **state)
{
    int16_t i16 = -12345;
    uint16_t u16 = 54321;
    int64_t i64 = INT64_MIN + 1;
    double f64 = -1.0 / 3;
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        g_begin(&g, version, 0, 13);
        g_key(&g, "u8", G_U8), g_u8(&g, 250);
        g_key(&g, "i8", G_I8), g_u8(&g, 0x80);
        g_key(&g, "u16", G_U16), g_bytes(&g, &u16, 2);
        g_key(&g, "i16", G_I16), g_bytes(&g, &i16, 2);
        g_key_u32(&g, "u32", 4000000000u);
        g_key(&g, "i32", G_I32), g_u32(&g, (uint32_t)-7);
        g_key(&g, "u64", G_U64), g_u64(&g, UINT64_MAX);
        g_key(&g, "i64", G_I64), g_bytes(&g, &i64, 8);
        g_key(&g, "f32", G_F32), g_f32(&g, 0.1f);
        g_key(&g, "f64", G_F64), g_bytes(&g, &f64, 8);
        g_key(&g, "bool", G_BOOL), g_u8(&g, 2);
        g_key_text(&g, "text", "grüße");
        g_key_array(&g, "array", G_I16, 2), g_bytes(&g, &i16, 2), g_bytes(&g, &i16, 2);
        opens();
        assert_int_equal(pn_file_int(f, "u8", 0), 250);
        assert_int_equal(pn_file_int(f, "i8", 0), -128);
        assert_int_equal(pn_file_int(f, "u16", 0), 54321);
        assert_int_equal(pn_file_int(f, "i16", 0), -12345);
        assert_int_equal(pn_file_int(f, "u32", 0), 4000000000);
        assert_int_equal(pn_file_int(f, "i32", 0), -7);
        assert_int_equal(pn_file_int(f, "u64", 99), 99);    /* does not fit */
        assert_true(pn_file_value(f, "u64")->as.u == UINT64_MAX);
        assert_true(pn_file_int(f, "i64", 0) == i64);
        assert_true(pn_file_value(f, "f32")->as.f == (double)0.1f);
        assert_true(pn_file_value(f, "f64")->as.f == f64);
        assert_int_equal(pn_file_value(f, "bool")->as.u, 1);
        assert_true(pn_str_is(pn_file_str(f, "text"), "grüße"));
        const pn_value *a = pn_file_value(f, "array");
        assert_int_equal(a->count, 2);
        pn_value item = pn_value_at(a, 1);
        assert_int_equal(item.as.i, -12345);
        pn_str key;
        const pn_value *v;
        assert_int_equal(pn_file_value_at(f, 0, &key, &v, NULL), PN_OK);
        assert_true(pn_str_is(key, "u8"));
        assert_int_equal(pn_file_value_at(f, 12, &key, &v, NULL), PN_OK);
        assert_true(pn_str_is(key, "array") && v == a);
        assert_int_equal(pn_file_value_at(f, 13, &key, &v, NULL), PN_E_RANGE);
        assert_null(pn_file_value(f, "none"));
        assert_null(pn_file_str(f, "u8").data);
        assert_string_equal(pn_file_format(f), "gguf");
        assert_string_equal(pn_file_path(f), "made.gguf");
        closes();
    }
}

static void arrays_within_arrays(void **state)
{
    (void)state;
    g_begin(&g, 3, 0, 4);
    g_key_array(&g, "nested", G_ARR, 3);
    g_u32(&g, G_U8), g_u64(&g, 2), g_u8(&g, 1), g_u8(&g, 2);
    g_u32(&g, G_STR), g_u64(&g, 1), g_text(&g, "x");
    g_u32(&g, G_F64), g_u64(&g, 0);
    g_key_array(&g, "empty", G_U32, 0);
    g_key_array(&g, "texts", G_STR, 3), g_text(&g, ""), g_text(&g, "mid"), g_text(&g, "");
    g_key_array(&g, "bools", G_BOOL, 3), g_u8(&g, 0), g_u8(&g, 1), g_u8(&g, 255);
    opens();
    const pn_value *v = pn_file_value(f, "nested");
    pn_value one = pn_value_at(v, 0), two = pn_value_at(v, 1), three = pn_value_at(v, 2), item;
    assert_int_equal(v->item_type, PN_T_ARRAY);
    assert_int_equal(one.count, 2);
    item = pn_value_at(&one, 1);
    assert_int_equal(item.as.u, 2);
    item = pn_value_at(&two, 0);
    assert_true(pn_str_is(item.as.s, "x"));
    assert_int_equal(three.item_type, PN_T_F64);
    assert_int_equal(three.count, 0);
    assert_int_equal(pn_file_value(f, "empty")->count, 0);
    item = pn_value_at(pn_file_value(f, "texts"), 1);
    assert_true(pn_str_is(item.as.s, "mid"));
    item = pn_value_at(pn_file_value(f, "texts"), 2);
    assert_int_equal(item.as.s.size, 0);
    item = pn_value_at(pn_file_value(f, "bools"), 2);
    assert_int_equal(item.as.u, 1);
    closes();

    for (uint64_t depth = 7; depth <= 9; depth++) {
        g_begin(&g, 3, 0, 1);
        g_key(&g, "deep", G_ARR);
        for (uint64_t i = 1; i < depth; i++)
            g_u32(&g, G_ARR), g_u64(&g, 1);
        g_u32(&g, G_U8), g_u64(&g, 1), g_u8(&g, 42);
        if (depth <= 8) {
            opens();
            closes();
        } else {
            refuses(PN_E_FORMAT, "'deep'", "nested");
        }
    }
    /* As deep as 1.2 MB can be: no stack to eat. */
    g_begin(&g, 3, 0, 1);
    g_key(&g, "deep", G_ARR);
    for (int i = 0; i < 100000; i++)
        g_u32(&g, G_ARR), g_u64(&g, 1);
    refuses(PN_E_FORMAT, "'deep'", "nested");
}

static void counts_that_lie(void **state)
{
    static const uint64_t lies[] = { UINT64_MAX, 0x0555555555555556, (uint64_t)1 << 60, (uint64_t)1 << 32, 1000 };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        g_begin(&g, 3, 0, lies[i]);
        refuses(PN_E_FORMAT, "number of metadata values", "cut short");
        g_begin(&g, 3, lies[i], 0);
        refuses(PN_E_FORMAT, "number of tensors", "cut short");
        for (uint32_t item = G_U8; item <= G_F64; item++) {
            g_begin(&g, 3, 0, 1);
            g_key_array(&g, "k", item, lies[i]);
            refuses(PN_E_FORMAT, "key 'k'", "in an array");
        }
        g_begin(&g, 3, 0, 1);
        g_key(&g, "k", G_STR), g_u64(&g, lies[i]), g_bytes(&g, "xxxxxxxxxxxxxxxx", 16);
        refuses(PN_E_FORMAT, "key 'k'", "text value");
        g_begin(&g, 3, 0, 1);
        g_u64(&g, lies[i]), g_bytes(&g, "xxxxxxxxxxxxxxxx", 16);
        refuses(PN_E_FORMAT, "length of a key", "byte 24");
        g_begin(&g, 3, 1, 0);
        g_u64(&g, lies[i]), g_bytes(&g, "xxxxxxxxxxxxxxxx", 16);
        refuses(PN_E_FORMAT, "length of a tensor's name", "byte 24");
    }
}

/* A small file that has everything, cut at every byte. */
static void make_whole(void)
{
    uint64_t dims[] = { 32, 2 }, eight[] = { 8 };
    g_begin(&g, 3, 3, 5);
    g_key_text(&g, "general.architecture", "llama");
    g_key_u32(&g, "general.alignment", 64);
    g_key_array(&g, "texts", G_STR, 3), g_text(&g, "a"), g_text(&g, ""), g_text(&g, "bc");
    g_key_array(&g, "nested", G_ARR, 2), g_u32(&g, G_U8), g_u64(&g, 1), g_u8(&g, 1), g_u32(&g, G_STR), g_u64(&g, 1),
        g_text(&g, "d");
    g_key(&g, "big", G_F64), g_u64(&g, 0);
    g_tensor(&g, "one", 2, dims, 8, 0);
    g_tensor(&g, "two", 1, eight, 0, 128);
    g_tensor(&g, "three", 1, eight, 99, 192);
    g_pad(&g, 64);
    for (int i = 0; i < 256; i++)
        g_u8(&g, (unsigned)i);
}

static void cut_at_every_byte(void **state)
{
    (void)state;
    make_whole();
    size_t whole = g.size, least = whole - 256 + 192;
    for (size_t n = 0; n < whole; n++) {
        pn_error err = { 0 };
        g.size = n;
        memwatch_begin(0);
        pn_status st = try_open(&err);
        pn_file_destroy(f);
        assert_int_equal(memwatch_live(), 0);
        memwatch_end();
        if (n < least)
            assert_true(st == PN_E_FORMAT || (n < 4 && st == PN_E_UNSUPPORTED));
        else
            assert_int_equal(st, PN_OK);
        if (st)
            assert_non_null(strstr(err.message, "made.gguf"));
    }
    g.size = whole;
}

/* Every byte with every bit turned: whatever it comes to, nothing reads outside (the sanitizers watch). */
static void every_bit_turned(void **state)
{
    (void)state;
    make_whole();
    size_t header = g.size - 256;
    for (size_t bit = 0; bit < header * 8; bit++) {
        pn_error err = { 0 };
        g.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (try_open(&err) == PN_OK) {
            for (size_t i = 0; i < pn_file_tensor_count(f); i++) {
                const pn_tensor *t = pn_file_tensor_at(f, i);
                float x[64];
                uint64_t n = pn_tensor_elements(t);
                assert_true(t->size <= g.size);
                if (t->data && t->size)
                    assert_true((const unsigned char *)t->data >= exact &&
                                (const unsigned char *)t->data + t->size <= exact + g.size);
                if (n <= 64)
                    pn_file_tensor_f32(f, t, 0, n, x, &err);
            }
        }
        closes();
        g.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

static void without_memory(void **state)
{
    (void)state;
    make_whole();
    for (long n = 1; n < 400; n++) {
        pn_error err = { 0 };
        memwatch_begin(n);
        pn_status st = try_open(&err);
        pn_file_destroy(f);
        int64_t live = memwatch_live();
        memwatch_end();
        assert_int_equal(live, 0);
        if (st == PN_OK) {
            assert_true(n > 10);
            return;
        }
        assert_int_equal(st, PN_E_NOMEM);
        assert_true(err.message[0]);
    }
    fail_msg("it never succeeded");
}

/* ---- headers ----------------------------------------------------------------------------------------------------- */

static void versions_and_byte_order(void **state)
{
    static const uint32_t bad[] = { 0, 1, 4, 5, 1000 };
    char word[32];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        g_begin(&g, bad[i], 0, 0);
        snprintf(word, sizeof word, "version %u", (unsigned)bad[i]);
        refuses(PN_E_UNSUPPORTED, word, "2 and 3");
    }
    g_begin(&g, 0x03000000, 0, 0);
    refuses(PN_E_UNSUPPORTED, "other byte order", NULL);
    g_begin(&g, 0x02000000, 0, 0);
    refuses(PN_E_UNSUPPORTED, "other byte order", NULL);
    g.size = 0;
    refuses(PN_E_UNSUPPORTED, "empty", NULL);
    g_bytes(&g, "\x89PNG\r\n\x1a\n", 8);
    refuses(PN_E_UNSUPPORTED, "89 50 4e 47", "gguf");
    g.size = 0;
    g_bytes(&g, "GGUF", 4);
    refuses(PN_E_FORMAT, "version needs 4 bytes", NULL);
}

static void keys(void **state)
{
    (void)state;
    g_begin(&g, 3, 0, 1);
    g_key_u32(&g, "", 1);
    refuses(PN_E_FORMAT, "empty key", "byte 24");
    g_begin(&g, 3, 0, 2);
    g_key_u32(&g, "twice", 1), g_key_u32(&g, "twice", 1);
    refuses(PN_E_FORMAT, "'twice'", "there twice");
    for (uint32_t type = 13; type != 0; type = type == 13 ? UINT32_MAX : 0) {
        g_begin(&g, 3, 0, 1);
        g_key(&g, "k", type), g_u32(&g, 0);
        refuses(PN_E_FORMAT, "'k'", "value type");
        g_begin(&g, 3, 0, 1);
        g_key_array(&g, "k", type, 0);
        refuses(PN_E_FORMAT, "'k'", "value type");
    }
    /* Keys are bytes: with a zero inside they are two different ones. */
    g_begin(&g, 3, 0, 2);
    g_u64(&g, 3), g_bytes(&g, "a\0b", 3), g_u32(&g, G_U8), g_u8(&g, 1);
    g_u64(&g, 3), g_bytes(&g, "a\0c", 3), g_u32(&g, G_U8), g_u8(&g, 2);
    opens();
    assert_null(pn_file_value(f, "a"));
    closes();
}

static void alignments(void **state)
{
    static const uint32_t good[] = { 1, 2, 4, 8, 24, 32, 48, 64, 4096 }, bad[] = { 0, 3, 5, 6, 7, 12, 20, 33, 4095 };
    uint64_t two[] = { 2 };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t second = good[i] > 8 ? good[i] : 8;
        g_begin(&g, 3, 2, 1);
        g_key_u32(&g, "general.alignment", good[i]);
        g_tensor(&g, "a", 1, two, 0, 0), g_tensor(&g, "b", 1, two, 0, second);
        g_pad(&g, good[i]);
        size_t start = g.size;
        g_f32(&g, 1), g_f32(&g, 2);
        while (g.size < start + second)
            g_u8(&g, 0xee);
        g_f32(&g, 3), g_f32(&g, 4);
        opens();
        float x[2];
        assert_int_equal(pn_file_tensor_f32(f, pn_file_tensor(f, "b"), 0, 2, x, NULL), PN_OK);
        assert_true(x[0] == 3 && x[1] == 4);
        assert_int_equal(pn_file_tensor(f, "a")->offset, start);
        closes();
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        g_begin(&g, 3, 0, 1);
        g_key_u32(&g, "general.alignment", bad[i]);
        refuses(PN_E_FORMAT, "general.alignment", "multiple of 8");
    }
    /* Other widths count by value; what is no integer is an error that names the key. */
    g_begin(&g, 3, 0, 1), g_key(&g, "general.alignment", G_U64), g_u64(&g, 64), opens(), closes();
    g_begin(&g, 3, 0, 1), g_key(&g, "general.alignment", G_U8), g_u8(&g, 16), opens(), closes();
    g_begin(&g, 3, 0, 1), g_key(&g, "general.alignment", G_I32), g_u32(&g, (uint32_t)-32);
    refuses(PN_E_FORMAT, "general.alignment", "-32");
    g_begin(&g, 3, 0, 1), g_key(&g, "general.alignment", G_U64), g_u64(&g, UINT64_MAX - 7);
    refuses(PN_E_FORMAT, "general.alignment", NULL);
    g_begin(&g, 3, 0, 1), g_key(&g, "general.alignment", G_U64), g_u64(&g, (uint64_t)1 << 32);
    refuses(PN_E_FORMAT, "general.alignment", NULL);
    g_begin(&g, 3, 0, 1), g_key_array(&g, "general.alignment", G_U32, 1), g_u32(&g, 32);
    refuses(PN_E_FORMAT, "general.alignment", "no integer");
    g_begin(&g, 3, 0, 1), g_key(&g, "general.alignment", G_F32), g_f32(&g, 32);
    refuses(PN_E_FORMAT, "general.alignment", NULL);
    g_begin(&g, 3, 0, 1), g_key_text(&g, "general.alignment", "32");
    refuses(PN_E_FORMAT, "general.alignment", "no integer");
    g_begin(&g, 3, 0, 1), g_key_u32(&g, "general.alignment", 0x80000000);
    refuses(PN_E_FORMAT, "general.alignment", "2147483648");
}

static void padding(void **state)
{
    uint64_t five[] = { 5 };
    (void)state;
    /* Names of every length move the end of the table over every place of a block; the one that is aligned adds none.
     * */
    for (size_t n = 1; n <= 64; n++) {
        char name[80] = "";
        memset(name, 'n', n);
        for (int extra = 0; extra < 3; extra++) {
            g_begin(&g, 3, 1, 0);
            g_tensor(&g, name, 1, five, 0, 0);
            g_pad(&g, 32);
            size_t start = g.size;
            for (int i = 0; i < 5; i++)
                g_f32(&g, (float)i);
            if (extra)
                g_pad(&g, extra == 1 ? 32 : 64);
            opens();
            const pn_tensor *t = pn_file_tensor(f, name);
            float x[5];
            assert_int_equal(t->offset, start);
            assert_int_equal(pn_file_tensor_f32(f, t, 0, 5, x, NULL), PN_OK);
            assert_true(x[0] == 0 && x[4] == 4);
            closes();
        }
    }
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static void type_table(void **state)
{
    static const struct { uint32_t number; const char *name; uint32_t elems, bytes;
    } known[] = {
        {0, "f32", 1, 4},         {1, "f16", 1, 2},         {2, "q4_0", 32, 18},      {3, "q4_1", 32, 20},
        {6, "q5_0", 32, 22},      {7, "q5_1", 32, 24},      {8, "q8_0", 32, 34},      {9, "q8_1", 32, 36},
        {10, "q2_k", 256, 84},    {11, "q3_k", 256, 110},   {12, "q4_k", 256, 144},   {13, "q5_k", 256, 176},
        {14, "q6_k", 256, 210},   {15, "q8_k", 256, 292},   {16, "iq2_xxs", 256, 66}, {17, "iq2_xs", 256, 74},
        {18, "iq3_xxs", 256, 98}, {19, "iq1_s", 256, 50},   {20, "iq4_nl", 32, 18},   {21, "iq3_s", 256, 110},
        {22, "iq2_s", 256, 82},   {23, "iq4_xs", 256, 136}, {24, "i8", 1, 1},         {25, "i16", 1, 2},
        {26, "i32", 1, 4},        {27, "i64", 1, 8},        {28, "f64", 1, 8},        {29, "iq1_m", 256, 56},
        {30, "bf16", 1, 2},       {34, "tq1_0", 256, 54},   {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17},
        {40, "nvfp4", 64, 36},    {41, "q1_0", 128, 18},    {42, "q2_0", 64, 18},
    };
    static const uint32_t unknown[] = { 4, 5, 31, 32, 33, 36, 37, 38, 43, 200, UINT32_MAX };
    uint64_t dims[] = { 768, 3 };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint64_t bytes = (uint64_t)768 / known[i].elems * known[i].bytes * 3;
        g_begin(&g, 3, 1, 0);
        g_tensor(&g, "t", 2, dims, known[i].number, 0);
        g_pad(&g, 32);
        for (uint64_t k = 0; k + 1 < bytes; k++)
            g_u8(&g, 0);
        refuses(PN_E_FORMAT, "'t' needs", "ends at byte");  /* one byte is missing */
        g_u8(&g, 0);
        opens();
        const pn_tensor *t = pn_file_tensor(f, "t");
        assert_string_equal(t->type, known[i].name);
        assert_int_equal(t->size, bytes);
        assert_int_equal(t->type_id, known[i].number);
        assert_int_equal(t->n_dims, 2);
        assert_int_equal(t->dims[0], 3);                    /* rows first */
        assert_int_equal(t->dims[1], 768);
        closes();
        if (known[i].elems > 1) {
            uint64_t odd[] = { known[i].elems + known[i].elems / 2, 2 };    /* the total would fit, the row does not */
            g_begin(&g, 3, 1, 0);
            g_tensor(&g, "t", 2, odd, known[i].number, 0);
            g_pad(&g, 32);
            for (int k = 0; k < 1000; k++)
                g_u8(&g, 0);
            refuses(PN_E_FORMAT, "'t'", "blocks of");
        }
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char number[32];
        float x[1];
        pn_error err = { 0 };
        g_begin(&g, 3, 1, 0);
        g_tensor(&g, "t", 2, dims, unknown[i], 0);
        g_pad(&g, 32), g_u8(&g, 0);
        opens();
        const pn_tensor *t = pn_file_tensor(f, "t");
        assert_null(t->type);
        assert_null(t->data);
        assert_int_equal(t->size, 0);
        assert_int_equal(t->type_id, unknown[i]);
        assert_int_equal(pn_file_tensor_f32(f, t, 0, 1, x, &err), PN_E_UNSUPPORTED);
        snprintf(number, sizeof number, "%u", (unsigned)unknown[i]);
        assert_non_null(strstr(err.message, "'t'"));
        assert_non_null(strstr(err.message, number));
        closes();
    }
}

static void shapes(void **state)
{
    static const uint64_t big[][2] = {
        {(uint64_t)1 << 63, 1},
        {(uint64_t)1 << 62, 1},
        {((uint64_t)1 << 62) + 2, 1},
        {(uint64_t)1 << 62, 4},
        {UINT64_MAX, UINT64_MAX},
        {((uint64_t)1 << 62) - 1, 1},
        {(uint64_t)1 << 32, (uint64_t)1 << 32},
        {(uint64_t)1 << 61, 1},
        {UINT64_MAX, 0},
    };
    uint64_t none[][2] = {{4, 0}, {0, 4}, {0, 0}}, eight[8] = {1, 1, 2, 1, 1, 2, 1, 1},
             nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        g_begin(&g, 3, 2, 0);
        g_tensor(&g, "huge", 2, big[i], 0, 0), g_tensor(&g, "b", 1, eight, 0, 0);
        g_pad(&g, 32), g_u64(&g, 0);
        refuses(PN_E_FORMAT, "'huge'", NULL);
    }
    for (size_t i = 0; i < 3; i++) {
        float x = 0;
        g_begin(&g, 3, 1, 0);
        g_tensor(&g, "a", 2, none[i], 0, 0);    /* and no data follows at all */
        opens();
        const pn_tensor *t = pn_file_tensor(f, "a");
        assert_int_equal(pn_tensor_elements(t), 0);
        assert_int_equal(t->size, 0);
        assert_int_equal(pn_file_tensor_f32(f, t, 0, 0, &x, NULL), PN_OK);
        assert_int_equal(pn_file_tensor_f32(f, t, 0, 1, &x, NULL), PN_E_RANGE);
        closes();
    }
    g_begin(&g, 3, 3, 0);
    g_tensor(&g, "scalar", 0, NULL, 0, 0), g_tensor(&g, "", 1, (uint64_t[]){2}, 0, 32),
        g_tensor(&g, "eight", 8, eight, 0, 64);
    g_pad(&g, 32);
    for (int i = 0; i < 24; i++)
        g_f32(&g, (float)i);
    opens();
    float x[4];
    const pn_tensor *t = pn_file_tensor(f, "scalar");
    assert_int_equal(pn_tensor_elements(t), 1);
    assert_int_equal(pn_file_tensor_f32(f, t, 0, 1, x, NULL), PN_OK);
    assert_true(x[0] == 0);
    assert_int_equal(pn_file_tensor_f32(f, pn_file_tensor(f, ""), 0, 2, x, NULL), PN_OK);
    assert_true(x[0] == 8 && x[1] == 9);
    assert_int_equal(pn_file_tensor_f32(f, pn_file_tensor(f, "eight"), 1, 3, x, NULL), PN_OK);
    assert_true(x[0] == 17 && x[2] == 19);
    closes();
    g_begin(&g, 3, 1, 0);
    g_tensor(&g, "nine", 9, nine, 0, 0);
    g_pad(&g, 32), g_u32(&g, 0);
    refuses(PN_E_FORMAT, "'nine'", "9 dimensions");
    g_begin(&g, 3, 1, 0);
    g_text(&g, "many"), g_u32(&g, UINT32_MAX), g_u64(&g, 0), g_u64(&g, 0);
    refuses(PN_E_FORMAT, "'many'", "dimensions");
}

static void places(void **state)
{
    static const uint64_t offsets[] = { (uint64_t)1 << 40, UINT64_MAX - 31, (uint64_t)1 << 63, 64 };
    uint64_t eight[] = { 8 };
    float x[8];
    (void)state;
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (uint32_t type = 0; type <= 99; type += 99) {
            g_begin(&g, 3, 1, 0);
            g_tensor(&g, "a", 1, eight, type, offsets[i]);
            g_pad(&g, 32);
            for (int k = 0; k < (type ? 7 : 15); k++)
                g_u32(&g, 0);
            refuses(PN_E_FORMAT, "'a' needs", "ends at byte");
        }
    g_begin(&g, 3, 1, 0);
    g_tensor(&g, "a", 1, eight, 0, 4);
    g_pad(&g, 32), g_u64(&g, 0);
    refuses(PN_E_FORMAT, "'a'", "no multiple of the alignment 32");

    /* Out of order, with a gap: each gets its own bytes. */
    g_begin(&g, 3, 2, 0);
    g_tensor(&g, "b", 1, eight, 0, 96), g_tensor(&g, "a", 1, eight, 0, 0);
    g_pad(&g, 32);
    for (int i = 0; i < 32; i++)
        g_f32(&g, (float)i);
    opens();
    assert_int_equal(pn_file_tensor_f32(f, pn_file_tensor(f, "a"), 0, 8, x, NULL), PN_OK);
    assert_true(x[0] == 0);
    assert_int_equal(pn_file_tensor_f32(f, pn_file_tensor(f, "b"), 0, 8, x, NULL), PN_OK);
    assert_true(x[0] == 24);
    assert_true(pn_str_is(pn_file_tensor_at(f, 0)->name, "b"));
    assert_null(pn_file_tensor_at(f, 2));
    closes();

    g_begin(&g, 3, 2, 0);
    g_tensor(&g, "a", 1, eight, 0, 0), g_tensor(&g, "a", 1, eight, 0, 32);
    g_pad(&g, 32);
    for (int i = 0; i < 16; i++)
        g_f32(&g, 0);
    refuses(PN_E_FORMAT, "'a'", "there twice");

    for (int swapped = 0; swapped < 2; swapped++) {
        uint64_t twelve[] = { 12 };
        g_begin(&g, 3, 2, 0);
        g_tensor(&g, swapped ? "second" : "first", 1, twelve, 0, swapped ? 32 : 0);
        g_tensor(&g, swapped ? "first" : "second", 1, twelve, 0, swapped ? 0 : 32);
        g_pad(&g, 32);
        for (int i = 0; i < 32; i++)
            g_f32(&g, 0);
        refuses(PN_E_FORMAT, "'first' and 'second' overlap", NULL);
    }
}

/* A tensor beyond 4 GiB, in a file of holes. */
static void beyond_four_gib(void **state)
{
    const uint64_t far = ((uint64_t)4 << 30) + 32;
    const char *tmp = getenv("TMPDIR");
    char path[600];
    uint64_t two[] = { 2 };
    (void)state;
    if (sizeof(size_t) < 8) {
        print_message("# skip: such a file does not fit this machine's addresses\n");
        skip();
    }
    g_begin(&g, 3, 1, 0);
    g_tensor(&g, "far", 1, two, 0, far);
    g_pad(&g, 32);
    snprintf(path, sizeof path, "%s/far-XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    float x[2] = { 1, 2 };
    assert_int_equal(write(fd, g.data, g.size), g.size);
    int done = pwrite(fd, x, sizeof x, (off_t)(far + g.size)) == sizeof x;
    close(fd);
    if (!done) {
        unlink(path);
        print_message("# skip: the file system of %s has no files of holes this large\n", path);
        skip();
    }
    pn_error err = { 0 };
    pn_status st = pn_file_open(rt, path, &f, &err);
    unlink(path);
    if (st)
        fail_msg("%s", err.message);
    x[0] = x[1] = 0;
    assert_int_equal(pn_file_tensor_f32(f, pn_file_tensor(f, "far"), 0, 2, x, NULL), PN_OK);
    assert_true(x[0] == 1 && x[1] == 2);
    assert_int_equal(pn_file_mapped(f), 1);
    assert_true(pn_file_bytes(f) > far);
    closes();
}

/* A vocabulary of 250,000 tokens, and as many keys: found by hash, in memory that is a small multiple of the file. */
static void large_vocabulary(void **state)
{
    const uint32_t n = 250000;
    char text[32];
    (void)state;
    g_begin(&g, 3, 0, n + 1);
    g_key_array(&g, "tokenizer.ggml.tokens", G_STR, n);
    for (uint32_t i = 0; i < n; i++)
        snprintf(text, sizeof text, "token%u", (unsigned)i), g_text(&g, text);
    for (uint32_t i = 0; i < n; i++)
        snprintf(text, sizeof text, "key%u", (unsigned)i), g_key_u32(&g, text, i);
    memwatch_begin(0);
    opens();
    assert_true(memwatch_peak() < (int64_t)g.size * 16);
    for (uint32_t i = 0; i < n; i += 997) {
        snprintf(text, sizeof text, "key%u", (unsigned)i);
        assert_int_equal(pn_file_int(f, text, -1), i);
        snprintf(text, sizeof text, "token%u", (unsigned)i);
        pn_value item = pn_value_at(pn_file_value(f, "tokenizer.ggml.tokens"), i);
        assert_true(pn_str_is(item.as.s, text));
    }
    closes();
    assert_int_equal(memwatch_live(), 0);
    memwatch_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_value_types),
        cmocka_unit_test(arrays_within_arrays),
        cmocka_unit_test(counts_that_lie),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(every_bit_turned),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(versions_and_byte_order),
        cmocka_unit_test(keys),
        cmocka_unit_test(alignments),
        cmocka_unit_test(padding),
        cmocka_unit_test(type_table),
        cmocka_unit_test(shapes),
        cmocka_unit_test(places),
        cmocka_unit_test(beyond_four_gib),
        cmocka_unit_test(large_vocabulary),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

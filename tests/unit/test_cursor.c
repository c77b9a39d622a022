/* The cursor over hostile bytes: no read past the end, no sum that wraps, the first error sticks with its place. */
#include <pantheon/kit/cursor.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/* The bytes lie at the very end of an allocation, so that a sanitizer sees a read past them. */
static unsigned char *exactly(const void *p, size_t n)
{
    unsigned char *m = malloc(n ? n : 1);
    assert_non_null(m);
    memcpy(m, p, n);
    return m;
}

static void numbers_of_every_width(void **state)
{
    unsigned char raw[1 + 1 + 1 + 2 + 2 + 4 + 4 + 8 + 8 + 4 + 8], *p = raw;
    uint8_t a = 200; int8_t b = -3; uint16_t c = 60000; int16_t d = -3000; uint32_t e = 4000000000u; int32_t f = -5;
    uint64_t g = UINT64_MAX - 1; int64_t h = INT64_MIN; float i = 1.5f; double j = -2.25;
    (void)state;
    *p++ = 0;   /* everything after it is unaligned */
    memcpy(p, &a, 1); p += 1; memcpy(p, &b, 1); p += 1; memcpy(p, &c, 2); p += 2; memcpy(p, &d, 2); p += 2;
    memcpy(p, &e, 4); p += 4; memcpy(p, &f, 4); p += 4; memcpy(p, &g, 8); p += 8; memcpy(p, &h, 8); p += 8;
    memcpy(p, &i, 4); p += 4; memcpy(p, &j, 8); p += 8;
    unsigned char *m = exactly(raw, sizeof raw);
    pn_cursor cur = pn_cursor_begin(m, sizeof raw);
    pn_cursor_skip(&cur, 1, "x");
    assert_int_equal(pn_cursor_u8(&cur, "x"), a);
    assert_int_equal(pn_cursor_i8(&cur, "x"), b);
    assert_int_equal(pn_cursor_u16(&cur, "x"), c);
    assert_int_equal(pn_cursor_i16(&cur, "x"), d);
    assert_true(pn_cursor_u32(&cur, "x") == e);
    assert_int_equal(pn_cursor_i32(&cur, "x"), f);
    assert_true(pn_cursor_u64(&cur, "x") == g);
    assert_true(pn_cursor_i64(&cur, "x") == h);
    assert_true(pn_cursor_f32(&cur, "x") == i);
    assert_true(pn_cursor_f64(&cur, "x") == j);
    assert_int_equal(pn_cursor_left(&cur), 0);
    assert_int_equal(pn_cursor_status(&cur, "f", NULL), PN_OK);
    assert_int_equal(pn_cursor_u8(&cur, "one more"), 0);
    assert_int_equal(pn_cursor_status(&cur, "f", NULL), PN_E_FORMAT);
    free(m);
}

static void first_error_sticks(void **state)
{
    unsigned char *m = exactly("\1\2\3\4\5\6", 6);
    pn_error err = { 0 };
    (void)state;
    pn_cursor c = pn_cursor_begin(m, 6);
    pn_cursor_u32(&c, "first");
    assert_true(pn_cursor_u32(&c, "second") == 0);      /* 2 bytes are left */
    assert_false(pn_cursor_ok(&c));
    assert_int_equal(pn_cursor_u8(&c, "third"), 0);     /* although a byte is there */
    assert_null(pn_cursor_take(&c, 0, "fourth"));
    pn_cursor_fail(&c, "fifth", 1, 2);
    assert_int_equal(c.pos, 4);
    assert_int_equal(pn_cursor_status(&c, "some.file", &err), PN_E_FORMAT);
    assert_int_equal(err.status, PN_E_FORMAT);
    assert_int_equal(err.offset, 4);
    assert_non_null(strstr(err.message, "some.file"));
    assert_non_null(strstr(err.message, "byte 4"));
    assert_non_null(strstr(err.message, "second needs 4 bytes"));
    free(m);
}

static void sums_do_not_wrap(void **state)
{
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_MAX / 2 + 1, (uint64_t)1 << 61,
                                    0x0555555555555556};
    unsigned char *m = exactly("abcdefgh", 8);
    (void)state;
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        pn_cursor c = pn_cursor_begin(m, 8);
        pn_cursor_u8(&c, "x");
        assert_null(pn_cursor_take(&c, huge[i], "take"));
        c = pn_cursor_begin(m, 8);
        assert_null(pn_cursor_items(&c, huge[i], 8, "items"));
        c = pn_cursor_begin(m, 8);
        assert_null(pn_cursor_items(&c, huge[i], 48, "items"));
        c = pn_cursor_begin(m, 8);
        assert_null(pn_cursor_str(&c, huge[i], UINT64_MAX, "text").data);
        assert_int_equal(c.pos, 0);
    }
    pn_cursor c = pn_cursor_begin(m, 8);
    c.pos = 3;
    assert_true(pn_cursor_aligned(&c, UINT64_MAX) == UINT64_MAX);
    c.size = c.pos = UINT64_MAX - 2;
    assert_true(pn_cursor_aligned(&c, 16) == UINT64_MAX);
    free(m);
}

static void strings(void **state)
{
    unsigned char raw[8 + 3 + 4 + 2 + 8 + 1];
    uint64_t three = 3, too_long = 2;
    uint32_t two = 2;
    (void)state;
    memcpy(raw, &three, 8); memcpy(raw + 8, "abc", 3); memcpy(raw + 11, &two, 4); memcpy(raw + 15, "de", 2);
    memcpy(raw + 17, &too_long, 8); raw[25] = 'f';
    unsigned char *m = exactly(raw, sizeof raw);
    pn_cursor c = pn_cursor_begin(m, sizeof raw);
    assert_true(pn_str_is(pn_cursor_str_u64(&c, 3, "a"), "abc"));
    assert_true(pn_str_is(pn_cursor_str_u32(&c, 9, "b"), "de"));
    pn_str s = pn_cursor_str_u64(&c, 9, "c");
    assert_null(s.data);
    assert_int_equal(s.size, 0);
    assert_int_equal(c.pos, 17);                        /* of its length */
    c = pn_cursor_begin(m, sizeof raw);
    pn_cursor_str_u64(&c, 2, "bounded");
    assert_false(pn_cursor_ok(&c));
    assert_int_equal(c.found, 3);
    assert_int_equal(c.limit, 2);
    free(m);
}

static void alignment(void **state)
{
    unsigned char *m = exactly("0123456789abcdef", 16);
    pn_cursor c = pn_cursor_begin(m, 16);
    (void)state;
    pn_cursor_align(&c, 8, "pad");
    assert_int_equal(c.pos, 0);                         /* aligned already: nothing is added */
    pn_cursor_skip(&c, 8, "x");
    pn_cursor_align(&c, 8, "pad");
    assert_int_equal(c.pos, 8);
    pn_cursor_skip(&c, 1, "x");
    pn_cursor_align(&c, 3, "pad");
    assert_int_equal(c.pos, 9);
    pn_cursor_align(&c, 24, "pad");
    assert_false(pn_cursor_ok(&c));
    assert_int_equal(c.pos, 9);
    free(m);
}

static void nothing(void **state)
{
    pn_cursor c = pn_cursor_begin(NULL, 100);
    (void)state;
    assert_int_equal(pn_cursor_left(&c), 0);
    assert_non_null(pn_cursor_take(&c, 0, "nothing"));
    assert_null(pn_cursor_take(&c, 1, "something"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_width),
        cmocka_unit_test(first_error_sticks),
        cmocka_unit_test(sums_do_not_wrap),
        cmocka_unit_test(strings),
        cmocka_unit_test(alignment),
        cmocka_unit_test(nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Text from tokens: characters and stop strings that span tokens, whatever way the bytes are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../tools/stream.c"

typedef struct shown {
    char text[4096];
    size_t size;
    int writes;
} shown;

static int take(void *arg, const char *text, size_t size)
{
    shown *s = arg;
    assert_true(s->size + size < sizeof s->text);
    memcpy(s->text + s->size, text, size);
    s->size += size;
    s->text[s->size] = 0;
    s->writes++;
    /* Every write is valid UTF-8 by itself. */
    for (size_t i = 0; i < size;) {
        int n = tool_utf8_next(text + i, size - i, NULL);
        assert_true(n > 0);
        i += (size_t)n;
    }
    return 0;
}

/* Push `bytes` in pieces of `piece`; the text shown, finished. */
static const char *through(shown *out, const char *bytes, size_t n, size_t piece, const char *const *stops,
                           bool *stopped)
{
    tool_stream s;
    memset(out, 0, sizeof *out);
    tool_stream_begin(&s, take, out);
    for (size_t i = 0; stops && stops[i]; i++)
        assert_int_equal(tool_stream_stop(&s, stops[i]), 0);
    *stopped = false;
    for (size_t i = 0; i < n && !*stopped; i += piece) {
        int r = tool_stream_push(&s, bytes + i, n - i < piece ? n - i : piece);
        assert_true(r >= 0);
        *stopped = r == 1;
    }
    assert_int_equal(tool_stream_finish(&s), 0);
    tool_stream_end(&s);
    return out->text;
}

static void assert_all_cuts(const char *bytes, size_t n, const char *const *stops, const char *want, bool stops_it)
{
    shown out;
    bool stopped;
    for (size_t piece = 1; piece <= n; piece++) {
        assert_string_equal(through(&out, bytes, n, piece, stops, &stopped), want);
        assert_int_equal(stopped, stops_it);
    }
}

static void characters(void **state)
{
    (void)state;
    assert_all_cuts("a\xC3\xA9\xE6\xAD\xAA\xF0\x9F\x98\x80z", 11, NULL, "aé歪😀z", false);
    /* Broken ones: one replacement for each longest part that could have begun a character. */
    assert_all_cuts("a\xFFz", 3, NULL, "a\xEF\xBF\xBDz", false);
    assert_all_cuts("\xE6\xADz", 3, NULL, "\xEF\xBF\xBDz", false);
    assert_all_cuts("\xF0\x9F\x98", 3, NULL, "\xEF\xBF\xBD", false);            /* unfinished at the end */
    assert_all_cuts("\xC0\x80", 2, NULL, "\xEF\xBF\xBD\xEF\xBF\xBD", false);    /* overlong */
    assert_all_cuts("\xED\xA0\x80", 3, NULL, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", false);    /* surrogate */
    assert_all_cuts("\xF4\x90\x80\x80", 4, NULL, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", false);
    assert_all_cuts("\x80z", 2, NULL, "\xEF\xBF\xBDz", false);
    assert_all_cuts("a\0b", 3, NULL, "a", false);   /* as a C string; the next check sees the rest */
}

static void zero_byte(void **state)
{
    shown out;
    bool stopped;
    (void)state;
    through(&out, "a\0b", 3, 1, NULL, &stopped);
    assert_int_equal(out.size, 3);
    assert_memory_equal(out.text, "a\0b", 3);
}

/* Three tokens that make one character: nothing until it is whole, then all of it at once. */
static void emoji_at_once(void **state)
{
    tool_stream s;
    shown out = { .size = 0 };
    (void)state;
    tool_stream_begin(&s, take, &out);
    assert_int_equal(tool_stream_push(&s, "\xF0\x9F", 2), 0);
    assert_int_equal(tool_stream_push(&s, "\x98", 1), 0);
    assert_int_equal(out.writes, 0);
    assert_int_equal(tool_stream_push(&s, "\x80", 1), 0);
    assert_int_equal(out.writes, 1);
    assert_string_equal(out.text, "😀");
    assert_int_equal(tool_stream_push(&s, "\xF0\x9F", 2), 0);
    assert_int_equal(out.writes, 1);
    assert_int_equal(tool_stream_finish(&s), 0);
    assert_string_equal(out.text, "😀\xEF\xBF\xBD");
    tool_stream_end(&s);
}

static void stop_strings(void **state)
{
    static const char *const one[] = { "7 8", NULL }, *const two[] = { "abcd", "bc", NULL };
    static const char *const repeated[] = { "aab", NULL }, *const wide[] = { "é", NULL }, *const none[] = { "", NULL };
    (void)state;
    assert_all_cuts(" 6 7 8 9", 8, one, " 6 ", true);
    assert_all_cuts(" 6 7 9", 6, one, " 6 7 9", false);
    assert_all_cuts(" 6 7 ", 5, one, " 6 7 ", false);       /* held, then shown at the end */
    assert_all_cuts("7 8", 3, one, "", true);
    assert_all_cuts("7 7 8", 5, one, "7 ", true);           /* a second beginning inside the first */
    assert_all_cuts("aaab", 4, repeated, "a", true);
    assert_all_cuts("x\xC3\xA9y", 4, wide, "x", true);
    assert_all_cuts("x\xC3\xA8y", 4, wide, "xèy", false);
    assert_all_cuts("x\xC3", 2, wide, "x\xEF\xBF\xBD", false);
    assert_all_cuts("abc", 3, none, "abc", false);
    assert_all_cuts("xabcd", 5, two, "xa", true);           /* the one that is whole first */
}

/* After a stop nothing more is shown, and the stream can be used again with the same stop strings. */
static void used_again(void **state)
{
    tool_stream s;
    shown out = { .size = 0 };
    (void)state;
    tool_stream_begin(&s, take, &out);
    assert_int_equal(tool_stream_stop(&s, "END"), 0);
    assert_int_equal(tool_stream_push(&s, "aEND and more", 13), 1);
    assert_int_equal(tool_stream_push(&s, "b", 1), 1);
    assert_int_equal(tool_stream_finish(&s), 0);
    assert_string_equal(out.text, "a");
    assert_int_equal(tool_stream_push(&s, "cE", 2), 0);
    assert_string_equal(out.text, "ac");
    assert_int_equal(tool_stream_push(&s, "ND", 2), 1);
    assert_int_equal(tool_stream_finish(&s), 0);
    assert_string_equal(out.text, "ac");
    tool_stream_end(&s);
}

static int refuse(void *arg, const char *text, size_t size)
{
    (void)arg; (void)text; (void)size;
    return -1;
}

static void unwritable(void **state)
{
    tool_stream s;
    (void)state;
    tool_stream_begin(&s, refuse, NULL);
    assert_int_equal(tool_stream_push(&s, "a", 1), -1);
    assert_int_equal(tool_stream_push(&s, "b", 1), -1);
    assert_int_equal(tool_stream_finish(&s), -1);
    tool_stream_end(&s);
}

/* Random bytes in random pieces: always valid, and the same however they are cut. */
static void random_bytes(void **state)
{
    uint32_t seed = 12345;
    static const char *const stops[] = { "\xC3\xA9x", "zz", NULL };
    (void)state;
    for (int round = 0; round < 2000; round++) {
        static const char pool[] = "az\xC3\xA9\xE6\xAD\xAA\xF0\x9F\x98\x80\xFF\xED\xA0x";
        char bytes[24];
        shown a, b;
        bool sa, sb;
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = pool[(seed = seed * 1664525u + 1013904223u) >> 16 & 0xFF ? (seed >> 20) % (sizeof pool - 1) : 0];
        through(&a, bytes, sizeof bytes, 1, stops, &sa);
        through(&b, bytes, sizeof bytes, 1 + (seed >> 24) % 7, stops, &sb);
        assert_int_equal(sa, sb);
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.text, b.text, a.size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters), cmocka_unit_test(zero_byte), cmocka_unit_test(emoji_at_once),
        cmocka_unit_test(stop_strings), cmocka_unit_test(used_again), cmocka_unit_test(unwritable),
        cmocka_unit_test(random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The INI reader alone: every crafted file, encodings, quotes, long lines, and that nothing is cut or merged. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "config.h"

#include <ini.h>
#include <pthread.h>
#include <stdlib.h>

/* What the reader handed over, as "[section] key=value" lines; sections as "[section]". */
typedef struct record {
    char text[8192];
    size_t size;
    size_t lines[64], n;
} record;

static pn_status note(void *arg, const pn_ini_line *line, pn_error *err)
{
    record *r = arg;
    (void)err;
    assert_true(r->n < 64);
    r->lines[r->n++] = line->line;
    int n = line->key ? snprintf(r->text + r->size, sizeof r->text - r->size, "%s|%s|%s\n", line->section, line->key,
                                 line->value)
                      : snprintf(r->text + r->size, sizeof r->text - r->size, "[%s]\n", line->section);
    r->size += (size_t)n;
    assert_true(r->size < sizeof r->text);
    return PN_OK;
}

static pn_status read_text(const char *text, size_t size, record *r, pn_error *err)
{
    memset(r, 0, sizeof *r);
    *err = (pn_error){0};
    /* A copy of exactly this size, so that a sanitizer sees reads past it. */
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    pn_status status = pn_ini_read("t.ini", copy, size, note, r, err);
    free(copy);
    return status;
}

static void expect(const char *text, const char *wanted)
{
    record r;
    pn_error err;
    if (read_text(text, strlen(text), &r, &err) != PN_OK) fail_msg("%s: %s", text, err.message);
    assert_string_equal(r.text, wanted);
}

static void refuse_bytes(const char *text, size_t size, const char *words)
{
    record r;
    pn_error err;
    if (read_text(text, size, &r, &err) != PN_E_CONFIG) fail_msg("not refused: %s", text);
    assert_int_equal(r.n, 0); /* nothing is handed over from a text that is refused */
    if (!strstr(err.message, words)) fail_msg("'%s' lacks '%s'", err.message, words);
}

static void refuse(const char *text, const char *words)
{
    refuse_bytes(text, strlen(text), words);
}

static char *read_case(const char *name, size_t *size)
{
    char path[256];
    snprintf(path, sizeof path, "tests/data/ini/%s", name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s: not there (run from the source tree)", path);
    char *bytes = calloc(1, 4096);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 4095, f);
    fclose(f);
    return bytes;
}

static void expect_case(const char *name, const char *wanted)
{
    size_t size;
    char *bytes = read_case(name, &size);
    record r;
    pn_error err;
    if (read_text(bytes, size, &r, &err) != PN_OK) fail_msg("%s: %s", name, err.message);
    assert_string_equal(r.text, wanted);
    free(bytes);
}

static void refuse_case(const char *name, const char *words)
{
    size_t size;
    char *bytes = read_case(name, &size);
    refuse_bytes(bytes, size, words);
    free(bytes);
}

#define K60 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define S49 "sssssssssssssssssssssssssssssssssssssssssssssssss"

/* The values of long files are whatever follows '=' in their second line. */
static void whole_second_line(const char *name)
{
    size_t size;
    char *bytes = read_case(name, &size), *value = strchr(strchr(bytes, '\n'), '=') + 1;
    size_t length = strcspn(value, "\n");
    record r;
    pn_error err;
    assert_int_equal(read_text(bytes, size, &r, &err), PN_OK);
    char *got = strstr(r.text, "|path|");
    assert_non_null(got);
    assert_int_equal(strcspn(got + 6, "\n"), length);
    assert_memory_equal(got + 6, value, length);
    assert_non_null(strstr(r.text, "|k|1\n"));
    assert_int_equal(r.n, 3);
    free(bytes);
}

/* Long lines, long names, indented keys, byte order mark, CRLF, lone CR, UTF-16, zero bytes: each crafted file is read
 * whole or refused with its line. */
static void test_cases(void **state)
{
    (void)state;
    expect_case("bom", "[model]\nmodel|path|/m/a.gguf\n");
    expect_case("colon", "[m]\nm|url|http://h:80/x\nm|win|C:\\x y\\a.gguf\nm|p|a=b\n");
    refuse_case("contkey", "t.ini:3: ");
    refuse_case("cr", "t.ini:1: a carriage return");
    expect_case("crlf", "[model]\nmodel|path|/m/a.gguf\n");
    refuse_case("empty", "t.ini:3: a value without a key");
    expect_case("indent", "[m]\nm|a|1\nm|b|2\nm|c|3\n");
    whole_second_line("long");
    whole_second_line("long198");
    whole_second_line("longdir");
    refuse_case("nul", "t.ini:2: ");
    expect_case("noeol", "[m]\nm|a|1\n");
    expect_case("sec2", "[" S49 "A]\n" S49 "A|k|1\n[" S49 "B]\n" S49 "B|k|2\n");
    expect_case("uni",
                "[m]\nm|path|/\320\274\320\276\320\264\320\265\320\273\320\270/\346\250\241\345\236\213 a.gguf\n");
    refuse_case("utf16", "UTF-16");
}

static void test_long_names(void **state)
{
    (void)state;
    size_t size;
    char *bytes = read_case("longkey", &size), *second = strstr(bytes, "2=2");
    record r;
    pn_error err;
    assert_non_null(second);
    assert_int_equal(read_text(bytes, size, &r, &err), PN_OK);
    assert_int_equal(r.n, 3);
    assert_non_null(strstr(r.text, K60)); /* two keys, alike in their first 60 bytes, stay two */
    assert_non_null(strstr(r.text, "k|1\n"));
    assert_non_null(strstr(r.text, "k2|2\n"));
    free(bytes);
    bytes = read_case("longsec", &size);
    assert_int_equal(read_text(bytes, size, &r, &err), PN_OK);
    assert_int_equal(strcspn(r.text, "]"), strcspn(bytes, "]"));
    free(bytes);
}

static void test_separators(void **state)
{
    (void)state;
    expect("", "");
    expect("\n\n; x\n  # y\n\t\n", "");
    expect("a=1", "|a|1\n");
    expect("[s]\na = b = c : d\nb: x=y\nc==\nd = =\ne = ;f\ng=#h\n",
           "[s]\ns|a|b = c : d\ns|b|x=y\ns|c|=\ns|d|=\ns|e|;f\ns|g|#h\n");
    expect("[s]\nuser = hi ; there\nx = a#b\n", "[s]\ns|user|hi ; there\ns|x|a#b\n");
    expect("[ s ] ; note\n  key with blanks\t=\t v \t\n[t]#\n", "[s]\ns|key with blanks|v\n[t]\n");
    expect("[s]\na=\nb= \nc=\"\"\nd=''\n", "[s]\ns|a|\ns|b|\ns|c|\ns|d|\n");
    expect("[s]\na=1\n b=2\n\tc=3\n  ; no\n", "[s]\ns|a|1\ns|b|2\ns|c|3\n");
    expect("[s]\r\na=1\r\n\r\nb=2", "[s]\ns|a|1\ns|b|2\n");
    refuse("[s]\na\n", "t.ini:2: neither");
    refuse("[s\na=1\n", "t.ini:1: a section begins");
    refuse("[s] a=1\n", "t.ini:1: text follows");
    refuse("[s]\n=1\n", "t.ini:2: a value without");
    refuse("[s]\n : 1\n", "t.ini:2: a value without");
}

static void test_line_numbers(void **state)
{
    record r;
    pn_error err;
    static const char text[] = "; c\n\n[s]\r\n\r\na=1\n;\nb=2\n\n\n[t]\nc=3";
    static const size_t wanted[] = {3, 5, 7, 10, 11};
    (void)state;
    assert_int_equal(read_text(text, strlen(text), &r, &err), PN_OK);
    assert_int_equal(r.n, 5);
    for (size_t i = 0; i < 5; i++) assert_int_equal(r.lines[i], wanted[i]);
}

static void test_quotes(void **state)
{
    (void)state;
    expect("a=\"/a b/m\"", "|a|/a b/m\n");
    expect("a=\"  x;y #z  \"", "|a|  x;y #z  \n");
    expect("a='  x\\n\"  '", "|a|  x\\n\"  \n");
    expect("a=\"it's\"", "|a|it's\n");
    expect("a=it's \"so\"", "|a|it's \"so\"\n");
    expect("a=x\"", "|a|x\"\n");
    expect("a=\"<|im_start|>user\\n\"", "|a|<|im_start|>user\n\n");
    expect("a=\"\\t\\r\\\\\\\"\"", "|a|\t\r\\\"\n");
    expect("a=\"\\u00e9\\u20AC\\U0001F600\\u0041\\u07ff\"", "|a|\303\251\342\202\254\360\237\230\200A\337\277\n");
    expect("a=\\n", "|a|\\n\n");
    refuse("a=\"x", "no closing");
    refuse("a='x", "no closing");
    refuse("a=\"", "no closing");
    refuse("a='", "no closing");
    refuse("a=\"x\\\"", "no closing");
    refuse("a=\"x\" y", "text follows");
    refuse("a=\"x\" ; y", "text follows");
    refuse("a='it's'", "text follows");
    refuse("[s]\n\na=\"\\x41\"", "t.ini:3: in double quotes");
    refuse("a=\"\\", "in double quotes");
    refuse("a=\"\\u12\"", "hexadecimal");
    refuse("a=\"\\u12", "hexadecimal");
    refuse("a=\"\\u0000\"", "hexadecimal");
    refuse("a=\"\\ud800\"", "hexadecimal");
    refuse("a=\"\\U00110000\"", "hexadecimal");
    refuse("a=\"\\uffgf\"", "hexadecimal");
}

static void test_encodings(void **state)
{
    (void)state;
    expect("\xef\xbb\xbf", "");
    expect("\xef\xbb\xbf[s]\na=1\n", "[s]\ns|a|1\n");
    refuse("\xef\xbb\xbf\xef\xbb\xbf[s]\na=1\n", "t.ini:1: neither"); /* one mark is a mark, the second is text */
    refuse("\xfe\xff\0[", "UTF-16");
    refuse_bytes("[\0s\0]\0\n\0", 8, "zero byte");
    refuse_bytes("a=1\0", 4, "t.ini:1: ");
    refuse("a=1\rb=2\n", "carriage return");
    refuse("a=1\n\nb=2\r", "t.ini:3: a carriage return");
    refuse("a=1\r\r\n", "carriage return");
    refuse("[s]\na=\x1b[31m\n", "t.ini:2: the line holds a control character (0x1b)");
    refuse("a=\x7f\n", "0x7f");
    refuse("a=\x0b\n", "0x0b");
    refuse("[s]\na=\xff\n", "t.ini:2: byte 0xff");
    refuse("a=\xc3", "0xc3");             /* cut */
    refuse("a=\xc0\xaf", "0xc0");         /* overlong */
    refuse("a=\xe0\x80\xaf", "0xe0");     /* overlong */
    refuse("a=\xed\xa0\x80", "0xed");     /* surrogate */
    refuse("a=\xf4\x90\x80\x80", "0xf4"); /* past the end */
    refuse("a=\x80", "0x80");
    refuse("; \xe9t\xe9\na=1\n", "t.ini:1: byte 0xe9"); /* in comments too: the file is of another encoding */
    expect("a=\xf4\x8f\xbf\xbf\xc2\xa0", "|a|\xf4\x8f\xbf\xbf\xc2\xa0\n"); /* a no-break space is text */
}

static void test_error_offset(void **state)
{
    record r;
    pn_error err;
    (void)state;
    assert_int_equal(read_text("\xef\xbb\xbf[s]\na=\xff\n", 11, &r, &err), PN_E_CONFIG);
    assert_int_equal(err.offset, 9);
    assert_int_equal(err.status, PN_E_CONFIG);
}

/* Lines of every length around powers of two and the library's own sizes, and one of a megabyte. */
static void test_lengths(void **state)
{
    static const size_t lengths[] = {0,   1,   40,  49,  50,  51,  190,  196,  197,
                                     198, 199, 200, 201, 255, 256, 4095, 4096, 1 << 20};
    static const char *const ends[] = {"", "\n", "\r\n"};
    static const char head[] = "[model]\nname=";
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int e = 0; e < 3; e++) {
            size_t n = lengths[i], at = sizeof head - 1;
            char *text = malloc(at + n + 3);
            pn_config *config;
            pn_error err = {0};
            assert_non_null(text);
            memcpy(text, head, at);
            for (size_t j = 0; j < n; j++) text[at + j] = (char)('a' + j % 26);
            strcpy(text + at + n, ends[e]);
            assert_int_equal(pn_config_create(&config, &err), PN_OK);
            assert_int_equal(pn_config_load_text(config, "t.ini", text, at + n + strlen(ends[e]), &err), PN_OK);
            const char *got = pn_config_text(config, "model", "name");
            assert_int_equal(strlen(got), n);
            assert_memory_equal(got, text + at, n);
            pn_config_destroy(config);
            free(text);
        }
}

/* The library's settings are the process's: a host program that uses inih finds its own ones. */
static void test_settings_restored(void **state)
{
    record r;
    pn_error err;
    (void)state;
    ini_max_line = 77;
    ini_allow_multiline = true;
    ini_allow_inline_comments = true;
    ini_use_stack = true;
    assert_int_equal(read_text("a=1", 3, &r, &err), PN_OK);
    assert_int_equal(ini_max_line, 77);
    assert_true(ini_allow_multiline && ini_allow_inline_comments && ini_use_stack);
    assert_false(ini_stop_on_first_error);
    assert_int_equal(read_text("a=\"", 3, &r, &err), PN_E_CONFIG);
    assert_int_equal(ini_max_line, 77);
    ini_max_line = 200;
}

static pn_status count(void *arg, const pn_ini_line *line, pn_error *err)
{
    (void)err;
    *(size_t *)arg += line->value ? strlen(line->value) : 0;
    return PN_OK;
}

static void *read_often(void *arg)
{
    size_t *total = arg;
    char text[1024];
    for (size_t n = 1; n <= 400; n++) {
        memcpy(text, "a=", 2);
        memset(text + 2, 'x', n);
        if (pn_ini_read("t", text, n + 2, count, total, NULL) != PN_OK) *total = 1;
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];
    size_t totals[4] = {0};
    (void)state;
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_often, &totals[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(totals[i], 400 * 401 / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_separators),
        cmocka_unit_test(test_line_numbers),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_error_offset),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_settings_restored),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

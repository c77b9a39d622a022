/* The SentencePiece plugin on real vocabularies: ids that independent programs give, the test vectors that come with
 * the vocabularies, pieces decoded one by one, round trips of random text. scripts/fetch-vocab.sh fetches them. */
#include "ggufmake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const char *const names[] = { "llama-spm", "phi-3" };
#define N_NAMES (sizeof names / sizeof *names)

static pn_runtime *rt;
static const char *name;        /* of the vocabulary that is open */
static pn_file *file;
static pn_tokenizer *tok;

static void vocab_path(const char *suffix, char *path, size_t capacity)
{
    const char *root = getenv("PN_ROOT");
    snprintf(path, capacity, "%s/build/models/vocab/ggml-vocab-%s.gguf%s", root ? root : ".", name, suffix);
}

/* Opens the vocabulary, or skips the test. */
static void open_name(const char *which)
{
    char path[4096];
    pn_error err = { 0 };
    FILE *f;
    name = which;
    vocab_path("", path, sizeof path);
    f = fopen(path, "rb");
    if (!f) {
        print_message("# skip: download of the vocabulary %s failed\n", name);
        skip();
    }
    fclose(f);
    if (pn_file_open(rt, path, &file, &err) || pn_tokenizer_create(rt, file, &tok, &err))
        fail_msg("%s", err.message);
}

static void closed(void)
{
    pn_tokenizer_destroy(tok);
    pn_file_destroy(file);
}

static char *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    size_t room = 1 << 16;
    char *text = malloc(room);
    if (!f || !text)
        fail_msg("%s cannot be read", path);
    *size = fread(text, 1, room - 1, f);
    fclose(f);
    text[*size] = 0;
    return text;
}

/* `want`: "1 2 3". */
static void check(const char *text, size_t size, uint32_t flags, const char *want)
{
    static char got[1 << 16];
    int32_t ids[8192];
    pn_error err = { 0 };
    size_t n = 0, i, at = 0;
    if (pn_tokenizer_encode(tok, text, size, flags, ids, 8192, &n, &err))
        fail_msg("%s: %s", name, err.message);
    got[0] = 0;
    for (i = 0; i < n; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, i ? " %d" : "%d", (int)ids[i]);
    if (strcmp(got, want))
        fail_msg("%s, text \"%.*s\": got %s, wanted %s", name, (int)size, text, got, want);
}

/* ---- tests/data/tokens/spm.txt ----------------------------------------------------------------------------------- */

static size_t unescape(char *text)
{
    char *out = text, *in = text, hex[3] = { 0 };
    while (*in)
        if (in[0] == '\\' && in[1] == 'x') {
            memcpy(hex, in + 2, 2);
            *out++ = (char)strtol(hex, NULL, 16);
            in += 4;
        } else {
            *out++ = *in++;
        }
    return (size_t)(out - text);
}

static void test_table(void **state)
{
    const char *root = getenv("PN_ROOT");
    char path[4096], *line, *rest, *all;
    size_t size, n = 0;
    open_name(*state);
    snprintf(path, sizeof path, "%s/tests/data/tokens/spm.txt", root ? root : ".");
    rest = all = slurp(path, &size);
    while ((line = strsep(&rest, "\n"))) {
        char *which = strsep(&line, "\t"), *kind = strsep(&line, "\t"), *text = strsep(&line, "\t");
        if (*which == '#' || !text || strcmp(which, name))
            continue;
        check(text, unescape(text), *kind == 's' ? PN_ENCODE_SPECIAL : 0, line);
        n++;
    }
    free(all);
    closed();
    assert_true(n >= 5);
}

/* ---- the vectors of the package ---------------------------------------------------------------------------------- */

static void test_vectors(void **state)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    const char *at, *next;
    char path[4096], *texts, *want, *rest;
    size_t size, n = 0;
    open_name(*state);
    vocab_path(".inp", path, sizeof path);
    texts = slurp(path, &size);
    vocab_path(".out", path, sizeof path);
    rest = want = slurp(path, &size);
    for (at = texts; (next = strstr(at, separator)); at = next + sizeof separator - 1) {
        char *ids = strsep(&rest, "\n");
        assert_non_null(ids);
        while (*ids == ' ')
            ids++;
        check(at, (size_t)(next - at), 0, ids);
        n++;
    }
    free(texts);
    free(want);
    closed();
    assert_true(n > 40);
}

/* ---- text that comes in ------------------------------------------------------------------------------------------ */

static void test_flags(void **state)
{
    open_name(*state);
    check("Hello", 5, PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "1 15043");
    check("Hello", 5, PN_ENCODE_CONTINUED, "10994");
    check("", 0, PN_ENCODE_ADD_BOS, "1");
    /* Bad bytes are themselves; what is well-formed around them stays. */
    check("\xe6\xad", 2, 0, "29871 233 176");
    check("\xff", 1, 0, "29871 258");
    check("\xed\xa0\x80", 3, PN_ENCODE_CONTINUED, "240 163 131");
    check("<s>", 3, 0, "529 29879 29958");
    closed();
}

static void test_bytes_one_by_one(void **state)
{
    static const int32_t ids[] = { 243, 162, 169, 156 };
    char bytes[8];
    pn_error err = { 0 };
    size_t i, at = 0, size;
    open_name(*state);
    for (i = 0; i < 4; i++, at += size)
        assert_int_equal(pn_tokenizer_decode(tok, ids[i], 0, bytes + at, sizeof bytes - at, &size, &err), PN_OK);
    assert_int_equal(at, 4);
    assert_memory_equal(bytes, "\xf0\x9f\xa6\x99", 4);
    closed();
}

/* ---- round trips ------------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((random_state >> 32) * n) >> 32);
}

static size_t put_utf8(uint32_t c, char *out)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4, i;
    for (i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0) | c);
    return n;
}

/* Characters of all kinds: ASCII, white space and words' letters often, control characters, Europe, Asia, anything. */
static size_t random_text(char *out)
{
    size_t n = 0, length = 1 + random_below(40);
    while (length--) {
        uint32_t kind = random_below(12), c;
        if (kind < 4)
            c = random_below(128);
        else if (kind < 7)
            c = (uint32_t)" \n\t\r 0123'<aeinst"[random_below(17)];
        else if (kind < 8)
            c = 0x80 + random_below(0x500);
        else if (kind < 9)
            c = 0x2500 + random_below(0x100);   /* U+2581 among them */
        else if (kind < 10)
            c = 0x3000 + random_below(0x6000);
        else if (kind < 11)
            c = 0x800 + random_below(0xd800 - 0x800);
        else
            c = 0xe000 + random_below(0x110000 - 0xe000);
        n += put_utf8(c, out + n);
    }
    return n;
}

/* The one thing that SentencePiece does not keep: U+2581 is a space. */
static size_t spaced(char *text, size_t size)
{
    size_t i = 0, n = 0;
    while (i < size) {
        int space = size - i >= 3 && !memcmp(text + i, "\xe2\x96\x81", 3);
        text[n++] = space ? ' ' : text[i];
        i += space ? 3 : 1;
    }
    return n;
}

static void round_trips(size_t (*make)(char *), int rounds)
{
    char text[256], back[1024];
    int32_t ids[256];
    int r, first;
    for (r = 0; r < rounds; r++) {
        size_t size = make(text), n, n_again = 0, i, at = 0, m;
        pn_error err = { 0 };
        if (pn_tokenizer_encode(tok, text, size, PN_ENCODE_ADD_BOS, ids, 256, &n, &err))
            fail_msg("%s, text %d: %s", name, r, err.message);
        assert_int_equal(pn_tokenizer_encode(tok, text, size, PN_ENCODE_ADD_BOS, ids, n - 1, &n_again, &err),
                         PN_E_FULL);
        assert_int_equal(n_again, n);
        for (i = 1, first = 1; i < n; i++, first = 0, at += m)
            if (pn_tokenizer_decode(tok, ids[i], first ? PN_DECODE_FIRST : 0, back + at, sizeof back - at, &m, &err))
                fail_msg("%s: %s", name, err.message);
        size = spaced(text, size);
        if (at != size || memcmp(back, text, size))
            fail_msg("%s, text %d \"%.*s\" comes back as \"%.*s\"", name, r, (int)size, text, (int)at, back);
    }
}

static size_t random_bytes(char *out)
{
    size_t i, size = random_below(64);
    for (i = 0; i < size; i++)
        out[i] = (char)random_below(256);
    return size;
}

static void test_round_trips(void **state)
{
    open_name(*state);
    random_state = 1;
    round_trips(random_text, 10000);
    /* These vocabularies have every byte: broken text comes back as it was, too. */
    round_trips(random_bytes, 3000);
    closed();
}

int main(void)
{
    static const struct {
        const char *what;
        CMUnitTestFunction run;
    } kinds[] = { { "table", test_table }, { "vectors", test_vectors }, { "flags", test_flags },
                  { "bytes", test_bytes_one_by_one }, { "round trips", test_round_trips } };
    enum { N_KINDS = sizeof kinds / sizeof *kinds };
    static struct CMUnitTest tests[N_KINDS * N_NAMES];
    static char titles[N_KINDS * N_NAMES][64];
    size_t i, k, n = 0;
    for (k = 0; k < N_KINDS; k++)
        for (i = 0; i < N_NAMES; i++, n++) {
            snprintf(titles[n], sizeof titles[n], "%s: %s", names[i], kinds[k].what);
            tests[n].name = titles[n];
            tests[n].test_func = kinds[k].run;
            tests[n].initial_state = (void *)names[i];
        }
    rt = test_runtime();
    return _cmocka_run_group_tests("vectors", tests, n, NULL, NULL);
}

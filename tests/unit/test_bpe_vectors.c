/* The byte-level BPE plugin on real vocabularies: ids that independent programs give, the test vectors that come with
 * the vocabularies, and round trips of random text. scripts/fetch-vocab.sh fetches what is needed. */
#include "ggufmake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* The first is the model of the demo. */
static const char *const names[] = { "smollm", "gpt-2", "llama-bpe", "qwen2", "qwen35", "starcoder", "refact",
                                     "command-r", "deepseek-coder", "deepseek-llm", "falcon", "mpt" };
#define N_NAMES (sizeof names / sizeof *names)

typedef struct opened {
    const char *name;
    pn_file *file;
    pn_tokenizer *tokenizer;
} opened;

static pn_runtime *rt;

static const char *root(void)
{
    const char *path = getenv("PN_ROOT");
    return path ? path : ".";
}

static int exists(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f)
        fclose(f);
    return f != NULL;
}

static void vocab_path(const char *name, const char *suffix, char *path, size_t capacity)
{
    snprintf(path, capacity, "%s/build/models/vocab/ggml-vocab-%s.gguf%s", root(), name, suffix);
}

/* Opens the vocabulary, or skips the test. */
static void open_name(opened *o, const char *name)
{
    const char *model = getenv("PN_MODEL");
    char path[4096];
    pn_error err = { 0 };
    o->name = name;
    vocab_path(name, "", path, sizeof path);
    if (!strcmp(name, "smollm"))
        snprintf(path, sizeof path, "%s", model ? model : "");
    if (!exists(path)) {
        print_message("# skip: download of the vocabulary %s failed\n", name);
        skip();
    }
    if (pn_file_open(rt, path, &o->file, &err) || pn_tokenizer_create(rt, o->file, &o->tokenizer, &err))
        fail_msg("%s", err.message);
}

static void close_name(opened *o)
{
    pn_tokenizer_destroy(o->tokenizer);
    pn_file_destroy(o->file);
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

/* ids of the text as "1 2 3". */
static void encoded(const opened *o, const char *text, size_t size, char *out, size_t capacity)
{
    int32_t ids[8192];
    pn_error err = { 0 };
    size_t n = 0, i, at = 0;
    if (pn_tokenizer_encode(o->tokenizer, text, size, 0, ids, 8192, &n, &err))
        fail_msg("%s: %s", o->name, err.message);
    out[0] = 0;
    for (i = 0; i < n && at < capacity; i++)
        at += (size_t)snprintf(out + at, capacity - at, i ? " %d" : "%d", (int)ids[i]);
}

static void check(const opened *o, const char *text, size_t size, const char *want)
{
    static char got[1 << 16];
    encoded(o, text, size, got, sizeof got);
    if (strcmp(got, want))
        fail_msg("%s, text \"%.*s\": got %s, wanted %s", o->name, (int)size, text, got, want);
}

/* ---- tests/data/tokens/table.txt --------------------------------------------------------------------------------- */

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
    char path[4096], *line, *rest, *all;
    opened o;
    size_t size, n = 0;
    open_name(&o, *state);
    snprintf(path, sizeof path, "%s/tests/data/tokens/table.txt", root());
    rest = all = slurp(path, &size);
    while ((line = strsep(&rest, "\n"))) {
        char *name = strsep(&line, "\t"), *text = strsep(&line, "\t");
        if (*name == '#' || !text || strcmp(name, o.name))
            continue;
        check(&o, text, unescape(text), line);
        n++;
    }
    free(all);
    close_name(&o);
    assert_true(n > 0);
}

/* ---- the vectors of the package ---------------------------------------------------------------------------------- */

static void test_vectors(void **state)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    const char *at, *next;
    char path[4096], *texts, *want, *rest;
    opened o;
    size_t size, want_size, n = 0;
    open_name(&o, *state);
    vocab_path(o.name, ".inp", path, sizeof path);
    texts = slurp(path, &size);
    vocab_path(o.name, ".out", path, sizeof path);
    rest = want = slurp(path, &want_size);
    for (at = texts; (next = strstr(at, separator)); at = next + sizeof separator - 1) {
        char *ids = strsep(&rest, "\n");
        assert_non_null(ids);
        while (*ids == ' ')
            ids++;
        check(&o, at, (size_t)(next - at), ids);
        n++;
    }
    free(texts);
    free(want);
    close_name(&o);
    assert_true(n > 40);
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

/* Characters of all kinds: ASCII and white space often, then letters of Europe and Asia, anything up to U+3FFFF.
 * Control characters are left out: some of these vocabularies have no token for them. */
static size_t random_text(char *out)
{
    size_t n = 0, length = 1 + random_below(40);
    while (length--) {
        uint32_t kind = random_below(10), c;
        if (kind < 4)
            c = 32 + random_below(95);
        else if (kind < 6)
            c = (uint32_t)" \n\t\r 0123'a"[random_below(11)];
        else if (kind < 7)
            c = 0xa0 + random_below(0x500);
        else if (kind < 8)
            c = 0x3000 + random_below(0x6000);
        else if (kind < 9)
            c = 0x800 + random_below(0xd800 - 0x800);
        else
            c = 0xe000 + random_below(0x40000 - 0xe000);
        n += put_utf8(c, out + n);
    }
    return n;
}

static size_t decoded(const opened *o, const int32_t *ids, size_t n, char *out, size_t capacity)
{
    pn_error err = { 0 };
    size_t i, at = 0, size;
    for (i = 0; i < n; i++, at += size)
        if (pn_tokenizer_decode(o->tokenizer, ids[i], 0, out + at, capacity - at, &size, &err))
            fail_msg("%s: %s", o->name, err.message);
    return at;
}

static void test_round_trips(void **state)
{
    char text[256], back[1024], again[1024];
    int32_t ids[256], ids_again[256];
    opened o;
    int i, rounds = 10000;
    open_name(&o, *state);
    random_state = 1;
    for (i = 0; i < rounds; i++) {
        size_t size = random_text(text), n, n_again, back_size, again_size;
        pn_error err = { 0 };
        if (pn_tokenizer_encode(o.tokenizer, text, size, 0, ids, 256, &n, &err))
            fail_msg("%s, text %d: %s", o.name, i, err.message);
        back_size = decoded(&o, ids, n, back, sizeof back);
        if (strcmp(o.name, "qwen2")) {
            if (back_size != size || memcmp(back, text, size))
                fail_msg("%s, text %d \"%.*s\" comes back as \"%.*s\"", o.name, i, (int)size, text, (int)back_size,
                         back);
            continue;
        }
        /* This vocabulary composes characters: what comes back is composed already and stays. */
        if (pn_tokenizer_encode(o.tokenizer, back, back_size, 0, ids_again, 256, &n_again, &err))
            fail_msg("%s, text %d: %s", o.name, i, err.message);
        again_size = decoded(&o, ids_again, n_again, again, sizeof again);
        if (n != n_again || memcmp(ids, ids_again, n * sizeof *ids) || again_size != back_size ||
            memcmp(back, again, back_size))
            fail_msg("%s, text %d \"%.*s\" is not stable", o.name, i, (int)size, text);
    }
    close_name(&o);
}

/* Bytes of any kind: no crash, as many ids as said, and what is broken comes back as U+FFFD. */
static void test_random_bytes(void **state)
{
    char text[64];
    int32_t ids[256];
    opened o;
    int i;
    open_name(&o, *state);
    random_state = 2;
    for (i = 0; i < 3000; i++) {
        size_t size = random_below(64), j, n = 0, n_again = 0;
        pn_error err = { 0 };
        pn_status s;
        for (j = 0; j < size; j++)
            text[j] = (char)random_below(256);
        s = pn_tokenizer_encode(o.tokenizer, text, size, 0, ids, 256, &n, &err);
        if (s && s != PN_E_UNSUPPORTED)
            fail_msg("%s: %s", o.name, err.message);
        if (s || !n)
            continue;
        assert_int_equal(pn_tokenizer_encode(o.tokenizer, text, size, 0, ids, n - 1, &n_again, &err), PN_E_FULL);
        assert_int_equal(n_again, n);
    }
    close_name(&o);
}

int main(void)
{
    static const struct {
        const char *what;
        CMUnitTestFunction run;
    } kinds[] = { { "table", test_table }, { "vectors", test_vectors }, { "round trips", test_round_trips },
                  { "random bytes", test_random_bytes } };
    static struct CMUnitTest tests[4 * N_NAMES];
    static char titles[4 * N_NAMES][64];
    size_t i, k, n = 0;
    for (k = 0; k < 4; k++)
        for (i = 0; i < N_NAMES; i++) {
            /* The table has some of them, and the model file brings no vectors. */
            if ((k == 0 && i > 6 && i != 8) || (k == 0 && i == 4) || (k == 1 && i == 0))
                continue;
            snprintf(titles[n], sizeof titles[n], "%s: %s", names[i], kinds[k].what);
            tests[n].name = titles[n];
            tests[n].test_func = kinds[k].run;
            tests[n].initial_state = (void *)names[i];
            n++;
        }
    rt = test_runtime();
    return _cmocka_run_group_tests("vectors", tests, n, NULL, NULL);
}

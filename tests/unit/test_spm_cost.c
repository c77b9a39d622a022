/* The SentencePiece plugin's work on long texts, counted: lookups and comparisons must grow like n log n with the text,
 * whatever the vocabulary. The sources are built into this test with counters in them. */
#include <stddef.h>

static size_t count_comparisons, count_lookups;
#define SPM_COUNT(what) (count_##what++)
#include "../../plugins/spm/encode.c"

#include "fakehost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { LENGTH = 1 << 20 };

#define MAX_TOKENS 9000

static fake_host host;
static pn_str tokens[MAX_TOKENS];
static int32_t types[MAX_TOKENS];
static uint32_t ranks[MAX_TOKENS];
static char texts[MAX_TOKENS][8];
static int32_t n_tokens;
static spm model;
static char text[LENGTH];
static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((random_state >> 32) * n) >> 32);
}

static void add(const char *s, size_t size, uint32_t rank)
{
    tokens[n_tokens] = (pn_str){ s, size };
    types[n_tokens] = PN_TOKEN_NORMAL;
    ranks[n_tokens++] = rank;
}

/* Token 0 stands for everything that has no piece. */
static void start(void)
{
    fake_init(&host);
    memset(&model, 0, sizeof model);
    memset(model.byte_id, -1, sizeof model.byte_id);
    n_tokens = 0;
    random_state = 1;
    add("?", 1, 0);
    types[0] = PN_TOKEN_UNKNOWN;
}

/* Encodes the text and checks the counts: a symbol is looked up once, once with its next, twice more for every merge
 * and for every merge undone; the heap takes at most three entries a symbol, each for three comparisons a level. */
static size_t bounded(size_t n)
{
    pn_error err = { 0 };
    double depth = 1, limit;
    size_t count = 0, k;
    pn_status s;
    fake_set(&host, PN_ROLE_TOKENS, fake_strings(tokens, (size_t)n_tokens));
    fake_set(&host, PN_ROLE_TOKEN_TYPES, fake_ints(types, (size_t)n_tokens));
    if (pn_vocab_read(&host.host, fake_file(&host), &model.vocab, &err) ||
        pn_vocab_index(&model.vocab, PN_VOCAB_KIND(PN_TOKEN_NORMAL) | PN_VOCAB_KIND(PN_TOKEN_UNUSED), &err))
        fail_msg("%s", err.message);
    model.ranks = ranks;
    model.info.unk = 0;
    count_comparisons = count_lookups = 0;
    s = spm_encode(&host.host, &model, text, sizeof text, 0, NULL, 0, &count, &err);
    if (s != PN_E_FULL)
        fail_msg("%s", err.message);
    for (k = 1; k < 3 * n; k *= 2)
        depth++;
    limit = 3.0 * (double)n * (3 * depth) + 2.0 * (double)n;
    print_message("# %zu symbols, %zu tokens: %.2f lookups and %.1f comparisons a symbol\n", n, count,
                  (double)count_lookups / (double)n, (double)count_comparisons / (double)n);
    assert_true(count_lookups <= 6 * n);
    assert_true((double)count_comparisons <= limit);
    assert_true(host.allocations < 16);
    pn_vocab_free(&model.vocab);
    assert_int_equal(host.live, 0);
    return count;
}

/* The same letter, and pieces of every power of two. */
static void test_doubling(void **state)
{
    static char run[1 << 12];
    size_t k;
    (void)state;
    start();
    memset(run, 'a', sizeof run);
    for (k = 1; k <= sizeof run; k *= 2)
        add(run, k, (uint32_t)k);
    memset(text, 'a', sizeof text);
    assert_int_equal(bounded(LENGTH), LENGTH / sizeof run);
}

/* The same letter and pieces of every length: one symbol grows by one letter at a time. */
static void test_growing(void **state)
{
    static char run[200];
    size_t k;
    (void)state;
    start();
    memset(run, 'a', sizeof run);
    for (k = 1; k <= sizeof run; k++)
        add(run, k, (uint32_t)(sizeof run - k));
    memset(text, 'a', sizeof text);
    bounded(LENGTH);
}

/* Random letters, and pieces of many pairs, triples and quadruples of them in random order. */
static void test_random_letters(void **state)
{
    size_t i;
    (void)state;
    start();
    for (i = 0; i < 26; i++) {
        texts[n_tokens][0] = (char)('a' + i);
        add(texts[n_tokens], 1, random_below(1000));
    }
    while (n_tokens < MAX_TOKENS) {
        size_t k, size = 2 + random_below(3);
        for (k = 0; k < size; k++)
            texts[n_tokens][k] = (char)('a' + random_below(26));
        add(texts[n_tokens], size, random_below(1000000));
    }
    for (i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + random_below(26));
    bounded(LENGTH);
}

/* Nothing has a piece, and half of it is no UTF-8. */
static void test_unknown(void **state)
{
    size_t i;
    (void)state;
    start();
    for (i = 0; i < sizeof text; i++)
        text[i] = (char)(0x80 | random_below(128));
    bounded(LENGTH);
}

/* Pieces that are taken apart again. */
static void test_unused(void **state)
{
    static char run[1 << 12];
    size_t k;
    (void)state;
    start();
    memset(run, 'a', sizeof run);
    for (k = 1; k <= sizeof run; k *= 2) {
        add(run, k, (uint32_t)k);
        types[n_tokens - 1] = k > 1 ? PN_TOKEN_UNUSED : PN_TOKEN_NORMAL;
    }
    memset(text, 'a', sizeof text);
    assert_int_equal(bounded(LENGTH), LENGTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubling), cmocka_unit_test(test_growing), cmocka_unit_test(test_random_letters),
        cmocka_unit_test(test_unknown),  cmocka_unit_test(test_unused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

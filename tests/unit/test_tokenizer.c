/* The core's tokenizer: which plugin a file gets, what the configuration changes, what ends a text; ids that grow. */
#include "vocabfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { BOS = 256, EOS, EOT };

static const vocab_token tokens[] = { { "<s>", PN_TOKEN_CONTROL },
                                      { "</s>", PN_TOKEN_CONTROL },
                                      { "<turn>", PN_TOKEN_CONTROL } };
static const char *const merges[] = { NULL };

typedef struct fixture {
    vocab_file v;
    pn_runtime *rt;
    pn_file *file;
    pn_tokenizer *tokenizer;
    pn_error err;
} fixture;

static pn_status open_with(fixture *f, const char *model, const char *pre, const char *const *settings)
{
    memset(f, 0, sizeof *f);
    vocab_begin(&f->v);
    vocab_string(&f->v, "general.architecture", "none");
    if (model)
        vocab_string(&f->v, "tokenizer.ggml.model", model);
    if (pre)
        vocab_string(&f->v, "tokenizer.ggml.pre", pre);
    vocab_tokens(&f->v, tokens, 3, merges);
    vocab_u32(&f->v, "tokenizer.ggml.bos_token_id", BOS);
    vocab_u32(&f->v, "tokenizer.ggml.eos_token_id", EOS);
    vocab_u32(&f->v, "tokenizer.ggml.eot_token_id", EOT);
    vocab_bool(&f->v, "tokenizer.ggml.add_bos_token", 1);
    vocab_end(&f->v);
    f->rt = test_runtime_with(settings);
    if (pn_file_open_buffer(f->rt, "made-up", f->v.g.data, f->v.g.size, &f->file, &f->err))
        fail_msg("%s", f->err.message);
    return pn_tokenizer_create(f->rt, f->file, &f->tokenizer, &f->err);
}

static void close_it(fixture *f)
{
    pn_tokenizer_destroy(f->tokenizer);
    pn_file_destroy(f->file);
    pn_runtime_destroy(f->rt);
    vocab_free(&f->v);
}

static void assert_ids(fixture *f, const char *text, uint32_t flags, size_t n, const int32_t *want)
{
    int32_t ids[32];
    size_t count = 99;
    assert_int_equal(pn_tokenizer_encode(f->tokenizer, text, strlen(text), flags, ids, 32, &count, NULL), PN_OK);
    assert_int_equal(count, n);
    assert_memory_equal(ids, want, n * sizeof *want);
}

static void test_opened(void **state)
{
    static const int32_t plain[] = { 97, 60, 115, 62 }, special[] = { BOS, 97, BOS };
    fixture f;
    const pn_tokenizer_info *info;
    char bytes[16];
    size_t n;
    (void)state;
    assert_int_equal(open_with(&f, "gpt2", "gpt-2", NULL), PN_OK);
    info = pn_tokenizer_get_info(f.tokenizer);
    assert_int_equal(info->n_tokens, 259);
    assert_int_equal(info->bos, BOS);
    assert_int_equal(info->add_bos, 1);
    assert_int_equal(info->add_eos, 0);
    assert_int_equal(info->pad, -1);
    assert_ids(&f, "a<s>", 0, 4, plain);
    assert_ids(&f, "a<s>", PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS | PN_ENCODE_SPECIAL, 3, special);
    assert_true(pn_tokenizer_ends(f.tokenizer, EOS));
    assert_true(pn_tokenizer_ends(f.tokenizer, EOT));
    assert_false(pn_tokenizer_ends(f.tokenizer, BOS));
    assert_false(pn_tokenizer_ends(f.tokenizer, -1));
    assert_int_equal(pn_tokenizer_decode(f.tokenizer, EOT, PN_DECODE_SPECIAL, bytes, 16, &n, NULL), PN_OK);
    assert_int_equal(n, 6);
    assert_int_equal(pn_tokenizer_decode(f.tokenizer, 259, 0, bytes, 16, &n, NULL), PN_E_RANGE);
    assert_int_equal(pn_tokenizer_encode(f.tokenizer, "ab", 2, 0, NULL, 0, &n, &f.err), PN_E_FULL);
    assert_int_equal(n, 2);
    close_it(&f);
    pn_tokenizer_destroy(NULL);
}

static void test_refused(void **state)
{
    fixture f;
    (void)state;
    assert_int_equal(open_with(&f, NULL, NULL, NULL), PN_E_FORMAT);
    assert_non_null(strstr(f.err.message, "made-up"));
    assert_non_null(strstr(f.err.message, "tokenizer"));
    close_it(&f);
    assert_int_equal(open_with(&f, "zzz", "gpt-2", NULL), PN_E_UNSUPPORTED);
    assert_non_null(strstr(f.err.message, "zzz"));
    assert_non_null(strstr(f.err.message, "made-up"));
    close_it(&f);
    assert_int_equal(open_with(&f, "gpt2", "qqq", NULL), PN_E_UNSUPPORTED);
    assert_non_null(strstr(f.err.message, "qqq"));
    assert_non_null(strstr(f.err.message, "tokenizer.ggml.pre"));
    assert_non_null(strstr(f.err.message, "made-up"));
    close_it(&f);
}

static void test_configured(void **state)
{
    static const char *const no_bos[] = { "tokenizer.add_bos", "false", NULL };
    static const char *const pre[] = { "tokenizer.pre", "smollm", NULL };
    static const char *const pattern[] = { "tokenizer.pattern", "x(", NULL };
    static const char *const both[] = { "tokenizer.pattern", ".", "tokenizer.add_bos", "auto", NULL };
    static const int32_t a[] = { 97 }, start_a[] = { BOS, 97 };
    fixture f;
    (void)state;
    assert_int_equal(open_with(&f, "gpt2", "gpt-2", no_bos), PN_OK);
    assert_ids(&f, "a", PN_ENCODE_ADD_BOS, 1, a);
    close_it(&f);
    assert_int_equal(open_with(&f, "gpt2", "unknown to all", pre), PN_OK);
    assert_ids(&f, "a", PN_ENCODE_ADD_BOS, 2, start_a);
    close_it(&f);
    assert_int_equal(open_with(&f, "gpt2", "unknown to all", both), PN_OK);
    assert_ids(&f, "a", PN_ENCODE_ADD_BOS, 2, start_a);
    close_it(&f);
    assert_int_equal(open_with(&f, "gpt2", "gpt-2", pattern), PN_E_CONFIG);
    assert_non_null(strstr(f.err.message, "x("));
    close_it(&f);
    /* No pre-tokenizer in the file: one warning. */
    assert_int_equal(open_with(&f, "gpt2", NULL, NULL), PN_OK);
    assert_non_null(strstr(test_log(), "pre-tokenizer"));
    assert_ids(&f, "a", 0, 1, a);
    assert_string_equal(test_log(), "");
    close_it(&f);
}

static void test_ids(void **state)
{
    pn_ids ids = { 0 };
    int32_t x, block[3] = { -1, -2, -3 };
    (void)state;
    assert_int_equal(pn_ids_push(&ids, NULL, 0, NULL), PN_OK);
    for (x = 0; x < 1000; x++)
        assert_int_equal(pn_ids_push(&ids, &x, 1, NULL), PN_OK);
    assert_int_equal(pn_ids_push(&ids, block, 3, NULL), PN_OK);
    assert_int_equal(ids.count, 1003);
    for (x = 0; x < 1000; x++)
        assert_int_equal(ids.data[x], x);
    assert_int_equal(ids.data[1002], -3);
    assert_int_equal(pn_ids_push(&ids, block, SIZE_MAX / 2, NULL), PN_E_NOMEM);
    assert_int_equal(ids.count, 1003);
    pn_ids_free(&ids);
    assert_null(ids.data);
    pn_ids_free(&ids);
    pn_ids_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_configured),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

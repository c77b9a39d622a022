/* Which GGUF keys answer to which roles, and what the format implies without a key. */
#include "ggufmake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static pn_runtime *rt;
static gguf g;
static pn_file *f;

static void opens(void)
{
    pn_error err = { 0 };
    f = NULL;
    if (pn_file_open_buffer(rt, "made.gguf", g.data, g.size, &f, &err))
        fail_msg("wanted it to open: %s", err.message);
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
    return 0;
}

static pn_role_value ask(const char *role)
{
    pn_role_value v = { .struct_size = sizeof v };
    assert_int_equal(pn_file_role(f, role, &v, NULL), PN_OK);
    return v;
}

static int64_t number(const char *role)
{
    pn_role_value v = ask(role);
    int64_t i = -1;
    assert_int_equal(v.present, 1);
    assert_true(pn_value_int(&v.value, &i));
    return i;
}

static void is_text(const char *role, const char *key, const char *text)
{
    pn_role_value v = ask(role);
    assert_int_equal(v.present, 1);
    assert_int_equal(v.value.type, PN_T_STRING);
    assert_string_equal(v.key, key);
    assert_true(pn_str_is(v.value.as.s, text));
}

static void roles_of_keys(void **state)
{
    static const struct { const char *role, *key;
    } known[] = {
        {PN_ROLE_CONTEXT_LENGTH, "x.context_length"},
        {PN_ROLE_VOCAB_SIZE, "x.vocab_size"},
        {PN_ROLE_BLOCK_COUNT, "x.block_count"},
        {PN_ROLE_EMBEDDING_LENGTH, "x.embedding_length"},
        {PN_ROLE_FEED_FORWARD, "x.feed_forward_length"},
        {PN_ROLE_HEAD_COUNT, "x.attention.head_count"},
        {PN_ROLE_HEAD_COUNT_KV, "x.attention.head_count_kv"},
        {PN_ROLE_KEY_LENGTH, "x.attention.key_length"},
        {PN_ROLE_VALUE_LENGTH, "x.attention.value_length"},
        {PN_ROLE_RMS_EPS, "x.attention.layer_norm_rms_epsilon"},
        {PN_ROLE_NORM_EPS, "x.attention.layer_norm_epsilon"},
        {PN_ROLE_SLIDING_WINDOW, "x.attention.sliding_window"},
        {PN_ROLE_ATTN_SCALE, "x.attention.scale"},
        {PN_ROLE_ROPE_DIMS, "x.rope.dimension_count"},
        {PN_ROLE_ROPE_BASE, "x.rope.freq_base"},
        {PN_ROLE_ROPE_FACTOR, "x.rope.scaling.factor"},
        {PN_ROLE_ROPE_ORIG_CONTEXT, "x.rope.scaling.original_context_length"},
        {PN_ROLE_ROPE_ATTN_FACTOR, "x.rope.scaling.attn_factor"},
        {PN_ROLE_ROPE_BETA_FAST, "x.rope.scaling.yarn_beta_fast"},
        {PN_ROLE_ROPE_BETA_SLOW, "x.rope.scaling.yarn_beta_slow"},
        {PN_ROLE_ROPE_EXT_FACTOR, "x.rope.scaling.yarn_ext_factor"},
        {PN_ROLE_BOS, "tokenizer.ggml.bos_token_id"},
        {PN_ROLE_EOS, "tokenizer.ggml.eos_token_id"},
        {PN_ROLE_EOT, "tokenizer.ggml.eot_token_id"},
        {PN_ROLE_UNK, "tokenizer.ggml.unknown_token_id"},
        {PN_ROLE_SEP, "tokenizer.ggml.separator_token_id"},
        {PN_ROLE_PAD, "tokenizer.ggml.padding_token_id"},
        {PN_ROLE_ADD_BOS, "tokenizer.ggml.add_bos_token"},
        {PN_ROLE_ADD_EOS, "tokenizer.ggml.add_eos_token"},
        {PN_ROLE_ADD_SPACE_PREFIX, "tokenizer.ggml.add_space_prefix"},
        {PN_ROLE_TOKEN_TYPES, "tokenizer.ggml.token_type"},
        {PN_ROLE_SCORES, "tokenizer.ggml.scores"},
        {PN_ROLE_MERGES, "tokenizer.ggml.merges"},
        {PN_ROLE_TOKENS, "tokenizer.ggml.tokens"},
    };
    static const struct { const char *role, *key;
    } texts[] = {
        {PN_ROLE_NAME, "general.name"},
        {PN_ROLE_ROPE_SCALING, "x.rope.scaling.type"},
        {PN_ROLE_TOKENIZER, "tokenizer.ggml.model"},
        {PN_ROLE_PRE_TOKENIZER, "tokenizer.ggml.pre"},
        {PN_ROLE_CHAT_TEMPLATE, "tokenizer.chat_template"},
    };
    const size_t n = sizeof known / sizeof *known, m = sizeof texts / sizeof *texts;
    (void)state;
    g_begin(&g, 3, 0, 1 + n + m);
    for (size_t i = 0; i < n; i++)
        g_key_u32(&g, known[i].key, 100 + (uint32_t)i);
    for (size_t i = 0; i < m; i++)
        g_key_text(&g, texts[i].key, texts[i].key);
    g_key_text(&g, "general.architecture", "x");
    opens();
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(number(known[i].role), 100 + i);
        assert_string_equal(ask(known[i].role).key, known[i].key);
    }
    for (size_t i = 0; i < m; i++)
        is_text(texts[i].role, texts[i].key, texts[i].key);
    is_text(PN_ROLE_ARCHITECTURE, "general.architecture", "x");
    assert_int_equal(ask("no.such.role").present, 0);
    assert_string_equal(ask("no.such.role").key, "");
    closes();

    /* Absent: the key is named all the same, for messages. */
    g_begin(&g, 3, 0, 1);
    g_key_text(&g, "general.architecture", "x");
    opens();
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ask(known[i].role).present, 0);
        assert_string_equal(ask(known[i].role).key, known[i].key);
    }
    closes();

    /* No architecture, one that is no text, one that fits no key, one with a zero in it. */
    for (int kind = 0; kind < 4; kind++) {
        char long_name[400] = "";
        memset(long_name, 'y', sizeof long_name - 1);
        g_begin(&g, 3, 0, kind ? 1 : 0);
        if (kind == 1)
            g_key_u32(&g, "general.architecture", 5);
        else if (kind == 2)
            g_key_text(&g, "general.architecture", long_name);
        else if (kind == 3)
            g_key(&g, "general.architecture", G_STR), g_u64(&g, 3), g_bytes(&g, "a\0b", 3);
        opens();
        assert_int_equal(ask(PN_ROLE_BLOCK_COUNT).present, 0);
        assert_non_null(strstr(ask(PN_ROLE_BLOCK_COUNT).key, "block_count"));
        assert_int_equal(ask(PN_ROLE_ROPE_PAIRING).present, 0);
        closes();
    }
}

static void roles_without_keys(void **state)
{
    static const struct { const char *arch, *pairing;
    } pairs[] = {
        {"llama", "interleaved"},   {"mistral", "interleaved"}, {"baichuan", "interleaved"}, {"deci", "interleaved"},
        {"minicpm", "interleaved"}, {"granite", "interleaved"}, {"qwen2", "halves"},         {"phi", "halves"},
        {"phi2", "halves"},         {"phi3", "halves"},         {"gptneox", "halves"},       {"stablelm", "halves"},
        {"gemma", "halves"},        {"gemma3", "halves"},       {"qwen3", "halves"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        g_begin(&g, 3, 0, 1);
        g_key_text(&g, "general.architecture", pairs[i].arch);
        opens();
        is_text(PN_ROLE_ROPE_PAIRING, "general.architecture", pairs[i].pairing);
        assert_int_equal(ask(PN_ROLE_ROPE_SCALING).present, 0);
        closes();
    }
    /* A name that only an alias explains: the file does not say. */
    g_begin(&g, 3, 0, 1);
    g_key_text(&g, "general.architecture", "newname");
    opens();
    assert_int_equal(ask(PN_ROLE_ROPE_PAIRING).present, 0);
    closes();

    g_begin(&g, 3, 0, 3);
    g_key_text(&g, "general.architecture", "llama");
    g_key(&g, "llama.rope.scale_linear", G_F32), g_f32(&g, 4);
    g_key_array(&g, "tokenizer.ggml.tokens", G_STR, 2), g_text(&g, "a"), g_text(&g, "b");
    opens();
    is_text(PN_ROLE_ROPE_SCALING, "llama.rope.scale_linear", "linear");
    assert_int_equal(number(PN_ROLE_ROPE_FACTOR), 4);
    assert_string_equal(ask(PN_ROLE_ROPE_FACTOR).key, "llama.rope.scale_linear");
    assert_int_equal(number(PN_ROLE_VOCAB_SIZE), 2);
    closes();

    g_begin(&g, 3, 0, 2);
    g_key_text(&g, "general.architecture", "llama");
    g_key(&g, "llama.rope.scaling.factor", G_F32), g_f32(&g, 4);
    opens();
    is_text(PN_ROLE_ROPE_SCALING, "llama.rope.scaling.factor", "linear");
    closes();

    g_begin(&g, 3, 0, 1);
    g_key_u32(&g, "tokenizer.ggml.seperator_token_id", 7);
    opens();
    assert_int_equal(number(PN_ROLE_SEP), 7);
    closes();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(roles_of_keys), cmocka_unit_test(roles_without_keys) };
    return cmocka_run_group_tests(tests, setup, teardown);
}

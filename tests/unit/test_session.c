/* Sessions on the golden llama model: the same bits whatever the cut, several sequences, trim and copy, refusals,
 * cancellation. */
#include "fixture.h"

#include <math.h>

#define N 24 /* tokens of the test text */

static pn_runtime *runtime;
static pn_model *model;
static int32_t vocab;
static int32_t text[N];
static float *whole; /* [N][vocab]: the text evaluated in one call */

static pn_session *session(int32_t sequences, int32_t batch, int32_t threads)
{
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    o.context = 96;
    o.sequences = sequences;
    o.batch = batch;
    o.threads = threads;
    o.kv = "f32";
    assert_ok(pn_session_create(model, &o, &s, err));
    return s;
}

static pn_status eval(pn_session *s, const int32_t *ids, size_t n, int32_t sequence, int wants, pn_error *err)
{
    pn_token t[128];
    assert_true(n <= 128);
    for (size_t i = 0; i < n; i++)
        t[i] = (pn_token){.token = ids[i], .position = -1, .sequence = sequence, .wants_logits = wants};
    return pn_session_eval(s, t, n, err);
}

static void same_as_whole(const pn_session *s, size_t i, size_t position)
{
    assert_non_null(pn_session_logits(s, i));
    assert_memory_equal(pn_session_logits(s, i), whole + position * (size_t)vocab, (size_t)vocab * sizeof(float));
}

static int open_model(void **state)
{
    (void)state;
    runtime = fixture_runtime(NULL);
    assert_ok(pn_model_open(runtime, FIXTURE_MODEL, &model, err));
    vocab = pn_model_vocab(model);
    for (int i = 0; i < N; i++) text[i] = (i * 37 + 11) % vocab;
    whole = calloc((size_t)N * (size_t)vocab, sizeof *whole);
    pn_session *s = session(1, 64, 1);
    assert_ok(eval(s, text, N, 0, 1, err));
    for (size_t i = 0; i < N; i++)
        memcpy(whole + i * (size_t)vocab, pn_session_logits(s, i), (size_t)vocab * sizeof(float));
    assert_null(pn_session_logits(s, N));
    pn_session_destroy(s);
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    free(whole);
    pn_model_destroy(model);
    pn_runtime_destroy(runtime);
    return 0;
}

static void same_bits_however_cut(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) {
        for (int32_t piece = 1; piece <= 7; piece += 3) {
            pn_session *s = session(1, 5, threads);
            for (int32_t at = 0; at < N; at += piece) {
                int32_t n = N - at < piece ? N - at : piece;
                if (n > 5) { /* more than the session's batch: only the last wants logits */
                    pn_token t[8];
                    for (int32_t i = 0; i < n; i++)
                        t[i] = (pn_token){.token = text[at + i], .position = at + i, .wants_logits = i == n - 1};
                    assert_ok(pn_session_eval(s, t, (size_t)n, err));
                    same_as_whole(s, 0, (size_t)(at + n - 1));
                } else {
                    assert_ok(eval(s, text + at, (size_t)n, 0, 1, err));
                    for (int32_t i = 0; i < n; i++) same_as_whole(s, (size_t)i, (size_t)(at + i));
                }
            }
            pn_session_destroy(s);
        }
    }
}

static void sequences_do_not_touch(void **state)
{
    pn_session *s = session(3, 64, 2);
    pn_token t[3 * N];
    size_t n = 0;
    (void)state;
    for (int32_t i = 0; i < N; i++)
        for (int32_t q = 0; q < 3; q++, n++)
            t[n] = (pn_token){.token = q == 1 ? text[i] : (text[i] + 1 + q) % vocab,
                                .position = i,
                                .sequence = q,
                                .wants_logits = q == 1 && n < 64};
    assert_ok(pn_session_eval(s, t, n, err));
    for (size_t i = 0; pn_session_logits(s, i); i++) same_as_whole(s, i, i);
    assert_int_equal(pn_session_length(s, 2), N);
    pn_session_destroy(s);
}

static void trim_and_copy(void **state)
{
    pn_session *s = session(2, 64, 2);
    int32_t other[4] = {1, 2, 3, 4};
    (void)state;
    assert_ok(eval(s, text, 10, 0, 0, err));
    assert_ok(pn_session_copy(s, 0, 1, err));
    assert_int_equal(pn_session_length(s, 1), 10);
    /* What one does after the copy must not reach the other: they share a block of the cache. */
    assert_ok(eval(s, other, 4, 1, 0, err));
    assert_ok(eval(s, text + 10, N - 10, 0, 1, err));
    same_as_whole(s, N - 11, N - 1);
    assert_ok(pn_session_trim(s, 1, 10, err));
    assert_ok(eval(s, text + 10, N - 10, 1, 1, err));
    same_as_whole(s, 0, 10);
    same_as_whole(s, N - 11, N - 1);
    assert_ok(pn_session_trim(s, 1, 0, err));
    assert_int_equal(pn_session_length(s, 1), 0);
    assert_ok(eval(s, text, N, 1, 1, err));
    same_as_whole(s, N - 1, N - 1);
    assert_int_equal(pn_session_trim(s, 2, 0, NULL), PN_E_RANGE);
    assert_int_equal(pn_session_copy(s, 0, -1, NULL), PN_E_RANGE);
    pn_session_destroy(s);
}

static void bad_batches_change_nothing(void **state)
{
    pn_session *s = session(2, 64, 1);
    pn_error e = {0};
    pn_token t[2] = {{.token = text[0], .position = -1}, {.token = vocab, .position = -1}};
    int32_t many[97];
    (void)state;
    assert_int_equal(pn_session_eval(s, t, 2, &e), PN_E_RANGE);
    assert_non_null(strstr(e.message, "id "));
    t[1] = (pn_token){.token = -1, .position = -1};
    assert_int_equal(pn_session_eval(s, t, 2, &e), PN_E_RANGE);
    t[1] = (pn_token){.token = 1, .position = -1, .sequence = 2};
    assert_int_equal(pn_session_eval(s, t, 2, &e), PN_E_RANGE);
    t[1] = (pn_token){.token = 1, .position = 5};
    assert_int_equal(pn_session_eval(s, t, 2, &e), PN_E_ARGUMENT);
    assert_non_null(strstr(e.message, "expected 1"));
    for (int i = 0; i < 97; i++) many[i] = 1;
    assert_int_equal(eval(s, many, 97, 0, 0, &e), PN_E_FULL);
    assert_non_null(strstr(e.message, "context of 96"));
    assert_int_equal(eval(s, many, 65, 0, 1, &e), PN_E_FULL);
    assert_non_null(strstr(e.message, "logits of 65"));
    assert_int_equal(pn_session_length(s, 0), 0);
    assert_ok(eval(s, many, 96, 0, 0, err));
    assert_int_equal(eval(s, many, 1, 0, 0, &e), PN_E_FULL);
    assert_int_equal(pn_session_length(s, 0), 96);
    pn_session_destroy(s);
}

static int countdown;
static int after_a_while(void *arg)
{
    (void)arg;
    return --countdown < 0;
}

static void cancelled_evaluations_are_undone(void **state)
{
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    (void)state;
    o.context = 64;
    o.batch = 4;
    o.threads = 2;
    o.kv = "f32";
    o.cancelled = after_a_while;
    countdown = 1 << 30;
    assert_ok(pn_session_create(model, &o, &s, err));
    assert_ok(eval(s, text, 3, 0, 0, err));
    countdown = 30; /* in the second piece or later */
    assert_int_equal(eval(s, text + 3, N - 3, 0, 0, NULL), PN_E_CANCELLED);
    assert_int_equal(pn_session_length(s, 0), 3);
    countdown = 1 << 30;
    for (int i = 3; i < N; i++) assert_ok(eval(s, text + i, 1, 0, 1, err));
    same_as_whole(s, 0, N - 1);
    pn_session_destroy(s);
}

static void options_out_of_range(void **state)
{
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    pn_error e = {0};
    (void)state;
    o.context = -1;
    assert_int_equal(pn_session_create(model, &o, &s, &e), PN_E_RANGE);
    o.context = 0;
    o.threads = 5000;
    assert_int_equal(pn_session_create(model, &o, &s, &e), PN_E_RANGE);
    o.threads = 1;
    o.kv = "int3";
    assert_int_equal(pn_session_create(model, &o, &s, &e), PN_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "int3"));
    assert_null(s);
}

/* Half-precision keys and values stay close; long contexts go through chunks of keys, in one call and token by token
 * alike. */
static void long_contexts_same_bits(void **state)
{
    pn_session *a = NULL, *b = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    enum { LONG = 1100 };
    pn_token t[LONG];
    (void)state;
    o.context = LONG;
    o.batch = 256;
    o.threads = 2;
    o.kv = "f16";
    assert_ok(pn_session_create(model, &o, &a, err));
    o.threads = 3;
    assert_ok(pn_session_create(model, &o, &b, err));
    for (int i = 0; i < LONG; i++)
        t[i] = (pn_token){.token = (i * 31 + 7) % vocab, .position = i, .wants_logits = i == LONG - 1};
    assert_ok(pn_session_eval(a, t, LONG, err));
    assert_ok(pn_session_eval(b, t, 1000, err));
    for (int i = 1000; i < LONG; i++) assert_ok(pn_session_eval(b, t + i, 1, err));
    assert_memory_equal(pn_session_logits(a, 0), pn_session_logits(b, 0), (size_t)vocab * sizeof(float));
    pn_session_destroy(a);
    pn_session_destroy(b);
}

/* One layer's keys depend on token and position alone: after a shift they must be those of the shortened text. */
static void shifted_keys_are_turned(void **state)
{
    const char *set[] = {"plugins.load", fixture_words(), "arch.alias.llama", "test-one-layer", NULL};
    const char *types[] = {"f32", "f16"};
    const double bounds[] = {1e-4, 2e-2};
    pn_runtime *rt = fixture_runtime(set);
    pn_model *m = NULL;
    (void)state;
    assert_ok(pn_model_open(rt, FIXTURE_MODEL, &m, err));
    for (int type = 0; type < 2; type++) {
        pn_session *s = NULL;
        pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
        int32_t ids[200], kept[200], n = 0;
        double worst = 0;
        o.sequences = 3;
        o.context = 256;
        o.kv = types[type];
        assert_ok(pn_session_create(m, &o, &s, err));
        for (int i = 0; i < 200; i++) ids[i] = (i * 29 + 3) % vocab;
        for (int i = 0; i < 200; i++)
            if (i < 5 || i >= 5 + 90) kept[n++] = ids[i];
        for (int at = 0; at < 199; at += 100) {
            assert_ok(eval(s, ids + at, at ? 99 : 100, 0, 0, err));
            if (at == 0) assert_ok(eval(s, kept, n - 1, 1, 0, err));
        }
        assert_ok(pn_session_copy(s, 0, 2, err));
        assert_int_equal(pn_session_shift(s, 0, 5, 195, NULL), PN_E_RANGE);
        assert_ok(pn_session_shift(s, 0, 5, 90, err));
        assert_int_equal(pn_session_length(s, 0), n - 1);
        pn_token t[2] = {{.token = ids[199], .position = -1, .sequence = 0, .wants_logits = 1},
                         {.token = ids[199], .position = -1, .sequence = 1, .wants_logits = 1}};
        assert_ok(pn_session_eval(s, t, 2, err));
        for (int32_t i = 0; i < vocab; i++) {
            double d = fabs((double)pn_session_logits(s, 0)[i] - (double)pn_session_logits(s, 1)[i]);
            worst = d > worst ? d : worst;
        }
        if (!(worst < bounds[type])) fail_msg("%s: logits differ by %g", types[type], worst);
        /* the copy still has what was dropped */
        assert_int_equal(pn_session_length(s, 2), 199);
        assert_ok(pn_session_shift(s, 1, 0, n, err));
        assert_int_equal(pn_session_length(s, 1), 0);
        pn_session_destroy(s);
    }
    pn_model_destroy(m);
    pn_runtime_destroy(rt);
}

/* The golden model's heads have 16 elements: a type of 32-element blocks cannot hold them, and says so. */
static void cache_of_another_type(void **state)
{
    pn_runtime *rt = fixture_runtime(NULL);
    pn_model *m = NULL;
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    pn_error e = {0};
    pn_token t[100];
    float *exact;
    double square = 0, difference = 0;
    (void)state;
    o.kv = "q8_0";
    assert_int_equal(pn_session_create(model, &o, &s, &e), PN_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "32 elements"));
    assert_ok(pn_model_open(rt, "tests/data/quantized/llama-Q8_0/model.gguf", &m, err));
    exact = calloc((size_t)pn_model_vocab(m), sizeof *exact);
    for (int i = 0; i < 100; i++)
        t[i] = (pn_token){.token = i * 7 % pn_model_vocab(m), .position = i, .wants_logits = i == 99};
    const char *types[] = {"f32", "q8_0", "q8_0"};
    for (int pass = 0; pass < 3; pass++) {
        o.kv = types[pass];
        o.threads = pass + 1;
        assert_ok(pn_session_create(m, &o, &s, err));
        assert_ok(pn_session_eval(s, t, pass == 2 ? 60 : 100, err));
        for (int i = 60; pass == 2 && i < 100; i++) assert_ok(pn_session_eval(s, t + i, 1, err));
        const float *l = pn_session_logits(s, 0);
        for (int32_t i = 0; pass == 1 && i < pn_model_vocab(m); i++) {
            square += (double)exact[i] * (double)exact[i];
            difference += ((double)exact[i] - (double)l[i]) * ((double)exact[i] - (double)l[i]);
        }
        if (pass == 2) assert_memory_equal(exact, l, (size_t)pn_model_vocab(m) * sizeof *exact);
        memcpy(exact, l, (size_t)pn_model_vocab(m) * sizeof *exact);
        pn_session_destroy(s);
    }
    assert_true(difference > 0 && difference < 1e-3 * square);
    free(exact);
    pn_model_destroy(m);
    pn_runtime_destroy(rt);
}

static void descriptions(void **state)
{
    pn_session *s = session(1, 8, 1);
    char small[8], text_[65536];
    (void)state;
    assert_true(pn_session_describe(s, small, sizeof small) > sizeof small);
    assert_true(strlen(small) < sizeof small);
    assert_true(pn_session_describe(s, text_, sizeof text_) < sizeof text_);
    assert_non_null(strstr(text_, "blk.0.attn_q.weight"));
    assert_true(pn_model_describe(model, text_, sizeof text_) < sizeof text_);
    assert_non_null(strstr(text_, "rms_norm"));
    assert_true(pn_session_bytes(s, "kv") > 0 && pn_session_bytes(s, "arena") > 0);
    pn_session_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_however_cut),
        cmocka_unit_test(sequences_do_not_touch),
        cmocka_unit_test(trim_and_copy),
        cmocka_unit_test(bad_batches_change_nothing),
        cmocka_unit_test(cancelled_evaluations_are_undone),
        cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(long_contexts_same_bits),
        cmocka_unit_test(shifted_keys_are_turned),
        cmocka_unit_test(cache_of_another_type),
        cmocka_unit_test(descriptions),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}

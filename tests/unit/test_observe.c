/* The observer of a session: shown every matrix's input, once each, whatever the threads and pieces; and it changes
 * nothing. */
#include "fixture.h"

#include <math.h>

enum { MOST = 64, TOKENS = 11 };

typedef struct seen {
    const pn_tensor *tensor[MOST];
    size_t columns[MOST], calls[MOST], n;
    double sum[MOST];
} seen;

static pn_runtime *rt;
static pn_model *model;

static int setup(void **state)
{
    (void)state;
    rt = fixture_runtime(NULL);
    assert_ok(pn_model_open(rt, FIXTURE_MODEL, &model, err));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pn_model_destroy(model);
    pn_runtime_destroy(rt);
    return 0;
}

static void observe(void *arg, const pn_tensor *weight, const float *input, size_t columns, size_t cols)
{
    seen *s = arg;
    size_t i = 0;
    while (i < s->n && s->tensor[i] != weight) i++;
    if (i == s->n && s->n < MOST) s->tensor[s->n++] = weight;
    if (i == MOST || cols != weight->dims[1]) return;
    s->columns[i] += columns;
    s->calls[i]++;
    for (size_t k = 0; k < columns * cols; k++) s->sum[i] += (double)input[k] * (double)input[k];
}

/* Logits of the last token, and what was seen. */
static void evaluate(seen *s, int threads, int batch, uint32_t precision, float *logits)
{
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    pn_session *session = NULL;
    pn_token tokens[TOKENS];
    o.context = 32;
    o.threads = threads;
    o.batch = batch;
    o.precision = precision;
    if (s) {
        memset(s, 0, sizeof *s);
        o.observe = observe;
        o.observe_arg = s;
    }
    assert_ok(pn_session_create(model, &o, &session, err));
    for (int i = 0; i < TOKENS; i++) tokens[i] = (pn_token){3 + i * 7, -1, 0, i == TOKENS - 1};
    uint64_t before = pn_allocation_count();
    assert_ok(pn_session_eval(session, tokens, TOKENS, err));
    assert_int_equal(pn_allocation_count(), before);
    memcpy(logits, pn_session_logits(session, 0), (size_t)pn_model_vocab(model) * sizeof *logits);
    pn_session_destroy(session);
}

static void all_matrices(void **state)
{
    static seen s;
    static float logits[4096];
    pn_file *f = pn_model_file(model);
    size_t matrices = 0, found = 0;
    (void)state;
    evaluate(&s, 2, 0, PN_EXACT, logits);
    for (size_t i = 0; i < pn_file_tensor_count(f); i++) {
        const pn_tensor *t = pn_file_tensor_at(f, i);
        if (t->n_dims < 2 || pn_str_is(t->name, "token_embd.weight")) continue;
        matrices++;
        for (size_t k = 0; k < s.n; k++) {
            if (s.tensor[k] != t) continue;
            found++;
            assert_int_equal(s.calls[k], 1);
            /* Only the last token's logits are wanted: behind the last attention there is only that one. */
            assert_true(s.columns[k] == TOKENS || s.columns[k] == 1);
            if (pn_str_is(t->name, "output.weight")) assert_int_equal(s.columns[k], 1);
            if (pn_str_is(t->name, "blk.0.attn_q.weight")) assert_int_equal(s.columns[k], TOKENS);
            assert_true(isfinite(s.sum[k]) && s.sum[k] > 0);
        }
    }
    assert_int_equal(found, matrices);
    assert_int_equal(s.n, matrices);
}

static void same_bits(void **state)
{
    static seen a, b;
    static float plain[4096], x[4096];
    size_t bytes = (size_t)pn_model_vocab(model) * sizeof *x;
    (void)state;
    evaluate(NULL, 2, 0, PN_EXACT, plain);
    evaluate(&a, 1, 0, PN_EXACT, x);
    assert_memory_equal(plain, x, bytes);
    evaluate(&b, 3, 4, PN_EXACT, x);
    assert_memory_equal(plain, x, bytes);
    for (size_t i = 0; i < a.n; i++) {
        size_t k = 0;
        while (k < b.n && b.tensor[k] != a.tensor[i]) k++;
        assert_true(k < b.n && b.columns[k] == a.columns[i]);
        assert_true(b.sum[k] == a.sum[i]);
        if (a.columns[i] == TOKENS) assert_int_equal(b.calls[k], 3); /* pieces of 4, 4 and 3 */
    }
}

/* q, k and v, or gate and up, in one tensor: that is shown once, for its parts share their input. */
static void fused(void **state)
{
    static seen s;
    static float logits[4096];
    const char *shared = getenv("PN_SHARED");
    char path[4096];
    pn_model *usual = model;
    (void)state;
    if (!shared || !*shared) {
        print_message("# skip: PN_SHARED is empty\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/golden/graph/phi3/model.gguf", shared);
    assert_ok(pn_model_open(rt, path, &model, err));
    evaluate(&s, 2, 0, PN_EXACT, logits);
    size_t parts = 0;
    for (size_t k = 0; k < s.n; k++) {
        assert_int_equal(s.calls[k], 1);
        parts += pn_str_is(s.tensor[k]->name, "blk.0.attn_qkv.weight");
    }
    pn_model_destroy(model);
    model = usual;
    assert_int_equal(parts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_matrices),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(fused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Plans: what architecture plugins may and may not write; operations that plugins bring; types without kernels. */
#include "fixture.h"

#include "plan.h"

#include <math.h>

/* ---- operations of plugins --------------------------------------------------------------------------------------- */

#define WIDTH_MAX 1024

static void table_row(pn_file *file, int32_t id, float *out, uint32_t width)
{
    assert_ok(
        pn_file_tensor_f32(file, pn_file_tensor(file, "token_embd.weight"), (uint64_t)id * width, width, out, err));
}

/* The same arithmetic in doubles. */
static double expected_logit(pn_file *file, const double *state, uint32_t width, int32_t id)
{
    float norm[WIDTH_MAX], row[WIDTH_MAX];
    double square = 0, sum = 0;
    assert_ok(pn_file_tensor_f32(file, pn_file_tensor(file, "output_norm.weight"), 0, width, norm, err));
    table_row(file, id, row, width);
    for (uint32_t i = 0; i < width; i++) square += state[i] * state[i];
    for (uint32_t i = 0; i < width; i++)
        sum += (double)row[i] * state[i] / sqrt(square / width + 1e-5) * (double)norm[i];
    return sum;
}

static void operations_of_plugins(void **unused)
{
    const char *set[] = {"plugins.load", fixture_words(), "arch.alias.llama", "test-words", NULL};
    pn_runtime *rt = fixture_runtime(set);
    pn_model *m = NULL;
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    const int32_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6};
    double state[WIDTH_MAX] = {0};
    (void)unused;
    o.sequences = 2;
    o.threads = 3;
    assert_ok(pn_model_open(rt, FIXTURE_MODEL, &m, err));
    assert_ok(pn_session_create(m, &o, &s, err));
    uint32_t width = (uint32_t)pn_file_tensor(pn_model_file(m), "token_embd.weight")->dims[1];
    assert_true(width <= WIDTH_MAX);
    for (int i = 0; i < 8; i++) {
        /* sequence 1 gets other tokens in the same batch and must not leak into 0 */
        pn_token t[2] = {{.token = ids[i], .position = i, .wants_logits = 1},
                         {.token = 7 + i, .position = i, .sequence = 1, .wants_logits = 0}};
        float row[WIDTH_MAX];
        assert_ok(pn_session_eval(s, t, 2, err));
        table_row(pn_model_file(m), ids[i], row, width);
        for (uint32_t k = 0; k < width; k++) state[k] = 2.0 * (double)row[k] + 0.5 * state[k];
        for (int32_t id = 0; id < pn_model_vocab(m); id += 17)
            assert_true(fabs((double)pn_session_logits(s, 0)[id] - expected_logit(pn_model_file(m), state, width, id)) <
                        1e-4);
    }
    /* a recurrence cannot be cut short, only emptied */
    assert_int_equal(pn_session_trim(s, 0, 3, NULL), PN_E_STATE);
    assert_ok(pn_session_trim(s, 0, 0, err));
    pn_token first = {.token = ids[0], .position = 0, .wants_logits = 1};
    float row[WIDTH_MAX];
    assert_ok(pn_session_eval(s, &first, 1, err));
    table_row(pn_model_file(m), ids[0], row, width);
    for (uint32_t k = 0; k < width; k++) state[k] = 2.0 * (double)row[k];
    assert_true(fabs((double)pn_session_logits(s, 0)[5] - expected_logit(pn_model_file(m), state, width, 5)) < 1e-4);
    pn_session_destroy(s);
    pn_model_destroy(m);
    pn_runtime_destroy(rt);
}

/* ---- a type without a kernel ------------------------------------------------------------------------------------- */

static float *logits_of(const char *const *set, int32_t threads, size_t *n)
{
    pn_runtime *rt = fixture_runtime(set);
    pn_model *m = NULL;
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    pn_token t[16];
    char text[65536];
    o.threads = threads;
    o.kv = "f32";
    assert_ok(pn_model_open(rt, "tests/data/quantized/llama-Q8_0/model.gguf", &m, err));
    assert_ok(pn_session_create(m, &o, &s, err));
    pn_session_describe(s, text, sizeof text);
    assert_int_equal(strstr(text, "dequantize and dot") != NULL, set != NULL);
    for (int i = 0; i < 16; i++)
        t[i] = (pn_token){.token = i * 13 % pn_model_vocab(m), .position = -1, .wants_logits = 1};
    assert_ok(pn_session_eval(s, t, 16, err));
    *n = (size_t)pn_model_vocab(m) * 16;
    float *copy = malloc(*n * sizeof *copy);
    assert_non_null(copy);
    for (size_t i = 0; i < 16; i++) memcpy(copy + i * *n / 16, pn_session_logits(s, i), *n / 16 * sizeof *copy);
    pn_session_destroy(s);
    pn_model_destroy(m);
    pn_runtime_destroy(rt);
    return copy;
}

static void type_without_kernel(void **unused)
{
    const char *set[] = {"plugins.load", fixture_words(), "quant.alias.8", "plain8", NULL};
    size_t n = 0;
    double square = 0, difference = 0;
    (void)unused;
    float *slow = logits_of(set, 2, &n), *again = logits_of(set, 1, &n), *kernel = logits_of(NULL, 2, &n);
    assert_memory_equal(slow, again, n * sizeof *slow);
    for (size_t i = 0; i < n; i++) {
        square += (double)kernel[i] * (double)kernel[i];
        difference += ((double)kernel[i] - (double)slow[i]) * ((double)kernel[i] - (double)slow[i]);
    }
    assert_true(square > 0 && difference < 1e-6 * square);
    free(slow);
    free(again);
    free(kernel);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static pn_status op(pn_plan *p, const char *name, const pn_val *in, uint32_t n_in, const pn_wt *w, uint32_t n_w,
                    const void *params, size_t size, pn_val *out, pn_error *err)
{
    pn_op_call c = {.struct_size = sizeof c,
                    .layer = 7,
                    .op = name,
                    .inputs = in,
                    .n_inputs = n_in,
                    .weights = w,
                    .n_weights = n_w,
                    .params = params,
                    .params_size = size};
    return pn_plan_add_op(p, &c, out, err);
}

static void refused(pn_status st, pn_status want, const pn_error *e, const char *words)
{
    assert_int_equal(st, want);
    if (!strstr(e->message, words)) fail_msg("'%s' does not say '%s'", e->message, words);
}

static void wrong_calls_are_refused(void **unused)
{
    pn_runtime *rt = fixture_runtime(NULL);
    pn_file *file = NULL;
    pn_plan *p = NULL;
    pn_error e = {0};
    pn_wt table = 0, norm = 0, none = 99;
    pn_val x = 0, y = 0, two[2];
    (void)unused;
    assert_ok(pn_file_open(rt, FIXTURE_MODEL, &file, err));
    assert_ok(pn_plan_create(rt, file, &p, err));
    pn_weight_request r = {.struct_size = sizeof r, .name = "token_embd.weight", .n_dims = 2, .dims = {5, 7}};
    refused(pn_plan_add_weight(p, &r, &none, &e), PN_E_FORMAT, &e, "expected [5, 7]");
    assert_int_equal(none, 0);
    r.dims[0] = r.dims[1] = 0;
    assert_ok(pn_plan_add_weight(p, &r, &table, err));
    r.name = "no.such.weight";
    refused(pn_plan_add_weight(p, &r, &none, &e), PN_E_NOT_FOUND, &e, "no.such.weight");
    r.flags = PN_WEIGHT_OPTIONAL;
    assert_ok(pn_plan_add_weight(p, &r, &none, err));
    assert_int_equal(none, 0);
    r = (pn_weight_request){.struct_size = sizeof r, .name = "output_norm.weight", .n_dims = 1};
    assert_ok(pn_plan_add_weight(p, &r, &norm, err));
    refused(op(p, "fly", NULL, 0, NULL, 0, NULL, 0, &y, &e), PN_E_UNSUPPORTED, &e, "fly");
    refused(op(p, "embed", NULL, 0, &none, 1, NULL, 0, &y, &e), PN_E_ARGUMENT, &e, "required");
    refused(op(p, "embed", NULL, 0, &norm, 1, NULL, 0, &y, &e), PN_E_ARGUMENT, &e, "matrix");
    refused(pn_plan_finish(p, &e), PN_E_ARGUMENT, &e, "no output");
    assert_ok(op(p, "embed", NULL, 0, &table, 1, NULL, 0, &x, err));
    y = 77;
    refused(op(p, "add", &y, 1, NULL, 0, NULL, 0, &y, &e), PN_E_ARGUMENT, &e, "no value");
    refused(op(p, "add", &x, 1, NULL, 0, NULL, 0, &y, &e), PN_E_ARGUMENT, &e, "takes 2 inputs");
    pn_wt head[2] = {table, norm};
    refused(op(p, "linear", &x, 1, head, 2, NULL, 0, &y, &e), PN_E_ARGUMENT, &e, "bias");
    pn_slice_params s = {sizeof s, 1, UINT32_MAX};
    refused(op(p, "slice", &x, 1, NULL, 0, &s, sizeof s, &y, &e), PN_E_ARGUMENT, &e, "outside");
    pn_rope_params rope = {
        .struct_size = sizeof rope, .head_size = 7, .n_dims = 2, .pairing = 1, .base = 1e4f, .factor = 1};
    pn_wt nothing[2] = {0, 0};
    refused(op(p, "rope", &x, 1, nothing, 2, &rope, sizeof rope, &y, &e), PN_E_ARGUMENT, &e, "head size 7");
    assert_ok(op(p, "select", &x, 1, NULL, 0, NULL, 0, &y, err));
    two[0] = x;
    two[1] = y;
    refused(op(p, "add", two, 2, NULL, 0, NULL, 0, &y, &e), PN_E_ARGUMENT, &e, "selected");
    refused(pn_plan_set_output(p, 1000, PN_OUTPUT_LOGITS, &e), PN_E_ARGUMENT, &e, "no value");
    refused(pn_plan_set_output(p, x, 9, &e), PN_E_UNSUPPORTED, &e, "kind 9");
    assert_ok(pn_plan_set_output(p, x, PN_OUTPUT_LOGITS, err));
    refused(pn_plan_finish(p, &e), PN_E_ARGUMENT, &e, "never used");
    pn_plan_destroy(p);
    pn_file_destroy(file);
    pn_runtime_destroy(rt);
}

/* ---- memory runs out --------------------------------------------------------------------------------------------- */

static long left;
static void *scarce(void *arg, void *memory, size_t size)
{
    (void)arg;
    if (size == 0) {
        free(memory);
        return NULL;
    }
    return left-- > 0 ? realloc(memory, size) : NULL;
}

static void every_allocation_may_fail(void **unused)
{
    pn_runtime *rt = fixture_runtime(NULL);
    pn_status st = PN_E_NOMEM;
    long n = 0;
    (void)unused;
    for (; st; n++) {
        pn_model *m = NULL;
        pn_session *s = NULL;
        pn_error e = {0};
        left = n;
        pn_set_allocator(scarce, NULL);
        st = pn_model_open(rt, FIXTURE_MODEL, &m, &e);
        if (!st) st = pn_session_create(m, NULL, &s, &e);
        if (st && st != PN_E_NOMEM) fail_msg("allocation %ld failed and the status is %d: %s", n, (int)st, e.message);
        pn_session_destroy(s);
        pn_model_destroy(m);
        pn_set_allocator(NULL, NULL);
        assert_true(n < 100000);
    }
    assert_true(n > 50);
    pn_runtime_destroy(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_of_plugins),
        cmocka_unit_test(type_without_kernel),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

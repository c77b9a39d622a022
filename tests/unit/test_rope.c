/* Rotary frequencies and magnitudes against published numbers: factor tensors, linear scaling, YaRN, long contexts. */
#include "fixture.h"

#include "exec.h"

#include <math.h>

static pn_rope_table table(pn_rope_params p, const float *factors, const float *long_factors, int32_t context)
{
    pn_plan_weight weights[3] = { { 0 },
                                  { .vector = (float *)(uintptr_t)factors },
                                  { .vector = (float *)(uintptr_t)long_factors } };
    pn_plan plan = { .weights = weights, .n_weights = 2 };
    pn_plan_node node = { .kind = PN_OP_ROPE, .n_weights = 2, .weights = { factors ? 1 : 0, long_factors ? 2 : 0 } };
    pn_rope_table t = { 0 };
    node.p.rope = p;
    assert_ok(pn_rope_table_init(&t, &plan, &node, context, 1, err));
    return t;
}

static void near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("%.9g, expected %.9g", got, want);
}

static const pn_rope_params plain = { .struct_size = sizeof plain, .head_size = 64, .n_dims = 64, .pairing = 1,
                                      .base = 500000.0f, .factor = 1, .attn_factor = 1, .beta_fast = 32, .beta_slow = 1,
                                      .ext_factor = 1 };

/* The factors of llama 3 for a head of 64, base 500000, stretched by 32. */
static void factor_tensors_divide(void **state)
{
    float factors[32];
    (void)state;
    for (int i = 0; i < 32; i++)
        factors[i] = i < 15 ? 1.0f : i == 15 ? 1.65133f : i == 16 ? 3.29226f : i == 17 ? 9.66673f : 32.0f;
    pn_rope_table t = table(plain, factors, NULL, 8192);
    for (int i = 0; i < 32; i++)
        near(t.frequency[i], pow(500000.0, -2.0 * i / 64) / (double)factors[i], 1e-12);
    const int32_t positions[] = { 0, 1000, 8192 };
    for (int p = 0; p < 3; p++) {
        pn_rope_table_fill(&t, 0, positions[p]);
        for (int i = 0; i < 32; i++) {
            double angle = positions[p] * pow(500000.0, -2.0 * i / 64) / (double)factors[i];
            assert_true(fabs((double)t.cosine[i] - cos(angle)) < 1e-7 && fabs((double)t.sine[i] - sin(angle)) < 1e-7);
        }
    }
    near(t.magnitude, 1, 0);
    pn_rope_table_free(&t);
}

static void linear_scaling_divides_positions(void **state)
{
    pn_rope_params p = plain;
    (void)state;
    p.scaling = PN_ROPE_LINEAR;
    p.factor = 4;
    pn_rope_table t = table(p, NULL, NULL, 8192);
    for (int i = 0; i < 32; i++)
        near(t.frequency[i], pow(500000.0, -2.0 * i / 64) / 4, 1e-12);
    near(t.magnitude, 1, 0);
    pn_rope_table_free(&t);
}

/* Factor 4 from 32768: cosines and sines times 0.1 ln 4 + 1; fast pairs as trained, slow ones stretched. */
static void yarn_blends(void **state)
{
    pn_rope_params p = plain;
    (void)state;
    p.scaling = PN_ROPE_YARN;
    p.factor = 4;
    p.original_context = 32768;
    pn_rope_table t = table(p, NULL, NULL, 131072);
    near(t.magnitude, 1.138629, 1e-6);
    near(t.frequency[0], 1, 1e-12);
    near(t.frequency[31], pow(500000.0, -62.0 / 64) / 4, 1e-12);
    for (int i = 0; i < 32; i++) {
        double free = pow(500000.0, -2.0 * i / 64);
        assert_true(t.frequency[i] <= free * (1 + 1e-12) && t.frequency[i] >= free / 4 * (1 - 1e-12));
    }
    pn_rope_table_fill(&t, 0, 0);
    near((double)t.cosine[3], 1.138629, 1e-6);
    p.attn_factor = 0.5f;
    pn_rope_table half = table(p, NULL, NULL, 131072);
    near(half.magnitude, 0.5 * 1.138629, 1e-6);
    pn_rope_table_free(&t);
    pn_rope_table_free(&half);
}

/* The short factors up to the original context, the long ones beyond, whatever the prompt; the magnitude in both. */
static void longrope_goes_by_the_context(void **state)
{
    pn_rope_params p = plain;
    float shorter[32], longer[32];
    (void)state;
    for (int i = 0; i < 32; i++) {
        shorter[i] = 1.0f + (float)i / 100;
        longer[i] = 2.0f + (float)i;
    }
    p.scaling = PN_ROPE_LONGROPE;
    p.original_context = 4096;
    p.attn_factor = 1.190238f; /* sqrt(1 + ln(131072 / 4096) / ln 4096) */
    near(sqrt(1 + log(131072.0 / 4096) / log(4096.0)), 1.190238, 1e-6);
    pn_rope_table a = table(p, shorter, longer, 4096), b = table(p, shorter, longer, 4097);
    for (int i = 0; i < 32; i++) {
        near(a.frequency[i], pow(500000.0, -2.0 * i / 64) / (double)shorter[i], 1e-12);
        near(b.frequency[i], pow(500000.0, -2.0 * i / 64) / (double)longer[i], 1e-12);
    }
    near(a.magnitude, 1.190238, 1e-6);
    near(b.magnitude, 1.190238, 1e-6);
    pn_rope_table_free(&a);
    pn_rope_table_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factor_tensors_divide),
        cmocka_unit_test(linear_scaling_divides_positions),
        cmocka_unit_test(yarn_blends),
        cmocka_unit_test(longrope_goes_by_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The sampler: each option against what it says, distributions by a chi-square test with fixed seeds, a whole run
 * against an independent calculation, odd logits, no allocation. */
#include <pantheon/pantheon.h>

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static pn_sampler *make(int32_t n, const pn_sampler_options *o)
{
    pn_sampler *s = NULL;
    pn_error err = { 0 };
    if (pn_sampler_create(n, o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

static int32_t sample(pn_sampler *s, const float *logits)
{
    int32_t token = -1;
    pn_error err = { 0 };
    if (pn_sampler_sample(s, logits, &token, &err))
        fail_msg("%s", err.message);
    return token;
}

static pn_sampler_options seeded(float temperature, uint64_t seed)
{
    pn_sampler_options o = PN_OPTIONS_INIT(pn_sampler_options);
    o.temperature = temperature;
    o.has_seed = 1;
    o.seed = seed;
    return o;
}

/* ---- distributions ----------------------------------------------------------------------------------------------- */

enum { DRAWS = 20000, MOST = 16 };

/* Draws many times and compares with the probabilities that are expected: tokens of probability 0 never come. The limit
 * is the 1 - 1e-6 quantile of chi-square (Wilson and Hilferty): a right sampler passes with nearly any seed, and this
 * one, with fixed seeds, always or never. */
static void assert_distribution(const pn_sampler_options *o, const float *logits, const double *p, int32_t n)
{
    pn_sampler *s = make(n, o);
    int count[MOST] = { 0 }, i, cells = 0;
    double chi = 0, k, limit;
    for (i = 0; i < DRAWS; i++)
        count[sample(s, logits)]++;
    for (i = 0; i < n; i++) {
        double expected = p[i] * DRAWS;
        if (p[i] == 0) {
            assert_int_equal(count[i], 0);
            continue;
        }
        chi += (count[i] - expected) * (count[i] - expected) / expected;
        cells++;
    }
    k = cells - 1;
    limit = k > 0 ? k * pow(1 - 2 / (9 * k) + 4.75 * sqrt(2 / (9 * k)), 3) : 0;
    if (chi > limit)
        fail_msg("chi-square %g with %d cells is above %g", chi, cells, limit);
    pn_sampler_destroy(s);
}

/* Softmax at a temperature of the tokens in `keep` (a bit each). */
static void softmax(const float *logits, int n, double temperature, unsigned keep, double *p)
{
    double sum = 0;
    int i;
    for (i = 0; i < n; i++)
        sum += p[i] = keep >> i & 1 ? exp((double)logits[i] / temperature) : 0;
    for (i = 0; i < n; i++)
        p[i] /= sum;
}

/* Probabilities at temperature 1: .4 .1 .3 .05 .15, as logits. */
static const float five[5] = { -0.9162907f, -2.3025851f, -1.2039728f, -2.9957323f, -1.8971200f };

static void test_temperature(void **state)
{
    static const float ts[] = { 0.3f, 1, 2.5f };
    double p[5];
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        pn_sampler_options o = seeded(ts[i], 42 + i);
        softmax(five, 5, (double)ts[i], 31, p);
        assert_distribution(&o, five, p, 5);
    }
}

static void test_top_k(void **state)
{
    static const unsigned keep[] = { 31, 1, 5, 21, 23, 31, 31 };
    double p[5];
    int k;
    (void)state;
    for (k = 0; k < 7; k++) {
        pn_sampler_options o = seeded(1, 7);
        o.top_k = k;
        softmax(five, 5, 1, keep[k], p);
        assert_distribution(&o, five, p, 5);
    }
}

static void test_top_p(void **state)
{
    /* Cumulative: .4, .7, .85, .95, 1: the token that crosses the line stays. */
    static const struct {
        float top_p;
        unsigned keep;
    } cases[] = { { 0.01f, 1 },  { 0.39f, 1 }, { 0.41f, 5 },  { 0.69f, 5 },
                  { 0.71f, 21 }, { 0.9f, 23 }, { 0.96f, 31 }, { 1, 31 } };
    double p[5];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_sampler_options o = seeded(1.5f, 1000 + i);
        o.top_p = cases[i].top_p;
        softmax(five, 5, 1.5, cases[i].keep, p);
        assert_distribution(&o, five, p, 5);
    }
}

static void test_min_p(void **state)
{
    /* Shares of the likeliest: 1, .25, .75, .125, .375. */
    static const struct {
        float min_p;
        unsigned keep;
    } cases[] = { { 0.05f, 31 }, { 0.2f, 23 }, { 0.3f, 21 }, { 0.5f, 5 }, { 0.8f, 1 }, { 1, 1 } };
    double p[5];
    size_t i;
    int32_t k;
    (void)state;
    for (k = 0; k < 6; k += 5)  /* alone, and after top-k */
        for (i = 0; i < sizeof cases / sizeof *cases; i++) {
            pn_sampler_options o = seeded(0.7f, 2000 + i);
            o.min_p = cases[i].min_p;
            o.top_p = k ? 0.999f : 0;
            softmax(five, 5, 0.7f, cases[i].keep, p);
            assert_distribution(&o, five, p, 5);
        }
}

static void test_together(void **state)
{
    double p[5];
    pn_sampler_options o = seeded(0.5f, 5);
    (void)state;
    /* top-k leaves .4 .3 .15 = .47 .35 .18 of what is left; top-p of .8 of that leaves two. */
    o.top_k = 3;
    o.top_p = 0.8f;
    softmax(five, 5, 0.5, 5, p);
    assert_distribution(&o, five, p, 5);
    /* .83 is needed for a third. */
    o.top_p = 0.83f;
    softmax(five, 5, 0.5, 21, p);
    assert_distribution(&o, five, p, 5);
    o.min_p = 0.5f;
    softmax(five, 5, 0.5, 5, p);
    assert_distribution(&o, five, p, 5);
}

static void test_bias(void **state)
{
    static const int32_t ids[] = { 3, 0, 3 };
    static const float values[] = { 1, -INFINITY, 0.5f };
    float moved[5];
    double p[5];
    pn_sampler_options o = seeded(1, 3);
    pn_sampler *s;
    (void)state;
    memcpy(moved, five, sizeof moved);
    moved[3] += 1.5f;
    o.bias_ids = ids;
    o.bias_values = values;
    o.n_bias = 3;
    softmax(moved, 5, 1, 30, p);
    assert_distribution(&o, five, p, 5);
    o.temperature = 0;
    s = make(5, &o);
    assert_int_equal(sample(s, five), 2);
    pn_sampler_destroy(s);
}

/* ---- greedy, penalty --------------------------------------------------------------------------------------------- */

static void test_greedy(void **state)
{
    static const float ties[] = { 1, 3, 2, 3 }, odd[] = { NAN, -INFINITY, -5, INFINITY, -6 };
    pn_sampler *s = make(4, NULL);
    (void)state;
    assert_int_equal(sample(s, ties), 1);
    pn_sampler_destroy(s);
    s = make(5, NULL);
    assert_int_equal(sample(s, odd), 2);
    pn_sampler_destroy(s);
}

static void test_penalty(void **state)
{
    static const float logits[] = { 2, 1.5f, -1, -1.2f };
    pn_sampler_options o = PN_OPTIONS_INIT(pn_sampler_options);
    pn_sampler *s;
    (void)state;
    o.repeat_penalty = 2;
    o.repeat_last = 2;
    s = make(4, &o);
    assert_int_equal(sample(s, logits), 0);     /* 2 */
    assert_int_equal(sample(s, logits), 1);     /* 1, 1.5 */
    assert_int_equal(sample(s, logits), 0);     /* 1, .75 */
    /* Twice the same is punished once; what is older than two tokens is forgotten. */
    pn_sampler_accept(s, 0);
    assert_int_equal(sample(s, logits), 1);     /* 1, 1.5 */
    pn_sampler_accept(s, 2);
    pn_sampler_accept(s, 3);
    assert_int_equal(sample(s, logits), 0);
    /* No such token: nothing happens. */
    pn_sampler_accept(s, -1);
    pn_sampler_accept(s, 4);
    pn_sampler_destroy(s);
    /* Punished once, however often it came: 1, 0.8. */
    s = make(2, &o);
    pn_sampler_accept(s, 0);
    pn_sampler_accept(s, 0);
    assert_int_equal(sample(s, (const float[]){ 2, 0.8f }), 0);
    pn_sampler_destroy(s);
    /* A negative logit is multiplied. */
    o.repeat_last = 0;
    s = make(2, &o);
    pn_sampler_accept(s, 0);
    assert_int_equal(sample(s, (const float[]){ -1, -1.9f }), 1);
    pn_sampler_destroy(s);
    /* Off. */
    o.repeat_penalty = 1;
    s = make(2, &o);
    pn_sampler_accept(s, 0);
    assert_int_equal(sample(s, (const float[]){ -1, -1.9f }), 0);
    pn_sampler_destroy(s);
}

/* ---- odd input --------------------------------------------------------------------------------------------------- */

static void test_odd_logits(void **state)
{
    static const float none[] = { NAN, INFINITY, -INFINITY }, huge[] = { FLT_MAX, -FLT_MAX, FLT_MAX };
    static const float mixed[] = { NAN, 0, INFINITY, 1, -INFINITY };
    static const int32_t ids[] = { 0 };
    static const float values[] = { FLT_MAX };
    double p[5];
    pn_sampler_options o = seeded(1, 9);
    pn_sampler *s = make(3, &o);
    pn_error err = { 0 };
    int32_t token = -5;
    (void)state;
    assert_int_equal(pn_sampler_sample(s, none, &token, &err), PN_E_ARGUMENT);
    assert_int_equal(token, -5);
    assert_int_equal(pn_sampler_sample(s, none, &token, NULL), PN_E_ARGUMENT);
    pn_sampler_destroy(s);
    softmax(huge, 0, 1, 0, p);
    p[0] = p[2] = 0.5;
    p[1] = 0;
    assert_distribution(&o, huge, p, 3);
    o.top_k = 2;
    assert_distribution(&o, huge, p, 3);
    o.top_k = 0;
    p[0] = p[2] = p[4] = 0;
    p[1] = 1 / (1 + exp(1));
    p[3] = 1 - p[1];
    assert_distribution(&o, mixed, p, 5);
    o.top_k = 4;
    o.top_p = 0.99f;
    assert_distribution(&o, mixed, p, 5);
    /* A bias may not push a logit out of the finite. */
    o = seeded(0, 0);
    o.bias_ids = ids;
    o.bias_values = values;
    o.n_bias = 1;
    s = make(3, &o);
    assert_int_equal(sample(s, huge), 0);
    pn_sampler_destroy(s);
    /* Nor may temperature. */
    o = seeded(1e-38f, 0);
    s = make(3, &o);
    token = sample(s, huge);
    assert_true(token == 0 || token == 2);
    pn_sampler_destroy(s);
}

static void assert_refused(const pn_sampler_options *o, int32_t n, const char *word)
{
    pn_sampler *s = NULL;
    pn_error err = { 0 };
    pn_status status = pn_sampler_create(n, o, &s, &err);
    assert_true(status == PN_E_RANGE || status == PN_E_ARGUMENT);
    assert_null(s);
    assert_non_null(strstr(err.message, word));
}

static void test_refusals(void **state)
{
    static const int32_t id = 5;
    static const float value = 1, no_number = NAN;
    pn_sampler_options o = PN_OPTIONS_INIT(pn_sampler_options), bad;
    (void)state;
    assert_refused(&o, 0, "vocabulary");
#define REFUSED(field, x, word) (bad = o, bad.field = (x), assert_refused(&bad, 5, word))
    REFUSED(temperature, -1, "temperature");
    REFUSED(temperature, NAN, "temperature");
    REFUSED(temperature, INFINITY, "temperature");
    REFUSED(top_k, -1, "top_k");
    REFUSED(top_p, 1.1f, "top_p");
    REFUSED(min_p, -0.1f, "min_p");
    REFUSED(repeat_penalty, NAN, "repeat_penalty");
    REFUSED(repeat_last, -1, "repeat_last");
    bad = o;
    bad.bias_ids = &id;
    bad.bias_values = &value;
    bad.n_bias = 1;
    assert_refused(&bad, 5, "token 5");
    bad.bias_values = &no_number;
    assert_refused(&bad, 6, "bias");
    pn_sampler_destroy(NULL);
}

/* ---- reproducible ------------------------------------------------------------------------------------------------ */

static void random_logits(float *x, int n, uint32_t seed)
{
    int i;
    for (i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-20f - 8;
    }
}

/* The tokens of a fixed case, worked out by tests/data/tokens/sampler.py from the published algorithms alone. */
static void test_same_everywhere(void **state)
{
    static const int32_t want[] = {
#include "../data/tokens/sampler.inc"
    };
    enum { N = 1000 };
    float x[N];
    size_t i;
    int t;
    pn_sampler_options o = seeded(0.8f, 20240229);
    pn_sampler *s;
    (void)state;
    o.top_k = 50;
    o.top_p = 0.9f;
    o.min_p = 0.02f;
    o.repeat_penalty = 1.3f;
    o.repeat_last = 16;
    s = make(N, &o);
    assert_int_equal(pn_sampler_seed(s), 20240229);
    for (i = 0; i < sizeof want / sizeof *want; i++) {
        random_logits(x, N, (uint32_t)(i % 4));
        t = sample(s, x);
        assert_int_equal(t, want[i]);
    }
    pn_sampler_destroy(s);
}

static void test_seeds(void **state)
{
    static const float flat[256];
    pn_sampler_options o = seeded(1, 0), no_seed = o;
    pn_sampler *a = make(256, &o), *b = make(256, &o), *c, *d, *e;
    int i, same = 0;
    (void)state;
    no_seed.has_seed = 0;
    c = make(256, &no_seed);
    d = make(256, &no_seed);
    assert_true(pn_sampler_seed(c) != pn_sampler_seed(d));
    assert_true(pn_sampler_seed(c) <= INT64_MAX);
    /* The seed that it tells gives the same again. */
    o.seed = pn_sampler_seed(c);
    e = make(256, &o);
    for (i = 0; i < 64; i++) {
        int32_t x = sample(a, flat), y = sample(c, flat);
        assert_int_equal(x, sample(b, flat));
        assert_int_equal(y, sample(e, flat));
        same += x == y;
    }
    assert_true(same < 32);
    pn_sampler_destroy(a);
    pn_sampler_destroy(b);
    pn_sampler_destroy(c);
    pn_sampler_destroy(d);
    pn_sampler_destroy(e);
}

/* Selecting few of many equals sorting all: top-k by the definition, on random logits with many ties. */
static void test_selection(void **state)
{
    enum { N = 5000 };
    static float x[N], narrow[N];
    int32_t k, i, j;
    (void)state;
    for (k = 1; k <= 4096; k *= 4) {
        pn_sampler_options o = seeded(1, (uint64_t)k);
        pn_sampler *some, *all;
        random_logits(x, N, (uint32_t)k);
        for (i = 0; i < N; i++)
            x[i] = floorf(x[i] * 64) / 64;
        /* A token is kept when fewer than k come before it. */
        for (i = 0; i < N; i++) {
            int32_t before = 0;
            for (j = 0; j < N && before < k; j++)
                before += x[j] > x[i] || (x[j] == x[i] && j < i);
            narrow[i] = before < k ? x[i] : -INFINITY;
        }
        o.top_k = k;
        some = make(N, &o);
        for (i = 0; i < 300; i++)
            assert_true(isfinite(narrow[sample(some, x)]));
        /* The same tokens, chosen without a selection. */
        o.top_k = 0;
        all = make(N, &o);
        for (i = 0; i < 300; i++)
            assert_true(isfinite(narrow[sample(all, narrow)]));
        pn_sampler_destroy(some);
        pn_sampler_destroy(all);
    }
}

/* ---- memory, configuration --------------------------------------------------------------------------------------- */

static long fail_at;

static void *failing(void *arg, void *memory, size_t size)
{
    (void)arg;
    if (!size) {
        free(memory);
        return NULL;
    }
    if (fail_at && --fail_at == 0)
        return NULL;
    return realloc(memory, size);
}

static void test_memory(void **state)
{
    pn_sampler_options o = seeded(1, 1);
    pn_sampler *s = NULL;
    pn_status status = PN_E_NOMEM;
    uint64_t before;
    long n, i, failures = 0;
    (void)state;
    o.repeat_penalty = 2;
    o.top_k = 3;
    pn_set_allocator(failing, NULL);
    for (n = 1; status; n++) {
        fail_at = n;
        status = pn_sampler_create(5, &o, &s, NULL);
        failures += status == PN_E_NOMEM;
        assert_true(status == PN_OK || status == PN_E_NOMEM);
    }
    fail_at = 0;
    assert_true(failures >= 5);
    before = pn_allocation_count();
    for (i = 0; i < 100; i++)
        sample(s, five);
    assert_int_equal(pn_allocation_count(), before);
    pn_sampler_destroy(s);
    pn_set_allocator(NULL, NULL);
}

static void test_configuration(void **state)
{
    static const char *const settings[][2] = {
        { "sampling.temperature", "0.5" }, { "sampling.top_k", "7" },          { "sampling.top_p", "0.25" },
        { "sampling.min_p", "0.125" },     { "sampling.repeat_penalty", "2" }, { "sampling.repeat_last", "9" },
        { "sampling.seed", "123456789012" }, { "sampling.bias.3", "1.5" },     { "sampling.bias.8", "-2" },
    };
    pn_sampler_options o = PN_OPTIONS_INIT(pn_sampler_options);
    pn_config *c = NULL;
    pn_error err = { 0 };
    size_t i;
    (void)state;
    assert_int_equal(pn_config_create(&c, &err), PN_OK);
    assert_int_equal(pn_sampler_options_from(c, &o, &err), PN_OK);
    assert_int_equal(o.has_seed, 0);
    assert_int_equal(o.n_bias, 0);
    assert_true(o.temperature == 0 && o.top_k == 40);
    for (i = 0; i < sizeof settings / sizeof *settings; i++)
        if (pn_config_set(c, settings[i][0], settings[i][1], &err))
            fail_msg("%s", err.message);
    assert_int_equal(pn_sampler_options_from(c, &o, &err), PN_OK);
    assert_true(o.temperature == 0.5f && o.top_p == 0.25f && o.min_p == 0.125f && o.repeat_penalty == 2);
    assert_int_equal(o.top_k, 7);
    assert_int_equal(o.repeat_last, 9);
    assert_int_equal(o.has_seed, 1);
    assert_int_equal(o.seed, 123456789012);
    assert_int_equal(o.n_bias, 2);
    assert_true(o.bias_ids[0] == 3 && o.bias_values[0] == 1.5f && o.bias_ids[1] == 8 && o.bias_values[1] == -2);
    pn_config_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_temperature), cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_top_p),       cmocka_unit_test(test_min_p),
        cmocka_unit_test(test_together),    cmocka_unit_test(test_bias),
        cmocka_unit_test(test_greedy),      cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_odd_logits),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_same_everywhere), cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_selection),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

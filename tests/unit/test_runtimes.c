/* Several runtimes, models and sessions in one process, on threads of their own: made, used and taken down at the same
 * time, they give the same bits; sessions share a model, models share a file. */
#include "fixture.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 3, TOKENS = 20 };

static float *want;
static int32_t vocab;

/* cmocka may fail a test on its own thread only, so workers count. */
static int evaluate(pn_model *m, int32_t threads)
{
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    pn_token t[TOKENS];
    o.context = TOKENS;
    o.threads = threads;
    o.kv = "f32";
    for (int i = 0; i < TOKENS; i++)
        t[i] = (pn_token){.token = i * 13 % vocab, .position = i, .wants_logits = i == TOKENS - 1};
    int wrong = pn_session_create(m, &o, &s, NULL) || pn_session_eval(s, t, TOKENS, NULL) ||
                memcmp(want, pn_session_logits(s, 0), (size_t)vocab * sizeof *want);
    pn_session_destroy(s);
    return wrong;
}

static pn_runtime *runtime_or_null(void)
{
    const char *build = getenv("PN_BUILD");
    char folder[4096];
    pn_config *config = NULL;
    pn_runtime *rt = NULL;
    snprintf(folder, sizeof folder, "%s/plugins", build ? build : "build");
    if (!pn_config_create(&config, NULL) && !pn_config_set(config, "plugins.path", folder, NULL))
        pn_runtime_create(config, NULL, &rt, NULL);
    pn_config_destroy(config);
    return rt;
}

static void *own_runtime(void *arg)
{
    intptr_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pn_runtime *rt = runtime_or_null();
        pn_model *m = NULL;
        wrong += !rt || pn_model_open(rt, FIXTURE_MODEL, &m, NULL) || evaluate(m, 1 + (int32_t)(intptr_t)arg % 3);
        pn_model_destroy(m);
        pn_runtime_destroy(rt);
    }
    return (void *)wrong;
}

static pn_model *shared;
static void *own_session(void *arg)
{
    intptr_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++) wrong += evaluate(shared, 1 + (int32_t)(intptr_t)arg % 3);
    return (void *)wrong;
}

static pn_runtime *common;
static pn_file *file;
static void *own_model(void *arg)
{
    intptr_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pn_model *m = NULL;
        wrong += pn_model_from_file(common, file, &m, NULL) || evaluate(m, 1 + (int32_t)(intptr_t)arg % 3);
        pn_model_destroy(m);
    }
    return (void *)wrong;
}

static void at_once(void *(*work)(void *))
{
    pthread_t thread[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
}

static void runtimes(void **state)
{
    (void)state;
    at_once(own_runtime);
}

static void sessions_of_a_model(void **state)
{
    (void)state;
    at_once(own_session);
}

static void models_of_a_file(void **state)
{
    (void)state;
    at_once(own_model);
}

static int prepare(void **state)
{
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    (void)state;
    common = fixture_runtime(NULL);
    assert_ok(pn_file_open(common, FIXTURE_MODEL, &file, err));
    assert_ok(pn_model_from_file(common, file, &shared, err));
    vocab = pn_model_vocab(shared);
    want = calloc((size_t)vocab, sizeof *want);
    o.kv = "f32";
    o.threads = 1;
    assert_ok(pn_session_create(shared, &o, &s, err));
    for (int i = 0; i < TOKENS; i++) {
        pn_token t = {.token = i * 13 % vocab, .position = i, .wants_logits = 1};
        assert_ok(pn_session_eval(s, &t, 1, err));
    }
    memcpy(want, pn_session_logits(s, 0), (size_t)vocab * sizeof *want);
    pn_session_destroy(s);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    free(want);
    pn_model_destroy(shared);
    pn_file_destroy(file);
    pn_runtime_destroy(common);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runtimes),
        cmocka_unit_test(sessions_of_a_model),
        cmocka_unit_test(models_of_a_file),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}

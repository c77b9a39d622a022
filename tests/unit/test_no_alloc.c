/* Decoding makes no allocation: counted through the library's allocator and beneath it, at malloc and mmap themselves,
 * so that libraries that the library uses count too. */
#include "fixture.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNT_MALLOC 0      /* a sanitizer has its own malloc */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNT_MALLOC 0
#endif
#endif
#if !defined(COUNT_MALLOC) && defined(__GLIBC__)
#define COUNT_MALLOC 1
#endif

static atomic_ulong mallocs;

#if COUNT_MALLOC
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    *out = __libc_memalign(align, size);
    return *out ? 0 : 12;
}

void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset)
{
    atomic_fetch_add(&mallocs, 1);
    return (void *)syscall(SYS_mmap, where, size, protection, flags, fd, offset);
}
#endif

enum { PROMPT = 20, DECODE = 100 };

/* The counters see what they are meant to see, or the test below would prove nothing. */
static void counts(void **state)
{
    uint64_t before = pn_allocation_count();
    unsigned long below = atomic_load(&mallocs);
    pn_config *config = NULL;
    (void)state;
    assert_ok(pn_config_create(&config, err));
    pn_config_destroy(config);
    assert_true(pn_allocation_count() > before);
    if (COUNT_MALLOC)
        assert_true(atomic_load(&mallocs) > below);
    else
        print_message("# malloc itself is not counted in this build\n");
}

static void decode(pn_runtime *rt, int32_t threads, const char *kv, float temperature)
{
    pn_model *model = NULL;
    pn_session *session = NULL;
    pn_sampler *sampler = NULL;
    pn_session_options options = PN_OPTIONS_INIT(pn_session_options);
    pn_sampler_options sampling = PN_OPTIONS_INIT(pn_sampler_options);
    pn_token prompt[PROMPT];
    int32_t token = 7;
    options.threads = threads;
    options.kv = kv;
    sampling.temperature = temperature;
    sampling.top_k = 40;
    sampling.top_p = 0.9f;
    sampling.min_p = 0.05f;
    sampling.repeat_penalty = 1.1f;
    sampling.has_seed = 1;
    sampling.seed = 1;
    assert_ok(pn_model_open(rt, FIXTURE_MODEL, &model, err));
    assert_ok(pn_session_create(model, &options, &session, err));
    assert_ok(pn_sampler_create(pn_model_vocab(model), &sampling, &sampler, err));
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = (pn_token){ 3 + i, i, 0, i == PROMPT - 1 };
    assert_ok(pn_session_eval(session, prompt, PROMPT, err));       /* threads are made here */

    uint64_t before = pn_allocation_count();
    unsigned long below = atomic_load(&mallocs);
    for (int i = 0; i < DECODE; i++) {
        assert_ok(pn_sampler_sample(sampler, pn_session_logits(session, 0), &token, err));
        pn_token next = { token, PROMPT + i, 0, 1 };
        assert_ok(pn_session_eval(session, &next, 1, err));
    }
    assert_int_equal(pn_allocation_count() - before, 0);
    assert_int_equal(atomic_load(&mallocs) - below, 0);
    assert_int_equal(pn_session_length(session, 0), PROMPT + DECODE);

    /* A prompt that fits the batch needs none either. */
    assert_ok(pn_session_trim(session, 0, 0, err));
    before = pn_allocation_count();
    below = atomic_load(&mallocs);
    assert_ok(pn_session_eval(session, prompt, PROMPT, err));
    assert_int_equal(pn_allocation_count() - before, 0);
    assert_int_equal(atomic_load(&mallocs) - below, 0);
    pn_sampler_destroy(sampler);
    pn_session_destroy(session);
    pn_model_destroy(model);
}

static void none_while_decoding(void **state)
{
    pn_runtime *rt = fixture_runtime(NULL);
    (void)state;
    decode(rt, 1, "f16", 0);
    decode(rt, 2, "f16", 0.8f);
    decode(rt, 3, "f32", 0.8f);
    pn_runtime_destroy(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(counts), cmocka_unit_test(none_while_decoding) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

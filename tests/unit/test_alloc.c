/* The allocator: overflow, alignment, counting, an allocator of the embedder's; then runtimes made with every
 * allocation failing once. */
#include "alloc.h"
#include "loader_help.h"

#include <pthread.h>

/* Hands out C memory, counts what is out, fails call number `fail_at`. */
static struct {
    long calls, fail_at, live;
} meter;

static void *metered(void *arg, void *memory, size_t size)
{
    assert_ptr_equal(arg, &meter);
    if (!size) {
        meter.live -= memory != NULL;
        free(memory);
        return NULL;
    }
    if (++meter.calls == meter.fail_at)
        return NULL;
    void *p = realloc(memory, size);
    if (p && !memory) {
        meter.live++;
        memset(p, 0xa5, size);
    }
    return p;
}

static void sizes(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        pn_set_allocator(own ? metered : NULL, own ? &meter : NULL);
        meter.fail_at = 0;
        char *a = pn_calloc(0, 8), *b = pn_calloc(8, 0);
        assert_true(a && b && a != b);
        pn_free(a);
        pn_free(b);
        assert_null(pn_calloc(SIZE_MAX / 2, 3));
        assert_null(pn_calloc(SIZE_MAX, 1));
        assert_null(pn_realloc(NULL, SIZE_MAX / 4 + 1, 4));
        a = pn_calloc(3, 5);
        for (int i = 0; i < 15; i++)
            assert_int_equal(a[i], 0);
        memset(a, 7, 15);
        assert_null(pn_realloc(a, SIZE_MAX / 2, 2 + 1));    /* too much: the old memory is as it was */
        assert_int_equal(a[14], 7);
        a = pn_realloc(a, 1000, 2);
        assert_int_equal(a[14], 7);
        pn_free(a);
        pn_free(NULL);
    }
    pn_set_allocator(NULL, NULL);
    assert_int_equal(meter.live, 0);
}

static void aligned(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        pn_set_allocator(own ? metered : NULL, own ? &meter : NULL);
        for (size_t align = 16; align <= 65536; align *= 2)
            for (size_t size = 0; size < 200; size += 33) {
                unsigned char *p = pn_alloc_aligned(align, size);
                assert_non_null(p);
                assert_int_equal((uintptr_t)p % align, 0);
                memset(p, 1, size);
                pn_free_aligned(p);
            }
        assert_null(pn_alloc_aligned(64, SIZE_MAX - 64));
        assert_null(pn_alloc_aligned(48, 10));
        pn_free_aligned(NULL);
        size_t big = (size_t)3 << 20;
        unsigned char *p = pn_pages_alloc(big);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 4096, 0);
        for (size_t i = 0; i < big; i += 511)
            assert_int_equal(p[i], 0);
        pn_pages_free(p, big);
        p = pn_pages_alloc(0);
        assert_non_null(p);
        pn_pages_free(p, 0);
        assert_null(pn_pages_alloc(SIZE_MAX));
    }
    pn_set_allocator(NULL, NULL);
    assert_int_equal(meter.live, 0);
}

static void strings(void **state)
{
    (void)state;
    char *a = pn_strdup("twelve"), *b = pn_strndup("twelve", 3), *c = pn_strndup(NULL, 0);
    assert_string_equal(a, "twelve");
    assert_string_equal(b, "twe");
    assert_string_equal(c, "");
    assert_null(pn_strndup("x", SIZE_MAX));
    pn_free(a);
    pn_free(b);
    pn_free(c);
}

static void *allocate(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        pn_free(pn_calloc(1, 16));
    return NULL;
}

static void counted(void **state)
{
    (void)state;
    uint64_t n = pn_allocation_count();
    void *a = pn_calloc(1, 1);
    a = pn_realloc(a, 2, 1);
    pn_free(a);
    pn_free_aligned(pn_alloc_aligned(64, 1));
    pn_pages_free(pn_pages_alloc(10), 10);
    assert_int_equal(pn_allocation_count() - n, 4);
    pthread_t threads[4];
    n = pn_allocation_count();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(pn_allocation_count() - n, 4000);
}

/* Every allocation of a runtime's making fails once: a clean error each time, and nothing is left behind. */
static void each_allocation_fails_once(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    pn_error err;
    long n = 0, live;
    fresh_folder(folder);
    copy_plugin("good", folder, NULL);
    copy_plugin("old_structs", folder, NULL);
    copy_plugin("no_note", folder, NULL);
    copy_plugin("init_fails", folder, NULL);
    copy_plugin("version_1_9", folder, NULL);
    copy_plugin("version_1_10", folder, NULL);
    pn_set_allocator(metered, &meter);
    meter.fail_at = 0;
    /* Once without failure: images and host tables stay with the process. */
    pn_config *cfg;
    pn_runtime *rt;
    assert_int_equal(pn_config_create(&cfg, &err), PN_OK);
    assert_int_equal(pn_config_set(cfg, "plugins.path", folder, &err), PN_OK);
    assert_int_equal(pn_config_set(cfg, "quant.pin.test.good", "org.pantheon.test.good", &err), PN_OK); /* a note */
    assert_int_equal(pn_runtime_create(cfg, NULL, &rt, &err), PN_OK);
    pn_runtime_destroy(rt);
    live = meter.live;
    for (;; n++) {
        memset(&err, 0, sizeof err);
        meter.calls = 0;
        meter.fail_at = n + 1;
        rt = NULL;
        pn_status s = pn_runtime_create(cfg, NULL, &rt, &err);
        meter.fail_at = 0;
        if (s == PN_OK) {
            int reached = meter.calls <= n;
            pn_runtime_destroy(rt);
            assert_int_equal(meter.live, live);
            if (reached)
                break;
            fail_msg("allocation %ld failed, yet the runtime was made", n + 1);
        }
        if (s != PN_E_NOMEM || err.status != PN_E_NOMEM || !err.message[0])
            fail_msg("allocation %ld: status %d: %s", n + 1, (int)s, err.message);
        assert_null(rt);
        if (meter.live != live)
            fail_msg("allocation %ld: %ld blocks are left", n + 1, meter.live - live);
        /* Whatever failed, the next attempt works. */
    }
    assert_true(n > 50);
    pn_config_destroy(cfg);
    pn_set_allocator(NULL, NULL);
}

/* The same with images that the process has never seen, so that loading itself runs out of memory too. */
static void first_loads_fail_once(void **state)
{
    (void)state;
    pn_error err;
    pn_config *cfg;
    pn_runtime *rt = NULL;
    pn_status s = PN_E_NOMEM;
    for (long n = 0; s != PN_OK; n++) {
        char folder[PATH_MAX];
        fresh_folder(folder);
        copy_plugin("good", folder, NULL);
        pn_set_allocator(metered, &meter);
        meter.fail_at = 0;
        assert_int_equal(pn_config_create(&cfg, &err), PN_OK);
        assert_int_equal(pn_config_set(cfg, "plugins.path", folder, &err), PN_OK);
        meter.calls = 0;
        meter.fail_at = n + 1;
        s = pn_runtime_create(cfg, NULL, &rt, &err);
        meter.fail_at = 0;
        if (s != PN_OK) {
            assert_int_equal(s, PN_E_NOMEM);
            assert_null(rt);
        }
        pn_config_destroy(cfg);
        assert_true(n < 10000);
    }
    pn_runtime_destroy(rt);
    pn_set_allocator(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes), cmocka_unit_test(aligned), cmocka_unit_test(strings), cmocka_unit_test(counted),
        cmocka_unit_test(each_allocation_fails_once), cmocka_unit_test(first_loads_fail_once),
    };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}

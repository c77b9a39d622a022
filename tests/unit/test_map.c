/* Mappings: bounds, sharing, files that cannot be mapped, and the sources over them with their siblings. */
#include "file.h"
#include "map.h"
#include "memwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[512], outside[512];

static const char *in(const char *folder, const char *name)
{
    static char paths[4][1100];
    static int turn;
    char *p = paths[turn++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof dir, "%s/map-XXXXXX", tmp ? tmp : "/tmp");
    snprintf(outside, sizeof outside, "%s/out-XXXXXX", tmp ? tmp : "/tmp");
    return !mkdtemp(dir) || !mkdtemp(outside);
}

static int teardown(void **state)
{
    static const char *const names[] = {"a",         "b",       "empty", "pipe", "link-in", "link-out",
                                        "link-gone", "link-up", "sub",   "fifo", "swap"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (unlink(in(dir, names[i])) && errno == EISDIR)
            rmdir(in(dir, names[i]));
    unlink(in(outside, "secret"));
    rmdir(dir);
    rmdir(outside);
    return 0;
}

static void views_are_checked(void **state)
{
    pn_map *m = NULL;
    pn_error err = { 0 };
    (void)state;
    put(in(dir, "a"), "0123456789");
    assert_int_equal(pn_map_open(in(dir, "a"), &m, &err), PN_OK);
    assert_int_equal(pn_map_size(m), 10);
    assert_int_equal(pn_map_mapped(m), 1);
    assert_string_equal(pn_map_reason(m), "");
    assert_memory_equal(pn_map_view(m, 3, 7), "3456789", 7);
    assert_non_null(pn_map_view(m, 10, 0));
    assert_null(pn_map_view(m, 3, 8));
    assert_null(pn_map_view(m, 11, 0));
    assert_null(pn_map_view(m, UINT64_MAX, 2));
    assert_null(pn_map_view(m, 2, UINT64_MAX));
    for (int advice = PN_MAP_NORMAL; advice <= PN_MAP_WILLNEED; advice++) {
        pn_map_advise(m, 0, 10, advice);
        pn_map_advise(m, 5, UINT64_MAX, advice);
        pn_map_advise(m, UINT64_MAX, UINT64_MAX, advice);
    }
    pn_map_prefault(m);
    assert_memory_equal(pn_map_data(m), "0123456789", 10);
    pn_map_close(m);
    pn_map_close(NULL);
    assert_int_equal(pn_map_count(), 0);
}

static void one_mapping_for_all(void **state)
{
    pn_map *m[3] = { 0 };
    (void)state;
    put(in(dir, "a"), "first");
    assert_int_equal(pn_map_open(in(dir, "a"), &m[0], NULL), PN_OK);
    assert_int_equal(pn_map_open(in(dir, "a"), &m[1], NULL), PN_OK);
    assert_ptr_equal(m[0], m[1]);
    assert_int_equal(pn_map_count(), 1);

    /* Replaced by rename: the old bytes stay for those who have them, the new file is another mapping. */
    put(in(dir, "swap"), "other");
    assert_int_equal(rename(in(dir, "swap"), in(dir, "a")), 0);
    assert_int_equal(pn_map_open(in(dir, "a"), &m[2], NULL), PN_OK);
    assert_ptr_not_equal(m[0], m[2]);
    assert_memory_equal(pn_map_data(m[0]), "first", 5);
    assert_memory_equal(pn_map_data(m[2]), "other", 5);
    pn_map_close(m[0]);
    assert_memory_equal(pn_map_data(m[1]), "first", 5);
    pn_map_close(m[1]);
    pn_map_close(m[2]);
    assert_int_equal(pn_map_count(), 0);
}

static void *open_and_close(void *arg)
{
    for (int i = 0; i < 200; i++) {
        pn_map *m = NULL;
        if (pn_map_open(arg, &m, NULL) || memcmp(pn_map_data(m), "shared", 6) != 0)
            return (void *)1;
        pn_map_close(m);
    }
    return NULL;
}

static void many_threads(void **state)
{
    pthread_t t[4];
    (void)state;
    put(in(dir, "b"), "shared");
    char path[1100];
    snprintf(path, sizeof path, "%s", in(dir, "b"));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, open_and_close, path), 0);
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    assert_int_equal(pn_map_count(), 0);
}

static void *feed(void *path)
{
    FILE *f = fopen(path, "wb");
    for (int i = 0; f && i < 100000; i++)
        fprintf(f, "%d\n", i);
    if (f)
        fclose(f);
    return NULL;
}

static void a_pipe_is_read(void **state)
{
    static char path[1100];
    pthread_t t;
    pn_map *m = NULL;
    pn_error err = { 0 };
    (void)state;
    snprintf(path, sizeof path, "%s", in(dir, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&t, NULL, feed, path), 0);
    assert_int_equal(pn_map_open(path, &m, &err), PN_OK);
    pthread_join(t, NULL);
    assert_int_equal(pn_map_mapped(m), 0);
    assert_non_null(strstr(pn_map_reason(m), "regular"));
    assert_int_equal(pn_map_size(m), 588890);
    assert_memory_equal(pn_map_view(m, 588884, 6), "99999\n", 6);
    pn_map_prefault(m);
    pn_map_advise(m, 0, 10, PN_MAP_WILLNEED);
    pn_map_close(m);
}

static void what_cannot_be_opened(void **state)
{
    static const struct { const char *path; const char *word; } bad[] = {
        { "/nonexistent/model", "/nonexistent/model" }, { "/", "/" }, { "/dev/zero", "device" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pn_map *m = NULL;
        pn_error err = { 0 };
        assert_int_equal(pn_map_open(bad[i].path, &m, &err), PN_E_IO);
        assert_null(m);
        assert_non_null(strstr(err.message, bad[i].word));
    }
    pn_error err = { 0 };
    pn_map *m = NULL;
    pn_map_open("/nonexistent/model", &m, &err);
    assert_int_equal(err.os_errno, ENOENT);
}

static void empty_and_sizeless_files(void **state)
{
    pn_map *m = NULL;
    (void)state;
    put(in(dir, "empty"), "");
    assert_int_equal(pn_map_open(in(dir, "empty"), &m, NULL), PN_OK);
    assert_int_equal(pn_map_size(m), 0);
    assert_int_equal(pn_map_mapped(m), 1);
    assert_non_null(pn_map_data(m));
    pn_map_close(m);
    /* A regular file that says it has no bytes, has some, and cannot be mapped. */
    if (access("/proc/version", R_OK) == 0) {
        assert_int_equal(pn_map_open("/proc/version", &m, NULL), PN_OK);
        assert_true(pn_map_size(m) > 0);
        assert_int_equal(pn_map_mapped(m), 0);
        assert_memory_equal(pn_map_data(m), "Linux", 5);
        pn_map_close(m);
    }
    /* And one whose size is wrong. */
    if (access("/sys/devices/system/cpu/online", R_OK) == 0) {
        assert_int_equal(pn_map_open("/sys/devices/system/cpu/online", &m, NULL), PN_OK);
        assert_int_equal(pn_map_mapped(m), 0);
        assert_non_null(strstr(pn_map_reason(m), "file system"));
        assert_true(pn_map_size(m) > 0 && pn_map_size(m) < 4096);
        pn_map_close(m);
    }
}

static void without_memory(void **state)
{
    pn_map *m = NULL;
    (void)state;
    for (long n = 1; n <= 2; n++) {
        pn_error err = { 0 };
        memwatch_begin(n);
        assert_int_equal(pn_map_open("/proc/version", &m, &err), PN_E_NOMEM);
        assert_int_equal(memwatch_live(), 0);
        memwatch_end();
        assert_non_null(strstr(err.message, "/proc/version"));
    }
    assert_int_equal(pn_map_count(), 0);
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static pn_status sibling(pn_source *s, const char *name, pn_source **out)
{
    pn_error err = { 0 };
    *out = NULL;
    pn_status st = pn_source_open_sibling(s, name, out, &err);
    if (st)
        assert_true(err.message[0] && err.status == st && !*out);
    return st;
}

static void siblings(void **state)
{
    pn_source *s = NULL, *b = NULL, *c = NULL;
    pn_source_info info = { .struct_size = sizeof info };
    (void)state;
    put(in(dir, "a"), "main");
    put(in(dir, "b"), "beside");
    put(in(outside, "secret"), "secret");
    unlink(in(dir, "link-in"));
    assert_int_equal(symlink("b", in(dir, "link-in")), 0);
    assert_int_equal(symlink(in(outside, "secret"), in(dir, "link-out")), 0);
    assert_int_equal(symlink("nowhere", in(dir, "link-gone")), 0);
    assert_int_equal(symlink("..", in(dir, "link-up")), 0);
    assert_int_equal(mkdir(in(dir, "sub"), 0700), 0);
    assert_int_equal(mkfifo(in(dir, "fifo"), 0600), 0);

    assert_int_equal(pn_source_open(in(dir, "a"), &s, NULL), PN_OK);
    assert_int_equal(pn_source_get_info(s, &info, NULL), PN_OK);
    assert_int_equal(info.kind, PN_SOURCE_FILE);
    assert_memory_equal(info.data, "main", 4);

    assert_int_equal(sibling(s, "b", &b), PN_OK);
    assert_int_equal(pn_source_get_info(b, &info, NULL), PN_OK);
    assert_int_equal(info.size, 6);
    assert_int_equal(sibling(s, "link-in", &c), PN_OK);
    assert_int_equal(pn_source_get_info(c, &info, NULL), PN_OK);
    assert_memory_equal(info.data, "beside", 6);
    assert_int_equal(sibling(b, "a", &c), PN_OK);       /* of a sibling */
    assert_ptr_equal(pn_source_at(s, 1), b);
    assert_ptr_equal(pn_source_at(s, 3), c);
    assert_null(pn_source_at(s, 4));

    static const struct { const char *name; pn_status status;
    } bad[] = {
        {"", PN_E_DENIED},           {".", PN_E_DENIED},           {"..", PN_E_DENIED},   {"../a", PN_E_DENIED},
        {"sub/x", PN_E_DENIED},      {"/etc/passwd", PN_E_DENIED}, {"a\\b", PN_E_DENIED}, {"link-out", PN_E_DENIED},
        {"link-up", PN_E_DENIED},    {"sub", PN_E_DENIED},         {"fifo", PN_E_DENIED}, {"link-gone", PN_E_NOT_FOUND},
        {"nothing", PN_E_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sibling(s, bad[i].name, &c), bad[i].status);
    pn_source_close(s);
    assert_int_equal(pn_map_count(), 0);
}

static void folders_and_buffers(void **state)
{
    pn_source *s = NULL, *b = NULL;
    pn_source_info info = { .struct_size = sizeof info };
    (void)state;
    assert_int_equal(pn_source_open(dir, &s, NULL), PN_OK);
    assert_int_equal(pn_source_get_info(s, &info, NULL), PN_OK);
    assert_int_equal(info.kind, PN_SOURCE_FOLDER);
    assert_null(info.data);
    assert_int_equal(sibling(s, "b", &b), PN_OK);
    assert_int_equal(sibling(s, "link-out", &b), PN_E_DENIED);
    pn_source_close(s);

    assert_int_equal(pn_source_buffer("label", "bytes", 5, &s, NULL), PN_OK);
    assert_int_equal(pn_source_get_info(s, &info, NULL), PN_OK);
    assert_int_equal(info.kind, PN_SOURCE_BUFFER);
    assert_int_equal(info.size, 5);
    assert_string_equal(info.name, "label");
    assert_int_equal(sibling(s, "b", &b), PN_E_NOT_FOUND);
    pn_source_close(s);
    pn_source_close(NULL);

    /* A caller with a shorter struct gets no more than that. */
    struct { pn_source_info info; } room;
    memset(&room, 0x5a, sizeof room);
    room.info.struct_size = offsetof(pn_source_info, data);
    assert_int_equal(pn_source_buffer("label", "bytes", 5, &s, NULL), PN_OK);
    assert_int_equal(pn_source_get_info(s, &room.info, NULL), PN_OK);
    assert_int_equal(room.info.kind, PN_SOURCE_BUFFER);
    assert_int_equal(room.info.size, 0x5a5a5a5a5a5a5a5au);
    pn_source_close(s);
}

static void sources_without_memory(void **state)
{
    (void)state;
    for (long n = 1; n < 20; n++) {
        pn_source *s = NULL, *b = NULL;
        memwatch_begin(n);
        pn_status st = pn_source_open(in(dir, "a"), &s, NULL);
        if (!st)
            st = pn_source_open_sibling(s, "b", &b, NULL);
        pn_source_close(s);
        assert_int_equal(memwatch_live(), 0);
        memwatch_end();
        assert_int_equal(pn_map_count(), 0);
        if (!st) {
            assert_true(n > 4);
            return;
        }
        assert_int_equal(st, PN_E_NOMEM);
    }
    fail_msg("it never succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_are_checked),     cmocka_unit_test(one_mapping_for_all),
        cmocka_unit_test(many_threads),          cmocka_unit_test(a_pipe_is_read),
        cmocka_unit_test(what_cannot_be_opened), cmocka_unit_test(empty_and_sizeless_files),
        cmocka_unit_test(without_memory),        cmocka_unit_test(siblings),
        cmocka_unit_test(folders_and_buffers),   cmocka_unit_test(sources_without_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Writing model files: what is refused when, what is left behind, and a failure of each allocation. That metadata and
 * tensors come out as they went in is cli/quantize.py's matter. */
#include "fixture.h"
#include "memwatch.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static pn_runtime *rt;
static char folder[256], path[300];

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    rt = fixture_runtime(NULL);
    snprintf(folder, sizeof folder, "%s/writer.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    rmdir(folder);
    pn_runtime_destroy(rt);
    return 0;
}

/* Files in the folder: temporary ones too. */
static int files(void)
{
    int n = 0;
    struct dirent *e;
    DIR *d = opendir(folder);
    while ((e = readdir(d)) != NULL) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static pn_tensor tensor(const char *name, const char *type, uint64_t rows, uint64_t cols)
{
    pn_tensor t = {.struct_size = sizeof t, .n_dims = 2, .dims = {rows, cols}, .name = pn_str_from(name), .type = type};
    return t;
}

static pn_writer *begin(int to_file)
{
    pn_writer *w = NULL;
    pn_value v = {.type = PN_T_U32, .as.u = 7};
    pn_tensor a = tensor("a", "f32", 1, 3), none = tensor("none", "f32", 0, 5), b = tensor("b", "q8_0", 2, 32);
    assert_ok(pn_writer_create(rt, "gguf", to_file ? path : NULL, NULL, &w, err));
    assert_ok(pn_writer_add_value(w, pn_str_from("seven"), &v, err));
    assert_ok(pn_writer_add_tensor(w, &a, err));
    assert_ok(pn_writer_add_tensor(w, &none, err));
    assert_ok(pn_writer_add_tensor(w, &b, err));
    return w;
}

static const float numbers[3] = {1, 2, 3};
static const unsigned char blocks[68] = {1, 2, 3};

static void whole(void **state)
{
    pn_file *f = NULL;
    (void)state;
    pn_writer *w = begin(1);
    assert_int_equal(files(), 1);
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(pn_writer_begin(w, err));
    assert_ok(pn_writer_data(w, numbers, 5, err));
    assert_ok(pn_writer_data(w, (const char *)numbers + 5, 7, err));
    assert_ok(pn_writer_data(w, blocks, sizeof blocks, err));
    assert_int_equal(access(path, F_OK), -1); /* only when it is whole */
    assert_ok(pn_writer_finish(w, err));
    uint64_t bytes = pn_writer_bytes(w);
    pn_writer_destroy(w);
    assert_int_equal(files(), 1);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, bytes);
    assert_ok(pn_file_open(rt, path, &f, err));
    assert_int_equal(pn_file_int(f, "seven", 0), 7);
    assert_int_equal(pn_file_tensor_count(f), 3);
    assert_memory_equal(pn_file_tensor(f, "a")->data, numbers, 12);
    assert_memory_equal(pn_file_tensor(f, "b")->data, blocks, 68);
    pn_file_destroy(f);

    w = begin(0); /* counted only */
    assert_ok(pn_writer_begin(w, err));
    assert_ok(pn_writer_finish(w, err));
    assert_int_equal(pn_writer_bytes(w), bytes);
    pn_writer_destroy(w);
    unlink(path);
}

static void order(void **state)
{
    pn_value v = {.type = PN_T_U32};
    pn_tensor t = tensor("c", "f32", 1, 1), twice = tensor("a", "f32", 1, 1);
    (void)state;
    pn_writer *w = begin(1);
    assert_int_equal(pn_writer_add_value(w, pn_str_from("seven"), &v, NULL), PN_E_CONFLICT);
    assert_int_equal(pn_writer_add_value(w, pn_str_from(""), &v, NULL), PN_E_ARGUMENT);
    assert_int_equal(pn_writer_add_tensor(w, &twice, NULL), PN_E_CONFLICT);
    assert_int_equal(pn_writer_data(w, numbers, 4, NULL), PN_E_STATE);
    assert_int_equal(pn_writer_finish(w, NULL), PN_E_STATE);
    assert_ok(pn_writer_begin(w, err));
    assert_int_equal(pn_writer_begin(w, NULL), PN_E_STATE);
    assert_int_equal(pn_writer_add_value(w, pn_str_from("late"), &v, NULL), PN_E_STATE);
    assert_int_equal(pn_writer_add_tensor(w, &t, NULL), PN_E_STATE);
    assert_ok(pn_writer_data(w, numbers, 12, err));
    pn_error wrong = {0};
    assert_int_equal(pn_writer_finish(w, &wrong), PN_E_STATE); /* b is missing */
    assert_non_null(strstr(wrong.message, "'b' got 0 of its 68 bytes"));
    assert_int_equal(pn_writer_data(w, blocks, 1, &wrong), PN_E_STATE); /* final */
    pn_writer_destroy(w);
    assert_int_equal(files(), 0);

    w = begin(1);
    assert_ok(pn_writer_begin(w, err));
    assert_ok(pn_writer_data(w, numbers, 12, err));
    assert_ok(pn_writer_data(w, blocks, 68, err));
    assert_int_equal(pn_writer_data(w, blocks, 1, NULL), PN_E_RANGE);
    assert_int_equal(pn_writer_finish(w, NULL), PN_E_STATE);
    pn_writer_destroy(w);
    assert_int_equal(files(), 0);
}

static void refused(void **state)
{
    pn_writer *w = NULL;
    pn_error wrong = {0};
    (void)state;
    assert_int_equal(pn_writer_create(rt, "tarball", path, NULL, &w, &wrong), PN_E_UNSUPPORTED);
    assert_non_null(strstr(wrong.message, "tarball"));
    assert_int_equal(pn_writer_create(rt, "gguf", folder, NULL, &w, &wrong), PN_E_IO);
    assert_int_equal(pn_writer_create(rt, NULL, path, NULL, &w, &wrong), PN_E_ARGUMENT);
    assert_null(w);

    pn_tensor odd = tensor("odd", "q8_0", 1, 33), far = tensor("far", "f32", UINT64_C(1) << 40, UINT64_C(1) << 30),
              rows = tensor("rows", "f32", UINT64_MAX, 2), strange = tensor("strange", "q77", 1, 4),
              lies = tensor("lies", "f32", 1, 4), deep = tensor("deep", "f32", 1, 4);
    lies.size = 17;
    deep.n_dims = 5;
    w = begin(1);
    assert_int_equal(pn_writer_add_tensor(w, &odd, &wrong), PN_E_FORMAT);
    assert_int_equal(pn_writer_add_tensor(w, &far, &wrong), PN_E_RANGE);
    deep.dims[2] = deep.dims[3] = deep.dims[4] = 1;
    rows.n_dims = 3;
    rows.dims[2] = 2;
    assert_int_equal(pn_writer_add_tensor(w, &rows, &wrong), PN_E_RANGE);
    assert_int_equal(pn_writer_add_tensor(w, &strange, &wrong), PN_E_UNSUPPORTED);
    assert_non_null(strstr(wrong.message, "q77"));
    assert_int_equal(pn_writer_add_tensor(w, &lies, &wrong), PN_E_ARGUMENT);
    assert_ok(pn_writer_add_tensor(w, &deep, err));
    assert_int_equal(pn_writer_begin(w, &wrong), PN_E_UNSUPPORTED); /* the format has four dimensions */
    assert_non_null(strstr(wrong.message, "'deep'"));
    pn_writer_destroy(w);

    char *key = calloc(70001, 1);
    memset(key, 'k', 70000);
    pn_value v = {.type = PN_T_BOOL}, bad = {.type = PN_T_STRING, .as.s = {"x", 1}};
    w = begin(1);
    assert_ok(pn_writer_add_value(w, pn_str_from(key), &v, err));
    assert_int_equal(pn_writer_begin(w, &wrong), PN_E_UNSUPPORTED);
    pn_writer_destroy(w);
    w = begin(1);
    assert_ok(pn_writer_add_value(w, pn_str_from("general.alignment"), &bad, err));
    assert_int_equal(pn_writer_begin(w, &wrong), PN_E_FORMAT);
    pn_writer_destroy(w);
    free(key);

    /* Arrays nested deeper than is read are not written either. */
    pn_value levels[12];
    for (int i = 0; i < 12; i++)
        levels[i] = (pn_value){.type = PN_T_ARRAY, .item_type = PN_T_ARRAY, .count = i ? 1 : 0,
                               .as.items = i ? &levels[i - 1] : NULL};
    w = begin(1);
    assert_ok(pn_writer_add_value(w, pn_str_from("deep"), &levels[11], err));
    assert_int_equal(pn_writer_begin(w, &wrong), PN_E_UNSUPPORTED);
    pn_writer_destroy(w);
    pn_writer_destroy(NULL);
    assert_int_equal(files(), 0);
}

static pn_status write_all(void)
{
    pn_error wrong = {0};
    pn_writer *w = NULL;
    pn_value v = {.type = PN_T_U32, .as.u = 7};
    pn_tensor a = tensor("a", "f32", 1, 3);
    pn_status st = pn_writer_create(rt, "gguf", path, NULL, &w, &wrong);
    if (!st) st = pn_writer_add_value(w, pn_str_from("seven"), &v, &wrong);
    if (!st) st = pn_writer_add_tensor(w, &a, &wrong);
    if (!st) st = pn_writer_begin(w, &wrong);
    if (!st) st = pn_writer_data(w, numbers, 12, &wrong);
    if (!st) st = pn_writer_finish(w, &wrong);
    pn_writer_destroy(w);
    return st;
}

static void no_memory(void **state)
{
    long n = 0;
    pn_status st;
    (void)state;
    do {
        memwatch_begin(++n);
        st = write_all();
        int64_t live = memwatch_live();
        memwatch_end();
        assert_int_equal(live, 0);
        assert_true(st == PN_OK || st == PN_E_NOMEM);
        assert_int_equal(files(), st == PN_OK);
    } while (st && n < 1000);
    assert_int_equal(st, PN_OK);
    assert_true(n > 5);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(order),
        cmocka_unit_test(refused),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

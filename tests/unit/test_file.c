/* Model files above the format: numbers out of tensors, weights, files on disk, and questions by role (kit/model.h). */
#include "file.h"
#include "file_table.h"
#include "ggufmake.h"
#include "map.h"
#include "memwatch.h"
#include "registry.h"

#include <pantheon/kit/model.h>

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static pn_runtime *rt;
static const pn_host *host;     /* the table of the format's plugin, for kit/model.h */
static gguf g;
static pn_file *f;

static int setup(void **state)
{
    static const char *const settings[] = {
        "plugins.load", "%s/tests/test-plugins/whole_rows.so", "quant.alias.99", "whole_rows", "quant.alias.43", "q8_0",
        NULL,
    };
    (void)state;
    rt = test_runtime_with(settings);
    const pn_reg_entry *e = pn_registry_find(rt, PN_KIND_FORMAT, "gguf");
    assert_non_null(e);
    host = e->host;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pn_runtime_destroy(rt);
    g_free(&g);
    return 0;
}

static void opens(void)
{
    pn_error err = { 0 };
    f = NULL;
    if (pn_file_open_buffer(rt, "made.gguf", g.data, g.size, &f, &err))
        fail_msg("wanted it to open: %s", err.message);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static void blocks(void **state)
{
    uint64_t dims[] = { 64, 2 };
    float x[128], y[128];
    (void)state;
    g_begin(&g, 3, 1, 0);
    g_tensor(&g, "t", 2, dims, 8, 0);       /* q8_0: a half scale and 32 bytes */
    g_pad(&g, 32);
    for (int b = 0; b < 4; b++) {
        g_u8(&g, 0), g_u8(&g, 0x3c + 4 * (b & 1));  /* 1 or 2 */
        for (int i = 0; i < 32; i++)
            g_u8(&g, (unsigned)(i + b));
    }
    opens();
    const pn_tensor *t = pn_file_tensor(f, "t");
    assert_int_equal(pn_file_tensor_f32(f, t, 0, 128, x, NULL), PN_OK);
    for (int i = 0; i < 128; i++)
        assert_true(x[i] == (float)((i % 32 + i / 32) * (i / 32 % 2 ? 2 : 1)));
    for (uint64_t first = 0; first < 128; first += 32) {
        assert_int_equal(pn_file_tensor_f32(f, t, first, 32, y, NULL), PN_OK);
        assert_memory_equal(y, x + first, 32 * sizeof *x);
    }
    static const uint64_t bad[][2] = {
        {1, 32}, {0, 31}, {0, 160}, {128, 32}, {129, 0}, {UINT64_MAX, 2}, {32, UINT64_MAX}, {UINT64_MAX - 31, 32},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pn_error err = { 0 };
        assert_int_equal(pn_file_tensor_f32(f, t, bad[i][0], bad[i][1], y, &err), PN_E_RANGE);
        assert_non_null(strstr(err.message, "'t'"));
    }
    assert_int_equal(pn_file_tensor_f32(f, t, 128, 0, NULL, NULL), PN_OK);
    assert_int_equal(pn_file_tensor_f32(f, NULL, 0, 1, y, NULL), PN_E_ARGUMENT);
    assert_int_equal(pn_file_tensor_f32(f, t, 0, 32, NULL, NULL), PN_E_ARGUMENT);

    pn_qweight w;
    assert_int_equal(pn_file_weight(f, t, &w, NULL), PN_OK);
    assert_int_equal(w.rows, 2);
    assert_int_equal(w.cols, 64);
    assert_int_equal(w.row_stride, 68);
    assert_int_equal(w.n_side, 0);
    assert_ptr_equal(w.data, t->data);
    assert_ptr_equal(w.tensor, t);
    assert_string_equal(w.type->name, "q8_0");
    pn_file_destroy(f);
}

static void whole_rows(void **state)
{
    uint64_t dims[] = { 6, 3 }, one[] = { 1 };
    float x[18], y[18];
    (void)state;
    g_begin(&g, 3, 3, 0);
    g_tensor(&g, "blk.0.up.weight", 2, dims, 99, 0);
    g_tensor(&g, "blk.0.up.scale", 1, one, 0, 64);
    g_tensor(&g, "plain", 2, dims, 99, 96);
    g_pad(&g, 32);
    for (int copy = 0; copy < 2; copy++) {
        for (int r = 0; r < 3; r++) {
            g_f32(&g, (float)(r + 1));
            for (int i = 0; i < 8; i++)
                g_u8(&g, (unsigned)(i - 3));
        }
        g_pad(&g, 32);
        g_f32(&g, 0.5f);
        if (!copy)
            g_pad(&g, 32);
    }
    opens();
    const pn_tensor *t = pn_file_tensor(f, "blk.0.up.weight");
    assert_string_equal(t->type, "whole_rows");
    assert_int_equal(t->size, 36);
    assert_int_equal(pn_file_tensor_f32(f, t, 0, 18, x, NULL), PN_OK);
    for (int i = 0; i < 18; i++)
        assert_true(x[i] == (float)((i / 6 + 1) * (i % 6 - 3)));
    /* Any part of it, also across rows. */
    for (uint64_t first = 0; first < 18; first++)
        for (uint64_t n = 0; n <= 18 - first; n++) {
            assert_int_equal(pn_file_tensor_f32(f, t, first, n, y, NULL), PN_OK);
            assert_memory_equal(y, x + first, n * sizeof *x);
        }
    pn_error err = { 0 };
    memwatch_begin(1);
    assert_int_equal(pn_file_tensor_f32(f, t, 0, 6, y, &err), PN_E_NOMEM);
    memwatch_end();

    pn_qweight w;
    assert_int_equal(pn_file_weight(f, t, &w, NULL), PN_OK);
    assert_int_equal(w.row_stride, 12);
    assert_int_equal(w.n_side, 2);
    assert_ptr_equal(w.side[0], pn_file_tensor(f, "blk.0.up.scale"));
    assert_null(w.side[1]);
    assert_int_equal(pn_file_weight(f, pn_file_tensor(f, "plain"), &w, NULL), PN_OK);
    assert_int_equal(w.n_side, 0);
    pn_file_destroy(f);
}

static void types_that_are_missing(void **state)
{
    uint64_t dims[] = { 256 }, odd[] = { 64 };
    float x[256];
    pn_qweight w;
    (void)state;
    g_begin(&g, 3, 3, 0);
    g_tensor(&g, "known.to.the.format", 1, dims, 10, 0);    /* q2_k: without a plugin as yet */
    g_tensor(&g, "unknown", 1, dims, 200, 96);
    g_tensor(&g, "alias", 1, odd, 43, 96);                  /* q8_0 by alias */
    g_pad(&g, 32);
    for (int i = 0; i < 200; i++)
        g_u8(&g, 0);
    opens();
    assert_string_equal(pn_file_tensor(f, "alias")->type, "q8_0");
    assert_int_equal(pn_file_tensor(f, "alias")->size, 68);
    assert_int_equal(pn_file_tensor_f32(f, pn_file_tensor(f, "alias"), 0, 64, x, NULL), PN_OK);
    if (!pn_runtime_find(rt, PN_KIND_QUANT, "q2_k")) {
        pn_error err = { 0 };
        assert_int_equal(pn_file_tensor_f32(f, pn_file_tensor(f, "known.to.the.format"), 0, 256, x, &err),
                         PN_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, "known.to.the.format"));
        assert_non_null(strstr(err.message, "q2_k"));
        assert_non_null(strstr(err.message, "/plugins"));
    }
    pn_error err = { 0 };
    assert_int_equal(pn_file_weight(f, pn_file_tensor(f, "unknown"), &w, &err), PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'unknown'"));
    assert_non_null(strstr(err.message, "alias.200"));
    pn_file_destroy(f);
}

/* A tensor whose bytes the plugin's idea of the type would overrun. */
static void sizes_that_disagree(void **state)
{
    uint64_t dims[] = { 64 };
    float x[64];
    (void)state;
    g_begin(&g, 3, 1, 0);
    g_tensor(&g, "t", 1, dims, 8, 0);
    g_pad(&g, 32);
    for (int i = 0; i < 68; i++)
        g_u8(&g, 0);
    opens();
    pn_tensor t = *pn_file_tensor(f, "t");
    pn_error err = { 0 };
    t.size--;
    assert_int_equal(pn_file_tensor_f32(f, &t, 0, 64, x, &err), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "differ"));
    t.size++;
    t.dims[0] = 63;
    assert_int_equal(pn_file_tensor_f32(f, &t, 0, 63, x, &err), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "blocks of 32"));
    t.dims[0] = 128;
    assert_int_equal(pn_file_tensor_f32(f, &t, 0, 64, x, &err), PN_E_FORMAT);
    pn_file_destroy(f);
}

static void names(void **state)
{
    const pn_tensor *t = NULL;
    const pn_value *v = NULL;
    uint64_t two[] = { 2 };
    pn_error err = { 0 };
    (void)state;
    g_begin(&g, 3, 1, 1);
    g_key_u32(&g, "k", 3);
    g_tensor(&g, "blk.0.x", 1, two, 0, 0);
    g_pad(&g, 32), g_u64(&g, 0);
    opens();
    assert_int_equal(pn_file_tensor_neutral(f, "blk.0.x", &t, NULL), PN_OK);
    assert_ptr_equal(t, pn_file_tensor_at(f, 0));
    assert_int_equal(pn_file_tensor_neutral(f, "blk.1.x", &t, &err), PN_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "blk.1.x"));
    assert_int_equal(pn_file_value_get(f, pn_str_from("k"), &v, NULL), PN_OK);
    assert_int_equal(pn_file_value_get(f, pn_str_from("kk"), &v, &err), PN_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "kk"));
    assert_null(pn_file_value(f, NULL));
    assert_null(pn_file_tensor(f, NULL));
    /* Nothing may be added once it is open. */
    pn_tensor more = *t;
    more.name = pn_str_from("more");
    assert_int_equal(pn_file_add_tensor(f, &more, NULL), PN_E_STATE);
    assert_int_equal(pn_file_add_value(f, pn_str_from("more"), v, NULL), PN_E_STATE);
    pn_file_destroy(f);
    pn_file_destroy(NULL);
}

static void the_table(void **state)
{
    pn_table table = { 0 };
    static char keys[3000][8];
    (void)state;
    assert_null(pn_table_find(&table, pn_str_from("x")));
    assert_null(pn_table_at(&table, 0));
    for (int i = 0; i < 3000; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        assert_int_equal(pn_table_add(&table, pn_str_from(keys[i]), keys[i]), 1);
    }
    for (int i = 0; i < 3000; i++) {
        assert_ptr_equal(pn_table_find(&table, pn_str_from(keys[i])), keys[i]);
        assert_true(pn_str_is(pn_table_at(&table, (size_t)i)->key, keys[i]));
    }
    assert_null(pn_table_find(&table, pn_str_from("k3000")));
    assert_null(pn_table_find(&table, (pn_str){ NULL, 0 }));
    pn_table_free(&table);

    /* Every allocation failing in turn: the table stays as it was and can go on. */
    memwatch_begin(0);
    int failures = 0;
    for (int i = 0; i < 300; i++) {
        for (long n = 1;; n++) {
            memwatch_begin(n);
            int done = pn_table_add(&table, pn_str_from(keys[i]), keys[i]);
            memwatch_begin(0);
            assert_int_equal(table.count, (size_t)i + (done ? 1 : 0));
            if (done)
                break;
            failures++;
            assert_null(pn_table_find(&table, pn_str_from(keys[i])));
            if (i)
                assert_ptr_equal(pn_table_find(&table, pn_str_from(keys[i - 1])), keys[i - 1]);
        }
    }
    assert_true(failures > 300);
    pn_table_free(&table);
    memwatch_end();
}

/* ---- files on disk ----------------------------------------------------------------------------------------------- */

static void on_disk(void **state)
{
    char path[600], folder[600];
    const char *tmp = getenv("TMPDIR");
    uint64_t two[] = { 2 };
    pn_file *a = NULL, *b = NULL;
    pn_error err = { 0 };
    (void)state;
    g_begin(&g, 3, 1, 0);
    g_tensor(&g, "t", 1, two, 0, 0);
    g_pad(&g, 32), g_f32(&g, 5), g_f32(&g, 6);
    snprintf(path, sizeof path, "%s/file-XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, g.data, g.size), g.size);
    close(fd);
    assert_int_equal(pn_file_open(rt, path, &a, NULL), PN_OK);
    assert_int_equal(pn_file_open(rt, path, &b, NULL), PN_OK);
    assert_int_equal(pn_map_count(), 1);
    assert_ptr_equal(pn_file_tensor_at(a, 0)->data, pn_file_tensor_at(b, 0)->data);
    assert_int_equal(pn_file_mapped(a), 1);
    assert_int_equal(pn_file_bytes(a), g.size);
    assert_string_equal(pn_file_path(a), path);
    assert_int_equal(pn_file_prepare(a, NULL), PN_OK);
    pn_file_destroy(a);
    float x[2];
    assert_int_equal(pn_file_tensor_f32(b, pn_file_tensor(b, "t"), 0, 2, x, NULL), PN_OK);
    assert_true(x[0] == 5 && x[1] == 6);
    pn_file_destroy(b);
    assert_int_equal(pn_map_count(), 0);
    unlink(path);

    a = NULL;
    assert_int_equal(pn_file_open(rt, path, &a, &err), PN_E_IO);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(pn_file_open(rt, NULL, &a, &err), PN_E_ARGUMENT);
    snprintf(folder, sizeof folder, "%s/folder-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(pn_file_open(rt, folder, &a, &err), PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "folder"));
    rmdir(folder);
    assert_null(a);
}

/* [runtime] prefault and lock: nothing changes but where the pages are; a lock that is refused is told. */
static void prepared(void **state)
{
    static const char *const settings[] = { "runtime.prefault", "true", "runtime.lock", "true", NULL };
    char path[600];
    const char *tmp = getenv("TMPDIR");
    uint64_t many[] = { 100000 };
    pn_file *a = NULL;
    pn_runtime *other = test_runtime_with(settings);
    (void)state;
    g_begin(&g, 3, 1, 0);
    g_tensor(&g, "t", 1, many, 0, 0);
    g_pad(&g, 32);
    for (int i = 0; i < 100000; i++)
        g_f32(&g, (float)i);
    snprintf(path, sizeof path, "%s/file-XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, g.data, g.size), g.size);
    close(fd);
    assert_int_equal(pn_file_open(other, path, &a, NULL), PN_OK);
    test_log();
    assert_int_equal(pn_file_prepare(a, NULL), PN_OK);
    const char *said = test_log();
    if (said[0]) {
        assert_non_null(strstr(said, path));
        assert_non_null(strstr(said, "[runtime] lock"));
    }
    float x[1];
    assert_int_equal(pn_file_tensor_f32(a, pn_file_tensor(a, "t"), 99999, 1, x, NULL), PN_OK);
    assert_true(x[0] == 99999);
    pn_file_destroy(a);
    pn_runtime_destroy(other);
    unlink(path);
}

static void *write_pipe(void *path)
{
    FILE *out = fopen(path, "wb");
    if (out) {
        fwrite(g.data, 1, g.size, out);
        fclose(out);
    }
    return NULL;
}

static void a_pipe_is_announced(void **state)
{
    char path[600];
    const char *tmp = getenv("TMPDIR");
    uint64_t two[] = { 2 };
    pthread_t t;
    pn_file *a = NULL;
    (void)state;
    g_begin(&g, 3, 1, 0);
    g_tensor(&g, "t", 1, two, 0, 0);
    g_pad(&g, 32), g_f32(&g, 5), g_f32(&g, 6);
    snprintf(path, sizeof path, "%s/file-XXXXXX", tmp ? tmp : "/tmp");
    close(mkstemp(path));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    test_log();
    assert_int_equal(pthread_create(&t, NULL, write_pipe, path), 0);
    assert_int_equal(pn_file_open(rt, path, &a, NULL), PN_OK);
    pthread_join(t, NULL);
    unlink(path);
    assert_int_equal(pn_file_mapped(a), 0);
    const char *said = test_log();
    assert_non_null(strstr(said, path));
    assert_non_null(strstr(said, "read into memory"));
    float x[2];
    assert_int_equal(pn_file_tensor_f32(a, pn_file_tensor(a, "t"), 0, 2, x, NULL), PN_OK);
    assert_true(x[1] == 6);
    pn_file_destroy(a);
}

/* ---- kit/model.h ------------------------------------------------------------------------------------------------- */

static void make_model(void)
{
    double f64 = 1e-5;
    g_begin(&g, 3, 0, 12);
    g_key_text(&g, "general.architecture", "x");
    g_key(&g, "x.block_count", G_U64), g_u64(&g, 3);
    g_key(&g, "x.attention.layer_norm_rms_epsilon", G_F64), g_bytes(&g, &f64, 8);
    g_key_array(&g, "x.feed_forward_length", G_I32, 3), g_u32(&g, 10), g_u32(&g, 20), g_u32(&g, 30);
    g_key_array(&g, "x.attention.head_count", G_U8, 3), g_u8(&g, 4), g_u8(&g, 4), g_u8(&g, 4);
    g_key_u32(&g, "x.embedding_length", 64);
    g_key(&g, "x.context_length", G_I64), g_u64(&g, (uint64_t)-1);
    g_key(&g, "x.rope.freq_base", G_F32), g_f32(&g, NAN);
    g_key(&g, "tokenizer.ggml.add_bos_token", G_BOOL), g_u8(&g, 1);
    g_key_array(&g, "tokenizer.ggml.scores", G_F32, 2), g_f32(&g, 1), g_f32(&g, 2);
    g_key_array(&g, "tokenizer.ggml.merges", G_STR, 1), g_text(&g, "a b");
    g_key_array(&g, "x.attention.key_length", G_U32, 0);
    opens();
}

static void asked_numbers(void **state)
{
    uint32_t u = 77;
    float x = 77;
    pn_error err = { 0 };
    (void)state;
    make_model();
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_BLOCK_COUNT, 1, 100, &u, &err), PN_OK);
    assert_int_equal(u, 3);
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_HEAD_COUNT, 1, 100, &u, &err), PN_OK);   /* equal items */
    assert_int_equal(u, 4);
    assert_int_equal(pn_role_f32(host, f, PN_ROLE_RMS_EPS, 0, 1, &x, &err), PN_OK);
    assert_true(x == 1e-5f);
    assert_int_equal(pn_role_u32_or(host, f, PN_ROLE_VALUE_LENGTH, 5, 10, 20, &u, &err), PN_OK);
    assert_int_equal(u, 5);
    assert_int_equal(pn_role_f32_or(host, f, PN_ROLE_ATTN_SCALE, 0.5f, 1, 2, &x, &err), PN_OK);
    assert_true(x == 0.5f);

    u = 77;
    x = 77;
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_BLOCK_COUNT, 4, 100, &u, &err), PN_E_RANGE);
    assert_non_null(strstr(err.message, "'x.block_count' is 3"));
    assert_non_null(strstr(err.message, "from 4 to 100"));
    assert_int_equal(pn_role_u32_or(host, f, PN_ROLE_BLOCK_COUNT, 1, 0, 2, &u, &err), PN_E_RANGE);
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_CONTEXT_LENGTH, 0, UINT32_MAX, &u, &err), PN_E_RANGE);
    assert_non_null(strstr(err.message, "'x.context_length' is -1"));
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_VALUE_LENGTH, 0, 9, &u, &err), PN_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "x.attention.value_length"));
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_FEED_FORWARD, 0, 99, &u, &err), PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "x.feed_forward_length"));
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_ARCHITECTURE, 0, 99, &u, &err), PN_E_RANGE);
    assert_non_null(strstr(err.message, "text \"x\""));
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_KEY_LENGTH, 0, 99, &u, &err), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "empty array"));
    assert_int_equal(pn_role_u32(host, f, PN_ROLE_RMS_EPS, 0, 99, &u, &err), PN_E_RANGE);  /* no integer */
    assert_int_equal(pn_role_f32(host, f, PN_ROLE_ROPE_BASE, 0, 1e9, &x, &err), PN_E_RANGE);
    assert_non_null(strstr(err.message, "finite"));
    assert_int_equal(pn_role_f32(host, f, PN_ROLE_RMS_EPS, 1e-3, 1, &x, &err), PN_E_RANGE);
    assert_int_equal(pn_role_u32(host, f, "no.such.role", 0, 1, &u, &err), PN_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "no.such.role"));
    assert_int_equal(u, 77);
    assert_true(x == 77);
    pn_file_destroy(f);
}

static void asked_layers(void **state)
{
    uint32_t u = 77;
    float x = 77;
    pn_error err = { 0 };
    (void)state;
    make_model();
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(pn_role_layer_u32(host, f, PN_ROLE_FEED_FORWARD, i, 3, 1, 100, &u, &err), PN_OK);
        assert_int_equal(u, 10 * (i + 1));
        assert_int_equal(pn_role_layer_u32(host, f, PN_ROLE_EMBEDDING_LENGTH, i, 3, 1, 100, &u, &err), PN_OK);
        assert_int_equal(u, 64);
        assert_int_equal(pn_role_layer_u32_or(host, f, PN_ROLE_VALUE_LENGTH, i, 3, 8, 1, 100, &u, &err), PN_OK);
        assert_int_equal(u, 8);
        assert_int_equal(pn_role_layer_f32(host, f, PN_ROLE_FEED_FORWARD, i, 3, 1, 100, &x, &err), PN_OK);
        assert_true(x == (float)(10 * (i + 1)));
        assert_int_equal(pn_role_layer_f32_or(host, f, PN_ROLE_ATTN_SCALE, i, 3, 0.25f, 1, 100, &x, &err), PN_OK);
        assert_true(x == 0.25f);
    }
    u = 77;
    assert_int_equal(pn_role_layer_u32(host, f, PN_ROLE_FEED_FORWARD, 0, 4, 1, 100, &u, &err), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "3 items"));
    assert_int_equal(pn_role_layer_u32(host, f, PN_ROLE_FEED_FORWARD, 3, 3, 1, 100, &u, &err), PN_E_FORMAT);
    assert_int_equal(pn_role_layer_u32(host, f, PN_ROLE_FEED_FORWARD, 2, 3, 1, 29, &u, &err), PN_E_RANGE);
    assert_int_equal(u, 77);
    pn_file_destroy(f);
}

static void asked_texts_and_arrays(void **state)
{
    pn_str s = { NULL, 0 };
    pn_value v = { 0 };
    int b = 5;
    pn_error err = { 0 };
    (void)state;
    make_model();
    assert_int_equal(pn_role_str(host, f, PN_ROLE_ARCHITECTURE, &s, &err), PN_OK);
    assert_true(pn_str_is(s, "x"));
    assert_int_equal(pn_role_str_or(host, f, PN_ROLE_NAME, "none", &s, &err), PN_OK);
    assert_true(pn_str_is(s, "none"));
    assert_int_equal(pn_role_str(host, f, PN_ROLE_NAME, &s, &err), PN_E_NOT_FOUND);
    assert_int_equal(pn_role_str(host, f, PN_ROLE_BLOCK_COUNT, &s, &err), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "wanted text"));
    assert_int_equal(pn_role_bool_or(host, f, PN_ROLE_ADD_BOS, 0, &b, &err), PN_OK);
    assert_int_equal(b, 1);
    assert_int_equal(pn_role_bool_or(host, f, PN_ROLE_ADD_EOS, 0, &b, &err), PN_OK);
    assert_int_equal(b, 0);
    assert_int_equal(pn_role_array(host, f, PN_ROLE_SCORES, 0, 1, &v, &err), PN_OK);
    assert_int_equal(v.count, 2);
    assert_int_equal(pn_role_array(host, f, PN_ROLE_SCORES, 1, 1, &v, &err), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "wanted an array of strings"));
    assert_int_equal(pn_role_array(host, f, PN_ROLE_MERGES, 1, 1, &v, &err), PN_OK);
    assert_int_equal(pn_role_array(host, f, PN_ROLE_MERGES, 0, 1, &v, &err), PN_E_FORMAT);
    assert_int_equal(pn_role_array(host, f, PN_ROLE_BLOCK_COUNT, 0, 1, &v, &err), PN_E_FORMAT);
    assert_int_equal(pn_role_array(host, f, PN_ROLE_TOKENS, 1, 0, &v, &err), PN_OK);
    assert_int_equal(v.type, PN_T_NONE);
    assert_int_equal(pn_role_array(host, f, PN_ROLE_TOKENS, 1, 1, &v, &err), PN_E_NOT_FOUND);
    pn_file_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks),
        cmocka_unit_test(whole_rows),
        cmocka_unit_test(types_that_are_missing),
        cmocka_unit_test(sizes_that_disagree),
        cmocka_unit_test(names),
        cmocka_unit_test(the_table),
        cmocka_unit_test(on_disk), cmocka_unit_test(prepared),
        cmocka_unit_test(a_pipe_is_announced),
        cmocka_unit_test(asked_numbers),
        cmocka_unit_test(asked_layers),
        cmocka_unit_test(asked_texts_and_arrays),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

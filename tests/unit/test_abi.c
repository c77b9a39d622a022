/* The ABI itself: a host with fewer slots, wrappers, sizes that must never change, statuses, errors. */
#include <pantheon/pantheon.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Nothing that 1.0 published may move: a plugin built then reads these places. */
_Static_assert(sizeof(pn_error) == 4096, "pn_error never grows");
_Static_assert(offsetof(pn_plugin, struct_size) == 8 && offsetof(pn_plugin, abi_major) == 12 &&
                   offsetof(pn_plugin, abi_minor) == 14,
               "head of the descriptor");
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(offsetof(pn_plugin, id) == 16 && offsetof(pn_plugin, cpu_features) == 48 &&
                   offsetof(pn_plugin, init) == 56 && sizeof(pn_plugin) == 64,
               "descriptor");
_Static_assert(offsetof(pn_host, alloc) == 16 && offsetof(pn_host, register_quant) == 64 &&
                   offsetof(pn_host, plan_output) == 208,
               "host table");
_Static_assert(offsetof(pn_quant, dequantize) == 40 && offsetof(pn_quant, side_suffixes) == 80, "pn_quant");
_Static_assert(offsetof(pn_kernel, matmul) == 56 && offsetof(pn_kernel, accepts) == 64, "pn_kernel");
_Static_assert(offsetof(pn_matmul_args, packed) == 32 && offsetof(pn_matmul_args, ahead) == 88 &&
                   sizeof(pn_matmul_args) == 96,
               "pn_matmul_args");
_Static_assert(sizeof(pn_qweight) == 80 && sizeof(pn_tensor) == 128 && sizeof(pn_value) == 32,
               "weights, tensors, values");
#endif

static int called;

static pn_status alloc(const pn_host *host, size_t count, size_t size, void **out, pn_error *err)
{
    (void)host; (void)err;
    called++;
    *out = calloc(count, size);
    return PN_OK;
}

static pn_status register_quant(const pn_host *host, const pn_quant *quant, pn_error *err)
{
    (void)host; (void)quant; (void)err;
    called++;
    return PN_OK;
}

/* Memory behind a short table is not the table's: it is filled with what would be a wild jump. */
static pn_host *short_host(size_t size)
{
    pn_host *h = malloc(sizeof *h);
    pn_host full = {.struct_size = (uint32_t)size,
                    .abi_major = 1,
                    .abi_minor = 0,
                    .alloc = alloc,
                    .register_quant = register_quant};
    memset(h, 0xee, sizeof *h);
    memcpy(h, &full, size);
    return h;
}

static void a_host_with_fewer_slots(void **state)
{
    (void)state;
    pn_error err = {0};
    pn_quant q = { .struct_size = sizeof q };
    void *memory = NULL;
    pn_host *h = short_host(offsetof(pn_host, register_quant));
    called = 0;
    assert_int_equal(pn_host_alloc(h, 1, 1, &memory, &err), PN_OK);
    assert_int_equal(called, 1);
    free(memory);
    assert_int_equal(pn_host_register_quant(h, &q, &err), PN_E_ABI);
    assert_int_equal(called, 1);
    assert_int_equal(err.status, PN_E_ABI);
    assert_non_null(strstr(err.message, "register_quant"));
    assert_non_null(strstr(err.message, "needs host >= 1.0"));
    assert_non_null(strstr(err.message, "the host is 1.0"));
    assert_int_equal(pn_host_register_quant(h, &q, NULL), PN_E_ABI);
    free(h);
    /* A slot cut in half is none. */
    h = short_host(offsetof(pn_host, register_quant) + sizeof(void *) / 2);
    assert_int_equal(pn_host_register_quant(h, &q, &err), PN_E_ABI);
    free(h);
    h = short_host(offsetof(pn_host, register_quant) + sizeof(void *));
    assert_int_equal(pn_host_register_quant(h, &q, &err), PN_OK);
    assert_int_equal(called, 2);
    free(h);
}

/* With a table that ends before the first slot, every wrapper fails by itself. */
static void every_wrapper_checks(void **state)
{
    (void)state;
    pn_error err;
    pn_host *h = short_host(offsetof(pn_host, alloc));
    void *memory = NULL;
    uint64_t bits = 0;
    uint32_t u = 0;
    const char *name = NULL;
    const pn_value *value = NULL;
    const pn_tensor *tensor = NULL;
    pn_source *source = NULL;
    pn_str key = { "k", 1 };
    pn_status s;
    size_t tried = 0;
#define LACKS(slot, call)                                                               \
    do {                                                                                \
        memset(&err, 0, sizeof err);                                                    \
        s = call;                                                                       \
        if (s != PN_E_ABI || !strstr(err.message, "'" #slot "'"))                       \
            fail_msg("%s: %d %s", #slot, (int)s, err.message);                          \
        tried++;                                                                        \
    } while (0)
    LACKS(alloc, pn_host_alloc(h, 1, 1, &memory, &err));
    LACKS(resize, pn_host_resize(h, 1, 1, &memory, &err));
    LACKS(free, pn_host_free(h, NULL, &err));
    LACKS(log, pn_host_log(h, 0, "x", &err));
    LACKS(cpu_features, pn_host_cpu_features(h, &bits, &err));
    LACKS(register_format, pn_host_register_format(h, NULL, &err));
    LACKS(register_quant, pn_host_register_quant(h, NULL, &err));
    LACKS(register_packing, pn_host_register_packing(h, NULL, &err));
    LACKS(register_kernel, pn_host_register_kernel(h, NULL, &err));
    LACKS(register_op, pn_host_register_op(h, NULL, &err));
    LACKS(register_arch, pn_host_register_arch(h, NULL, &err));
    LACKS(register_tokenizer, pn_host_register_tokenizer(h, NULL, &err));
    LACKS(register_template, pn_host_register_template(h, NULL, &err));
    LACKS(source_info, pn_host_source_info(h, NULL, NULL, &err));
    LACKS(open_sibling, pn_host_open_sibling(h, NULL, "x", &source, &err));
    LACKS(file_alloc, pn_host_file_alloc(h, NULL, 1, 1, &memory, &err));
    LACKS(file_add_value, pn_host_file_add_value(h, NULL, key, NULL, &err));
    LACKS(file_add_tensor, pn_host_file_add_tensor(h, NULL, NULL, &err));
    LACKS(file_value, pn_host_file_value(h, NULL, key, &value, &err));
    LACKS(file_role, pn_host_file_role(h, NULL, "x", NULL, &err));
    LACKS(file_tensor, pn_host_file_tensor(h, NULL, "x", &tensor, &err));
    LACKS(quant_alias, pn_host_quant_alias(h, 1, &name, &u, &u, &err));
    LACKS(plan_weight, pn_host_plan_weight(h, NULL, NULL, &u, &err));
    LACKS(plan_op, pn_host_plan_op(h, NULL, NULL, &u, &err));
    LACKS(plan_output, pn_host_plan_output(h, NULL, 1, PN_OUTPUT_LOGITS, &err));
    LACKS(writer_info, pn_host_writer_info(h, NULL, NULL, &err));
    LACKS(writer_value_at, pn_host_writer_value_at(h, NULL, 0, &key, &value, &err));
    LACKS(writer_tensor_at, pn_host_writer_tensor_at(h, NULL, 0, &tensor, &err));
    LACKS(writer_put, pn_host_writer_put(h, NULL, "x", 1, &err));
    LACKS(quant_number, pn_host_quant_number(h, "x", &bits, &err));
    /* As many as there are slots: a new one without a line here is noticed. */
    assert_int_equal(tried, (sizeof(pn_host) - offsetof(pn_host, alloc)) / sizeof(void *));
    free(h);
}

static void statuses_have_names(void **state)
{
    (void)state;
    for (pn_status i = 0; i <= PN_E_INTERNAL; i++) {
        assert_non_null(pn_status_name(i));
        for (pn_status k = 0; k < i; k++)
            assert_string_not_equal(pn_status_name(i), pn_status_name(k));
        assert_string_not_equal(pn_status_name(i), pn_status_name(-1));
    }
    assert_string_equal(pn_status_name(12345), pn_status_name(-1));
    assert_string_equal(pn_version(), PN_VERSION);
}

static void errors_keep_within_bounds(void **state)
{
    (void)state;
    static char big[9000];
    pn_error err;
    memset(big, 'y', sizeof big - 1);
    assert_int_equal(pn_fail(&err, PN_E_IO, "%s", big), PN_E_IO);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    err.offset = 17;
    assert_int_equal(pn_error_wrap(&err, "outer %d", 1), PN_E_IO);
    assert_int_equal(strncmp(err.message, "outer 1: yyy", 12), 0);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_true(err.offset == 17);
    assert_int_equal(pn_error_wrap(&err, "%s", big), PN_E_IO);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(pn_fail(NULL, PN_E_NOMEM, "x"), PN_E_NOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_with_fewer_slots),
        cmocka_unit_test(every_wrapper_checks),
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(errors_keep_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

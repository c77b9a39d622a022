/* The packings that the core registers, and the measurement of read bandwidth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cpu.h>
#include <math.h>
#include <ops.h>
#include <pantheon/kit/pack.h>
#include <registry.h>
#include <stdlib.h>

static pn_packing got[16];
static size_t n_got, refuse_at;

static pn_status take(const pn_host *host, const pn_packing *packing, pn_error *err)
{
    (void)host;
    if (n_got == refuse_at)
        return pn_fail(err, PN_E_CONFLICT, "taken");
    assert_true(n_got < sizeof got / sizeof got[0]);
    got[n_got++] = *packing;
    return PN_OK;
}

static pn_host host = { .struct_size = sizeof(pn_host), .register_packing = take };

#define N_PACKINGS 3
static const char *const packings[N_PACKINGS] = { "f32", "i16", "i8" };

static void test_registers_each_level(void **state)
{
    size_t levels = 0;
    pn_error err = { 0 };
    (void)state;
    n_got = 0;
    refuse_at = SIZE_MAX;
    while (pn_ops_at(levels))
        levels++;
    assert_int_equal(pn_builtin_register(&host, &err), PN_OK);
    assert_int_equal(n_got, N_PACKINGS * levels);
    for (size_t i = 0; i < n_got; i++) {
        const pn_ops *ops = pn_ops_at(i / N_PACKINGS);
        assert_string_equal(got[i].name, packings[i % N_PACKINGS]);
        assert_int_equal(got[i].struct_size, sizeof got[i]);
        assert_int_equal(got[i].precision, i % N_PACKINGS == 2 ? PN_FAST : PN_EXACT);
        assert_true(got[i].cpu_features == ops->cpu_features);
        assert_true(got[i].pack == (i % N_PACKINGS == 0   ? ops->pack_f32
                                    : i % N_PACKINGS == 1 ? ops->pack_i16
                                                          : ops->pack_i8));
        assert_true(got[i].score > 0 && (i < N_PACKINGS || got[i].score > got[i - N_PACKINGS].score));
    }
}

static void test_column_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_got; i++) {
        for (size_t cols = 1; cols < 1200; cols++) {
            size_t bytes = got[i].column_bytes(cols);
            assert_int_equal(bytes % 64, 0);
            assert_int_equal(bytes, i % N_PACKINGS == 0   ? (cols + 15) / 16 * 64
                                    : i % N_PACKINGS == 1 ? pn_i16_layout_of(cols).bytes
                                                          : pn_i8_bytes(cols));
        }
        assert_int_equal(got[i].column_bytes(SIZE_MAX), 0);
        assert_int_equal(got[i].column_bytes(SIZE_MAX / 4), 0);
        assert_int_equal(got[i].column_bytes(0), 0);
        assert_true(got[i].column_bytes((size_t)1 << 40) > (size_t)1 << 40);
    }
}

static void test_refusal_is_passed_on(void **state)
{
    (void)state;
    for (refuse_at = 0; refuse_at < 3; refuse_at++) {
        pn_error err = { 0 };
        n_got = 0;
        assert_int_equal(pn_builtin_register(&host, &err), PN_E_CONFLICT);
        assert_int_equal(n_got, refuse_at);
        assert_string_equal(err.message, "taken");
    }
}

static void test_measure_read(void **state)
{
    size_t bytes = (size_t)4 << 20;
    char *data = calloc(bytes + 1, 1);
    (void)state;
    assert_non_null(data);
    for (int threads = -1; threads <= 5; threads++) {
        double speed = pn_measure_read(data + 1, bytes, threads, 2);    /* an odd address */
        assert_true(isfinite(speed) && speed > 0);
    }
    assert_true(pn_measure_read(data, bytes, 1, 0) > 0);
    assert_true(pn_measure_read(NULL, bytes, 1, 1) == 0);
    assert_true(pn_measure_read(data, 0, 1, 1) == 0);
    assert_true(pn_measure_read(data, 1023, 1, 1) == 0);
    assert_true(pn_measure_read(data, 1024, 1, 1) >= 0);
    assert_true(pn_measure_read(data, 1024, 2, 1) == 0);
    free(data);
}

/* Known at every level above C, and less without instructions than with. */
static void test_measure_multiply(void **state)
{
    const uint64_t cpu = pn_cpu_detect(), levels[] = {PN_LEVEL_AVX512, PN_LEVEL_AVX2};
    (void)state;
    for (size_t l = 0; l < 2; l++)
        for (int kind = PN_ARITHMETIC_I8; kind <= PN_ARITHMETIC_F32 && (cpu & levels[l]) == levels[l]; kind++) {
            double speed = pn_measure_multiply((pn_arithmetic)kind, levels[l], 2, 1);
            assert_true(isfinite(speed) && speed > 0);
        }
    assert_true(pn_measure_multiply(PN_ARITHMETIC_I8, 0, 1, 1) == 0);
    assert_true(pn_measure_multiply((pn_arithmetic)3, cpu, 1, 1) == 0);
    assert_true(pn_measure_multiply((pn_arithmetic)-1, cpu, 1, 1) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_each_level),
        cmocka_unit_test(test_column_bytes),
        cmocka_unit_test(test_refusal_is_passed_on),
        cmocka_unit_test(test_measure_read),
        cmocka_unit_test(test_measure_multiply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

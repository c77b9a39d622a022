/* CPU features: the instruction counts only with the register state that the operating system saves; levels of
 * PANTHEON_CPU. */
#include "cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define BIT(n) (1u << (n))
#define AVX512_EBX (BIT(16) | BIT(17) | BIT(30) | BIT(31))
#define YMM 0x07u
#define ZMM 0xe7u
#define TILES 0x60000u

/* A server core with everything. */
static const pn_cpuid full = {
    .max_leaf = 0x20,
    .l1_ecx = BIT(12) | BIT(27) | BIT(28) | BIT(29),
    .l7_max = 2,
    .l7_ebx = BIT(5) | AVX512_EBX,
    .l7_ecx = BIT(1) | BIT(11),
    .l7_edx = BIT(23) | BIT(24) | BIT(25),
    .l7_1_eax = BIT(4) | BIT(5),
    .xcr0 = ZMM | TILES,
    .tiles_granted = 1,
};

#define NO_TILES (PN_LEVEL_AVX512 | PN_CPU_AVX512_VBMI | PN_CPU_AVX512_BF16 | PN_CPU_AVX_VNNI | PN_CPU_AVX512_FP16)
#define ALL_X86 (NO_TILES | PN_CPU_AMX_INT8)

static void a_full_core(void **state)
{
    (void)state;
    assert_true(pn_cpu_decode(&full) == ALL_X86);
}

/* The processor has it, the system does not save the registers: a first use would be a fault. */
static void state_of_the_system(void **state)
{
    (void)state;
    static const struct { uint64_t xcr0; uint64_t want; } cases[] = {
        { 0x00, 0 }, { 0x01, 0 }, { 0x03, 0 }, { 0x05, 0 },
        { YMM, PN_LEVEL_AVX2 | PN_CPU_AVX_VNNI },
        { YMM | 0x20, PN_LEVEL_AVX2 | PN_CPU_AVX_VNNI }, { YMM | 0x60, PN_LEVEL_AVX2 | PN_CPU_AVX_VNNI },
        { YMM | 0xc0, PN_LEVEL_AVX2 | PN_CPU_AVX_VNNI }, { ZMM, NO_TILES }, { 0xe1, 0 },
        { ZMM | 0x20000, NO_TILES }, { ZMM | 0x40000, NO_TILES }, { ZMM | TILES, ALL_X86 },
        { YMM | TILES, PN_LEVEL_AVX2 | PN_CPU_AVX_VNNI },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_cpuid r = full;
        r.xcr0 = cases[i].xcr0;
        if (pn_cpu_decode(&r) != cases[i].want)
            fail_msg("XCR0 %#llx", (unsigned long long)r.xcr0);
    }
    pn_cpuid r = full;
    r.l1_ecx &= ~BIT(27);       /* no OSXSAVE: XCR0 means nothing */
    assert_true(pn_cpu_decode(&r) == 0);
}

/* One instruction set less at a time. */
static void each_instruction_set(void **state)
{
    (void)state;
    pn_cpuid r = full;
    r.l1_ecx &= ~BIT(28);
    assert_true(pn_cpu_decode(&r) == 0);
    r = full;
    r.l1_ecx &= ~BIT(12);
    assert_true(pn_cpu_decode(&r) == (ALL_X86 & ~PN_CPU_FMA));
    r = full;
    r.l1_ecx &= ~BIT(29);
    assert_true(pn_cpu_decode(&r) == (ALL_X86 & ~PN_CPU_F16C));
    r = full;
    r.l7_ebx &= ~BIT(5);
    assert_true(pn_cpu_decode(&r) == 0);
    static const unsigned parts[] = { 16, 17, 30, 31 };     /* F, DQ, BW, VL: one alone is not enough */
    for (size_t i = 0; i < 4; i++) {
        r = full;
        r.l7_ebx &= ~BIT(parts[i]);
        assert_true(pn_cpu_decode(&r) == (PN_LEVEL_AVX2 | PN_CPU_AVX_VNNI));
    }
    r = full;
    r.l7_ecx &= ~BIT(11);
    assert_true(pn_cpu_decode(&r) == (ALL_X86 & ~PN_CPU_AVX512_VNNI));
    r = full;
    r.l7_ecx &= ~BIT(1);
    assert_true(pn_cpu_decode(&r) == (ALL_X86 & ~PN_CPU_AVX512_VBMI));
    r = full;
    r.l7_edx &= ~BIT(23);
    assert_true(pn_cpu_decode(&r) == (ALL_X86 & ~PN_CPU_AVX512_FP16));
    for (unsigned bit = 24; bit <= 25; bit++) { /* tiles, and their products: one alone is not enough */
        r = full;
        r.l7_edx &= ~BIT(bit);
        assert_true(pn_cpu_decode(&r) == NO_TILES);
    }
    r = full;
    r.tiles_granted = 0;        /* the system would end the process */
    assert_true(pn_cpu_decode(&r) == NO_TILES);
    r = full;
    r.l7_max = 0;               /* no leaf 7.1: what its register held is nothing */
    assert_true(pn_cpu_decode(&r) == (ALL_X86 & ~(PN_CPU_AVX512_BF16 | PN_CPU_AVX_VNNI)));
    r = full;
    r.max_leaf = 6;
    assert_true(pn_cpu_decode(&r) == 0);
}

static void this_machine(void **state)
{
    (void)state;
    uint64_t f = pn_cpu_detect();
#if defined(__x86_64__)
    assert_int_equal(!!(f & PN_CPU_AVX2), !!__builtin_cpu_supports("avx2"));
    assert_int_equal(!!(f & PN_CPU_FMA), __builtin_cpu_supports("fma") && (f & PN_CPU_AVX2));
    assert_int_equal(!!(f & PN_CPU_AVX512),
                     !!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")));
    assert_int_equal(!!(f & PN_CPU_AVX512_VNNI), !!__builtin_cpu_supports("avx512vnni"));
    assert_true((f >> 32) == 0);
#else
    assert_true((f & UINT32_MAX) == 0);
#endif
}

static void levels(void **state)
{
    (void)state;
    uint64_t f = 1;
    pn_error err = {0};
    assert_int_equal(pn_cpu_lower(ALL_X86, NULL, &f, &err), PN_OK);
    assert_true(f == ALL_X86);
    assert_int_equal(pn_cpu_lower(ALL_X86, "", &f, &err), PN_OK);
    assert_true(f == ALL_X86);
    assert_int_equal(pn_cpu_lower(ALL_X86, "c", &f, &err), PN_OK);
    assert_true(f == 0);
#if defined(__x86_64__)
    assert_int_equal(pn_cpu_lower(ALL_X86, "avx2", &f, &err), PN_OK);
    assert_true(f == PN_LEVEL_AVX2);
    assert_int_equal(pn_cpu_lower(ALL_X86, "avx512", &f, &err), PN_OK);
    assert_true(f == NO_TILES);
    assert_int_equal(pn_cpu_lower(ALL_X86, "amx", &f, &err), PN_OK);
    assert_true(f == ALL_X86);
    assert_int_equal(pn_cpu_lower(PN_LEVEL_AVX2, "avx512", &f, &err), PN_OK);
    assert_true(f == PN_LEVEL_AVX2);        /* it lowers, never raises */
#endif
    static const char *const wrong[] = { "C", "avx", "avx1024", "c ", "sse" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        f = 42;
        assert_int_equal(pn_cpu_lower(ALL_X86, wrong[i], &f, &err), PN_E_CONFIG);
        assert_true(f == 42);
        assert_non_null(strstr(err.message, "PANTHEON_CPU"));
        assert_non_null(strstr(err.message, wrong[i]));
        assert_non_null(strstr(err.message, "c, "));
    }
}

static void names(void **state)
{
    (void)state;
    char text[256], small[8];
    assert_string_equal(pn_cpu_names(0, text, sizeof text), "");
    assert_string_equal(pn_cpu_names(PN_LEVEL_AVX512, text, sizeof text), "avx2 fma f16c avx512 avx512_vnni");
    assert_string_equal(pn_cpu_names(PN_CPU_NEON | PN_CPU_SVE, text, sizeof text), "neon sve");
    assert_string_equal(pn_cpu_names(UINT64_C(1) << 63, text, sizeof text), "bit63");
    assert_string_equal(pn_cpu_names(PN_LEVEL_AVX512, small, sizeof small), "avx2 fm");
    small[0] = 'x';
    pn_cpu_names(PN_LEVEL_AVX512, small, 0);
    assert_int_equal(small[0], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_core), cmocka_unit_test(state_of_the_system), cmocka_unit_test(each_instruction_set),
        cmocka_unit_test(this_machine), cmocka_unit_test(levels), cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

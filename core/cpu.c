/* CPU features: cpuid together with the state the operating system saves (x86), hwcaps (aarch64); levels of
 * PANTHEON_CPU. */
#include "cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define BIT(value, n) (((value) >> (n)) & 1u)

/* XCR0: 17 = tile configuration, 18 = tile data. */
static int saves_tiles(const pn_cpuid *r)
{
    return (r->xcr0 & 0x60000) == 0x60000;
}

uint64_t pn_cpu_decode(const pn_cpuid *r)
{
    uint64_t f = 0;
    /* XCR0: 1 = xmm, 2 = ymm, 5..7 = mask registers and zmm. Without them the first such instruction is a fault. */
    int ymm = BIT(r->l1_ecx, 27) && (r->xcr0 & 0x06) == 0x06;
    int zmm = ymm && (r->xcr0 & 0xe0) == 0xe0;
    if (!ymm || !BIT(r->l1_ecx, 28) || r->max_leaf < 7 || !BIT(r->l7_ebx, 5))
        return 0;
    f |= PN_CPU_AVX2;
    if (BIT(r->l1_ecx, 12))
        f |= PN_CPU_FMA;
    if (BIT(r->l1_ecx, 29))
        f |= PN_CPU_F16C;
    if (r->l7_max >= 1 && BIT(r->l7_1_eax, 4))
        f |= PN_CPU_AVX_VNNI;
    /* F, DQ, BW, VL: one bit of ours, as every server core has all four. */
    if (!zmm || !BIT(r->l7_ebx, 16) || !BIT(r->l7_ebx, 17) || !BIT(r->l7_ebx, 30) || !BIT(r->l7_ebx, 31))
        return f;
    f |= PN_CPU_AVX512;
    if (BIT(r->l7_ecx, 1))
        f |= PN_CPU_AVX512_VBMI;
    if (BIT(r->l7_ecx, 11))
        f |= PN_CPU_AVX512_VNNI;
    if (r->l7_max >= 1 && BIT(r->l7_1_eax, 5))
        f |= PN_CPU_AVX512_BF16;
    if (BIT(r->l7_edx, 23))
        f |= PN_CPU_AVX512_FP16;
    /* Tiles and their 8-bit products. */
    if (BIT(r->l7_edx, 24) && BIT(r->l7_edx, 25) && saves_tiles(r) && r->tiles_granted)
        f |= PN_CPU_AMX_INT8;
    return f;
}

#if defined(__x86_64__) || defined(__i386__)
/* Linux keeps tile registers from a process until it asks: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). */
static int ask_for_tiles(void)
{
#ifdef SYS_arch_prctl
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
    return 0;
#endif
}

uint64_t pn_cpu_detect(void)
{
    pn_cpuid r = {0};
    uint32_t a, b, c, d;
    r.max_leaf = __get_cpuid_max(0, NULL);
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    r.l1_ecx = c;
    if (BIT(c, 27)) {
        uint32_t low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        r.xcr0 = (uint64_t)high << 32 | low;
    }
    if (__get_cpuid_count(7, 0, &r.l7_max, &r.l7_ebx, &r.l7_ecx, &r.l7_edx) && r.l7_max >= 1 &&
        __get_cpuid_count(7, 1, &a, &b, &c, &d))
        r.l7_1_eax = a;
    r.tiles_granted = BIT(r.l7_edx, 24) && saves_tiles(&r) && ask_for_tiles();
    return pn_cpu_decode(&r);
}

static const struct { const char *name; uint64_t mask; } levels[] = {
    { "c", 0 }, { "avx2", PN_LEVEL_AVX2 }, { "avx512", ~PN_CPU_AMX_INT8 }, { "amx", UINT64_MAX },
};
#elif defined(__aarch64__)
uint64_t pn_cpu_detect(void)
{
    unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
    uint64_t f = 0;
    if (cap & (1ul << 1))                               /* HWCAP_ASIMD */
        f |= PN_CPU_NEON;
    if (cap & (1ul << 20))                              /* HWCAP_ASIMDDP */
        f |= PN_CPU_DOTPROD;
    if ((cap & (1ul << 9)) && (cap & (1ul << 10)))      /* HWCAP_FPHP, HWCAP_ASIMDHP */
        f |= PN_CPU_FP16;
    if (cap & (1ul << 22))                              /* HWCAP_SVE */
        f |= PN_CPU_SVE;
    if (cap2 & (1ul << 13))                             /* HWCAP2_I8MM */
        f |= PN_CPU_I8MM;
    return f;
}

static const struct { const char *name; uint64_t mask; } levels[] = { { "c", 0 }, { "neon", UINT64_MAX } };
#else
uint64_t pn_cpu_detect(void)
{
    return 0;
}

static const struct { const char *name; uint64_t mask; } levels[] = { { "c", 0 } };
#endif

pn_status pn_cpu_lower(uint64_t features, const char *level, uint64_t *out, pn_error *err)
{
    char allowed[64] = "";
    if (!level || !*level) {
        *out = features;
        return PN_OK;
    }
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        size_t n = strlen(allowed);
        if (!strcmp(level, levels[i].name)) {
            *out = features & levels[i].mask;
            return PN_OK;
        }
        snprintf(allowed + n, sizeof allowed - n, "%s%s", i ? ", " : "", levels[i].name);
    }
    return pn_fail(err, PN_E_CONFIG, "PANTHEON_CPU is '%.40s'; wanted: %s, or not set at all", level, allowed);
}

static const struct { uint64_t bit; const char *name; } names[] = {
    { PN_CPU_AVX2, "avx2" }, { PN_CPU_FMA, "fma" }, { PN_CPU_F16C, "f16c" }, { PN_CPU_AVX512, "avx512" },
    { PN_CPU_AVX512_VNNI, "avx512_vnni" }, { PN_CPU_AVX512_VBMI, "avx512_vbmi" },
    { PN_CPU_AVX512_BF16, "avx512_bf16" }, { PN_CPU_AVX_VNNI, "avx_vnni" }, { PN_CPU_AVX512_FP16, "avx512_fp16" },
    { PN_CPU_AMX_INT8, "amx_int8" },
    { PN_CPU_NEON, "neon" }, { PN_CPU_DOTPROD, "dotprod" }, { PN_CPU_I8MM, "i8mm" }, { PN_CPU_FP16, "fp16" },
    { PN_CPU_SVE, "sve" },
};

const char *pn_cpu_names(uint64_t features, char *text, size_t capacity)
{
    size_t used = 0;
    if (!capacity)
        return text;
    text[0] = 0;
    for (size_t i = 0; i < 64 && used < capacity; i++) {
        char unknown[16];
        const char *name = unknown;
        if (!(features & UINT64_C(1) << i))
            continue;
        snprintf(unknown, sizeof unknown, "bit%zu", i);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (names[k].bit == UINT64_C(1) << i)
                name = names[k].name;
        int n = snprintf(text + used, capacity - used, "%s%s", used ? " " : "", name);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

/* Which CPU features may be used: what the processor has, what the operating system saves, what PANTHEON_CPU leaves. */
#ifndef PN_CPU_H
#define PN_CPU_H

#include <pantheon/pantheon.h>

/* Registers of cpuid and xgetbv (x86). Apart from reading them, so that tests can make up processors. */
typedef struct pn_cpuid {
    uint32_t max_leaf;          /* leaf 0 eax */
    uint32_t l1_ecx;            /* leaf 1 */
    uint32_t l7_ebx, l7_ecx, l7_edx, l7_max; /* leaf 7.0; l7_max = eax */
    uint32_t l7_1_eax;          /* leaf 7.1 */
    uint64_t xcr0;              /* 0 unless OSXSAVE */
    int tiles_granted;          /* the system lets this process use tile registers */
} pn_cpuid;

/* PN_CPU_* bits of an x86 processor: the instruction and the register state that it needs. */
uint64_t pn_cpu_decode(const pn_cpuid *regs);
/* PN_CPU_* bits of this machine. */
uint64_t pn_cpu_detect(void);
/* *out = `features` lowered to a level ("c", "avx2", ...; NULL or "" = not lowered). PN_E_CONFIG names the levels. */
pn_status pn_cpu_lower(uint64_t features, const char *level, uint64_t *out, pn_error *err);

#endif

/* Loops of multiply-adds in registers, for measuring what a core can do. */
#ifndef PN_MEASURE_H
#define PN_MEASURE_H

#include <stdint.h>

/* Runs `rounds` rounds and returns how many multiply-adds that were. */
typedef double (*pn_measure_loop)(uint32_t rounds);

/* The loops of one level, by pn_arithmetic. */
typedef struct pn_measure_loops {
    uint64_t features; /* PN_CPU_* bits that they need */
    pn_measure_loop loop[3];
} pn_measure_loops;

#ifdef PN_HAVE_X86
extern const pn_measure_loops pn_measure_avx2, pn_measure_avx512, pn_measure_amx;
#endif

#endif

/* tq1_0: 256 elements in 54 bytes, x = d * (q - 1) with q in 0..2, five to a byte.
 * What its files share: the block and the kernels.
 *
 *   byte   0 .. 31          32 .. 47          48 .. 51         52 53
 *          qs: 160          80                qh: 16           d
 *          elements         elements          elements         half
 *
 *   Byte i of a part of N bytes holds elements i, i + N, i + 2 N, ... of the part, as digits of a fraction in base 3,
 *   the first the highest. byte / 256 is that fraction, rounded up: three times the byte gives the first digit above
 *   its eight bits, and the rest below them.
 */
#ifndef PN_QUANT_TQ1_0_H
#define PN_QUANT_TQ1_0_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>
#include "ternary.h"

#define PN_TQ1_0_ELEMS 256

typedef struct pn_tq1_0_block {
    uint8_t qs[48];
    uint8_t qh[4];
    uint8_t d[2];
} pn_tq1_0_block;
_Static_assert(sizeof(pn_tq1_0_block) == 54, "published size of a tq1_0 block");

size_t pn_tq1_0_scratch_avx2(size_t cols, size_t columns);
size_t pn_tq1_0_scratch_avx512(size_t cols, size_t columns);
pn_status pn_tq1_0_matmul_avx2(const pn_matmul_args *args);
pn_status pn_tq1_0_matmul_avx512(const pn_matmul_args *args);
pn_status pn_tq1_0_matmul_amx(const pn_matmul_args *args);
pn_status pn_tq1_0_fast_avx2(const pn_matmul_args *args);
pn_status pn_tq1_0_fast_avx512(const pn_matmul_args *args);
pn_status pn_tq1_0_fast_amx(const pn_matmul_args *args);

#endif

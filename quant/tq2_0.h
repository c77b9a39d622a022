/* tq2_0: 256 elements in 66 bytes, x = d * (q - 1) with q in 0..3, of which 3 is not used.
 * What its files share: the block and the kernels.
 *
 *   byte   0 ...                                                 63   64 65
 *          qs: byte 32 h + i holds elements 128 h + i, + 32, + 64,    d
 *              + 96, two bits each, the first in the lowest           half
 */
#ifndef PN_QUANT_TQ2_0_H
#define PN_QUANT_TQ2_0_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>
#include "ternary.h"

#define PN_TQ2_0_ELEMS 256

typedef struct pn_tq2_0_block {
    uint8_t qs[64];
    uint8_t d[2];
} pn_tq2_0_block;
_Static_assert(sizeof(pn_tq2_0_block) == 66, "published size of a tq2_0 block");

size_t pn_tq2_0_scratch_avx2(size_t cols, size_t columns);
size_t pn_tq2_0_scratch_avx512(size_t cols, size_t columns);
pn_status pn_tq2_0_matmul_avx2(const pn_matmul_args *args);
pn_status pn_tq2_0_matmul_avx512(const pn_matmul_args *args);
pn_status pn_tq2_0_matmul_amx(const pn_matmul_args *args);
pn_status pn_tq2_0_fast_avx2(const pn_matmul_args *args);
pn_status pn_tq2_0_fast_avx512(const pn_matmul_args *args);
pn_status pn_tq2_0_fast_amx(const pn_matmul_args *args);

#endif

/* q2_0: 64 elements in 18 bytes, x = d * (q - 1) with q in 0..3.
 * What its files share: the block and the kernels.
 *
 *   byte   0 1   2 ...                                17
 *          d     qs: byte i holds elements 4 i .. 4 i + 3, two bits each, the first in the lowest
 *          half
 */
#ifndef PN_QUANT_Q2_0_H
#define PN_QUANT_Q2_0_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q2_0_ELEMS 64

typedef struct pn_q2_0_block {
    uint8_t d[2];
    uint8_t qs[16];
} pn_q2_0_block;
_Static_assert(sizeof(pn_q2_0_block) == 18, "published size of a q2_0 block");

size_t pn_q2_0_scratch_avx2(size_t cols, size_t columns);
size_t pn_q2_0_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q2_0_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q2_0_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q2_0_matmul_amx(const pn_matmul_args *args);
pn_status pn_q2_0_fast_avx2(const pn_matmul_args *args);
pn_status pn_q2_0_fast_avx512(const pn_matmul_args *args);
pn_status pn_q2_0_fast_amx(const pn_matmul_args *args);

#endif

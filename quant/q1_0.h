/* q1_0: 128 elements in 18 bytes, x = d or -d.
 * What its files share: the block and the kernels.
 *
 *   byte   0 1   2 ...                                17
 *          d     qs: bit e % 8 of byte e / 8 set: element e is d, else -d
 *          half
 */
#ifndef PN_QUANT_Q1_0_H
#define PN_QUANT_Q1_0_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q1_0_ELEMS 128

typedef struct pn_q1_0_block {
    uint8_t d[2];
    uint8_t qs[16];
} pn_q1_0_block;
_Static_assert(sizeof(pn_q1_0_block) == 18, "published size of a q1_0 block");

size_t pn_q1_0_scratch_avx2(size_t cols, size_t columns);
size_t pn_q1_0_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q1_0_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q1_0_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q1_0_matmul_amx(const pn_matmul_args *args);
pn_status pn_q1_0_fast_avx2(const pn_matmul_args *args);
pn_status pn_q1_0_fast_avx512(const pn_matmul_args *args);
pn_status pn_q1_0_fast_amx(const pn_matmul_args *args);

#endif

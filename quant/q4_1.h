/* q4_1: 32 elements in 20 bytes, x = d * q + m with q in 0..15. What its files share: the block and the kernels.
 *
 *   byte   0 1   2 3   4 ...                                19
 *          d     m     qs: byte i holds element i in its low four bits and element 16 + i in its high four
 *          half  half
 */
#ifndef PN_QUANT_Q4_1_H
#define PN_QUANT_Q4_1_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q4_1_ELEMS 32

typedef struct pn_q4_1_block {
    uint8_t d[2], m[2];
    uint8_t qs[16];
} pn_q4_1_block;
_Static_assert(sizeof(pn_q4_1_block) == 20, "published size of a q4_1 block");

size_t pn_q4_1_scratch_avx2(size_t cols, size_t columns);
size_t pn_q4_1_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q4_1_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q4_1_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q4_1_matmul_amx(const pn_matmul_args *args);
pn_status pn_q4_1_fast_avx2(const pn_matmul_args *args);
pn_status pn_q4_1_fast_avx512(const pn_matmul_args *args);
pn_status pn_q4_1_fast_amx(const pn_matmul_args *args);

#endif

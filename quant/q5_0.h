/* q5_0: 32 elements in 22 bytes, x = d * (q - 16) with q in 0..31. What its files share: the block and the kernels.
 *
 *   byte   0 1   2 .. 5   6 ...                                      21
 *          d     qh       qs: byte i holds the low four bits of element i (low) and of element 16 + i (high)
 *          half  32 bits: bit i is the fifth bit of element i
 */
#ifndef PN_QUANT_Q5_0_H
#define PN_QUANT_Q5_0_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q5_0_ELEMS 32

typedef struct pn_q5_0_block {
    uint8_t d[2];
    uint8_t qh[4]; /* one 32-bit integer of the file's byte order */
    uint8_t qs[16];
} pn_q5_0_block;
_Static_assert(sizeof(pn_q5_0_block) == 22, "published size of a q5_0 block");

size_t pn_q5_0_scratch_avx2(size_t cols, size_t columns);
size_t pn_q5_0_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q5_0_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q5_0_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q5_0_matmul_amx(const pn_matmul_args *args);
pn_status pn_q5_0_fast_avx2(const pn_matmul_args *args);
pn_status pn_q5_0_fast_avx512(const pn_matmul_args *args);
pn_status pn_q5_0_fast_amx(const pn_matmul_args *args);

#endif

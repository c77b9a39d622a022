/* q2_k: 256 elements in 84 bytes, x = d * scale * q - dmin * minimum with q in 0..3, a scale and a minimum of 4 bits
 * for each 16. What its files share: the block and the kernels.
 *
 *   byte   0 ... 15   16 ... 79   80 81   82 83
 *          scales     qs          d       dmin
 *                                 half    half
 *   scales: byte g holds scale g in its low four bits and minimum g in its high four
 *   qs: element 128 c + 32 j + i (c: 0 1, j: 0..3, i: 0..31) is bits 2 j and 2 j + 1 of byte 32 c + i
 */
#ifndef PN_QUANT_Q2_K_H
#define PN_QUANT_Q2_K_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q2_K_ELEMS 256

typedef struct pn_q2_k_block {
    uint8_t scales[16];
    uint8_t qs[64];
    uint8_t d[2], dmin[2];
} pn_q2_k_block;
_Static_assert(sizeof(pn_q2_k_block) == 84, "published size of a q2_k block");

size_t pn_q2_k_scratch_avx2(size_t cols, size_t columns);
size_t pn_q2_k_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q2_k_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q2_k_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q2_k_fast_avx2(const pn_matmul_args *args);
pn_status pn_q2_k_fast_avx512(const pn_matmul_args *args);

#endif

/* q3_k: 256 elements in 110 bytes, x = d * scale * q with q in -4..3 stored as 0..7 and a scale in -32..31 stored as
 * 0..63 for each 16. What its files share: the block and the kernels.
 *
 *   byte   0 ... 31   32 ... 95   96 ... 107   108 109
 *          hmask      qs          scales       d
 *                                              half
 *   Element 128 c + 32 j + i (c: 0 1, j: 0..3, i: 0..31) has its low two bits at 2 j of qs[32 c + i] and its upper bit
 *   at 4 c + j of hmask[i].
 *   Scale 4 k + i (k, i: 0..3) has its low four bits in byte i + 4 (k % 2) of scales, in the low half for k 0 and 1, in
 *   the high half for k 2 and 3; its upper two are bits 2 k and 2 k + 1 of byte 8 + i.
 */
#ifndef PN_QUANT_Q3_K_H
#define PN_QUANT_Q3_K_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q3_K_ELEMS 256

typedef struct pn_q3_k_block {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint8_t d[2];
} pn_q3_k_block;
_Static_assert(sizeof(pn_q3_k_block) == 110, "published size of a q3_k block");

size_t pn_q3_k_scratch_avx2(size_t cols, size_t columns);
size_t pn_q3_k_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q3_k_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q3_k_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q3_k_fast_avx2(const pn_matmul_args *args);
pn_status pn_q3_k_fast_avx512(const pn_matmul_args *args);

#endif

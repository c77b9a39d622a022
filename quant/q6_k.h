/* q6_k: 256 elements in 210 bytes, x = d * scale * q with q in -32..31 stored as 0..63, a signed scale of 8 bits for
 * each 16. What its files share: the block and the kernels.
 *
 *   byte   0 ... 127   128 ... 191   192 ... 207   208 209
 *          ql          qh            scales        d
 *                                    int8          half
 *   Element 128 c + 32 j + i (c: 0 1, j: 0..3, i: 0..31) has its low four bits in ql[64 c + 32 (j % 2) + i], in the
 *   low half for j 0 and 1, in the high half for j 2 and 3; its upper two are bits 2 j and 2 j + 1 of qh[32 c + i].
 */
#ifndef PN_QUANT_Q6_K_H
#define PN_QUANT_Q6_K_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q6_K_ELEMS 256

typedef struct pn_q6_k_block {
    uint8_t ql[128];
    uint8_t qh[64];
    uint8_t scales[16];
    uint8_t d[2];
} pn_q6_k_block;
_Static_assert(sizeof(pn_q6_k_block) == 210, "published size of a q6_k block");

size_t pn_q6_k_scratch_avx2(size_t cols, size_t columns);
size_t pn_q6_k_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q6_k_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q6_k_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q6_k_fast_avx2(const pn_matmul_args *args);
pn_status pn_q6_k_fast_avx512(const pn_matmul_args *args);

#endif

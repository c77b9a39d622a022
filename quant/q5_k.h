/* q5_k: 256 elements in 176 bytes, x = d * scale * q - dmin * minimum with q in 0..31, a scale and a minimum of 6 bits
 * for each 32. What its files share: the block and the kernels.
 *
 *   byte   0 1   2 3    4 ... 15    16 ... 47   48 ...                     175
 *          d     dmin   scales      qh          qs: the low four bits, byte 32 c + i those of element 64 c + i and, in
 *          half  half   k_scales.h                  its high half, of element 64 c + 32 + i (c: 0..3, i: 0..31)
 *   qh: bit g of byte i is the fifth bit of element 32 g + i
 */
#ifndef PN_QUANT_Q5_K_H
#define PN_QUANT_Q5_K_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q5_K_ELEMS 256

typedef struct pn_q5_k_block {
    uint8_t d[2], dmin[2];
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
} pn_q5_k_block;
_Static_assert(sizeof(pn_q5_k_block) == 176, "published size of a q5_k block");

size_t pn_q5_k_scratch_avx2(size_t cols, size_t columns);
size_t pn_q5_k_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q5_k_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q5_k_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q5_k_matmul_amx(const pn_matmul_args *args);
pn_status pn_q5_k_fast_avx2(const pn_matmul_args *args);
pn_status pn_q5_k_fast_avx512(const pn_matmul_args *args);
pn_status pn_q5_k_fast_amx(const pn_matmul_args *args);

#endif

/* q4_k: 256 elements in 144 bytes, x = d * scale * q - dmin * minimum with q in 0..15, a scale and a minimum of 6 bits
 * for each 32. What its files share: the block and the kernels.
 *
 *   byte   0 1   2 3    4 ... 15    16 ...                     143
 *          d     dmin   scales      qs: byte 32 c + i holds element 64 c + i in its low four bits and element
 *          half  half   k_scales.h      64 c + 32 + i in its high four (c: 0..3, i: 0..31)
 */
#ifndef PN_QUANT_Q4_K_H
#define PN_QUANT_Q4_K_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q4_K_ELEMS 256

typedef struct pn_q4_k_block {
    uint8_t d[2], dmin[2];
    uint8_t scales[12];
    uint8_t qs[128];
} pn_q4_k_block;
_Static_assert(sizeof(pn_q4_k_block) == 144, "published size of a q4_k block");

size_t pn_q4_k_scratch_avx2(size_t cols, size_t columns);
size_t pn_q4_k_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q4_k_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q4_k_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q4_k_matmul_amx(const pn_matmul_args *args);
pn_status pn_q4_k_fast_avx2(const pn_matmul_args *args);
pn_status pn_q4_k_fast_avx512(const pn_matmul_args *args);
pn_status pn_q4_k_fast_amx(const pn_matmul_args *args);

#endif

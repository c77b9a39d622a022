/* q8_k: 256 elements in 292 bytes, x = d * q with q in -128..127. Programs make it of activations; here it is a type
 * like the others. What its files share: the block and the kernels.
 *
 *   byte   0 ... 3   4 ... 259   260 ... 291
 *          d         qs          sums
 *          float     int8        int16, the sum of q over each 16; nothing here reads them
 */
#ifndef PN_QUANT_Q8_K_H
#define PN_QUANT_Q8_K_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q8_K_ELEMS 256

typedef struct pn_q8_k_block {
    uint8_t d[4];
    uint8_t qs[256];
    uint8_t sums[32];
} pn_q8_k_block;
_Static_assert(sizeof(pn_q8_k_block) == 292, "published size of a q8_k block");

size_t pn_q8_k_scratch_avx2(size_t cols, size_t columns);
size_t pn_q8_k_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q8_k_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q8_k_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q8_k_matmul_amx(const pn_matmul_args *args);
pn_status pn_q8_k_fast_avx2(const pn_matmul_args *args);
pn_status pn_q8_k_fast_avx512(const pn_matmul_args *args);
pn_status pn_q8_k_fast_amx(const pn_matmul_args *args);

#endif

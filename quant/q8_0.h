/* q8_0: 32 elements in 34 bytes, x = d * q with q in -128..127. What its files share: the block and the kernels.
 *
 *   byte   0 1   2 ...                   33
 *          d     qs: byte i holds element i, signed
 *          half
 */
#ifndef PN_QUANT_Q8_0_H
#define PN_QUANT_Q8_0_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q8_0_ELEMS 32

typedef struct pn_q8_0_block {
    uint8_t d[2];
    int8_t qs[32];
} pn_q8_0_block;
_Static_assert(sizeof(pn_q8_0_block) == 34, "published size of a q8_0 block");

size_t pn_q8_0_scratch_avx2(size_t cols, size_t columns);
size_t pn_q8_0_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q8_0_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q8_0_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q8_0_matmul_amx(const pn_matmul_args *args);
pn_status pn_q8_0_fast_avx2(const pn_matmul_args *args);
pn_status pn_q8_0_fast_avx512(const pn_matmul_args *args);
pn_status pn_q8_0_fast_amx(const pn_matmul_args *args);

#endif

/* q8_1: 32 elements in 36 bytes, x = d * q. An activation type: s serves products with types that have a minimum.
 * What its files share: the block and the kernels.
 *
 *   byte   0 1   2 3   4 ...                    35
 *          d     s     qs: signed bytes
 *          half  half, d times the sum of qs
 */
#ifndef PN_QUANT_Q8_1_H
#define PN_QUANT_Q8_1_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_Q8_1_ELEMS 32

typedef struct pn_q8_1_block {
    uint8_t d[2], s[2];
    int8_t qs[32];
} pn_q8_1_block;
_Static_assert(sizeof(pn_q8_1_block) == 36, "published size of a q8_1 block");

size_t pn_q8_1_scratch_avx2(size_t cols, size_t columns);
size_t pn_q8_1_scratch_avx512(size_t cols, size_t columns);
pn_status pn_q8_1_matmul_avx2(const pn_matmul_args *args);
pn_status pn_q8_1_matmul_avx512(const pn_matmul_args *args);
pn_status pn_q8_1_matmul_amx(const pn_matmul_args *args);
pn_status pn_q8_1_fast_avx2(const pn_matmul_args *args);
pn_status pn_q8_1_fast_avx512(const pn_matmul_args *args);
pn_status pn_q8_1_fast_amx(const pn_matmul_args *args);

#endif

/* mxfp4: 32 elements in 17 bytes, x = 2^(e - 127) * value, the OCP microscaling type of 4 bits (e2m1.h).
 * What its files share: the block and the kernels.
 *
 *   byte   0   1 ...                                16
 *          e   qs: byte i holds the code of element i in its low four bits and of element 16 + i in its high four
 *   e = 255 is NaN, as the standard says; e = 0 is 2^-127.
 */
#ifndef PN_QUANT_MXFP4_H
#define PN_QUANT_MXFP4_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>
#include "e2m1.h"

#define PN_MXFP4_ELEMS 32

typedef struct pn_mxfp4_block {
    uint8_t e;
    uint8_t qs[16];
} pn_mxfp4_block;
_Static_assert(sizeof(pn_mxfp4_block) == 17, "published size of a mxfp4 block");

size_t pn_mxfp4_scratch_avx2(size_t cols, size_t columns);
size_t pn_mxfp4_scratch_avx512(size_t cols, size_t columns);
pn_status pn_mxfp4_matmul_avx2(const pn_matmul_args *args);
pn_status pn_mxfp4_matmul_avx512(const pn_matmul_args *args);
pn_status pn_mxfp4_matmul_amx(const pn_matmul_args *args);
pn_status pn_mxfp4_fast_avx2(const pn_matmul_args *args);
pn_status pn_mxfp4_fast_avx512(const pn_matmul_args *args);
pn_status pn_mxfp4_fast_amx(const pn_matmul_args *args);

#endif

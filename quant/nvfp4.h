/* nvfp4: 64 elements in 36 bytes, x = d * value with a scale d of 8 bits for each 16, values in e2m1.h.
 * What its files share: the block and the kernels.
 *
 *   byte   0 .. 3   4 ...                                                    35
 *          d        qs: 8 bytes for each 16 elements: byte i holds the code of element i in its low four bits and of
 *                   element 8 + i in its high four
 *   d has 4 bits of exponent and 3 of mantissa, no sign (the highest bit is ignored): 2^(e - 7) (1 + m / 8), or
 *   m / 512 where e = 0; 127 is 0. A tensor's own scale, where the file has one ("NAME.scale" beside "NAME.weight"),
 *   multiplies the products.
 */
#ifndef PN_QUANT_NVFP4_H
#define PN_QUANT_NVFP4_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>
#include "e2m1.h"

#define PN_NVFP4_ELEMS 64

typedef struct pn_nvfp4_block {
    uint8_t d[4];
    uint8_t qs[32];
} pn_nvfp4_block;
_Static_assert(sizeof(pn_nvfp4_block) == 36, "published size of a nvfp4 block");

/* Multiply what args asked for by the tensor's own scale, if it has one. `status` is passed on. */
pn_status pn_nvfp4_scaled(const pn_matmul_args *args, pn_status status);

size_t pn_nvfp4_scratch_avx2(size_t cols, size_t columns);
size_t pn_nvfp4_scratch_avx512(size_t cols, size_t columns);
pn_status pn_nvfp4_matmul_avx2(const pn_matmul_args *args);
pn_status pn_nvfp4_matmul_avx512(const pn_matmul_args *args);
pn_status pn_nvfp4_fast_avx2(const pn_matmul_args *args);
pn_status pn_nvfp4_fast_avx512(const pn_matmul_args *args);

#endif

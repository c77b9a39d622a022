/* bf16: a number of 2 bytes, the upper half of an IEEE single-precision one. What its files share: the kernels. */
#ifndef PN_QUANT_BF16_H
#define PN_QUANT_BF16_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_BF16_BYTES 2

pn_status pn_bf16_matmul_avx2(const pn_matmul_args *args);
pn_status pn_bf16_matmul_avx512(const pn_matmul_args *args);

#endif

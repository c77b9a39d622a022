/* f16: a number of 2 bytes, IEEE half precision. What its files share: the kernels. */
#ifndef PN_QUANT_F16_H
#define PN_QUANT_F16_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_F16_BYTES 2

pn_status pn_f16_matmul_avx2(const pn_matmul_args *args);
pn_status pn_f16_matmul_avx512(const pn_matmul_args *args);

#endif

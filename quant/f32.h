/* f32: a number of 4 bytes, as it is. What its files share: the kernels. */
#ifndef PN_QUANT_F32_H
#define PN_QUANT_F32_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PN_F32_BYTES 4

pn_status pn_f32_matmul_avx2(const pn_matmul_args *args);
pn_status pn_f32_matmul_avx512(const pn_matmul_args *args);

#endif

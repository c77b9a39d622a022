/* iq4_xs: 256 elements in 136 bytes, x = d * (s - 32) * book[code]: iq4_nl with a scale s of 6 bits for each 32.
 * What its files share: the block and the kernels.
 *
 *   byte   0 1   2 3    4 .. 7                 8 ...                  135
 *          d     high   low                    qs: 16 bytes for each 32 elements, as in iq4_nl
 *          half  two    four bits of each s,
 *                bits   the even one of a pair
 *                of     in the low half of
 *                each s the byte
 */
#ifndef PN_QUANT_IQ4_XS_H
#define PN_QUANT_IQ4_XS_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>
#include "iq4_book.h"

#define PN_IQ4_XS_ELEMS 256

typedef struct pn_iq4_xs_block {
    uint8_t d[2];
    uint8_t scales_high[2]; /* one 16-bit integer */
    uint8_t scales_low[4];
    uint8_t qs[128];
} pn_iq4_xs_block;
_Static_assert(sizeof(pn_iq4_xs_block) == 136, "published size of a iq4_xs block");

size_t pn_iq4_xs_scratch_avx2(size_t cols, size_t columns);
size_t pn_iq4_xs_scratch_avx512(size_t cols, size_t columns);
pn_status pn_iq4_xs_matmul_avx2(const pn_matmul_args *args);
pn_status pn_iq4_xs_matmul_avx512(const pn_matmul_args *args);
pn_status pn_iq4_xs_matmul_amx(const pn_matmul_args *args);
pn_status pn_iq4_xs_fast_avx2(const pn_matmul_args *args);
pn_status pn_iq4_xs_fast_avx512(const pn_matmul_args *args);
pn_status pn_iq4_xs_fast_amx(const pn_matmul_args *args);

#endif

/* iq4_nl: 32 elements in 18 bytes, x = d * book[code] with 16 values of a code book (iq4_book.h).
 * What its files share: the block and the kernels.
 *
 *   byte   0 1   2 ...                                17
 *          d     qs: byte i holds the code of element i in its low four bits and of element 16 + i in its high four
 *          half
 */
#ifndef PN_QUANT_IQ4_NL_H
#define PN_QUANT_IQ4_NL_H

#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>
#include "iq4_book.h"

#define PN_IQ4_NL_ELEMS 32

typedef struct pn_iq4_nl_block {
    uint8_t d[2];
    uint8_t qs[16];
} pn_iq4_nl_block;
_Static_assert(sizeof(pn_iq4_nl_block) == 18, "published size of a iq4_nl block");

size_t pn_iq4_nl_scratch_avx2(size_t cols, size_t columns);
size_t pn_iq4_nl_scratch_avx512(size_t cols, size_t columns);
pn_status pn_iq4_nl_matmul_avx2(const pn_matmul_args *args);
pn_status pn_iq4_nl_matmul_avx512(const pn_matmul_args *args);
pn_status pn_iq4_nl_matmul_amx(const pn_matmul_args *args);
pn_status pn_iq4_nl_fast_avx2(const pn_matmul_args *args);
pn_status pn_iq4_nl_fast_avx512(const pn_matmul_args *args);
pn_status pn_iq4_nl_fast_amx(const pn_matmul_args *args);

#endif

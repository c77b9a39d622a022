/* iq2_xs: 256 elements in 74 bytes: eight at a time from a code book of 512, with signs: x is d * (2 scale + 1) / 8
 * times the element; a scale of 4 bits for each 16.
 * What its files share: the block, its unpacker and the kernels.
 *
 *   byte   0 1    2 ...                              65     66 ...                             73
 *          d      qs: 16 bits for each 8 elements:          scales: byte g that of elements 32 g .. in its low half,
 *          half   9 of index, 7 of signs (iq_books.h)       of elements 32 g + 16 .. in its high half
 */
#ifndef PN_QUANT_IQ2_XS_H
#define PN_QUANT_IQ2_XS_H

#include <pantheon/kit/tile_c.h>
#include "iq_books.h"

#define PN_IQ2_XS_ELEMS 256

typedef struct pn_iq2_xs_block {
    uint8_t d[2];
    uint8_t qs[32][2];
    uint8_t scales[8];
} pn_iq2_xs_block;
_Static_assert(sizeof(pn_iq2_xs_block) == 74, "published size of an iq2_xs block");

extern const uint64_t pn_iq2_xs_grid[512];

PN_UNUSED static inline void pn_iq2_xs_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_iq2_xs_block *b = (const pn_iq2_xs_block *)block;
    const float d = pn_get_half(b->d) * 0.125f;
    for (size_t g = 0; g < 8; g++) {
        uint32_t signs = 0;
        uint64_t codes[4];
        for (size_t i = 0; i < 4; i++) {
            const uint32_t x = pn_get16(b->qs[4 * g + i]);
            codes[i] = pn_iq2_xs_grid[x & 511];
            signs |= x >> 9 << 8 * i;
        }
        out->d[2 * g] = d * (float)(2 * (b->scales[g] & 15) + 1);
        out->d[2 * g + 1] = d * (float)(2 * (b->scales[g] >> 4) + 1);
        pn_iq_put_signed(codes, pn_iq_even(signs), out->code + 32 * g);
    }
}

static const pn_block_type iq2_xs_block = {sizeof(pn_iq2_xs_block), PN_IQ2_XS_ELEMS, 1, 0, pn_iq2_xs_unpack};

size_t pn_iq2_xs_scratch_avx2(size_t cols, size_t columns);
size_t pn_iq2_xs_scratch_avx512(size_t cols, size_t columns);
pn_status pn_iq2_xs_matmul_avx2(const pn_matmul_args *args);
pn_status pn_iq2_xs_matmul_avx512(const pn_matmul_args *args);
pn_status pn_iq2_xs_fast_avx2(const pn_matmul_args *args);
pn_status pn_iq2_xs_fast_avx512(const pn_matmul_args *args);

#endif

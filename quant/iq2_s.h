/* iq2_s: 256 elements in 82 bytes: eight at a time from a code book of 1024, with signs: x is d * (2 scale + 1) / 8
 * times the element; a scale of 4 bits for each 16.
 * What its files share: the block, its unpacker and the kernels.
 *
 *   byte   0 1    2 ... 33   34 ... 65   66 ... 73   74 ...                             81
 *          d      qs         signs       qh          scales: byte g that of elements 32 g .. in its low half,
 *          half                                      of elements 32 g + 16 .. in its high half
 *   qs[i]: low bits of the index of elements 8 i ..; signs[i]: their signs, bit j for element 8 i + j
 *   qh[g]: two high bits of the indices 4 g .. 4 g + 3, the first lowest
 */
#ifndef PN_QUANT_IQ2_S_H
#define PN_QUANT_IQ2_S_H

#include <pantheon/kit/tile_c.h>
#include "iq_books.h"

#define PN_IQ2_S_ELEMS 256

typedef struct pn_iq2_s_block {
    uint8_t d[2];
    uint8_t qs[32], signs[32], qh[8];
    uint8_t scales[8];
} pn_iq2_s_block;
_Static_assert(sizeof(pn_iq2_s_block) == 82, "published size of an iq2_s block");

extern const uint64_t pn_iq2_s_grid[1024];

PN_UNUSED static inline void pn_iq2_s_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_iq2_s_block *b = (const pn_iq2_s_block *)block;
    const float d = pn_get_half(b->d) * 0.125f;
    for (size_t g = 0; g < 8; g++) {
        uint64_t codes[4];
        for (size_t i = 0; i < 4; i++) codes[i] = pn_iq2_s_grid[b->qs[4 * g + i] | (b->qh[g] >> 2 * i & 3u) << 8];
        out->d[2 * g] = d * (float)(2 * (b->scales[g] & 15) + 1);
        out->d[2 * g + 1] = d * (float)(2 * (b->scales[g] >> 4) + 1);
        pn_iq_put_signed(codes, pn_iq_bits(b->signs + 4 * g), out->code + 32 * g);
    }
}

static const pn_block_type iq2_s_block = {sizeof(pn_iq2_s_block), PN_IQ2_S_ELEMS, 1, 0, pn_iq2_s_unpack};

size_t pn_iq2_s_scratch_avx2(size_t cols, size_t columns);
size_t pn_iq2_s_scratch_avx512(size_t cols, size_t columns);
pn_status pn_iq2_s_matmul_avx2(const pn_matmul_args *args);
pn_status pn_iq2_s_matmul_avx512(const pn_matmul_args *args);
pn_status pn_iq2_s_fast_avx2(const pn_matmul_args *args);
pn_status pn_iq2_s_fast_avx512(const pn_matmul_args *args);

#endif

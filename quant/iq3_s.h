/* iq3_s: 256 elements in 110 bytes: four at a time from a code book of 512, with signs: x is d * (2 scale + 1)
 * times the element; a scale of 4 bits for each 32.
 * What its files share: the block, its unpacker and the kernels.
 *
 *   byte   0 1    2 ... 65   66 ... 73   74 ... 105   106 ...                            109
 *          d      qs         qh          signs        scales: byte c that of elements 64 c .. in its low half,
 *          half                                       of elements 64 c + 32 .. in its high half
 *   qs[i]: low bits of the index of elements 4 i .. 4 i + 3; qh[g]: bit i is the ninth bit of index 8 g + i
 *   signs[i]: bit j is the sign of element 8 i + j
 */
#ifndef PN_QUANT_IQ3_S_H
#define PN_QUANT_IQ3_S_H

#include <pantheon/kit/tile_c.h>
#include "iq_books.h"

#define PN_IQ3_S_ELEMS 256

typedef struct pn_iq3_s_block {
    uint8_t d[2];
    uint8_t qs[64], qh[8], signs[32];
    uint8_t scales[4];
} pn_iq3_s_block;
_Static_assert(sizeof(pn_iq3_s_block) == 110, "published size of an iq3_s block");

extern const uint32_t pn_iq3_s_grid[512];

PN_UNUSED static inline void pn_iq3_s_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_iq3_s_block *b = (const pn_iq3_s_block *)block;
    const float d = pn_get_half(b->d);
    for (size_t g = 0; g < 8; g++) {
        const unsigned high = b->qh[g];
        uint64_t codes[4];
        for (size_t i = 0; i < 4; i++) {
            const uint8_t *index = b->qs + 8 * g + 2 * i;
            const uint64_t first = pn_iq3_s_grid[index[0] | (high >> 2 * i & 1) << 8];
            const uint64_t second = pn_iq3_s_grid[index[1] | (high >> 2 * i & 2) << 7];
            codes[i] = first | second << 32;
        }
        out->d[g] = d * (float)(2 * (b->scales[g / 2] >> g % 2 * 4 & 15) + 1);
        pn_iq_put_signed(codes, pn_iq_bits(b->signs + 4 * g), out->code + 32 * g);
    }
}

static const pn_block_type iq3_s_block = {sizeof(pn_iq3_s_block), PN_IQ3_S_ELEMS, 0, 0, pn_iq3_s_unpack};

size_t pn_iq3_s_scratch_avx2(size_t cols, size_t columns);
size_t pn_iq3_s_scratch_avx512(size_t cols, size_t columns);
pn_status pn_iq3_s_matmul_avx2(const pn_matmul_args *args);
pn_status pn_iq3_s_matmul_avx512(const pn_matmul_args *args);
pn_status pn_iq3_s_fast_avx2(const pn_matmul_args *args);
pn_status pn_iq3_s_fast_avx512(const pn_matmul_args *args);

#endif

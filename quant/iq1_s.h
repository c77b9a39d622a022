/* iq1_s: 256 elements in 50 bytes: eight at a time from a code book of 2048 of -1, 0, 1, x = d * (2 scale + 1) *
 * (element + delta); for each 32 a scale of 3 bits and a delta of 1/8 or -1/8. Codes are 8 * (element + delta).
 * What its files share: the block, its unpacker and the kernels.
 *
 *   byte   0 1    2 ... 33                             34 ...                                               49
 *          d      qs: low bits of the index            qh: 16 bits for each 32 elements, the lowest first:
 *          half   for each 8 elements                  4 x 3 high bits of indices, scale, 1 if delta is negative
 */
#ifndef PN_QUANT_IQ1_S_H
#define PN_QUANT_IQ1_S_H

#include <pantheon/kit/tile_c.h>
#include "iq_books.h"

#define PN_IQ1_S_ELEMS 256

typedef struct pn_iq1_s_block {
    uint8_t d[2];
    uint8_t qs[32];
    uint8_t qh[8][2];
} pn_iq1_s_block;
_Static_assert(sizeof(pn_iq1_s_block) == 50, "published size of an iq1_s block");

extern const uint64_t pn_iq1_grid[2048];

PN_UNUSED static inline void pn_iq1_s_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_iq1_s_block *b = (const pn_iq1_s_block *)block;
    const float d = pn_get_half(b->d) * 0.125f;
    for (size_t g = 0; g < 8; g++) {
        const unsigned qh = pn_get16(b->qh[g]);
        uint64_t codes[4];
        for (size_t i = 0; i < 4; i++)
            codes[i] = pn_iq1_codes(pn_iq1_grid[b->qs[4 * g + i] | (qh >> 3 * i & 7) << 8], qh >> 15);
        out->d[g] = d * (float)(2 * (qh >> 12 & 7) + 1);
        pn_iq_put(codes, PN_IQ1_BIAS, out->code + 32 * g);
    }
}

static const pn_block_type iq1_s_block = {sizeof(pn_iq1_s_block), PN_IQ1_S_ELEMS, 0, 0, pn_iq1_s_unpack};

size_t pn_iq1_s_scratch_avx2(size_t cols, size_t columns);
size_t pn_iq1_s_scratch_avx512(size_t cols, size_t columns);
pn_status pn_iq1_s_matmul_avx2(const pn_matmul_args *args);
pn_status pn_iq1_s_matmul_avx512(const pn_matmul_args *args);
pn_status pn_iq1_s_fast_avx2(const pn_matmul_args *args);
pn_status pn_iq1_s_fast_avx512(const pn_matmul_args *args);

#endif

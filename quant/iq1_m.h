/* iq1_m: 256 elements in 56 bytes: eight at a time from a code book of 2048 of -1, 0, 1, x = d * (2 scale + 1) *
 * (element + delta); a scale of 3 bits for each 16, a delta of 1/8 or -1/8 for each 8. Codes are 8 * (element + delta).
 * What its files share: the block, its unpacker and the kernels.
 *
 *   byte   0 ... 31                    32 ... 47                    48 ...                                      55
 *          qs: low bits of the index   qh: 4 bits for each 8        scales: four numbers of 16 bits, the lowest
 *          for each 8 elements         elements, the first low      first: 4 x 3 bits of scales, 4 bits of d (half),
 *                                                                   whose lowest are in the first number
 *   qh: 3 high bits of the index, 1 if delta is negative
 */
#ifndef PN_QUANT_IQ1_M_H
#define PN_QUANT_IQ1_M_H

#include <pantheon/kit/tile_c.h>
#include "iq_books.h"

#define PN_IQ1_M_ELEMS 256

typedef struct pn_iq1_m_block {
    uint8_t qs[32], qh[16];
    uint8_t scales[4][2];
} pn_iq1_m_block;
_Static_assert(sizeof(pn_iq1_m_block) == 56, "published size of an iq1_m block");

extern const uint64_t pn_iq1_grid[2048];

PN_UNUSED static inline void pn_iq1_m_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_iq1_m_block *b = (const pn_iq1_m_block *)block;
    unsigned scales[4], half = 0;
    for (size_t i = 0; i < 4; i++) {
        scales[i] = pn_get16(b->scales[i]);
        half |= scales[i] >> 12 << 4 * i;
    }
    const float d = pn_half_to_float((uint16_t)half) * 0.125f;
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) out->d[4 * i + k] = d * (float)(2 * (scales[i] >> 3 * k & 7) + 1);
    for (size_t g = 0; g < 8; g++) {
        const unsigned qh = b->qh[2 * g] | (unsigned)b->qh[2 * g + 1] << 8;
        uint64_t codes[4];
        for (size_t i = 0; i < 4; i++) {
            const unsigned high = qh >> 4 * i;
            codes[i] = pn_iq1_codes(pn_iq1_grid[b->qs[4 * g + i] | (high & 7) << 8], high >> 3 & 1);
        }
        pn_iq_put(codes, PN_IQ1_BIAS, out->code + 32 * g);
    }
}

static const pn_block_type iq1_m_block = {sizeof(pn_iq1_m_block), PN_IQ1_M_ELEMS, 1, 0, pn_iq1_m_unpack};

size_t pn_iq1_m_scratch_avx2(size_t cols, size_t columns);
size_t pn_iq1_m_scratch_avx512(size_t cols, size_t columns);
pn_status pn_iq1_m_matmul_avx2(const pn_matmul_args *args);
pn_status pn_iq1_m_matmul_avx512(const pn_matmul_args *args);
pn_status pn_iq1_m_fast_avx2(const pn_matmul_args *args);
pn_status pn_iq1_m_fast_avx512(const pn_matmul_args *args);

#endif

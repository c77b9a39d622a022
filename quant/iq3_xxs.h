/* iq3_xxs: 256 elements in 98 bytes: four at a time from a code book of 256, with signs: x is d * (2 scale + 1) / 4
 * times the element; a scale of 4 bits for each 32.
 * What its files share: the block, its unpacker and the kernels.
 *
 *   byte   0 1    2 ... 65                   66 ...                                                    97
 *          d      qs: index for each 4       signs: 32 bits for each 32 elements, the lowest first:
 *          half   elements                   4 x 7 signs (iq_books.h), scale
 */
#ifndef PN_QUANT_IQ3_XXS_H
#define PN_QUANT_IQ3_XXS_H

#include <pantheon/kit/tile_c.h>
#include "iq_books.h"

#define PN_IQ3_XXS_ELEMS 256

typedef struct pn_iq3_xxs_block {
    uint8_t d[2];
    uint8_t qs[64];
    uint8_t signs[8][4];
} pn_iq3_xxs_block;
_Static_assert(sizeof(pn_iq3_xxs_block) == 98, "published size of an iq3_xxs block");

extern const uint32_t pn_iq3_xxs_grid[256];

PN_UNUSED static inline void pn_iq3_xxs_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_iq3_xxs_block *b = (const pn_iq3_xxs_block *)block;
    const float d = pn_get_half(b->d) * 0.25f;
    for (size_t g = 0; g < 8; g++) {
        const uint32_t signs = pn_get32(b->signs[g]);
        uint64_t codes[4];
        for (size_t i = 0; i < 4; i++) {
            const uint8_t *index = b->qs + 8 * g + 2 * i;
            codes[i] = pn_iq3_xxs_grid[index[0]] | (uint64_t)pn_iq3_xxs_grid[index[1]] << 32;
        }
        out->d[g] = d * (float)(2 * (signs >> 28) + 1);
        pn_iq_put_signed(codes, pn_iq_signs(signs), out->code + 32 * g);
    }
}

static const pn_block_type iq3_xxs_block = {sizeof(pn_iq3_xxs_block), PN_IQ3_XXS_ELEMS, 0, 0, pn_iq3_xxs_unpack};

size_t pn_iq3_xxs_scratch_avx2(size_t cols, size_t columns);
size_t pn_iq3_xxs_scratch_avx512(size_t cols, size_t columns);
pn_status pn_iq3_xxs_matmul_avx2(const pn_matmul_args *args);
pn_status pn_iq3_xxs_matmul_avx512(const pn_matmul_args *args);
pn_status pn_iq3_xxs_fast_avx2(const pn_matmul_args *args);
pn_status pn_iq3_xxs_fast_avx512(const pn_matmul_args *args);

#endif

/* Rows of a weight as the unpackers of types take them: 32-bit words, one row in each lane. Include a vector layer
 * first.
 *
 * The bytes come from memory, or from words that the loop around a type read already (tile_i16.h); a type cannot tell.
 */
#ifndef PANTHEON_KIT_WORDS_H
#define PANTHEON_KIT_WORDS_H

#include <pantheon/kit/types.h>

#ifndef PN_LANES
#error "include pantheon/kit/simd_avx512.h or simd_avx2.h before words.h"
#endif

/* Rows of a weight, `stride` bytes apart; row number i is lane i. */
typedef struct pn_rows {
    const uint8_t *base;
    size_t stride;
    const pn_vi *words; /* not NULL: what was read of them already, 4 bytes a vector, in place of memory */
} pn_rows;

/* The word of each row at `offset` of what was read; the bits are moved where it lies across two vectors. */
PN_INLINE pn_vi pn_v_read_word(const pn_vi *words, size_t offset)
{
    const pn_vi *w = words + offset / 4;
    switch (offset % 4) {
    case 0: return w[0];
    case 1: return pn_v_or(pn_v_srl32(w[0], 8), pn_v_sll32(w[1], 24));
    case 2: return pn_v_across(w[0], w[1]);
    default: return pn_v_or(pn_v_srl32(w[0], 24), pn_v_sll32(w[1], 8));
    }
}

/* w[i] = 32-bit word number i of the 16 bytes at `offset` of every row. */
PN_INLINE void pn_v_words(pn_rows rows, size_t offset, pn_vi w[4])
{
    if (!rows.words) {
        pn_v_load_words(rows.base + offset, rows.stride, w);
        return;
    }
    PN_UNROLL
    for (size_t i = 0; i < 4; i++) w[i] = pn_v_read_word(rows.words, offset + 4 * i);
}

/* The same for 32 bytes. */
PN_INLINE void pn_v_words8(pn_rows rows, size_t offset, pn_vi w[8])
{
    if (!rows.words) {
        pn_v_load_words8(rows.base + offset, rows.stride, w);
        return;
    }
    pn_v_words(rows, offset, w);
    pn_v_words(rows, offset + 16, w + 4);
}

/* The first word of the 16 bytes at `offset` alone; all 16 are read if they come from memory. */
PN_INLINE pn_vi pn_v_word(pn_rows rows, size_t offset)
{
    pn_vi w[4];
    if (rows.words) return pn_v_read_word(rows.words, offset);
    pn_v_words(rows, offset, w);
    return w[0];
}

#endif

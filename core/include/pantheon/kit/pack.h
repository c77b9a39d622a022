/* Layouts of the packings that the core brings: what a kernel finds in pn_matmul_args.packed.
 *
 * "f32" (PN_EXACT): float x[cols], zero-filled to a multiple of 16 floats.
 *
 * "i16" (PN_EXACT): 16-bit integers with one scale per chunk of 256 elements: x[k] ~ scale[k / 256] * q[k], |q| <=
 * 32767. The column is padded with zeros to a multiple of 32 elements. Sections, each beginning at a multiple of 64
 * bytes, in this order:
 *   float   scale[ceil(cols / 256)]     largest |x| of the chunk / 32767 (0 for a chunk below PN_I16_TINY everywhere)
 *   float   sum32[ceil(cols / 32)]      sum of q over each 32 elements (exact: below 2^24)
 *   float   sum16[2 * ceil(cols / 32)]  the same over each 16
 *   int16_t q[32 * ceil(cols / 32)]     in each group of four the order is 0, 2, 1, 3: a 32-bit word of four packed
 *                                       bytes b0..b3 splits by masks and shifts of 16-bit lanes into (b0, b2) and
 *                                       (b1, b3), which meet their partners
 *   int8_t  high[32 * ceil(cols / 32)]  the same numbers, in their own order, as 256 * high + low ...
 *   uint8_t low[32 * ceil(cols / 32)]   ... for instructions that multiply bytes
 * |sum of 32 products w * q| < 2^31 for |w| <= 255: integer dot parts over a block of 32 are exact in 32 bits. A float
 * sum runs over blocks in ascending order within a chunk, then over chunks in ascending order, each chunk's part times
 * its scale.
 *
 * "i8" (PN_FAST): 8-bit integers with one scale per 32 elements: x[k] ~ scale[k / 32] * q[k], |q| <= 127. A column is
 * ceil(cols / 256) records pn_i8_chunk, zero behind its end, and zero bytes to a multiple of 64. What belongs together
 * lies together, so a kernel needs one address per column; and as a record is no power of two long, the columns of a
 * tile do not compete for the same lines of a cache.
 */
#ifndef PANTHEON_KIT_PACK_H
#define PANTHEON_KIT_PACK_H

#include <pantheon/kit/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PN_I16_CHUNK 256
#define PN_I16_TINY 1e-30f

/* Where the sections of a packed "i16" column of `cols` elements begin, in bytes. */
typedef struct pn_i16_layout {
    size_t n32;  /* blocks of 32 */
    size_t n256; /* chunks of 256, the last may be shorter */
    size_t scale, sum32, sum16, q, high, low;
    size_t bytes; /* of the whole column, a multiple of 64 */
} pn_i16_layout;

PN_UNUSED static inline pn_i16_layout pn_i16_layout_of(size_t cols)
{
    pn_i16_layout l;
    l.n32 = (cols + 31) / 32;
    l.n256 = (cols + PN_I16_CHUNK - 1) / PN_I16_CHUNK;
    l.scale = 0;
    l.sum32 = (l.n256 * 4 + 63) & ~(size_t)63;
    l.sum16 = l.sum32 + ((l.n32 * 4 + 63) & ~(size_t)63);
    l.q = l.sum16 + ((l.n32 * 8 + 63) & ~(size_t)63);
    l.high = l.q + l.n32 * 64;
    l.low = l.high + ((l.n32 * 32 + 63) & ~(size_t)63);
    l.bytes = l.low + ((l.n32 * 32 + 63) & ~(size_t)63);
    return l;
}

/* 256 elements of a packed "i8" column. */
typedef struct pn_i8_chunk {
    int8_t q[256];     /* in their own order */
    float scale[8];    /* of each 32; 0 where all are below PN_I8_TINY, NaN where one is not finite (q is 0 then) */
    float sum32[8];    /* scale times the sum of q over each 32 elements, rounded once: what minima multiply */
    float sum16[16];   /* the same over each 16 */
    int32_t isum32[8]; /* the sums of q themselves: what makes up for codes that were made unsigned */
    int32_t isum16[16];
} pn_i8_chunk;

#define PN_I8_TINY 1e-30f

/* Bytes of a packed "i8" column of `cols` elements, a multiple of 64. */
PN_UNUSED static inline size_t pn_i8_bytes(size_t cols)
{
    return ((cols + 255) / 256 * sizeof(pn_i8_chunk) + 63) & ~(size_t)63;
}

/* Place of element i (0..3) of a group of four. */
PN_UNUSED static inline size_t pn_i16_place(size_t k)
{
    size_t i = k & 3;
    return (k & ~(size_t)3) | (i == 1 ? 2 : i == 2 ? 1 : i);
}

#ifdef __cplusplus
}
#endif
#endif

/* Vector kernels on the packings "i16" and "i8" for any type that unpacks a block in C (pn_block_type, tile_c.h): for
 * types that are too odd, or too rare, for unpackers in vectors (pn_tile_type, tile_i16.h).
 *
 * Include a vector layer first. Blocks are unpacked row by row, 256 elements at a time, by the function that the kernel
 * in C uses, compiled here for this instruction set; the codes are transposed into the tile of tile_i16.h or tile_i8.h,
 * and its loop multiplies the tile with all columns, with one column too: the results are those of that loop.
 *
 *   rows in the weight        staged, a pn_codes each      transposed: pairs of codes of PN_LANES rows
 *   r0  block block ..   ->   c0 c1 c2 c3 ..  d0 d1 ..  ->  [c0 c2 of r0 r1 ..] [c1 c3 of r0 r1 ..] ..  [d0 of r0 ..]
 *
 * Rows that do not fill a tile are staged as zeros, so no byte outside the weight's rows is read.
 */
#ifndef PANTHEON_KIT_TILE_ROWS_H
#define PANTHEON_KIT_TILE_ROWS_H

#include <pantheon/kit/tile_c.h>
#include <pantheon/kit/tile_i8.h>

/* Body of pn_kernel.scratch_bytes: the tile, float total[columns][PN_TILE_ROWS], and staged rows. */
PN_INLINE size_t pn_tile_rows_scratch_bytes(size_t columns)
{
    return sizeof(pn_tile_scratch) + columns * PN_TILE_ROWS * sizeof(float) + PN_LANES * sizeof(pn_codes);
}

/* `units` units of 32 elements of one row, from the block at `block`. */
PN_INLINE void pn_tile_rows_unpack(const pn_block_type *t, const uint8_t *block, size_t units, pn_codes *out)
{
    const size_t scales = t->block_elems / (t->fine ? 16 : 32);
    if (t->block_elems == PN_I16_CHUNK) {
        t->unpack(block, out);
        return;
    }
    for (size_t k = 0, g = 0; k < units * 32; k += t->block_elems, g += scales, block += t->block_bytes) {
        pn_codes part;
        t->unpack(block, &part);
        memcpy(out->code + k, part.code, t->block_elems * sizeof *part.code);
        memcpy(out->d + g, part.d, scales * sizeof *part.d);
        if (t->minimum) memcpy(out->m + g, part.m, scales * sizeof *part.m);
    }
}

/* `n` floats at `offset` of each staged row; rounded up to a multiple of four, which pn_codes has room for. */
PN_INLINE void pn_tile_rows_scales(pn_rows rows, size_t offset, size_t n, size_t group, float (*out)[2][PN_LANES])
{
    for (size_t i = 0; i < n; i += 4) {
        pn_vi x[4];
        pn_v_words(rows, offset + i * sizeof(float), x);
        PN_UNROLL
        for (size_t j = 0; j < 4; j++) pn_v_store(out[i + j][group], x[j]);
    }
}

/* Pairs of the elements k .. k + 7 of staged rows, as tile_i16.h has them: (0, 1), (2, 3) become (0, 2), (1, 3). */
PN_INLINE void pn_tile_rows_pairs(pn_rows rows, size_t k, pn_vi w[4])
{
    const pn_vi low = pn_v_set32(0x0000ffff), high = pn_v_set32(0xffff0000);
    pn_vi x[4];
    pn_v_words(rows, offsetof(pn_codes, code) + k * sizeof(int16_t), x);
    PN_UNROLL
    for (size_t i = 0; i < 4; i += 2) {
        w[i] = pn_v_or(pn_v_and(x[i], low), pn_v_sll32(x[i + 1], 16));
        w[i + 1] = pn_v_or(pn_v_srl32(x[i], 16), pn_v_and(x[i + 1], high));
    }
}

/* Staged rows to one group of the tile of tile_i16.h. */
PN_INLINE void pn_tile_rows_transpose(const pn_tile_type *t, const pn_codes *stage, size_t units, size_t group,
                                      pn_tile_scratch *s)
{
    const pn_rows rows = {.base = (const uint8_t *)stage, .stride = sizeof *stage};
    const size_t scales = units * (t->fine ? 2 : 1);
    for (size_t k = 0; k < units * 32; k += 8) {
        pn_vi w[4];
        pn_tile_rows_pairs(rows, k, w);
        PN_UNROLL
        for (size_t i = 0; i < 4; i++) pn_v_store(s->w[k / 2 + i][group], w[i]);
    }
    pn_tile_rows_scales(rows, offsetof(pn_codes, d), scales, group, s->d);
    if (t->minimum) pn_tile_rows_scales(rows, offsetof(pn_codes, m), scales, group, s->m);
}

/* The bytes e0 e1 e2 e3 of the pairs (e0, e2) and (e1, e3), as `bytes` of a type has them. */
PN_INLINE pn_vi pn_tile_rows_bytes(const pn_tile_type *t, pn_vi even, pn_vi odd)
{
    const pn_vi x = pn_v_or(pn_v_and(even, pn_v_set32(0x00ff00ff)), pn_v_sll16(odd, 8));
    return !pn_tile_biased(t) || t->least == 0 ? x : pn_v_sub8(x, pn_v_set32((uint32_t)(t->least & 255) * 0x01010101u));
}

/* The same to that of tile_i8.h. */
PN_INLINE void pn_tile_rows_transpose8(const pn_tile_type *t, const pn_codes *stage, size_t units, size_t group,
                                       pn_tile8_scratch *s)
{
    const pn_rows rows = {.base = (const uint8_t *)stage, .stride = sizeof *stage};
    const size_t scales = units * (t->fine ? 2 : 1);
    for (size_t k = 0; k < units * 32; k += 8) {
        pn_vi w[4];
        pn_tile_rows_pairs(rows, k, w);
        pn_v_store(s->w[k / 4][group], pn_tile8_word(t, pn_tile_rows_bytes(t, w[0], w[1])));
        pn_v_store(s->w[k / 4 + 1][group], pn_tile8_word(t, pn_tile_rows_bytes(t, w[2], w[3])));
    }
    pn_tile_rows_scales(rows, offsetof(pn_codes, d), scales, group, s->d);
    if (t->minimum) pn_tile_rows_scales(rows, offsetof(pn_codes, m), scales, group, s->m);
}

/* All tiles; `tile` has what the loop of the packing wants to know, `i8` says which. */
PN_INLINE pn_status pn_tile_rows_run(const pn_matmul_args *a, const pn_block_type *t, const pn_tile_type *tile,
                                     const int i8)
{
    const size_t stride = (size_t)a->weight->row_stride, cols = (size_t)a->weight->cols;
    const size_t chunk_bytes = PN_I16_CHUNK / t->block_elems * t->block_bytes;
    const pn_i16_layout l = pn_i16_layout_of(cols);
    pn_tile_scratch *s = (pn_tile_scratch *)a->scratch;
    float *total = (float *)(s + 1);
    pn_codes *stage = (pn_codes *)(void *)(total + a->columns * PN_TILE_ROWS);

    if (a->scratch_bytes < pn_tile_rows_scratch_bytes(a->columns)) return PN_E_ARGUMENT;
    for (uint64_t r = a->row_begin; r < a->row_end; r += PN_TILE_ROWS) {
        const uint8_t *row = (const uint8_t *)a->weight->data + r * stride;
        const size_t n = a->row_end - r < PN_TILE_ROWS ? (size_t)(a->row_end - r) : PN_TILE_ROWS;
        memset(total, 0, a->columns * PN_TILE_ROWS * sizeof(float));
        for (size_t c = 0; c < l.n256; c++) {
            const size_t units = pn_tile_units(cols, c);
            for (size_t i = 0; i < PN_TILE_ROWS; i++) {
                pn_codes *to = stage + i % PN_LANES;
                if (i < n) pn_tile_rows_unpack(t, row + i * stride + c * chunk_bytes, units, to);
                else memset(to, 0, sizeof *to);
                /* the same part of the next tile's row, wherever that lies */
                pn_tile_prefetch((uintptr_t)row + (PN_TILE_ROWS + i) * stride + c * chunk_bytes, chunk_bytes);
                if (i % PN_LANES != PN_LANES - 1) continue;
                if (i8) pn_tile_rows_transpose8(tile, stage, units, i / PN_LANES, (pn_tile8_scratch *)(void *)s);
                else pn_tile_rows_transpose(tile, stage, units, i / PN_LANES, s);
            }
            if (i8) pn_tile8_chunk_many(a, tile, (pn_tile8_scratch *)(void *)s, c, units, total);
            else pn_tile_chunk_many(a, tile, s, &l, c, units, total);
        }
        for (size_t c = 0; c < a->columns; c++)
            memcpy(a->out + c * a->out_stride + r, total + c * PN_TILE_ROWS, n * sizeof(float));
    }
    return PN_OK;
}

/* Body of pn_kernel.matmul on "i16". */
PN_INLINE pn_status pn_tile_rows_matmul(const pn_matmul_args *a, const pn_block_type *t)
{
    const pn_tile_type tile = {.fine = t->fine, .minimum = t->minimum};
    return pn_tile_rows_run(a, t, &tile, 0);
}

/* The same on "i8", for codes of least .. most, which must be constants (see tile_i8.h). */
PN_INLINE pn_status pn_tile_rows_i8_matmul(const pn_matmul_args *a, const pn_block_type *t, int least, int most)
{
    const pn_tile_type tile = {.fine = t->fine, .minimum = t->minimum, .least = least, .most = most};
    return pn_tile_rows_run(a, t, &tile, 1);
}

#endif

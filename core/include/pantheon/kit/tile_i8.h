/* The tile loop of integer kernels on the packing "i8" (kit/pack.h): tile_i16.h with 8-bit activations, for the same
 * types, by the same two functions of pn_tile_type. Include a vector layer first.
 *
 * Words of four codes e0 e1 e2 e3 meet the activations in their own order. The multiply-add takes bytes without a sign
 * on the side of the weights:
 *
 *   biased   the bytes are code - least, 0 .. most - least, and a sum starts with least * (sum of q); codes that span
 *            more than 127 are made code + 128, and least is -128: AVX-512 alone;
 *   signed   such codes are kept, -128 .. 127, and the sign of each goes over to its activation: AVX2.
 *
 * Nothing saturates. AVX-512 multiplies and adds in 32 bits. AVX2 adds products in pairs, in 16 bits that saturate at
 * 32767: biased bytes are at most 127 there, and 2 * 127 * 127 = 32258; magnitudes of signed ones at most 128, and
 * 2 * 128 * 127 = 32512. If the bytes are smaller, as many pairs are added in 16 bits as stay below
 * (pn_tile8_run).
 *
 * One column and many compute, per (row, column), the same chain over the groups of 32 (or 16) elements that share a
 * scale of the weight, ascending from the first element of the row to the last:
 *   acc = fma(d * scale, (float)isum, acc)      and with a minimum also      acc = fma(m, sum, acc)
 * where isum is exact (|isum| <= 32 * 255 * 127 < 2^24) and sum is the packing's, with its scale in it.
 */
#ifndef PANTHEON_KIT_TILE_I8_H
#define PANTHEON_KIT_TILE_I8_H

#include <pantheon/kit/tile_i16.h>

/* Scratch of many columns, laid out as in tile_i16.h, whose pn_tile_scratch_bytes is enough. */
typedef struct pn_tile8_scratch {
    int32_t w[8 * 8][2][PN_LANES]; /* word of four elements, row group, row */
    float d[16][2][PN_LANES];
    float m[16][2][PN_LANES];
} pn_tile8_scratch;

_Static_assert(sizeof(pn_tile8_scratch) <= sizeof(pn_tile_scratch), "scratch of tile_i16.h is enough");

/* Whether the bytes are free of a sign, and what 0 means then. */
PN_INLINE int pn_tile8_biased(const pn_tile_type *t)
{
    return PN_LANES == 16 || pn_tile_biased(t);
}
PN_INLINE int pn_tile8_least(const pn_tile_type *t)
{
    return pn_tile_biased(t) ? t->least : -128;
}

/* Bytes as `bytes` of the type unpacks them, as these loops want them. */
PN_INLINE pn_vi pn_tile8_word(const pn_tile_type *t, pn_vi bytes)
{
    return pn_tile8_biased(t) && !pn_tile_biased(t) ? pn_v_xor(bytes, pn_v_set32(0x80808080)) : bytes;
}

/* What the sum of a group starts with; `isum` is that of its activations. */
PN_INLINE pn_vi pn_tile8_start(const pn_tile_type *t, const uint8_t *isum)
{
    int32_t sum;
    if (!pn_tile8_biased(t) || t->least == 0) return pn_v_zero();
    memcpy(&sum, isum, sizeof sum);
    return pn_v_set32((uint32_t)(pn_tile8_least(t) * sum));
}

/* acc + the four products in each lane, for one word. */
PN_INLINE pn_vi pn_tile8_dot(const pn_tile_type *t, pn_vi acc, pn_vi w, pn_vi x)
{
#if PN_LANES == 16
    (void)t;
    return pn_v_dot8(acc, w, x);
#else
    return pn_v_widen16(acc, pn_tile8_biased(t) ? pn_v_pairs8(w, x) : pn_v_pairs8(pn_v_abs8(w), pn_v_sign8(x, w)));
#endif
}

/* ---- one column -------------------------------------------------------------------------------------------------- */

/* pn_tile_use of 8-bit activations; x->q is the chunk's record. */
PN_INLINE pn_vf pn_tile8_use(const pn_tile_type *t, const pn_tile_x *x, size_t unit, const pn_vi *w, const pn_vf *d,
                             const pn_vf *m, pn_vf acc)
{
    const size_t groups = t->fine ? 2 : 1;
    const uint8_t *scale = x->q + offsetof(pn_i8_chunk, scale);
    const uint8_t *sum = x->q + (t->fine ? offsetof(pn_i8_chunk, sum16) : offsetof(pn_i8_chunk, sum32));
    const uint8_t *isum = x->q + (t->fine ? offsetof(pn_i8_chunk, isum16) : offsetof(pn_i8_chunk, isum32));
    PN_UNROLL
    for (size_t i = 0; i < t->span; i++) {
        const size_t u = unit + i;
        pn_vi p[2];
        p[0] = pn_tile8_start(t, isum + u * groups * 4);
        p[1] = t->fine ? pn_tile8_start(t, isum + (u * groups + 1) * 4) : pn_v_zero();
        PN_UNROLL
        for (size_t j = 0; j < 8; j++)
            p[j / 4] = pn_tile8_dot(t, p[j / 4], pn_tile8_word(t, w[8 * i + j]), pn_v_bcast32(x->q + u * 32 + 4 * j));
        if (!t->fine) p[0] = pn_v_add32(p[0], p[1]);
        const pn_vf f = pn_v_bits_f(pn_v_bcast32(scale + u * 4));
        PN_UNROLL
        for (size_t g = 0; g < groups; g++) {
            acc = pn_v_fma(pn_v_mul(d[i * groups + g], f), pn_v_float(p[g]), acc);
            if (t->minimum)
                acc = pn_v_fma(m[i * groups + g], pn_v_bits_f(pn_v_bcast32(sum + (u * groups + g) * 4)), acc);
        }
    }
    return acc;
}

/* pn_tile_sum of 8-bit activations. */
PN_INLINE pn_vf pn_tile8_sum(const pn_tile_type *t, const pn_tile_part *part, const pn_tile_x *x, size_t chunk,
                             pn_vf total, pn_tile_unpacked *s)
{
    const pn_tile_x y = {.q = x->q + chunk * sizeof(pn_i8_chunk)};
    return pn_tile_chunk(t, part, &y, pn_tile8_use, total, s);
}

/* ---- many columns ------------------------------------------------------------------------------------------------ */

PN_INLINE void pn_tile8_store(const pn_tile_type *t, pn_vi bytes, size_t word, size_t group, int32_t (*w)[2][PN_LANES])
{
    pn_v_store(w[word][group], pn_tile8_word(t, bytes));
}

PN_INLINE void pn_tile8_unpack(const pn_tile_type *t, pn_rows rows, size_t units, size_t group, pn_tile8_scratch *s)
{
    pn_tile_unpack_to(t, rows, units, group, s->d, s->m, s->w, pn_tile8_store);
}

#if PN_LANES == 16
/* isum[nc][2] += the products of a group of `words` words; the columns' activations begin at q. */
PN_INLINE void pn_tile8_group(const pn_tile_type *t, const int32_t (*w)[2][PN_LANES], const uint8_t *q, size_t stride,
                              size_t words, size_t nc, pn_vi isum[PN_TILE_COLUMNS][2])
{
    PN_UNROLL
    for (size_t p = 0; p < words; p++) {
        const pn_vi w0 = pn_v_load(w[p][0]), w1 = pn_v_load(w[p][1]);
        PN_UNROLL
        for (size_t c = 0; c < nc; c++) {
            const pn_vi x = pn_v_bcast32(q + c * stride + p * 4);
            isum[c][0] = pn_tile8_dot(t, isum[c][0], w0, x);
            isum[c][1] = pn_tile8_dot(t, isum[c][1], w1, x);
        }
    }
}
#else
/* Pairs of products of one word that can be added in 16 bits. */
PN_INLINE size_t pn_tile8_run(const pn_tile_type *t)
{
    return pn_tile8_biased(t) ? pn_tile_run(2 * 127 * (t->most - t->least), t->fine ? 4 : 8) : 1;
}

/* The same, a column at a time: 16-bit sums of a run of words, then their pairs. */
PN_INLINE void pn_tile8_group(const pn_tile_type *t, const int32_t (*w)[2][PN_LANES], const uint8_t *q, size_t stride,
                              size_t words, size_t nc, pn_vi isum[PN_TILE_COLUMNS][2])
{
    const size_t run = pn_tile8_run(t);
    if (run == 1) {
        PN_UNROLL
        for (size_t p = 0; p < words; p++) {
            const pn_vi w0 = pn_v_load(w[p][0]), w1 = pn_v_load(w[p][1]);
            PN_UNROLL
            for (size_t c = 0; c < nc; c++) {
                const pn_vi x = pn_v_bcast32(q + c * stride + p * 4);
                isum[c][0] = pn_tile8_dot(t, isum[c][0], w0, x);
                isum[c][1] = pn_tile8_dot(t, isum[c][1], w1, x);
            }
        }
        return;
    }
    PN_UNROLL
    for (size_t p = 0; p < words; p += run) {
        pn_vi part[PN_TILE_COLUMNS][2];
        PN_UNROLL
        for (size_t j = 0; j < run; j++) {
            const pn_vi w0 = pn_v_load(w[p + j][0]), w1 = pn_v_load(w[p + j][1]);
            PN_UNROLL
            for (size_t c = 0; c < nc; c++) {
                const pn_vi x = pn_v_bcast32(q + c * stride + (p + j) * 4);
                part[c][0] = j ? pn_v_add_pairs8(part[c][0], w0, x) : pn_v_pairs8(w0, x);
                part[c][1] = j ? pn_v_add_pairs8(part[c][1], w1, x) : pn_v_pairs8(w1, x);
            }
        }
        PN_UNROLL
        for (size_t c = 0; c < nc; c++) {
            isum[c][0] = pn_v_widen16(isum[c][0], part[c][0]);
            isum[c][1] = pn_v_widen16(isum[c][1], part[c][1]);
        }
    }
}
#endif

/* `nc` columns by the unpacked chunk: their records of it begin at x and lie `stride` bytes apart; `next` is where the
 * columns of the next tile have theirs. total[nc][PN_TILE_ROWS] goes on. */
PN_INLINE void pn_tile8_columns(const pn_tile_type *t, const pn_tile8_scratch *s, size_t units, const uint8_t *x,
                                size_t stride, uintptr_t next, float *total, const size_t nc)
{
    const size_t groups = t->fine ? 2 : 1, words = 8 / groups;
    const uint8_t *sum = x + (t->fine ? offsetof(pn_i8_chunk, sum16) : offsetof(pn_i8_chunk, sum32));
    const uint8_t *isums = x + (t->fine ? offsetof(pn_i8_chunk, isum16) : offsetof(pn_i8_chunk, isum32));
    pn_vf acc[PN_TILE_COLUMNS][2];
    PN_UNROLL
    for (size_t c = 0; c < nc; c++) {
        acc[c][0] = pn_v_load_f(total + c * PN_TILE_ROWS);
        acc[c][1] = pn_v_load_f(total + c * PN_TILE_ROWS + PN_LANES);
    }
    for (size_t i = 0; i < units * groups; i++) {
        const uint8_t *scale = x + offsetof(pn_i8_chunk, scale) + i / groups * 4;
        pn_vi isum[PN_TILE_COLUMNS][2];
        PN_UNROLL
        for (size_t c = 0; c < nc; c++) {
            isum[c][0] = isum[c][1] = pn_tile8_start(t, isums + c * stride + i * 4);
            __builtin_prefetch((const void *)(next + c * stride + i * (sizeof(pn_i8_chunk) / 8 / groups)), 0, 3);
        }
        pn_tile8_group(t, s->w + i * words, x + i * words * 4, stride, words, nc, isum);
        PN_UNROLL
        for (size_t c = 0; c < nc; c++) {
            const pn_vf f = pn_v_bits_f(pn_v_bcast32(scale + c * stride));
            acc[c][0] = pn_v_fma(pn_v_mul(pn_v_load_f(s->d[i][0]), f), pn_v_float(isum[c][0]), acc[c][0]);
            acc[c][1] = pn_v_fma(pn_v_mul(pn_v_load_f(s->d[i][1]), f), pn_v_float(isum[c][1]), acc[c][1]);
            if (t->minimum) {
                const pn_vf y = pn_v_bits_f(pn_v_bcast32(sum + c * stride + i * 4));
                acc[c][0] = pn_v_fma(pn_v_load_f(s->m[i][0]), y, acc[c][0]);
                acc[c][1] = pn_v_fma(pn_v_load_f(s->m[i][1]), y, acc[c][1]);
            }
        }
    }
    PN_UNROLL
    for (size_t c = 0; c < nc; c++) {
        pn_v_store_f(total + c * PN_TILE_ROWS, acc[c][0]);
        pn_v_store_f(total + c * PN_TILE_ROWS + PN_LANES, acc[c][1]);
    }
}

/* All columns by the unpacked chunk, in tiles of nearly equal size. */
PN_INLINE void pn_tile8_chunk_many(const pn_matmul_args *a, const pn_tile_type *t, const pn_tile8_scratch *s,
                                   size_t chunk, size_t units, float *total)
{
    const size_t tiles = (a->columns + PN_TILE_COLUMNS - 1) / PN_TILE_COLUMNS, stride = a->packed_stride;
    for (size_t i = 0, c = 0, nc; i < tiles; i++, c += nc) {
        const uint8_t *x = (const uint8_t *)a->packed + c * stride + chunk * sizeof(pn_i8_chunk);
        float *o = total + c * PN_TILE_ROWS;
        nc = (a->columns - c + tiles - i - 1) / (tiles - i);
        const uintptr_t next = (uintptr_t)x + (i + 1 < tiles ? nc * stride : 0);
        switch (nc) {
        case 1: pn_tile8_columns(t, s, units, x, stride, next, o, 1); break;
        case 2: pn_tile8_columns(t, s, units, x, stride, next, o, 2); break;
        case 3: pn_tile8_columns(t, s, units, x, stride, next, o, 3); break;
        case 4: pn_tile8_columns(t, s, units, x, stride, next, o, 4); break;
#if PN_TILE_COLUMNS >= 5
        case 5: pn_tile8_columns(t, s, units, x, stride, next, o, 5); break;
#endif
#if PN_TILE_COLUMNS >= 6
        case 6: pn_tile8_columns(t, s, units, x, stride, next, o, 6); break;
#endif
#if PN_TILE_COLUMNS >= 7
        case 7: pn_tile8_columns(t, s, units, x, stride, next, o, 7); break;
#endif
        default: break;
        }
    }
}

PN_APART void pn_tile8_many_columns(const pn_matmul_args *a, const pn_tile_type *t)
{
    const size_t cols = (size_t)a->weight->cols;
    const size_t chunks = (cols + PN_I16_CHUNK - 1) / PN_I16_CHUNK;
    pn_tile8_scratch *s = (pn_tile8_scratch *)a->scratch;
    float *total = (float *)(s + 1);
    uint8_t *stage = (uint8_t *)(total + a->columns * PN_TILE_ROWS);

    for (uint64_t r = a->row_begin; r < a->row_end; r += PN_TILE_ROWS) {
        const pn_rows all = pn_tile_from(a, r);
        const size_t n = a->row_end - r < PN_TILE_ROWS ? (size_t)(a->row_end - r) : PN_TILE_ROWS;
        memset(total, 0, a->columns * PN_TILE_ROWS * sizeof(float));
        for (size_t c = 0; c < chunks; c++) {
            const size_t units = pn_tile_units(cols, c);
            const pn_rows rows = pn_tile_stage(t, all, n, PN_TILE_ROWS, c, units, stage);
            pn_tile8_unpack(t, rows, units, 0, s);
            pn_tile8_unpack(t, pn_tile_second(rows), units, 1, s);
            pn_tile8_chunk_many(a, t, s, c, units, total);
        }
        for (size_t c = 0; c < a->columns; c++)
            memcpy(a->out + c * a->out_stride + r, total + c * PN_TILE_ROWS, n * sizeof(float));
    }
}

/* Body of pn_kernel.matmul. */
PN_INLINE pn_status pn_tile_i8_matmul(const pn_matmul_args *a, const pn_tile_type *t)
{
    if (a->scratch_bytes < pn_tile_scratch_bytes(t, (size_t)a->weight->cols, a->columns)) return PN_E_ARGUMENT;
    const pn_tile_x x = {.q = (const uint8_t *)a->packed};
    if (a->columns == 1) pn_tile_walk(a, t, &x, (uint8_t *)a->scratch, pn_tile8_sum);
    else pn_tile8_many_columns(a, t);
    return PN_OK;
}

#endif

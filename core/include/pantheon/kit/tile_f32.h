/* The tile loop of floating-point kernels on the packing "f32", written once for every float type and vector width.
 * Include a vector layer first (simd_avx512.h or simd_avx2.h).
 *
 * Per (row, column): in segments of PN_F32_SEGMENT elements lane j sums elements k with k mod PN_LANES = j, ascending,
 * by fused multiply-add; the lanes of a segment are added in one fixed tree; the segments ascending. Register tiles of
 * 4 rows by up to PN_TILE_F32_COLUMNS columns keep that order, so a result depends on its row and its column alone.
 */
#ifndef PANTHEON_KIT_TILE_F32_H
#define PANTHEON_KIT_TILE_F32_H

#include <pantheon/plugin.h>

#ifndef PN_LANES
#error "include pantheon/kit/simd_avx512.h or simd_avx2.h before tile_f32.h"
#endif

#define PN_F32_SEGMENT 1024
#define PN_F32_ROWS 64 /* rows whose segment stays in the cache while all columns pass */
#define PN_F32_STREAMS 8 /* rows at a time with one column */

/* How elements become floats. A constant that the compiler sees through; the functions must be PN_INLINE. */
typedef struct pn_float_type {
    size_t bytes;                                /* of an element */
    pn_vf (*load)(const uint8_t *p);             /* PN_LANES elements */
    pn_vf (*load_n)(const uint8_t *p, size_t n); /* n < PN_LANES elements, zero behind; reads no more than these */
} pn_float_type;

/* `nr` rows by `nc` columns over one segment of n elements; row number i is `apart` elements of `out` behind the one
 * before it. */
PN_INLINE void pn_f32_tile(const pn_float_type *t, const uint8_t *row, size_t row_stride, const uint8_t *x,
                           size_t x_stride, size_t n, int first, float *out, size_t out_stride, size_t apart,
                           const size_t nr, const size_t nc)
{
    pn_vf acc[PN_F32_STREAMS][PN_TILE_F32_COLUMNS];
    size_t k = 0;
    PN_UNROLL
    for (size_t r = 0; r < nr; r++) PN_UNROLL
    for (size_t c = 0; c < nc; c++) acc[r][c] = pn_v_zero_f();
    for (; k + PN_LANES <= n; k += PN_LANES) {
        pn_vf b[PN_TILE_F32_COLUMNS];
        PN_UNROLL
        for (size_t c = 0; c < nc; c++) b[c] = pn_v_loadu_f(x + c * x_stride + k * sizeof(float));
        PN_UNROLL
        for (size_t r = 0; r < nr; r++) {
            const pn_vf w = t->load(row + r * row_stride + k * t->bytes);
            PN_UNROLL
            for (size_t c = 0; c < nc; c++) acc[r][c] = pn_v_fma(w, b[c], acc[r][c]);
        }
    }
    if (k < n) PN_UNROLL
    for (size_t r = 0; r < nr; r++) {
        const pn_vf w = t->load_n(row + r * row_stride + k * t->bytes, n - k);
        PN_UNROLL
        for (size_t c = 0; c < nc; c++) /* a packed column is zero-filled to a multiple of 16 */
            acc[r][c] = pn_v_fma(w, pn_v_loadu_f(x + c * x_stride + k * sizeof(float)), acc[r][c]);
    }
    PN_UNROLL
    for (size_t r = 0; r < nr; r++) PN_UNROLL
    for (size_t c = 0; c < nc; c++) {
        float s = pn_v_sum(acc[r][c]), *o = out + c * out_stride + r * apart;
        *o = first ? s : *o + s;
    }
}

/* `nr` rows by 2 to PN_TILE_F32_COLUMNS columns: tiles of nearly equal size of more than one column have no fewer. */
PN_INLINE void pn_f32_rows(const pn_matmul_args *a, const pn_float_type *t, const uint8_t *row, size_t k, size_t n,
                           float *out, size_t c, size_t columns, const size_t nr)
{
    const uint8_t *x = (const uint8_t *)a->packed + c * a->packed_stride + k * sizeof(float);
    const size_t stride = (size_t)a->weight->row_stride;
    const int first = k == 0;
    row += k * t->bytes;
    out += c * a->out_stride;
    switch (columns) {
    case 2: pn_f32_tile(t, row, stride, x, a->packed_stride, n, first, out, a->out_stride, 1, nr, 2); break;
    case 3: pn_f32_tile(t, row, stride, x, a->packed_stride, n, first, out, a->out_stride, 1, nr, 3); break;
#if PN_TILE_F32_COLUMNS > 3
    case 4: pn_f32_tile(t, row, stride, x, a->packed_stride, n, first, out, a->out_stride, 1, nr, 4); break;
    case 5: pn_f32_tile(t, row, stride, x, a->packed_stride, n, first, out, a->out_stride, 1, nr, 5); break;
    default: pn_f32_tile(t, row, stride, x, a->packed_stride, n, first, out, a->out_stride, 1, nr, 6); break;
#endif
    }
}

/* Row `r` by one column, and with it PN_F32_STREAMS - 1 more, each `apart` rows behind the one before; 0: it alone. */
PN_INLINE void pn_f32_row(const pn_matmul_args *a, const pn_float_type *t, uint64_t r, size_t apart)
{
    const size_t cols = (size_t)a->weight->cols, stride = (size_t)a->weight->row_stride;
    const uint8_t *row = (const uint8_t *)a->weight->data + r * stride, *x = (const uint8_t *)a->packed;
    for (size_t k = 0; k < cols; k += PN_F32_SEGMENT, x += PN_F32_SEGMENT * sizeof(float)) {
        const size_t n = cols - k < PN_F32_SEGMENT ? cols - k : PN_F32_SEGMENT;
        const uint8_t *w = row + k * t->bytes;
        if (apart) pn_f32_tile(t, w, apart * stride, x, 0, n, k == 0, a->out + r, 0, apart, PN_F32_STREAMS, 1);
        else pn_f32_tile(t, w, 0, x, 0, n, k == 0, a->out + r, 0, 0, 1, 1);
    }
}

/* One column. The rows read side by side are far from each other, so that each is one of a long stretch of memory: see
 * pn_tile_walk of tile_i16.h. */
PN_INLINE void pn_f32_one_column(const pn_matmul_args *a, const pn_float_type *t)
{
    const uint64_t apart = (a->row_end - a->row_begin) / PN_F32_STREAMS;
    uint64_t r = a->row_begin;
    for (; r < a->row_begin + apart; r++) pn_f32_row(a, t, r, apart);
    for (r += apart * (PN_F32_STREAMS - 1); r < a->row_end; r++) pn_f32_row(a, t, r, 0);
}

/* Body of pn_kernel.matmul; needs no scratch. */
PN_INLINE pn_status pn_tile_f32_matmul(const pn_matmul_args *a, const pn_float_type *t)
{
    const size_t cols = (size_t)a->weight->cols, stride = (size_t)a->weight->row_stride;
    const size_t tiles = (a->columns + PN_TILE_F32_COLUMNS - 1) / PN_TILE_F32_COLUMNS;
    if (a->columns == 1) {
        pn_f32_one_column(a, t);
        return PN_OK;
    }
    for (uint64_t r0 = a->row_begin; r0 < a->row_end; r0 += PN_F32_ROWS) {
        const uint64_t r1 = a->row_end - r0 < PN_F32_ROWS ? a->row_end : r0 + PN_F32_ROWS;
        for (size_t k = 0; k < cols; k += PN_F32_SEGMENT) {
            const size_t n = cols - k < PN_F32_SEGMENT ? cols - k : PN_F32_SEGMENT;
            for (size_t i = 0, c = 0, nc; i < tiles; i++, c += nc) {
                const uint8_t *row = (const uint8_t *)a->weight->data + r0 * stride;
                uint64_t r = r0;
                nc = (a->columns - c + tiles - i - 1) / (tiles - i);
                for (; r + 4 <= r1; r += 4, row += 4 * stride) pn_f32_rows(a, t, row, k, n, a->out + r, c, nc, 4);
                for (; r < r1; r++, row += stride) pn_f32_rows(a, t, row, k, n, a->out + r, c, nc, 1);
            }
        }
    }
    return PN_OK;
}

#endif

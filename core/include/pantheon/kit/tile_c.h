/* Kernels in plain C for the packings "i16", "i8" and "f32" (kit/pack.h): simple, for any machine, and what the vector
 * kernels are checked against. A type says how one block becomes scales and codes, or how a row becomes floats. */
#ifndef PANTHEON_KIT_TILE_C_H
#define PANTHEON_KIT_TILE_C_H

#include <pantheon/kit/pack.h>
#include <pantheon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Up to 256 elements of a row: value k = d[k / group] * code[k] + m[k / group], where group is 32 or 16 elements. */
typedef struct pn_codes {
    int16_t code[PN_I16_CHUNK]; /* |code| <= 255 */
    float d[PN_I16_CHUNK / 16];
    float m[PN_I16_CHUNK / 16]; /* left alone by types that have no minimum */
} pn_codes;

typedef struct pn_block_type {
    size_t block_bytes;
    size_t block_elems; /* 32, 64, 128 or 256 */
    int fine;           /* 0: a scale for each 32 elements; 1: for each 16 */
    int minimum;
    void (*unpack)(const uint8_t *block, pn_codes *out);
} pn_block_type;

/* Body of pn_quant.dequantize, where d * code + m, rounded like this, is what the type promises. */
PN_UNUSED static inline void pn_c_dequantize(const pn_block_type *t, const void *row, float *out, size_t n)
{
    const size_t group = t->fine ? 16 : 32;
    const uint8_t *block = (const uint8_t *)row;
    pn_codes w;
    for (; n >= t->block_elems; n -= t->block_elems, block += t->block_bytes, out += t->block_elems) {
        t->unpack(block, &w);
        for (size_t i = 0; i < t->block_elems; i++) {
            const float x = w.d[i / group] * (float)w.code[i];
            out[i] = t->minimum ? x + w.m[i / group] : x;
        }
    }
}

/* Body of pn_kernel.scratch_bytes: total and chunk sum of each column, and codes. */
PN_UNUSED static inline size_t pn_c_i16_scratch(size_t columns)
{
    return columns * 2 * sizeof(double) + sizeof(pn_codes) + 64;
}

/* Sum of n products, exact below 2^31. */
PN_UNUSED static inline int32_t pn_c_dot16(const int16_t *a, const int16_t *b, size_t n)
{
    int32_t s = 0;
    for (size_t i = 0; i < n; i++) s += (int32_t)a[i] * b[i];
    return s;
}

/* One unpacked block by one column's activations and sums: the part of the chunk's sum. */
PN_UNUSED static inline double pn_c_i16_block(const pn_block_type *t, const pn_codes *w, const int16_t *q,
                                              const float *sums)
{
    const size_t group = t->fine ? 16 : 32;
    double acc = 0;
    for (size_t i = 0; i < t->block_elems / group; i++) {
        acc += (double)w->d[i] * pn_c_dot16(w->code + i * group, q + i * group, group);
        if (t->minimum) acc += (double)w->m[i] * (double)sums[i];
    }
    return acc;
}

/* Body of pn_kernel.matmul on "i16". */
PN_UNUSED static inline pn_status pn_c_i16_matmul(const pn_matmul_args *a, const pn_block_type *t)
{
    const size_t cols = (size_t)a->weight->cols, group = t->fine ? 16 : 32;
    const pn_i16_layout l = pn_i16_layout_of(cols);
    double *total = (double *)a->scratch, *acc = total + a->columns;
    pn_codes *w = (pn_codes *)(void *)(acc + a->columns);

    if (a->scratch_bytes < pn_c_i16_scratch(a->columns)) return PN_E_ARGUMENT;
    for (uint64_t r = a->row_begin; r < a->row_end; r++) {
        const uint8_t *block = (const uint8_t *)a->weight->data + r * a->weight->row_stride;
        memset(total, 0, 2 * a->columns * sizeof(double));
        for (size_t k = 0; k < cols; k += t->block_elems, block += t->block_bytes) {
            t->unpack(block, w);
            for (size_t i = 0; i < t->block_elems; i += 4) { /* the order of kit/pack.h */
                int16_t x = w->code[i + 1];
                w->code[i + 1] = w->code[i + 2];
                w->code[i + 2] = x;
            }
            const size_t chunk = k / PN_I16_CHUNK, end = k + t->block_elems;
            for (size_t c = 0; c < a->columns; c++) {
                const uint8_t *x = (const uint8_t *)a->packed + c * a->packed_stride;
                const float *sums = (const float *)(const void *)(x + (t->fine ? l.sum16 : l.sum32)) + k / group;
                acc[c] += pn_c_i16_block(t, w, (const int16_t *)(const void *)(x + l.q) + k, sums);
                if (end % PN_I16_CHUNK == 0 || end == cols) {
                    total[c] += acc[c] * (double)((const float *)(const void *)(x + l.scale))[chunk];
                    acc[c] = 0;
                }
            }
        }
        for (size_t c = 0; c < a->columns; c++) a->out[c * a->out_stride + r] = (float)total[c];
    }
    return PN_OK;
}

/* Body of pn_kernel.matmul on "i8". Scratch: pn_c_i16_scratch is enough. */
PN_UNUSED static inline pn_status pn_c_i8_matmul(const pn_matmul_args *a, const pn_block_type *t)
{
    const size_t cols = (size_t)a->weight->cols, group = t->fine ? 16 : 32;
    double *total = (double *)a->scratch;
    pn_codes *w = (pn_codes *)(void *)(total + a->columns);

    if (a->scratch_bytes < pn_c_i16_scratch(a->columns)) return PN_E_ARGUMENT;
    for (uint64_t r = a->row_begin; r < a->row_end; r++) {
        const uint8_t *block = (const uint8_t *)a->weight->data + r * a->weight->row_stride;
        memset(total, 0, a->columns * sizeof(double));
        for (size_t k = 0; k < cols; k += t->block_elems, block += t->block_bytes) {
            t->unpack(block, w);
            for (size_t c = 0; c < a->columns; c++) {
                const uint8_t *column = (const uint8_t *)a->packed + c * a->packed_stride;
                const pn_i8_chunk *x = (const pn_i8_chunk *)(const void *)column + k / PN_I16_CHUNK;
                for (size_t i = 0; i < t->block_elems; i += group) {
                    const size_t at = k % PN_I16_CHUNK + i;
                    int32_t isum = 0;
                    for (size_t j = 0; j < group; j++) isum += w->code[i + j] * x->q[at + j];
                    total[c] += (double)w->d[i / group] * (double)x->scale[at / 32] * isum;
                    if (t->minimum)
                        total[c] += (double)w->m[i / group] * (double)(t->fine ? x->sum16 : x->sum32)[at / group];
                }
            }
        }
        for (size_t c = 0; c < a->columns; c++) a->out[c * a->out_stride + r] = (float)total[c];
    }
    return PN_OK;
}

/* ---- "f32"
 * --------------------------------------------------------------------------------------------------------- */

#define PN_C_SEGMENT 1024

/* Body of pn_kernel.scratch_bytes. */
PN_UNUSED static inline size_t pn_c_f32_scratch(void)
{
    return PN_C_SEGMENT * sizeof(float);
}

/* In eight lanes, added in a fixed order. */
PN_UNUSED static inline float pn_c_dot_f32(const float *a, const float *b, size_t n)
{
    float lane[8] = {0};
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (size_t i = 0; i < 8; i++) lane[i] += a[k + i] * b[k + i];
    for (size_t i = 0; k < n; k++, i++) lane[i] += a[k] * b[k];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Body of pn_kernel.matmul on "f32" for any type: `expand` (the type's dequantize) makes floats of n elements,
 * `elem_bytes` each. */
PN_UNUSED static inline pn_status pn_c_f32_matmul(const pn_matmul_args *a, size_t elem_bytes,
                                                  void (*expand)(const void *row, float *out, size_t n))
{
    const size_t cols = (size_t)a->weight->cols;
    float *w = (float *)a->scratch;
    if (a->scratch_bytes < pn_c_f32_scratch()) return PN_E_ARGUMENT;
    for (uint64_t r = a->row_begin; r < a->row_end; r++) {
        const uint8_t *row = (const uint8_t *)a->weight->data + r * a->weight->row_stride;
        for (size_t k = 0; k < cols; k += PN_C_SEGMENT) {
            const size_t n = cols - k < PN_C_SEGMENT ? cols - k : PN_C_SEGMENT;
            expand(row + k * elem_bytes, w, n);
            for (size_t c = 0; c < a->columns; c++) {
                const float *x = (const float *)(const void *)((const uint8_t *)a->packed + c * a->packed_stride);
                float *o = a->out + c * a->out_stride + r, s = pn_c_dot_f32(w, x + k, n);
                *o = k ? *o + s : s;
            }
        }
    }
    return PN_OK;
}

#ifdef __cplusplus
}
#endif
#endif

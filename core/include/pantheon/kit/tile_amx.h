/* Many columns on AMX (tiles and 8-bit integers), beside AVX-512 with VNNI: the loops of tile_i16.h and tile_i8.h with
 * products of 16 columns by 16 rows by 32 elements in one instruction. For the same types (pn_tile_type), and with the
 * same results to the bit: integer sums are exact in any order, and the float chains are those of the other loops. One
 * column and few are left to these.
 *
 *   A  activations as the packing has them     16 columns (rows of the tile, one packed column apart) x 32 bytes
 *   B  codes of the unpacked tile, signed      8 words of four elements x 16 rows of the weight
 *   C  integer sums                            16 columns x 16 rows of the weight
 *
 * Activations of 16 bits are two tiles, of high and of low bytes, and two products: sum = 256 * high + low. Not for
 * types with a scale for each 16 elements (fine): half the depth of each tile would be empty, and AVX-512 is faster.
 *
 * A kernel needs PN_LEVEL_AMX, which tells that the system has granted this process the tile registers. Tiles are
 * configured and released within a call.
 */
#ifndef PANTHEON_KIT_TILE_AMX_H
#define PANTHEON_KIT_TILE_AMX_H

#include <pantheon/kit/simd_avx512.h>
#include <pantheon/kit/tile_i8.h>

/* Columns of a product; fewer than PN_AMX_LEAST are done faster without tiles. */
#define PN_AMX_COLUMNS 16
#define PN_AMX_LEAST 8

/* Scratch, laid out as in tile_i16.h, whose pn_tile_scratch_bytes is enough. */
typedef struct pn_amx_scratch {
    int32_t w[8 * 8][2][PN_LANES]; /* word of four signed codes, row group, row */
    float d[8][2][PN_LANES];
    float m[8][2][PN_LANES];
    int32_t sums[2][2][PN_AMX_COLUMNS][PN_LANES]; /* C in turns; of high, of low */
} pn_amx_scratch;

_Static_assert(sizeof(pn_amx_scratch) <= sizeof(pn_tile_scratch), "scratch of tile_i16.h is enough");

/* What ldtilecfg loads (the processor's manual: palette 1). */
typedef struct pn_amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} pn_amx_config;
_Static_assert(sizeof(pn_amx_config) == 64, "the tile configuration has 64 bytes");

/* As an instruction, because gcc 12 takes the intrinsic to read 8 bytes and drops what was stored to the others. */
PN_INLINE void pn_amx_load_config(const pn_amx_config *c)
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*c));
}

/* Tiles: 0 and 1 are A, 2 is B, 3 and 4 are C. */
PN_INLINE void pn_amx_configure(size_t columns)
{
    pn_amx_config c = {.palette = 1};
    for (size_t i = 0; i < 5; i++) {
        c.rows[i] = (uint8_t)(i == 2 ? 8 : columns);
        c.row_bytes[i] = (uint16_t)(i < 2 ? 32 : 4 * PN_LANES);
    }
    pn_amx_load_config(&c);
}

/* As signed codes. */
PN_INLINE void pn_amx_store(const pn_tile_type *t, pn_vi bytes, size_t word, size_t group, int32_t (*w)[2][PN_LANES])
{
    const pn_vi above = pn_v_set32((uint32_t)(-t->least & 255) * 0x01010101u);
    pn_v_store(w[word][group], pn_tile_biased(t) && t->least != 0 ? pn_v_sub8(bytes, above) : bytes);
}

PN_INLINE void pn_amx_unpack(const pn_tile_type *t, pn_rows rows, size_t units, size_t group, pn_amx_scratch *s)
{
    pn_tile_unpack_to(t, rows, units, group, s->d, s->m, s->w, pn_amx_store);
}

/* The activations of a tile of columns from some element on, and what belongs to it. */
typedef struct pn_amx_x {
    const uint8_t *high, *low; /* low: of 16-bit activations alone */
    const uint8_t *sums;       /* of each 32, which minima multiply */
    const uint8_t *scale;      /* "i8": one for each 32 elements; "i16": one */
    size_t stride;             /* bytes between columns */
    size_t next;               /* bytes from these columns to those that follow; 0: none do */
} pn_amx_x;

/* Integer sums of unit `u` of a chunk, of all columns of the tile, to sums[0] (and sums[1]). */
PN_INLINE void pn_amx_unit(const pn_amx_scratch *s, const pn_amx_x *x, size_t u, size_t group,
                           int32_t (*sums)[PN_AMX_COLUMNS][PN_LANES], const int i8)
{
    __asm__ volatile("" : : : "memory"); /* gcc 12 does not know that loads of tiles read memory */
    _tile_loadd(2, s->w[u * 8][group], sizeof s->w[0]);
    _tile_loadd(0, x->high + u * 32, x->stride);
    _tile_zero(3);
    _tile_dpbssd(3, 0, 2);
    _tile_stored(3, sums[0], sizeof sums[0][0]);
    if (i8) return;
    _tile_loadd(1, x->low + u * 32, x->stride);
    _tile_zero(4);
    _tile_dpbusd(4, 1, 2);
    _tile_stored(4, sums[1], sizeof sums[1][0]);
}

/* Ask for the activations of a column of the next tile: one in each of the steps of a whole chunk. */
PN_INLINE void pn_amx_prefetch(const pn_amx_x *x, size_t u, size_t group, const int i8)
{
    const size_t at = x->next + (group * 8 + u) * x->stride;
    PN_UNROLL
    for (size_t k = 0; k < PN_I16_CHUNK; k += 64) {
        __builtin_prefetch(x->high + at + k, 0, 3);
        if (!i8) __builtin_prefetch(x->low + at + k, 0, 3);
    }
}

/* Those sums to acc, for columns first .. end - 1 of the tile. */
PN_INLINE void pn_amx_add(const pn_tile_type *t, const pn_amx_scratch *s, const pn_amx_x *x, size_t u, size_t group,
                          int32_t (*sums)[PN_AMX_COLUMNS][PN_LANES], size_t first, size_t end,
                          pn_vf acc[PN_AMX_COLUMNS], const int i8)
{
    const pn_vf d = pn_v_load_f(s->d[u][group]), m = t->minimum ? pn_v_load_f(s->m[u][group]) : d;
    PN_UNROLL
    for (size_t c = 0; c < PN_AMX_COLUMNS; c++) {
        if (c < first || c >= end) continue;
        pn_vi sum = pn_v_load(sums[0][c]);
        if (!i8) sum = pn_v_add32(pn_v_sll32(sum, 8), pn_v_load(sums[1][c]));
        const pn_vf f = i8 ? pn_v_mul(d, pn_v_bits_f(pn_v_bcast32(x->scale + c * x->stride + u * 4))) : d;
        acc[c] = pn_v_fma(f, pn_v_float(sum), acc[c]);
        if (t->minimum) acc[c] = pn_v_fma(m, pn_v_bits_f(pn_v_bcast32(x->sums + c * x->stride + u * 4)), acc[c]);
    }
}

/* Columns first .. end - 1 of a tile by one group of rows of the unpacked chunk; total[columns][PN_TILE_ROWS] begins at
 * that group. The float sums of a unit are made while the product of the next is under way. */
PN_INLINE void pn_amx_columns(const pn_tile_type *t, pn_amx_scratch *s, size_t units, const pn_amx_x *x, size_t group,
                              size_t first, size_t end, float *total, const int i8)
{
    pn_vf acc[PN_AMX_COLUMNS];
    PN_UNROLL
    for (size_t c = 0; c < PN_AMX_COLUMNS; c++)
        acc[c] = i8 && c >= first && c < end ? pn_v_load_f(total + c * PN_TILE_ROWS) : pn_v_zero_f();
    pn_amx_unit(s, x, 0, group, s->sums[0], i8);
    for (size_t u = 0; u < units; u++) {
        if (x->next) pn_amx_prefetch(x, u, group, i8);
        if (u + 1 < units) pn_amx_unit(s, x, u + 1, group, s->sums[(u + 1) % 2], i8);
        pn_amx_add(t, s, x, u, group, s->sums[u % 2], first, end, acc, i8);
    }
    PN_UNROLL
    for (size_t c = 0; c < PN_AMX_COLUMNS; c++) {
        if (c < first || c >= end) continue;
        if (!i8)
            acc[c] = pn_v_fma(acc[c], pn_v_bits_f(pn_v_bcast32(x->scale + c * x->stride)),
                              pn_v_load_f(total + c * PN_TILE_ROWS));
        pn_v_store_f(total + c * PN_TILE_ROWS, acc[c]);
    }
}

/* A chunk of the activations of columns from c on. */
PN_INLINE pn_amx_x pn_amx_x_at(const pn_matmul_args *a, const pn_i16_layout *l, size_t c, size_t chunk, const int i8)
{
    const uint8_t *p = (const uint8_t *)a->packed + c * a->packed_stride;
    if (i8) {
        p += chunk * sizeof(pn_i8_chunk);
        return (pn_amx_x){p + offsetof(pn_i8_chunk, q), NULL, p + offsetof(pn_i8_chunk, sum32),
                          p + offsetof(pn_i8_chunk, scale), a->packed_stride, 0};
    }
    return (pn_amx_x){p + l->high + chunk * PN_I16_CHUNK, p + l->low + chunk * PN_I16_CHUNK, p + l->sum32 + chunk * 32,
                      p + l->scale + chunk * 4, a->packed_stride, 0};
}

PN_INLINE void pn_amx_many_columns(const pn_matmul_args *a, const pn_tile_type *t, const int i8)
{
    const size_t cols = (size_t)a->weight->cols;
    const pn_i16_layout l = pn_i16_layout_of(cols);
    pn_amx_scratch *s = (pn_amx_scratch *)a->scratch;
    float *total = (float *)(s + 1);
    uint8_t *stage = (uint8_t *)(total + a->columns * PN_TILE_ROWS);
    const size_t wide = a->columns < PN_AMX_COLUMNS ? a->columns : PN_AMX_COLUMNS;

    pn_amx_configure(wide);
    for (uint64_t r = a->row_begin; r < a->row_end; r += PN_TILE_ROWS) {
        const pn_rows all = pn_tile_from(a, r);
        const size_t n = a->row_end - r < PN_TILE_ROWS ? (size_t)(a->row_end - r) : PN_TILE_ROWS;
        memset(total, 0, a->columns * PN_TILE_ROWS * sizeof(float));
        for (size_t k = 0; k < l.n256; k++) {
            const size_t units = pn_tile_units(cols, k);
            const pn_rows rows = pn_tile_stage(t, all, n, PN_TILE_ROWS, k, units, stage);
            pn_amx_unpack(t, rows, units, 0, s);
            pn_amx_unpack(t, pn_tile_second(rows), units, 1, s);
            for (size_t c = 0; c < a->columns; c += wide) {
                /* The last tile begins early enough to be a whole one; what it repeats is left out. */
                const size_t from = c + wide <= a->columns ? c : a->columns - wide, first = c - from;
                pn_amx_x x = pn_amx_x_at(a, &l, from, k, i8);
                if (c + 2 * wide <= a->columns) x.next = wide * x.stride;
                for (size_t g = 0; g < 2; g++) {
                    float *o = total + from * PN_TILE_ROWS + g * PN_LANES;
                    if (wide == PN_AMX_COLUMNS && first == 0)
                        pn_amx_columns(t, s, units, &x, g, 0, PN_AMX_COLUMNS, o, i8);
                    else pn_amx_columns(t, s, units, &x, g, first, wide, o, i8);
                }
            }
        }
        for (size_t c = 0; c < a->columns; c++)
            memcpy(a->out + c * a->out_stride + r, total + c * PN_TILE_ROWS, n * sizeof(float));
    }
    _tile_release();
}

/* The body of pn_kernel.matmul on "i8", or on "i16"; few columns go to `few`, the kernel of AVX-512. */
PN_INLINE pn_status pn_amx_matmul(const pn_matmul_args *a, const pn_tile_type *t,
                                  pn_status (*few)(const pn_matmul_args *args), const int i8)
{
    if (a->columns < PN_AMX_LEAST) return few(a);
    if (a->scratch_bytes < pn_tile_scratch_bytes(t, (size_t)a->weight->cols, a->columns)) return PN_E_ARGUMENT;
    pn_amx_many_columns(a, t, i8);
    return PN_OK;
}

PN_INLINE pn_status pn_amx_i16_matmul(const pn_matmul_args *a, const pn_tile_type *t,
                                      pn_status (*few)(const pn_matmul_args *args))
{
    return pn_amx_matmul(a, t, few, 0);
}

PN_INLINE pn_status pn_amx_i8_matmul(const pn_matmul_args *a, const pn_tile_type *t,
                                     pn_status (*few)(const pn_matmul_args *args))
{
    return pn_amx_matmul(a, t, few, 1);
}

#endif

/* The tile loop of integer kernels on the packing "i16" (kit/pack.h), written once for every type and vector width.
 *
 * Include a vector layer first (simd_avx512.h or simd_avx2.h). A vector holds one number of each of PN_LANES rows, so
 * nothing is ever summed across lanes. A type says how a block of PN_LANES rows becomes scales and codes in bytes
 * (pn_tile_type); the loop does the rest:
 *
 *   one column     codes go from registers into the sums, as bytes where that is exact: the speed is that of memory;
 *   many columns   a tile of PN_TILE_ROWS rows by 256 elements is unpacked into scratch once and multiplied with all
 *                  columns, a register tile of up to PN_TILE_COLUMNS at a time.
 *
 * Both compute, per (row, column), the same chain: in each chunk of 256 elements, ascending over the groups of 32 (or
 * 16) elements that share a scale,
 *   acc = fma(d, (float)isum, acc)          and with a minimum also   acc = fma(m, sum, acc)
 * and over the chunks
 *   total = fma(acc, scale of the chunk, total)
 * where isum is exact. So a result depends on its row and its column alone, not on tiles, threads or neighbours.
 *
 * Rows that do not fill a tile are copied, chunk by chunk, into scratch and padded there with zero bytes (a block of
 * zero bytes must unpack to finite numbers): no byte outside the weight's rows is ever read.
 */
#ifndef PANTHEON_KIT_TILE_I16_H
#define PANTHEON_KIT_TILE_I16_H

#include <pantheon/kit/pack.h>
#include <pantheon/kit/words.h>
#include <pantheon/plugin.h>

#define PN_TILE_ROWS (2 * PN_LANES)
#define PN_TILE_STRETCH 8192 /* bytes that a lane should read without a gap, with one column */

/* How a type unpacks. A constant that the compiler sees through; the functions must be PN_INLINE, and take what they
 * need of their block, and of nothing else, with pn_v_word, pn_v_words and pn_v_words8. */
typedef struct pn_tile_type {
    size_t block_bytes;
    size_t block_units; /* units of 32 elements per block: 1, 2, 4 or 8 */
    size_t span;        /* units that `bytes` unpacks at once; divides block_units */
    int fine;           /* 0: a scale for each 32 elements; 1: for each 16 */
    int minimum;        /* has minima */
    /* Scales (and minima) of the block at `offset` bytes of each row: d[i], m[i] for group i of the block. What several
     * calls of `bytes` for this block want may be kept, up to PN_TILE_KEEP vectors of it. */
    void (*head)(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m, pn_vi *keep);
    /* Codes of units unit .. unit + span - 1 of that block: 8 vectors a unit, number g holding elements 4g .. 4g + 3 as
     * four bytes in each lane. The bytes are code - least, without a sign, where most - least <= 127; codes with their
     * sign, -128 .. 127, elsewhere. */
    void (*bytes)(pn_rows rows, size_t offset, size_t unit, const pn_vi *keep, pn_vi *w);
    int least, most; /* the bounds of a code */
} pn_tile_type;

#define PN_TILE_KEEP 24
#define PN_TILE_WORDS 72 /* most words that are kept of a chunk: 8 blocks of 36 bytes */

PN_INLINE int pn_tile_biased(const pn_tile_type *t)
{
    return t->most - t->least <= 127;
}

/* Four bytes as two pairs of 16-bit codes, of elements 0 and 2 and of 1 and 3. */
PN_INLINE void pn_tile_widen(const pn_tile_type *t, pn_vi bytes, pn_vi w[2])
{
    if (!pn_tile_biased(t)) {
        w[0] = pn_v_sra16(pn_v_sll16(bytes, 8), 8);
        w[1] = pn_v_sra16(bytes, 8);
        return;
    }
    w[0] = pn_v_and(bytes, pn_v_set32(0x00ff00ff));
    w[1] = pn_v_srl16(bytes, 8);
    if (t->least == 0) return;
    const pn_vi least = pn_v_set32((uint32_t)(t->least & 0xffff) * 0x00010001u);
    w[0] = pn_v_add16(w[0], least);
    w[1] = pn_v_add16(w[1], least);
}

/* Scratch of many columns; behind it lie float total[columns][PN_TILE_ROWS] and the staged rows. */
typedef struct pn_tile_scratch {
    int32_t w[8 * 16][2][PN_LANES]; /* pair of elements, row group, row */
    float d[16][2][PN_LANES];
    float m[16][2][PN_LANES];
} pn_tile_scratch;

PN_INLINE size_t pn_tile_chunk_bytes(const pn_tile_type *t)
{
    return 8 / t->block_units * t->block_bytes;
}

/* Body of pn_kernel.scratch_bytes. */
PN_INLINE size_t pn_tile_scratch_bytes(const pn_tile_type *t, size_t cols, size_t columns)
{
    const size_t one = (cols + 15) / 16 * sizeof(int32_t) + PN_LANES * pn_tile_chunk_bytes(t) + 128;
    const size_t many = sizeof(pn_tile_scratch) + columns * PN_TILE_ROWS * sizeof(float) +
                        PN_TILE_ROWS * pn_tile_chunk_bytes(t) + 64;
    return one > many ? one : many;
}

/* Rows of the weight from `row` on; those after the first PN_LANES. */
PN_INLINE pn_rows pn_tile_from(const pn_matmul_args *a, uint64_t row)
{
    const size_t stride = (size_t)a->weight->row_stride;
    return (pn_rows){.base = (const uint8_t *)a->weight->data + row * stride, .stride = stride};
}
PN_INLINE pn_rows pn_tile_second(pn_rows rows)
{
    rows.base += PN_LANES * rows.stride;
    return rows;
}

/* One chunk of a tile of `tile` rows of which n exist; the others are zero bytes: where it lies, or a copy. */
PN_INLINE pn_rows pn_tile_stage(const pn_tile_type *t, pn_rows rows, size_t n, size_t tile, size_t chunk, size_t units,
                                uint8_t *stage)
{
    const size_t bytes = pn_tile_chunk_bytes(t), used = units / t->block_units * t->block_bytes;
    const uint8_t *from = rows.base + chunk * bytes;
    if (n >= tile) return (pn_rows){.base = from, .stride = rows.stride};
    for (size_t i = 0; i < n; i++) memcpy(stage + i * bytes, from + i * rows.stride, used);
    memset(stage + n * bytes, 0, (tile - n) * bytes);
    return (pn_rows){.base = stage, .stride = bytes};
}

/* Units of 32 elements in a chunk. */
PN_INLINE size_t pn_tile_units(size_t cols, size_t chunk)
{
    size_t left = (cols - chunk * PN_I16_CHUNK) / 32;
    return left < 8 ? left : 8;
}

/* Whether the bytes of a chunk become words in order, 32 bytes at a time and up to 16 at its end: small blocks share
 * words, and some bytes would be read twice if each block were read by itself. */
PN_INLINE int pn_tile_reads(const pn_tile_type *t, size_t units)
{
    const size_t bytes = pn_tile_chunk_bytes(t);
    return t->block_units < 8 && units == 8 && bytes >= 32 && bytes <= 4 * PN_TILE_WORDS && bytes % 4 == 0 &&
           bytes % 32 <= 16;
}

/* Read what block number `block` of a chunk needs and those before it did not; the rows that `head` and `bytes` take it
 * from. */
PN_INLINE pn_rows pn_tile_read(const pn_tile_type *t, pn_rows rows, size_t block, pn_vi *words)
{
    const size_t all = pn_tile_chunk_bytes(t);
    PN_UNROLL
    for (size_t at = (block * t->block_bytes + 31) / 32 * 32; at < (block + 1) * t->block_bytes; at += 32) {
        if (at + 32 <= all) pn_v_words8(rows, at, words + at / 4);
        else pn_v_words(rows, all - 16, words + (all - 16) / 4);
    }
    rows.words = words;
    return rows;
}

/* ---- one column -------------------------------------------------------------------------------------------------- */

/* Ask for the cache lines of `bytes` bytes from `at` (not read: they may lie anywhere). A constant number of
 * instructions, spread over the computation, so that they never fill the queue of misses. */
PN_INLINE void pn_tile_prefetch(uintptr_t at, size_t bytes)
{
    PN_UNROLL
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch((const void *)(at + i), 0, 2);
}

/* Activations of a column from some element on. */
typedef struct pn_tile_x {
    const uint8_t *q, *high, *low; /* sections of the packing */
    const uint8_t *sums;           /* of groups of 32, or of 16, as the type has scales */
    const uint8_t *scale;          /* of the column's chunks, from its first on */
    const int32_t *start;          /* what their integer sums begin with, to make up for codes that are made unsigned */
} pn_tile_x;

PN_INLINE void pn_tile_biased_start(const pn_tile_type *t, const pn_tile_x *x, int32_t *start)
{
    for (size_t g = 0; g < (t->fine ? 2 : 1); g++) {
        float sum;
        memcpy(&sum, x->sums + g * sizeof sum, sizeof sum);
        start[g] = t->least * (int32_t)sum;
    }
}

#if PN_LANES == 16
/* start[] of the 32 activations at `x`. */
PN_INLINE void pn_tile_start(const pn_tile_type *t, const pn_tile_x *x, int32_t *start)
{
    int32_t above[2];
    if (pn_tile_biased(t)) {
        pn_tile_biased_start(t, x, start);
        return;
    }
    pn_v_sums8(x->high, -128 * 256, above); /* codes are 128 above for the high bytes alone */
    start[0] = t->fine ? above[0] : above[0] + above[1];
    if (t->fine) start[1] = above[1];
}

/* One unit's integer sums: `w` against the 32 activations at `x`; isum[0] for a scale of 32, isum[0..1] for scales of
 * 16. */
PN_INLINE void pn_tile_unit_dot(const pn_tile_type *t, const pn_vi *w, const pn_tile_x *x, pn_vi *isum)
{
    const size_t groups = t->fine ? 2 : 1, words = 8 / groups;
    PN_UNROLL
    for (size_t g = 0; g < groups; g++) {
        pn_vi a[2], b[2]; /* two sums of each, as an instruction waits five cycles for the one before it */
        a[0] = a[1] = b[1] = pn_v_zero();
        b[0] = t->least == 0 ? pn_v_zero() : pn_v_bcast32(x->start + g);
        PN_UNROLL
        for (size_t p = g * words; p < (g + 1) * words; p++) {
            const pn_vi above = pn_tile_biased(t) ? w[p] : pn_v_xor(w[p], pn_v_set32(0x80808080));
            a[p % 2] = pn_v_dot8(a[p % 2], above, pn_v_bcast32(x->high + 4 * p));
            b[p % 2] = pn_v_dot8(b[p % 2], pn_v_bcast32(x->low + 4 * p), w[p]);
        }
        isum[g] = pn_v_add32(pn_v_sll32(pn_v_add32(a[0], a[1]), 8), pn_v_add32(b[0], b[1]));
    }
}
#else
/* Codes of up to six bits meet high and low bytes: such products, added in pairs, fit 16 bits. The others meet 16-bit
 * activations, and need no start. */
PN_INLINE int pn_tile_narrow(const pn_tile_type *t)
{
    return t->most - t->least <= 63;
}

PN_INLINE void pn_tile_start(const pn_tile_type *t, const pn_tile_x *x, int32_t *start)
{
    if (pn_tile_narrow(t)) pn_tile_biased_start(t, x, start);
}

/* Pairs of products, each at most `pair`, that can be added in 16 bits: a power of two up to `words`, 4 or 8. */
PN_INLINE size_t pn_tile_run(int pair, size_t words)
{
    return 8 * pair <= 32767 && words == 8 ? 8 : 4 * pair <= 32767 ? 4 : 2 * pair <= 32767 ? 2 : 1;
}

/* The products of words from .. to - 1 with 16-bit activations. */
PN_INLINE pn_vi pn_tile_dot_wide(const pn_tile_type *t, const pn_vi *w, size_t from, size_t to, const uint8_t *q)
{
    pn_vi a = pn_v_zero(), b = pn_v_zero();
    PN_UNROLL
    for (size_t p = from; p < to; p++) {
        pn_vi pair[2];
        pn_tile_widen(t, w[p], pair);
        a = pn_v_dot16(a, pair[0], pn_v_bcast32(q + 8 * p));
        b = pn_v_dot16(b, pair[1], pn_v_bcast32(q + 8 * p + 4));
    }
    return pn_v_add32(a, b);
}

PN_INLINE void pn_tile_unit_dot(const pn_tile_type *t, const pn_vi *w, const pn_tile_x *x, pn_vi *isum)
{
    const size_t groups = t->fine ? 2 : 1, words = 8 / groups;
    const size_t run_a = pn_tile_run(2 * 128 * (t->most - t->least), words);
    const size_t run_b = pn_tile_run(2 * 255 * (t->most - t->least), words);
    PN_UNROLL
    for (size_t g = 0; g < groups; g++) {
        const size_t from = g * words, to = from + words;
        if (!pn_tile_narrow(t)) {
            isum[g] = pn_tile_dot_wide(t, w, from, to, x->q);
            continue;
        }
        pn_vi a = pn_v_zero(), b = t->least == 0 ? pn_v_zero() : pn_v_bcast32(x->start + g);
        PN_UNROLL
        for (size_t p = from; p < to; p += run_a) {
            pn_vi part = pn_v_pairs8(w[p], pn_v_bcast32(x->high + 4 * p));
            PN_UNROLL
            for (size_t j = p + 1; j < p + run_a; j++)
                part = pn_v_add_pairs8(part, w[j], pn_v_bcast32(x->high + 4 * j));
            a = pn_v_widen16(a, part);
        }
        PN_UNROLL
        for (size_t p = from; p < to; p += run_b) {
            pn_vi part = pn_v_pairs8(pn_v_bcast32(x->low + 4 * p), w[p]);
            PN_UNROLL
            for (size_t j = p + 1; j < p + run_b; j++)
                part = pn_v_add_pairs8(part, pn_v_bcast32(x->low + 4 * j), w[j]);
            b = pn_v_widen16(b, part);
        }
        isum[g] = pn_v_add32(pn_v_sll32(a, 8), b);
    }
}
#endif

/* `x` from unit `u` on. */
PN_INLINE pn_tile_x pn_tile_x_at(const pn_tile_type *t, const pn_tile_x *x, size_t u)
{
    const size_t groups = t->fine ? 2 : 1;
    return (pn_tile_x){x->q + 64 * u, x->high + 32 * u, x->low + 32 * u, x->sums + 4 * groups * u, x->scale,
                       x->start + groups * u};
}

/* What was unpacked ahead of its use: bytes of the next `span` units, scales and minima of their block, and words that
 * were read of their chunk. Loads and shuffles come before the multiplications of the units before them, which gives a
 * processor something to do while those wait for each other. */
typedef struct pn_tile_unpacked {
    pn_vf d[16], m[16];
    pn_vi keep[PN_TILE_KEEP], w[8 * 8], words[PN_TILE_WORDS];
} pn_tile_unpacked;

/* A chunk of a row in each lane. */
typedef struct pn_tile_part {
    pn_rows rows;
    size_t units;   /* 1 .. 8 */
    size_t follow;  /* units of the chunk that lies behind it and is computed next; 0: none is */
    uintptr_t next; /* to be asked for meanwhile, as many bytes as these rows have; 0: nothing */
} pn_tile_part;

/* What units unit .. unit + span - 1 of a chunk add to the sums of its rows: acc continued by their codes w, scales d
 * and minima m; `x` is the column's chunk. */
typedef pn_vf (*pn_tile_use)(const pn_tile_type *t, const pn_tile_x *x, size_t unit, const pn_vi *w, const pn_vf *d,
                             const pn_vf *m, pn_vf acc);

/* Unpack the first units of block number `block`; `reads`: pn_tile_reads holds for the chunk. */
PN_INLINE void pn_tile_begin_block(const pn_tile_type *t, pn_rows rows, int reads, size_t block, pn_tile_unpacked *s)
{
    if (reads) rows = pn_tile_read(t, rows, block, s->words);
    t->head(rows, block * t->block_bytes, s->d, s->m, s->keep);
    t->bytes(rows, block * t->block_bytes, 0, s->keep, s->w);
}

/* Unpack the first units of a chunk of `units`. */
PN_INLINE void pn_tile_begin(const pn_tile_type *t, pn_rows rows, size_t units, pn_tile_unpacked *s)
{
    if (pn_tile_reads(t, units)) {
        pn_tile_begin_block(t, rows, 1, 0, s);
        return;
    }
    pn_tile_begin_block(t, rows, 0, 0, s);
    if (!pn_tile_reads(t, 8)) return;
    PN_UNROLL
    for (size_t i = 0; i < (t->block_bytes + 31) / 32 * 8; i++)
        s->words[i] = pn_v_zero(); /* never used, but compilers cannot know */
}

/* Takes what is needed of units unit .. unit + span - 1 of a block from s, and unpacks those that follow them: in the
 * block, in the next one, or in the next chunk. */
PN_INLINE void pn_tile_step(const pn_tile_type *t, pn_tile_part part, int reads, size_t block, size_t unit,
                            pn_tile_unpacked *s, pn_vf *d, pn_vf *m, pn_vi *w)
{
    const size_t groups = t->fine ? 2 : 1, bytes = t->block_bytes;
    const size_t units = reads || t->block_units == 8 ? 8 : part.units;
    PN_UNROLL
    for (size_t i = 0; i < 8 * t->span; i++) w[i] = s->w[i];
    PN_UNROLL
    for (size_t i = 0; i < t->span * groups; i++) {
        d[i] = s->d[unit * groups + i];
        if (t->minimum) m[i] = s->m[unit * groups + i];
    }
    if (unit + t->span < t->block_units) {
        if (reads) part.rows.words = s->words;
        t->bytes(part.rows, block * bytes, unit + t->span, s->keep, s->w);
    } else if ((block + 1) * t->block_units < units) {
        pn_tile_begin_block(t, part.rows, reads, block + 1, s);
    } else if (part.follow) {
        part.rows.base += (block + 1) * bytes;
        pn_tile_begin(t, part.rows, part.follow, s);
    }
}

/* acc continued over block number `block` of a chunk, whose first units are in `s`. */
PN_INLINE pn_vf pn_tile_block(const pn_tile_type *t, pn_tile_part part, int reads, size_t block, const pn_tile_x *x,
                              pn_tile_use use, pn_vf acc, pn_tile_unpacked *s)
{
    const size_t bytes = t->block_bytes * PN_LANES;
    PN_UNROLL
    for (size_t u = 0; u < t->block_units; u += t->span) {
        pn_vf d[16], m[16];
        pn_vi w[8 * 8];
        if (part.next)
            pn_tile_prefetch(part.next + block * bytes + bytes * u / t->block_units, bytes * t->span / t->block_units);
        pn_tile_step(t, part, reads, block, u, s, d, m, w);
        acc = use(t, x, block * t->block_units + u, w, d, m, acc);
    }
    return acc;
}

/* acc continued over a chunk, whose first units are in `s`. */
PN_INLINE pn_vf pn_tile_chunk(const pn_tile_type *t, const pn_tile_part *part, const pn_tile_x *x, pn_tile_use use,
                              pn_vf acc, pn_tile_unpacked *s)
{
    if (pn_tile_reads(t, part->units)) {
        PN_UNROLL
        for (size_t b = 0; b < 8 / t->block_units; b++) acc = pn_tile_block(t, *part, 1, b, x, use, acc, s);
        return acc;
    }
    if (t->block_units == 8) return pn_tile_block(t, *part, 0, 0, x, use, acc, s);
    for (size_t b = 0; b * t->block_units < part->units; b++) acc = pn_tile_block(t, *part, 0, b, x, use, acc, s);
    return acc;
}

/* The first n <= PN_LANES lanes to out[0], out[apart], .. */
PN_INLINE void pn_tile_put(float *out, size_t apart, pn_vf x, size_t n)
{
    float part[PN_LANES];
    if (n == PN_LANES && apart == 1) {
        pn_v_storeu_f(out, x);
        return;
    }
    pn_v_storeu_f(part, x);
    for (size_t i = 0; i < n; i++) out[i * apart] = part[i];
}

/* How many of `n` rows follow each other in a lane: all, if they make a stretch of PN_TILE_STRETCH bytes, else one. A
 * number with which no more than four lanes compete for the same lines of a cache, if there is one. */
PN_INLINE uint64_t pn_tile_rows_of_lane(uint64_t n, size_t stride)
{
    uint64_t k = n / PN_LANES;
    if (k > 1 && k * stride % 2048 == 0) k -= k % 2 == 0;
    return k > 1 && k * stride >= PN_TILE_STRETCH ? k : 1;
}

/* What comes behind PN_LANES neighbours from row `r` on; 0 where a host does not tell. */
PN_INLINE uintptr_t pn_tile_behind(const pn_matmul_args *a, uint64_t r)
{
    if (a->row_end - r > PN_LANES) return (uintptr_t)pn_tile_second(pn_tile_from(a, r)).base;
    return a->struct_size >= offsetof(pn_matmul_args, ahead) + sizeof a->ahead ? (uintptr_t)a->ahead : 0;
}

/* What a row in each lane, n lanes of them, is computed with. */
typedef struct pn_tile_lanes {
    pn_rows rows;
    size_t n;
    uintptr_t next; /* as in pn_tile_part */
    int begin;      /* the first units are still to be unpacked */
    int more;       /* those of the next row are to be unpacked, too: it lies behind this one */
    uint8_t *stage;
} pn_tile_lanes;

/* Chunk number `chunk`, whose first units are in `s` then. */
PN_INLINE pn_tile_part pn_tile_part_of(const pn_tile_type *t, const pn_tile_lanes *l, size_t cols, size_t chunk,
                                       pn_tile_unpacked *s)
{
    const int whole = l->n == PN_LANES, last = (chunk + 1) * PN_I16_CHUNK >= cols;
    pn_tile_part p = {.units = pn_tile_units(cols, chunk)};
    p.rows = pn_tile_stage(t, l->rows, l->n, PN_LANES, chunk, p.units, l->stage);
    if (whole && !last) p.follow = pn_tile_units(cols, chunk + 1);
    if (whole && last && l->more) p.follow = pn_tile_units(cols, 0);
    if (l->next) p.next = l->next + chunk * PN_LANES * pn_tile_chunk_bytes(t);
    if (chunk == 0 ? l->begin : !whole) pn_tile_begin(t, p.rows, p.units, s);
    return p;
}

/* `total` continued over chunk number `chunk` of a column that begins at `x`. */
typedef pn_vf (*pn_tile_sum)(const pn_tile_type *t, const pn_tile_part *part, const pn_tile_x *x, size_t chunk,
                             pn_vf total, pn_tile_unpacked *s);

/* All rows by one column, whose chunks `sum` multiplies.
 *
 * A lane goes through rows that follow each other, and so reads one long stretch of memory. That many long stretches
 * are what processors read ahead of by themselves, better than they can be asked to; with neighbours in the lanes they
 * lose track at the end of each row, and the lines of the next rows have to be asked for. */
PN_INLINE void pn_tile_walk(const pn_matmul_args *a, const pn_tile_type *t, const pn_tile_x *x, uint8_t *stage,
                            pn_tile_sum sum)
{
    const size_t stride = (size_t)a->weight->row_stride, cols = (size_t)a->weight->cols;
    const int dense = stride == cols / (32 * t->block_units) * t->block_bytes;
    for (uint64_t r = a->row_begin, k; r < a->row_end; r += k * PN_LANES) {
        const size_t n = a->row_end - r < PN_LANES ? (size_t)(a->row_end - r) : PN_LANES;
        pn_tile_lanes l = {.n = n, .begin = 1, .stage = stage};
        pn_tile_unpacked s;
        k = pn_tile_rows_of_lane(a->row_end - r, stride);
        l.rows = pn_tile_from(a, r);
        l.rows.stride = k * stride;
        l.next = k > 1 ? 0 : pn_tile_behind(a, r);
        pn_tile_part_of(t, &l, cols, 0, &s);
        for (uint64_t i = r; i < r + k; i++, l.rows.base += stride) {
            pn_vf total = pn_v_zero_f();
            l.begin = i > r && !dense;
            l.more = dense && i + 1 < r + k;
            for (size_t c = 0; c * PN_I16_CHUNK < cols; c++) {
                const pn_tile_part part = pn_tile_part_of(t, &l, cols, c, &s);
                total = sum(t, &part, x, c, total, &s);
            }
            pn_tile_put(a->out + i, k, total, n);
        }
    }
}

/* pn_tile_use of 16-bit activations. */
PN_INLINE pn_vf pn_tile_use16(const pn_tile_type *t, const pn_tile_x *x, size_t unit, const pn_vi *w, const pn_vf *d,
                              const pn_vf *m, pn_vf acc)
{
    const size_t groups = t->fine ? 2 : 1;
    PN_UNROLL
    for (size_t i = 0; i < t->span; i++) {
        const pn_tile_x y = pn_tile_x_at(t, x, unit + i);
        pn_vi isum[2];
        pn_tile_unit_dot(t, w + 8 * i, &y, isum);
        PN_UNROLL
        for (size_t g = 0; g < groups; g++) {
            acc = pn_v_fma(d[i * groups + g], pn_v_float(isum[g]), acc);
            if (t->minimum) acc = pn_v_fma(m[i * groups + g], pn_v_bits_f(pn_v_bcast32(y.sums + 4 * g)), acc);
        }
    }
    return acc;
}

/* pn_tile_sum of 16-bit activations. */
PN_INLINE pn_vf pn_tile_sum16(const pn_tile_type *t, const pn_tile_part *part, const pn_tile_x *x, size_t chunk,
                              pn_vf total, pn_tile_unpacked *s)
{
    const pn_tile_x y = pn_tile_x_at(t, x, chunk * 8);
    const pn_vf acc = pn_tile_chunk(t, part, &y, pn_tile_use16, pn_v_zero_f(), s);
    return pn_v_fma(acc, pn_v_bits_f(pn_v_bcast32(x->scale + chunk * sizeof(float))), total);
}

PN_INLINE void pn_tile_one_column(const pn_matmul_args *a, const pn_tile_type *t)
{
    const pn_i16_layout l = pn_i16_layout_of((size_t)a->weight->cols);
    const uint8_t *packed = (const uint8_t *)a->packed;
    int32_t *start = (int32_t *)a->scratch;
    const pn_tile_x x = {packed + l.q,     packed + l.high,
                         packed + l.low,   packed + (t->fine ? l.sum16 : l.sum32),
                         packed + l.scale, start};

    for (size_t u = 0; u < l.n32 && t->least != 0; u++) {
        const pn_tile_x y = pn_tile_x_at(t, &x, u);
        pn_tile_start(t, &y, start + u * (t->fine ? 2 : 1));
    }
    pn_tile_walk(a, t, &x, (uint8_t *)(start + l.n32 * 2), pn_tile_sum16);
}

/* ---- many columns ------------------------------------------------------------------------------------------------ */

/* What becomes of the bytes of word number `word` of a chunk, of one group of PN_LANES rows. */
typedef void (*pn_tile_store)(const pn_tile_type *t, pn_vi bytes, size_t word, size_t group, int32_t (*w)[2][PN_LANES]);

/* Unpack block number `block` of a chunk: scales (and minima) to d and m, its bytes to `store`. */
PN_INLINE void pn_tile_unpack_block(const pn_tile_type *t, pn_rows rows, size_t block, size_t group,
                                    float (*d)[2][PN_LANES], float (*m)[2][PN_LANES], int32_t (*w)[2][PN_LANES],
                                    pn_tile_store store)
{
    const size_t groups = t->fine ? 2 : 1, offset = block * t->block_bytes, u0 = block * t->block_units;
    pn_vf scale[16], minimum[16];
    pn_vi keep[PN_TILE_KEEP];
    t->head(rows, offset, scale, minimum, keep);
    PN_UNROLL
    for (size_t i = 0; i < t->block_units * groups; i++) {
        pn_v_store_f(d[u0 * groups + i][group], scale[i]);
        if (t->minimum) pn_v_store_f(m[u0 * groups + i][group], minimum[i]);
    }
    PN_UNROLL
    for (size_t u = 0; u < t->block_units; u += t->span) {
        pn_vi bytes[8 * 8];
        t->bytes(rows, offset, u, keep, bytes);
        PN_UNROLL
        for (size_t i = 0; i < 8 * t->span; i++) store(t, bytes[i], (u0 + u) * 8 + i, group, w);
    }
}

/* The same for a chunk of one group of rows. */
PN_INLINE void pn_tile_unpack_to(const pn_tile_type *t, pn_rows rows, size_t units, size_t group,
                                 float (*d)[2][PN_LANES], float (*m)[2][PN_LANES], int32_t (*w)[2][PN_LANES],
                                 pn_tile_store store)
{
    if (pn_tile_reads(t, units)) {
        pn_vi words[PN_TILE_WORDS];
        PN_UNROLL
        for (size_t b = 0; b < 8 / t->block_units; b++)
            pn_tile_unpack_block(t, pn_tile_read(t, rows, b, words), b, group, d, m, w, store);
        return;
    }
    for (size_t b = 0; b * t->block_units < units; b++) pn_tile_unpack_block(t, rows, b, group, d, m, w, store);
}

PN_INLINE void pn_tile_store_pairs(const pn_tile_type *t, pn_vi bytes, size_t word, size_t group,
                                   int32_t (*w)[2][PN_LANES])
{
    pn_vi pair[2];
    pn_tile_widen(t, bytes, pair);
    pn_v_store(w[2 * word][group], pair[0]);
    pn_v_store(w[2 * word + 1][group], pair[1]);
}

PN_INLINE void pn_tile_unpack(const pn_tile_type *t, pn_rows rows, size_t units, size_t group, pn_tile_scratch *s)
{
    pn_tile_unpack_to(t, rows, units, group, s->d, s->m, s->w, pn_tile_store_pairs);
}

/* `nc` columns by the unpacked chunk: columns begin at q, sums, scale and lie `stride` bytes apart;
 * total[nc][PN_TILE_ROWS]. `next` is where the columns of the next tile have their activations, asked for meanwhile. */
PN_INLINE void pn_tile_columns(const pn_tile_type *t, const pn_tile_scratch *s, size_t units, const uint8_t *q,
                               const uint8_t *sums, const uint8_t *scale, size_t stride, uintptr_t next, float *total,
                               const size_t nc)
{
    const size_t groups = t->fine ? 2 : 1, pairs = 16 / groups;
    pn_vf acc[PN_TILE_COLUMNS][2];
    PN_UNROLL
    for (size_t c = 0; c < nc; c++) acc[c][0] = acc[c][1] = pn_v_zero_f();
    for (size_t i = 0; i < units * groups; i++) {
        pn_vi isum[PN_TILE_COLUMNS][2];
        const int32_t(*w)[2][PN_LANES] = s->w + i * pairs;
        const uint8_t *x = q + i * pairs * 4;
        PN_UNROLL
        for (size_t c = 0; c < nc; c++) {
            isum[c][0] = isum[c][1] = pn_v_zero();
            __builtin_prefetch((const void *)(next + c * stride + i * pairs * 4), 0, 3);
        }
        for (size_t p = 0; p < pairs; p += 4) {
            PN_UNROLL
            for (size_t j = 0; j < 4; j++) {
                const pn_vi w0 = pn_v_load(w[p + j][0]), w1 = pn_v_load(w[p + j][1]);
                PN_UNROLL
                for (size_t c = 0; c < nc; c++) {
                    const pn_vi b = pn_v_bcast32(x + c * stride + (p + j) * 4);
                    isum[c][0] = pn_v_dot16(isum[c][0], w0, b);
                    isum[c][1] = pn_v_dot16(isum[c][1], w1, b);
                }
            }
        }
        PN_UNROLL
        for (size_t c = 0; c < nc; c++) {
            acc[c][0] = pn_v_fma(pn_v_load_f(s->d[i][0]), pn_v_float(isum[c][0]), acc[c][0]);
            acc[c][1] = pn_v_fma(pn_v_load_f(s->d[i][1]), pn_v_float(isum[c][1]), acc[c][1]);
            if (t->minimum) {
                float sum;
                memcpy(&sum, sums + c * stride + i * sizeof sum, sizeof sum);
                acc[c][0] = pn_v_fma(pn_v_load_f(s->m[i][0]), pn_v_set_f(sum), acc[c][0]);
                acc[c][1] = pn_v_fma(pn_v_load_f(s->m[i][1]), pn_v_set_f(sum), acc[c][1]);
            }
        }
    }
    PN_UNROLL
    for (size_t c = 0; c < nc; c++) {
        float f, *o = total + c * PN_TILE_ROWS;
        memcpy(&f, scale + c * stride, sizeof f);
        pn_v_store_f(o, pn_v_fma(acc[c][0], pn_v_set_f(f), pn_v_load_f(o)));
        pn_v_store_f(o + PN_LANES, pn_v_fma(acc[c][1], pn_v_set_f(f), pn_v_load_f(o + PN_LANES)));
    }
}

/* All columns by the unpacked chunk, in tiles of nearly equal size. */
PN_INLINE void pn_tile_chunk_many(const pn_matmul_args *a, const pn_tile_type *t, const pn_tile_scratch *s,
                                  const pn_i16_layout *l, size_t chunk, size_t units, float *total)
{
    const size_t tiles = (a->columns + PN_TILE_COLUMNS - 1) / PN_TILE_COLUMNS, groups = t->fine ? 2 : 1,
                 stride = a->packed_stride;
    for (size_t i = 0, c = 0, nc; i < tiles; i++, c += nc) {
        const uint8_t *x = (const uint8_t *)a->packed + c * stride;
        const uint8_t *q = x + l->q + chunk * 512, *scale = x + l->scale + chunk * 4;
        const uint8_t *sums = x + (t->fine ? l->sum16 : l->sum32) + chunk * 32 * groups;
        float *o = total + c * PN_TILE_ROWS;
        nc = (a->columns - c + tiles - i - 1) / (tiles - i);
        const uintptr_t next = (uintptr_t)q + (i + 1 < tiles ? nc * stride : 0);
        switch (nc) {
        case 1: pn_tile_columns(t, s, units, q, sums, scale, stride, next, o, 1); break;
        case 2: pn_tile_columns(t, s, units, q, sums, scale, stride, next, o, 2); break;
        case 3: pn_tile_columns(t, s, units, q, sums, scale, stride, next, o, 3); break;
        case 4: pn_tile_columns(t, s, units, q, sums, scale, stride, next, o, 4); break;
#if PN_TILE_COLUMNS >= 5
        case 5: pn_tile_columns(t, s, units, q, sums, scale, stride, next, o, 5); break;
#endif
#if PN_TILE_COLUMNS >= 6
        case 6: pn_tile_columns(t, s, units, q, sums, scale, stride, next, o, 6); break;
#endif
#if PN_TILE_COLUMNS >= 7
        case 7: pn_tile_columns(t, s, units, q, sums, scale, stride, next, o, 7); break;
#endif
        default: break;
        }
    }
}

PN_APART void pn_tile_many_columns(const pn_matmul_args *a, const pn_tile_type *t)
{
    const pn_i16_layout l = pn_i16_layout_of((size_t)a->weight->cols);
    const size_t cols = (size_t)a->weight->cols;
    pn_tile_scratch *s = (pn_tile_scratch *)a->scratch;
    float *total = (float *)(s + 1);
    uint8_t *stage = (uint8_t *)(total + a->columns * PN_TILE_ROWS);

    for (uint64_t r = a->row_begin; r < a->row_end; r += PN_TILE_ROWS) {
        const pn_rows all = pn_tile_from(a, r);
        const size_t n = a->row_end - r < PN_TILE_ROWS ? (size_t)(a->row_end - r) : PN_TILE_ROWS;
        memset(total, 0, a->columns * PN_TILE_ROWS * sizeof(float));
        for (size_t c = 0; c < l.n256; c++) {
            const size_t units = pn_tile_units(cols, c);
            const pn_rows rows = pn_tile_stage(t, all, n, PN_TILE_ROWS, c, units, stage);
            pn_tile_unpack(t, rows, units, 0, s);
            pn_tile_unpack(t, pn_tile_second(rows), units, 1, s);
            pn_tile_chunk_many(a, t, s, &l, c, units, total);
        }
        for (size_t c = 0; c < a->columns; c++)
            memcpy(a->out + c * a->out_stride + r, total + c * PN_TILE_ROWS, n * sizeof(float));
    }
}

/* Body of pn_kernel.matmul. */
PN_INLINE pn_status pn_tile_i16_matmul(const pn_matmul_args *a, const pn_tile_type *t)
{
    if (a->scratch_bytes < pn_tile_scratch_bytes(t, (size_t)a->weight->cols, a->columns)) return PN_E_ARGUMENT;
    if (a->columns == 1) pn_tile_one_column(a, t);
    else pn_tile_many_columns(a, t);
    return PN_OK;
}

#endif

/* The core's own numeric operations, one table per CPU level: ops.c (C, the reference), ops_avx2.c, ops_avx512.c.
 *
 * Every result for one element, row or query depends on that row alone and on fixed lane orders, never on how many rows
 * a call has: the same bits whichever way work is cut. No function allocates. Pointers may have any alignment of their
 * element type. Input and output may be the same array where noted [in place], else they do not overlap.
 *
 * Levels agree to the last bit in add, mul, scale, relu, store_key_*, the half conversions and the packings; elsewhere
 * within 1e-6 of the result (activations, norms) or of the sum of absolute products (sums). A NaN gives NaN.
 */
#ifndef PN_OPS_H
#define PN_OPS_H

#include <pantheon/plugin.h>

/* Positions per block of the KV cache: attention walks keys in these blocks of positions, whatever asked for them. */
#define PN_KV_BLOCK 64

/* One block of keys and values of one kv head against n queries (rows of the batch times heads of the group). Query i
 * sees the keys begin[i] <= j < end[i] of the block (begin < end <= PN_KV_BLOCK). Online softmax (Milakov and
 * Gimelshein 2018, arXiv:1805.02867): a query's running maximum m, sum l and accumulator acc are updated; the caller
 * starts them with m = -INFINITY, l = 0, acc = 0 and divides acc by l at the end.
 *   s[j] = scale * sum_i q[i] * K[i][j]    (softcap > 0: softcap * tanh(s / softcap))
 *   m' = max(m, max_j s[j]);  acc = acc * e^(m - m') + sum_j e^(s[j] - m') V[j];  l likewise.
 * Sums over i ascend one at a time per key, and those of acc over j; l's sum gives key j to lane j mod the vector's
 * length. Keys outside a query's range change nothing, whatever they hold (NaN too). A query of NaN gives NaN.
 * Fastest with k and v aligned to 64 bytes, and with all queries of a kv head in one call. */
typedef struct pn_attend {
    const void *k;              /* [d][PN_KV_BLOCK] floats or halves: element i of key j at i * PN_KV_BLOCK + j */
    const void *v;              /* [PN_KV_BLOCK][dv] */
    size_t d, dv;               /* per head */
    size_t n;                   /* queries */
    const float *const *q;      /* [n] -> [d] */
    const uint8_t *begin, *end; /* [n] */
    float *m, *l;               /* [n] */
    float *const *acc;          /* [n] -> [dv] */
    float scale, softcap;
} pn_attend;

typedef struct pn_ops {
    const char *level;          /* "c", "avx2", "avx512" */
    uint64_t cpu_features;

    /* y = x / sqrt(mean(x^2) + eps) * scale; scale NULL = ones. [in place] */
    void (*rms_norm)(const float *x, const float *scale, float eps, size_t n, float *y);
    /* y = (x - mean) / sqrt(var + eps) * scale + bias; bias NULL = none. [in place] */
    void (*layer_norm)(const float *x, const float *scale, const float *bias, float eps, size_t n, float *y);
    void (*add)(const float *a, const float *b, size_t n, float *y);            /* [in place] */
    void (*mul)(const float *a, const float *b, size_t n, float *y);            /* [in place] */
    void (*scale)(const float *x, float factor, size_t n, float *y);            /* [in place] */
    void (*activation)(uint32_t kind, const float *x, size_t n, float *y);      /* PN_ACT_*, else NaN; [in place] */
    void (*glu)(uint32_t kind, const float *gate, const float *up, size_t n, float *y); /* act(gate) * up; [in place] */
    /* Turn n_heads heads of head_size elements in place: pair i of the first n_dims by (cosine[i], sine[i]).
     * PN_ROPE_INTERLEAVED: pairs (2i, 2i+1); PN_ROPE_HALVES: (i, i + n_dims/2). (a, b) -> (a c - b s, a s + b c). */
    void (*rope)(float *x, size_t n_heads, size_t head_size, size_t n_dims, uint32_t pairing, const float *cosine,
                 const float *sine);

    void (*attend_f32)(const pn_attend *a);
    void (*attend_f16)(const pn_attend *a);
    /* x[0..n) into column j of a key block (k[i * PN_KV_BLOCK + j] = x[i]), converting to half in the second. */
    void (*store_key_f32)(const float *x, size_t n, size_t j, float *k);
    void (*store_key_f16)(const float *x, size_t n, size_t j, uint16_t *k);

    /* IEEE half <-> float, to nearest even; subnormals stay, a NaN becomes quiet and keeps its upper payload. */
    void (*f16_from_f32)(const float *x, size_t n, uint16_t *y);
    void (*f32_from_f16)(const uint16_t *x, size_t n, float *y);

    /* sum of a[i] * b[i]. */
    float (*dot)(const float *a, const float *b, size_t n);
    /* Packings of kit/pack.h: one column; `out` aligned to 64, all its bytes written. */
    void (*pack_f32)(const float *x, size_t cols, void *out);
    void (*pack_i16)(const float *x, size_t cols, void *out);
    void (*pack_i8)(const float *x, size_t cols, void *out);
} pn_ops;

/* The best table that `features` (PN_CPU_*) permit. Never NULL. */
const pn_ops *pn_ops_for(uint64_t features);
/* Table number `index` of those compiled in, from the lowest; NULL past the end. For checkasm. */
const pn_ops *pn_ops_at(size_t index);

#endif

/* What the levels of pn_ops share: their tables, and the C functions that a higher level may take over. */
#ifndef PN_OPS_IMPL_H
#define PN_OPS_IMPL_H

#include "ops.h"
#include <pantheon/kit/pack.h>

/* One table per level. Those of an instruction set exist on its architecture alone. */
extern const pn_ops pn_ops_c, pn_ops_avx2, pn_ops_avx512;

/* Attention in C: ops_attend.c. */
void pn_attend_f32_c(const pn_attend *a);
void pn_attend_f16_c(const pn_attend *a);
/* Copies in C, which no vector makes faster. */
void pn_store_key_f32_c(const float *x, size_t n, size_t j, float *k);
void pn_pack_f32_c(const float *x, size_t cols, void *out);

/* Where the numbers of a chunk of packing "i16" go: as they are, and as high and low bytes. */
typedef struct pn_pack_to {
    int16_t *q;
    int8_t *high;
    uint8_t *low;
} pn_pack_to;

/* The numbers and their sums for one chunk of n <= 256 elements, padded to a multiple of 32; returns the scale. */
typedef float pn_pack_chunk(const float *x, size_t n, float *sum32, float *sum16, pn_pack_to to);
/* A whole column, chunk by chunk. */
void pn_pack_i16_with(pn_pack_chunk *chunk, const float *x, size_t cols, void *out);

/* 32 floats as q with one scale, which it returns, and the sums of both halves' q: a unit of packing "i8". */
typedef float pn_pack_unit(const float *x, int8_t *q, int32_t sum[2]);
/* A whole column, unit by unit. */
void pn_pack_i8_with(pn_pack_unit *unit, const float *x, size_t cols, void *out);

/* One half to float and back, as the hardware does it: to nearest even, NaN made quiet with its upper payload. */
static inline float pn_float_of_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, bits = (uint32_t)(h & 0x7fff) << 13;
    float f;
    if (bits < (uint32_t)0x0400 << 13) {
        f = (float)(bits >> 13) * 0x1p-24f;
        memcpy(&bits, &f, 4);
    } else if (bits < (uint32_t)0x7c00 << 13) {
        bits += (uint32_t)112 << 23;
    } else {
        bits += (uint32_t)224 << 23;
        if (bits & 0x7fffff)
            bits |= 0x400000;
    }
    bits |= sign;
    memcpy(&f, &bits, 4);
    return f;
}

static inline uint16_t pn_half_of_float(float x)
{
    uint32_t u, sign;
    memcpy(&u, &x, 4);
    sign = (u >> 16) & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x1ff));
    if (u >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);
    if (u < 0x38800000) {
        /* Adding 0.5, whose last place is the smallest half, rounds to a whole number of those. */
        float f;
        memcpy(&f, &u, 4);
        f += 0.5f;
        memcpy(&u, &f, 4);
        return (uint16_t)(sign | (u - 0x3f000000));
    }
    u = u - ((uint32_t)112 << 23) + 0xfff + (u >> 13 & 1);
    return (uint16_t)(sign | u >> 13);
}

#endif

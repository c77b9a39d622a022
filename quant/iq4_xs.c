/* The type iq4_xs: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "iq4_xs.h"

#define GROUPS 8
#define ROUNDS 3

/* Scale of group i, -32..31. */
static int iq4_xs_scale(const pn_iq4_xs_block *b, size_t i)
{
    const unsigned low = b->scales_low[i / 2] >> 4 * (i % 2) & 15u, high = pn_get16(b->scales_high) >> 2 * i & 3u;
    return (int)(low | high << 4) - 32;
}

static void iq4_xs_dequantize(const void *row, float *out, size_t n)
{
    const pn_iq4_xs_block *b = row;
    for (; n >= PN_IQ4_XS_ELEMS; n -= PN_IQ4_XS_ELEMS, b++) {
        for (size_t g = 0; g < GROUPS; g++, out += 32) {
            const float d = pn_get_half(b->d) * (float)iq4_xs_scale(b, g);
            const uint8_t *qs = b->qs + 16 * g;
            for (size_t i = 0; i < 16; i++) {
                out[i] = d * (float)pn_iq4_book[qs[i] & 15];
                out[i + 16] = d * (float)pn_iq4_book[qs[i] >> 4];
            }
        }
    }
}

/* A block being made. */
typedef struct attempt {
    const float *x, *importance;
    float fitted[GROUPS]; /* the scale that each group would like */
    int s[GROUPS];        /* what it gets, times d */
} attempt;

/* For the block's scale d: each group's best scale. Returns what all take from the squared error, and in *better the
 * least squares d for these scales and codes. */
static double iq4_xs_try(attempt *a, float d, float *better)
{
    double xv_all = 0, vv_all = 0;
    for (size_t g = 0; g < GROUPS; g++) {
        const float *x = a->x + 32 * g, *importance = a->importance ? a->importance + 32 * g : NULL;
        const float want = a->fitted[g] * pn_inverse(d);
        const int near = (int)(want + (want < 0 ? -0.5f : 0.5f));
        double best = 0, best_xv = 0, best_vv = 0;
        a->s[g] = 0;
        for (int s = near - 1; s <= near + 1; s++) {
            double xv, vv;
            if (s < -32 || s > 31) continue;
            pn_iq4_sums(x, importance, 32, d * (float)s, &xv, &vv);
            xv *= s;
            vv *= (double)s * s;
            const double gain = (double)d * (2 * xv - (double)d * vv);
            if (gain > best) {
                best = gain;
                best_xv = xv;
                best_vv = vv;
                a->s[g] = s;
            }
        }
        xv_all += best_xv;
        vv_all += best_vv;
    }
    *better = vv_all > 0 ? (float)(xv_all / vv_all) : d;
    return (double)d * (2 * xv_all - (double)d * vv_all);
}

/* The block's scale, as it is stored; its groups' scales are left in a->s. The largest group's scale may be any of the
 * larger numbers: a few are tried. */
static float iq4_xs_fit(attempt *a, float largest)
{
    float best = 0, next;
    double most = 0;
    for (int top = -32; top <= 31 && largest != 0.0f; top += top == -26 ? 52 : 1) {
        float d = largest / (float)top;
        for (int round = 0; round < ROUNDS; round++) {
            d = pn_half_to_float(pn_float_to_half(d));
            const double gain = iq4_xs_try(a, d, &next);
            if (gain > most) {
                most = gain;
                best = d;
            }
            d = next;
        }
    }
    iq4_xs_try(a, best, &next);
    return best;
}

static void iq4_xs_put(pn_iq4_xs_block *b, const attempt *a, float d)
{
    uint16_t high = 0;
    pn_put_half(b->d, d);
    memset(b->scales_low, 0, sizeof b->scales_low);
    for (size_t g = 0; g < GROUPS; g++) {
        const unsigned s = (unsigned)(a->s[g] + 32);
        const float inverse = pn_inverse(d * (float)a->s[g]), *x = a->x + 32 * g;
        b->scales_low[g / 2] = (uint8_t)(b->scales_low[g / 2] | (s & 15u) << 4 * (g % 2));
        high = (uint16_t)(high | s >> 4 << 2 * g);
        for (size_t i = 0; i < 16; i++)
            b->qs[16 * g + i] = (uint8_t)(pn_iq4_nearest(x[i] * inverse) | pn_iq4_nearest(x[i + 16] * inverse) << 4);
    }
    memcpy(b->scales_high, &high, sizeof high);
}

static pn_status iq4_xs_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_iq4_xs_block *b = row;
    for (; n >= PN_IQ4_XS_ELEMS; n -= PN_IQ4_XS_ELEMS, b++, x += PN_IQ4_XS_ELEMS) {
        attempt a = {.x = x, .importance = importance};
        float low = 0, high = 0, largest = 0;
        pn_status status = pn_range_of(x, PN_IQ4_XS_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        if (!pn_fits_half((high > -low ? high : -low) / (25.0f * 113.0f)))
            return pn_fail(err, PN_E_RANGE, "iq4_xs cannot hold values from %g to %g: its scale is a half", (double)low,
                           (double)high);
        for (size_t g = 0; g < GROUPS; g++) {
            status = pn_range_of(x + 32 * g, 32, &low, &high, err);
            if (status != PN_OK) return status;
            const float f =
                pn_iq4_fit(x + 32 * g, importance ? importance + 32 * g : NULL, 32, high > -low ? high : low);
            a.fitted[g] = f;
            if ((f < 0 ? -f : f) > (largest < 0 ? -largest : largest)) largest = f;
        }
        iq4_xs_put(b, &a, iq4_xs_fit(&a, largest));
        importance = importance ? importance + PN_IQ4_XS_ELEMS : NULL;
    }
    return PN_OK;
}

static void iq4_xs_byteswap(void *row, size_t n)
{
    pn_iq4_xs_block *b = row;
    for (; n >= PN_IQ4_XS_ELEMS; n -= PN_IQ4_XS_ELEMS, b++) {
        pn_swap16(b->d);
        pn_swap16(b->scales_high);
    }
}

static void iq4_xs_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_iq4_xs_block *b = (const pn_iq4_xs_block *)block;
    for (size_t g = 0; g < GROUPS; g++) {
        out->d[g] = pn_get_half(b->d) * (float)iq4_xs_scale(b, g);
        for (size_t i = 0; i < 16; i++) {
            out->code[32 * g + i] = pn_iq4_book[b->qs[16 * g + i] & 15];
            out->code[32 * g + i + 16] = pn_iq4_book[b->qs[16 * g + i] >> 4];
        }
    }
}

static const pn_block_type iq4_xs_block = {sizeof(pn_iq4_xs_block), PN_IQ4_XS_ELEMS, 0, 0, iq4_xs_unpack};

static size_t iq4_xs_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status iq4_xs_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &iq4_xs_block);
}

static pn_status iq4_xs_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &iq4_xs_block);
}

static const pn_quant iq4_xs_type = {.struct_size = sizeof(pn_quant),
                                     .name = "iq4_xs",
                                     .summary = "4 bits by a code book, a scale of 6 bits for each 32",
                                     .block_elems = PN_IQ4_XS_ELEMS,
                                     .block_bytes = sizeof(pn_iq4_xs_block),
                                     .dequantize = iq4_xs_dequantize,
                                     .quantize = iq4_xs_quantize,
                                     .byteswap = iq4_xs_byteswap};

static const pn_kernel iq4_xs_kernels[] = {
    PN_KERNEL(iq4_xs, i16, c, PN_SCORE_C, 0, 1, iq4_xs_scratch_c, iq4_xs_matmul_c),
    PN_KERNEL(iq4_xs, i8, c, PN_SCORE_C, 0, 1, iq4_xs_scratch_c, iq4_xs_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(iq4_xs, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq4_xs_scratch_avx2, pn_iq4_xs_matmul_avx2),
    PN_KERNEL(iq4_xs, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq4_xs_scratch_avx2, pn_iq4_xs_fast_avx2),
    PN_KERNEL(iq4_xs, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq4_xs_scratch_avx512,
              pn_iq4_xs_matmul_avx512),
    PN_KERNEL(iq4_xs, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_iq4_xs_scratch_avx512,
              pn_iq4_xs_matmul_amx),
    PN_KERNEL(iq4_xs, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq4_xs_scratch_avx512,
              pn_iq4_xs_fast_avx512),
    PN_KERNEL(iq4_xs, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_iq4_xs_scratch_avx512,
              pn_iq4_xs_fast_amx),
#endif
};

static pn_status iq4_xs_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &iq4_xs_type, iq4_xs_kernels, sizeof iq4_xs_kernels / sizeof *iq4_xs_kernels, err);
}

PN_PLUGIN("org.pantheon.iq4_xs", "0.1.0", "MIT", "the quantization type iq4_xs", 0, iq4_xs_init)

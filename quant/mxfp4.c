/* The type mxfp4: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "mxfp4.h"

/* 2^(e - 127) / 2; NaN for 255. */
static float mxfp4_scale(uint8_t e)
{
    const uint32_t bits = e == 255 ? 0x7fc00000u : e < 2 ? 0x00200000u << e : (e - 1u) << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void mxfp4_dequantize(const void *row, float *out, size_t n)
{
    const pn_mxfp4_block *b = row;
    for (; n >= PN_MXFP4_ELEMS; n -= PN_MXFP4_ELEMS, b++, out += PN_MXFP4_ELEMS) {
        const float d = mxfp4_scale(b->e);
        for (size_t i = 0; i < 16; i++) {
            out[i] = d * (float)pn_e2m1_book[b->qs[i] & 15];
            out[i + 16] = d * (float)pn_e2m1_book[b->qs[i] >> 4];
        }
    }
}

/* Largest 6 (4..8 before rounding) with the exponent `e` that the standard suggests; its neighbours may be nearer. */
static uint8_t mxfp4_exponent(const float *x, const float *importance, float largest)
{
    uint32_t bits;
    double least = 0;
    int e, best = 0;
    memcpy(&bits, &largest, sizeof bits);
    e = (int)(bits >> 23 & 255) - 2;
    for (int i = e - 1; i <= e + 1; i++) {
        const int exponent = i < 0 ? 0 : i;
        const double error = pn_e2m1_error(x, importance, PN_MXFP4_ELEMS, mxfp4_scale((uint8_t)exponent));
        if (i == e - 1 || error < least) {
            least = error;
            best = exponent;
        }
    }
    return (uint8_t)best;
}

static pn_status mxfp4_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_mxfp4_block *b = row;
    for (; n >= PN_MXFP4_ELEMS; n -= PN_MXFP4_ELEMS, b++, x += PN_MXFP4_ELEMS) {
        float low = 0, high = 0;
        pn_status status = pn_range_of(x, PN_MXFP4_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        b->e = mxfp4_exponent(x, importance, high > -low ? high : -low);
        const float inverse = pn_inverse(mxfp4_scale(b->e));
        for (size_t i = 0; i < 16; i++)
            b->qs[i] = (uint8_t)(pn_e2m1_nearest(x[i] * inverse) | pn_e2m1_nearest(x[i + 16] * inverse) << 4);
        importance = importance ? importance + PN_MXFP4_ELEMS : NULL;
    }
    return PN_OK;
}

static void mxfp4_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_mxfp4_block *b = (const pn_mxfp4_block *)block;
    out->d[0] = mxfp4_scale(b->e);
    for (size_t i = 0; i < 16; i++) {
        out->code[i] = pn_e2m1_book[b->qs[i] & 15];
        out->code[i + 16] = pn_e2m1_book[b->qs[i] >> 4];
    }
}

static const pn_block_type mxfp4_block = {sizeof(pn_mxfp4_block), PN_MXFP4_ELEMS, 0, 0, mxfp4_unpack};

static size_t mxfp4_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status mxfp4_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &mxfp4_block);
}

static pn_status mxfp4_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &mxfp4_block);
}

static const pn_quant mxfp4_type = {.struct_size = sizeof(pn_quant),
                                    .name = "mxfp4",
                                    .summary = "4-bit floats, a power of two for each 32 (OCP microscaling)",
                                    .block_elems = PN_MXFP4_ELEMS,
                                    .block_bytes = sizeof(pn_mxfp4_block),
                                    .dequantize = mxfp4_dequantize,
                                    .quantize = mxfp4_quantize};

static const pn_kernel mxfp4_kernels[] = {
    PN_KERNEL(mxfp4, i16, c, PN_SCORE_C, 0, 1, mxfp4_scratch_c, mxfp4_matmul_c),
    PN_KERNEL(mxfp4, i8, c, PN_SCORE_C, 0, 1, mxfp4_scratch_c, mxfp4_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(mxfp4, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_mxfp4_scratch_avx2, pn_mxfp4_matmul_avx2),
    PN_KERNEL(mxfp4, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_mxfp4_scratch_avx2, pn_mxfp4_fast_avx2),
    PN_KERNEL(mxfp4, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_mxfp4_scratch_avx512,
              pn_mxfp4_matmul_avx512),
    PN_KERNEL(mxfp4, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_mxfp4_scratch_avx512,
              pn_mxfp4_matmul_amx),
    PN_KERNEL(mxfp4, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_mxfp4_scratch_avx512, pn_mxfp4_fast_avx512),
    PN_KERNEL(mxfp4, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_mxfp4_scratch_avx512, pn_mxfp4_fast_amx),
#endif
};

static pn_status mxfp4_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &mxfp4_type, mxfp4_kernels, sizeof mxfp4_kernels / sizeof *mxfp4_kernels, err);
}

PN_PLUGIN("org.pantheon.mxfp4", "0.1.0", "MIT", "the quantization type mxfp4", 0, mxfp4_init)

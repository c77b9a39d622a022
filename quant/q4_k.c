/* The type q4_k: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "k_fit.h"
#include "k_scales.h"
#include "q4_k.h"

static void q4_k_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q4_k_block *b = (const pn_q4_k_block *)block;
    const float d = pn_get_half(b->d), dmin = pn_get_half(b->dmin);
    uint8_t scale[8], minimum[8];
    pn_k_scales_get(b->scales, scale, minimum);
    for (size_t g = 0; g < 8; g++) {
        const uint8_t *q = b->qs + g / 2 * 32;
        out->d[g] = d * (float)scale[g];
        out->m[g] = -(dmin * (float)minimum[g]);
        for (size_t i = 0; i < 32; i++) out->code[32 * g + i] = g & 1 ? q[i] >> 4 : q[i] & 15;
    }
}

static void q4_k_dequantize(const void *row, float *out, size_t n)
{
    const pn_q4_k_block *b = row;
    pn_codes codes;
    for (; n >= PN_Q4_K_ELEMS; n -= PN_Q4_K_ELEMS, b++, out += PN_Q4_K_ELEMS) {
        q4_k_unpack((const uint8_t *)b, &codes);
        for (size_t i = 0; i < PN_Q4_K_ELEMS; i++)
            out[i] = codes.d[i / 32] * (float)codes.code[i] + codes.m[i / 32];
    }
}

static const pn_k_shape q4_k_shape = {"q4_k", 8, 0, 15, 0, 63, 63};

static pn_status q4_k_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q4_k_block *b = row;
    pn_k_block fit;
    for (; n >= PN_Q4_K_ELEMS; n -= PN_Q4_K_ELEMS, b++, x += PN_Q4_K_ELEMS) {
        pn_status status = pn_k_fit(&q4_k_shape, x, importance, &fit, err);
        if (status != PN_OK) return status;
        pn_put_half(b->d, fit.d);
        pn_put_half(b->dmin, fit.dmin);
        pn_k_scales_put(fit.scale, fit.minimum, b->scales);
        for (size_t i = 0; i < 128; i++) {
            const int *code = fit.code + i / 32 * 64 + i % 32;
            b->qs[i] = (uint8_t)(code[0] | code[32] << 4);
        }
        importance = importance ? importance + PN_Q4_K_ELEMS : NULL;
    }
    return PN_OK;
}

static void q4_k_byteswap(void *row, size_t n)
{
    pn_q4_k_block *b = row;
    for (; n >= PN_Q4_K_ELEMS; n -= PN_Q4_K_ELEMS, b++) {
        pn_swap16(b->d);
        pn_swap16(b->dmin);
    }
}

static const pn_block_type q4_k_block = {sizeof(pn_q4_k_block), PN_Q4_K_ELEMS, 0, 1, q4_k_unpack};

static size_t q4_k_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q4_k_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q4_k_block);
}

static pn_status q4_k_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q4_k_block);
}

static const pn_quant q4_k_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q4_k",
                                   .summary = "4 bits, scales and minima of 6 bits for each 32",
                                   .block_elems = PN_Q4_K_ELEMS,
                                   .block_bytes = sizeof(pn_q4_k_block),
                                   .dequantize = q4_k_dequantize,
                                   .quantize = q4_k_quantize,
                                   .byteswap = q4_k_byteswap};

static const pn_kernel q4_k_kernels[] = {
    PN_KERNEL(q4_k, i16, c, PN_SCORE_C, 0, 1, q4_k_scratch_c, q4_k_matmul_c),
    PN_KERNEL(q4_k, i8, c, PN_SCORE_C, 0, 1, q4_k_scratch_c, q4_k_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q4_k, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q4_k_scratch_avx2, pn_q4_k_matmul_avx2),
    PN_KERNEL(q4_k, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q4_k_scratch_avx2, pn_q4_k_fast_avx2),
    PN_KERNEL(q4_k, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q4_k_scratch_avx512, pn_q4_k_matmul_avx512),
    PN_KERNEL(q4_k, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q4_k_scratch_avx512, pn_q4_k_matmul_amx),
    PN_KERNEL(q4_k, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q4_k_scratch_avx512, pn_q4_k_fast_avx512),
    PN_KERNEL(q4_k, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q4_k_scratch_avx512, pn_q4_k_fast_amx),
#endif
};

static pn_status q4_k_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q4_k_type, q4_k_kernels, sizeof q4_k_kernels / sizeof *q4_k_kernels, err);
}

PN_PLUGIN("org.pantheon.q4_k", "0.1.0", "MIT", "the quantization type q4_k", 0, q4_k_init)

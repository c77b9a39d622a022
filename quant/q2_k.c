/* The type q2_k: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "k_fit.h"
#include "q2_k.h"

static void q2_k_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q2_k_block *b = (const pn_q2_k_block *)block;
    const float d = pn_get_half(b->d), dmin = pn_get_half(b->dmin);
    for (size_t g = 0; g < 16; g++) {
        out->d[g] = d * (float)(b->scales[g] & 15);
        out->m[g] = -(dmin * (float)(b->scales[g] >> 4));
    }
    for (size_t u = 0; u < 8; u++)
        for (size_t i = 0; i < 32; i++) out->code[32 * u + i] = b->qs[u / 4 * 32 + i] >> u % 4 * 2 & 3;
}

static void q2_k_dequantize(const void *row, float *out, size_t n)
{
    const pn_q2_k_block *b = row;
    pn_codes codes;
    for (; n >= PN_Q2_K_ELEMS; n -= PN_Q2_K_ELEMS, b++, out += PN_Q2_K_ELEMS) {
        q2_k_unpack((const uint8_t *)b, &codes);
        for (size_t i = 0; i < PN_Q2_K_ELEMS; i++)
            out[i] = codes.d[i / 16] * (float)codes.code[i] + codes.m[i / 16];
    }
}

static const pn_k_shape q2_k_shape = {"q2_k", 16, 0, 3, 0, 15, 15};

static pn_status q2_k_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q2_k_block *b = row;
    pn_k_block fit;
    for (; n >= PN_Q2_K_ELEMS; n -= PN_Q2_K_ELEMS, b++, x += PN_Q2_K_ELEMS) {
        pn_status status = pn_k_fit(&q2_k_shape, x, importance, &fit, err);
        if (status != PN_OK) return status;
        pn_put_half(b->d, fit.d);
        pn_put_half(b->dmin, fit.dmin);
        for (size_t g = 0; g < 16; g++) b->scales[g] = (uint8_t)(fit.scale[g] | fit.minimum[g] << 4);
        for (size_t i = 0; i < 64; i++) {
            const int *code = fit.code + i / 32 * 128 + i % 32;
            b->qs[i] = (uint8_t)(code[0] | code[32] << 2 | code[64] << 4 | code[96] << 6);
        }
        importance = importance ? importance + PN_Q2_K_ELEMS : NULL;
    }
    return PN_OK;
}

static void q2_k_byteswap(void *row, size_t n)
{
    pn_q2_k_block *b = row;
    for (; n >= PN_Q2_K_ELEMS; n -= PN_Q2_K_ELEMS, b++) {
        pn_swap16(b->d);
        pn_swap16(b->dmin);
    }
}

static const pn_block_type q2_k_block = {sizeof(pn_q2_k_block), PN_Q2_K_ELEMS, 1, 1, q2_k_unpack};

static size_t q2_k_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q2_k_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q2_k_block);
}

static pn_status q2_k_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q2_k_block);
}

static const pn_quant q2_k_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q2_k",
                                   .summary = "2 bits, scales and minima of 4 bits for each 16",
                                   .block_elems = PN_Q2_K_ELEMS,
                                   .block_bytes = sizeof(pn_q2_k_block),
                                   .dequantize = q2_k_dequantize,
                                   .quantize = q2_k_quantize,
                                   .byteswap = q2_k_byteswap};

static const pn_kernel q2_k_kernels[] = {
    PN_KERNEL(q2_k, i16, c, PN_SCORE_C, 0, 1, q2_k_scratch_c, q2_k_matmul_c),
    PN_KERNEL(q2_k, i8, c, PN_SCORE_C, 0, 1, q2_k_scratch_c, q2_k_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q2_k, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q2_k_scratch_avx2, pn_q2_k_matmul_avx2),
    PN_KERNEL(q2_k, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q2_k_scratch_avx2, pn_q2_k_fast_avx2),
    PN_KERNEL(q2_k, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q2_k_scratch_avx512, pn_q2_k_matmul_avx512),
    PN_KERNEL(q2_k, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q2_k_scratch_avx512, pn_q2_k_fast_avx512),
#endif
};

static pn_status q2_k_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q2_k_type, q2_k_kernels, sizeof q2_k_kernels / sizeof *q2_k_kernels, err);
}

PN_PLUGIN("org.pantheon.q2_k", "0.1.0", "MIT", "the quantization type q2_k", 0, q2_k_init)

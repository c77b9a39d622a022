/* The type q6_k: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "k_fit.h"
#include "q6_k.h"

static void q6_k_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q6_k_block *b = (const pn_q6_k_block *)block;
    const float d = pn_get_half(b->d);
    for (size_t g = 0; g < 16; g++) out->d[g] = d * (float)(int8_t)b->scales[g];
    for (size_t c = 0; c < 2; c++) {
        const uint8_t *low = b->ql + 64 * c, *high = b->qh + 32 * c;
        int16_t *code = out->code + 128 * c;
        for (size_t i = 0; i < 32; i++) {
            code[i] = (int16_t)(((low[i] & 15) | (high[i] & 3) << 4) - 32);
            code[i + 32] = (int16_t)(((low[i + 32] & 15) | (high[i] >> 2 & 3) << 4) - 32);
            code[i + 64] = (int16_t)((low[i] >> 4 | (high[i] >> 4 & 3) << 4) - 32);
            code[i + 96] = (int16_t)((low[i + 32] >> 4 | high[i] >> 6 << 4) - 32);
        }
    }
}

static void q6_k_dequantize(const void *row, float *out, size_t n)
{
    const pn_q6_k_block *b = row;
    pn_codes codes;
    for (; n >= PN_Q6_K_ELEMS; n -= PN_Q6_K_ELEMS, b++, out += PN_Q6_K_ELEMS) {
        q6_k_unpack((const uint8_t *)b, &codes);
        for (size_t i = 0; i < PN_Q6_K_ELEMS; i++)
            out[i] = codes.d[i / 16] * (float)codes.code[i];
    }
}

static const pn_k_shape q6_k_shape = {"q6_k", 16, -32, 31, -128, 127, 0};

static pn_status q6_k_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q6_k_block *b = row;
    pn_k_block fit;
    for (; n >= PN_Q6_K_ELEMS; n -= PN_Q6_K_ELEMS, b++, x += PN_Q6_K_ELEMS) {
        pn_status status = pn_k_fit(&q6_k_shape, x, importance, &fit, err);
        if (status != PN_OK) return status;
        pn_put_half(b->d, fit.d);
        for (size_t i = 0; i < 16; i++) b->scales[i] = (uint8_t)fit.scale[i];
        memset(b->ql, 0, sizeof b->ql);
        memset(b->qh, 0, sizeof b->qh);
        for (size_t i = 0; i < PN_Q6_K_ELEMS; i++) {
            const size_t c = i / 128, j = i / 32 % 4, k = i % 32;
            const int code = fit.code[i] + 32;
            b->ql[64 * c + 32 * (j % 2) + k] |= (uint8_t)((code & 15) << (j / 2 * 4));
            b->qh[32 * c + k] |= (uint8_t)(code >> 4 << 2 * j);
        }
        importance = importance ? importance + PN_Q6_K_ELEMS : NULL;
    }
    return PN_OK;
}

static void q6_k_byteswap(void *row, size_t n)
{
    pn_q6_k_block *b = row;
    for (; n >= PN_Q6_K_ELEMS; n -= PN_Q6_K_ELEMS, b++) pn_swap16(b->d);
}

static const pn_block_type q6_k_block = {sizeof(pn_q6_k_block), PN_Q6_K_ELEMS, 1, 0, q6_k_unpack};

static size_t q6_k_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q6_k_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q6_k_block);
}

static pn_status q6_k_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q6_k_block);
}

static const pn_quant q6_k_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q6_k",
                                   .summary = "6 bits, scales of 8 bits for each 16",
                                   .block_elems = PN_Q6_K_ELEMS,
                                   .block_bytes = sizeof(pn_q6_k_block),
                                   .dequantize = q6_k_dequantize,
                                   .quantize = q6_k_quantize,
                                   .byteswap = q6_k_byteswap};

static const pn_kernel q6_k_kernels[] = {
    PN_KERNEL(q6_k, i16, c, PN_SCORE_C, 0, 1, q6_k_scratch_c, q6_k_matmul_c),
    PN_KERNEL(q6_k, i8, c, PN_SCORE_C, 0, 1, q6_k_scratch_c, q6_k_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q6_k, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q6_k_scratch_avx2, pn_q6_k_matmul_avx2),
    PN_KERNEL(q6_k, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q6_k_scratch_avx2, pn_q6_k_fast_avx2),
    PN_KERNEL(q6_k, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q6_k_scratch_avx512, pn_q6_k_matmul_avx512),
    PN_KERNEL(q6_k, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q6_k_scratch_avx512, pn_q6_k_fast_avx512),
#endif
};

static pn_status q6_k_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q6_k_type, q6_k_kernels, sizeof q6_k_kernels / sizeof *q6_k_kernels, err);
}

PN_PLUGIN("org.pantheon.q6_k", "0.1.0", "MIT", "the quantization type q6_k", 0, q6_k_init)

/* The type q3_k: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "k_fit.h"
#include "q3_k.h"

static void q3_k_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q3_k_block *b = (const pn_q3_k_block *)block;
    const float d = pn_get_half(b->d);
    for (size_t g = 0; g < 16; g++) {
        const int low = b->scales[g % 8] >> (g / 8 * 4) & 15, high = b->scales[8 + g % 4] >> (g / 4 * 2) & 3;
        out->d[g] = d * (float)((low | high << 4) - 32);
    }
    for (size_t u = 0; u < 8; u++)
        for (size_t i = 0; i < 32; i++)
            out->code[32 * u + i] =
                (int16_t)(((b->qs[u / 4 * 32 + i] >> u % 4 * 2 & 3) | (b->hmask[i] >> u & 1) << 2) - 4);
}

static void q3_k_dequantize(const void *row, float *out, size_t n)
{
    const pn_q3_k_block *b = row;
    pn_codes codes;
    for (; n >= PN_Q3_K_ELEMS; n -= PN_Q3_K_ELEMS, b++, out += PN_Q3_K_ELEMS) {
        q3_k_unpack((const uint8_t *)b, &codes);
        for (size_t i = 0; i < PN_Q3_K_ELEMS; i++)
            out[i] = codes.d[i / 16] * (float)codes.code[i];
    }
}

static const pn_k_shape q3_k_shape = {"q3_k", 16, -4, 3, -32, 31, 0};

static pn_status q3_k_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q3_k_block *b = row;
    pn_k_block fit;
    for (; n >= PN_Q3_K_ELEMS; n -= PN_Q3_K_ELEMS, b++, x += PN_Q3_K_ELEMS) {
        pn_status status = pn_k_fit(&q3_k_shape, x, importance, &fit, err);
        if (status != PN_OK) return status;
        pn_put_half(b->d, fit.d);
        memset(b->scales, 0, sizeof b->scales);
        memset(b->hmask, 0, sizeof b->hmask);
        memset(b->qs, 0, sizeof b->qs);
        for (size_t g = 0; g < 16; g++) {
            const int scale = fit.scale[g] + 32;
            b->scales[g % 8] |= (uint8_t)((scale & 15) << (g / 8 * 4));
            b->scales[8 + g % 4] |= (uint8_t)(scale >> 4 << (g / 4 * 2));
        }
        for (size_t i = 0; i < PN_Q3_K_ELEMS; i++) {
            const size_t u = i / 32, k = i % 32;
            const int code = fit.code[i] + 4;
            b->qs[u / 4 * 32 + k] |= (uint8_t)((code & 3) << u % 4 * 2);
            b->hmask[k] |= (uint8_t)(code >> 2 << u);
        }
        importance = importance ? importance + PN_Q3_K_ELEMS : NULL;
    }
    return PN_OK;
}

static void q3_k_byteswap(void *row, size_t n)
{
    pn_q3_k_block *b = row;
    for (; n >= PN_Q3_K_ELEMS; n -= PN_Q3_K_ELEMS, b++) pn_swap16(b->d);
}

static const pn_block_type q3_k_block = {sizeof(pn_q3_k_block), PN_Q3_K_ELEMS, 1, 0, q3_k_unpack};

static size_t q3_k_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q3_k_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q3_k_block);
}

static pn_status q3_k_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q3_k_block);
}

static const pn_quant q3_k_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q3_k",
                                   .summary = "3 bits, scales of 6 bits for each 16",
                                   .block_elems = PN_Q3_K_ELEMS,
                                   .block_bytes = sizeof(pn_q3_k_block),
                                   .dequantize = q3_k_dequantize,
                                   .quantize = q3_k_quantize,
                                   .byteswap = q3_k_byteswap};

static const pn_kernel q3_k_kernels[] = {
    PN_KERNEL(q3_k, i16, c, PN_SCORE_C, 0, 1, q3_k_scratch_c, q3_k_matmul_c),
    PN_KERNEL(q3_k, i8, c, PN_SCORE_C, 0, 1, q3_k_scratch_c, q3_k_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q3_k, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q3_k_scratch_avx2, pn_q3_k_matmul_avx2),
    PN_KERNEL(q3_k, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q3_k_scratch_avx2, pn_q3_k_fast_avx2),
    PN_KERNEL(q3_k, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q3_k_scratch_avx512, pn_q3_k_matmul_avx512),
    PN_KERNEL(q3_k, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q3_k_scratch_avx512, pn_q3_k_fast_avx512),
#endif
};

static pn_status q3_k_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q3_k_type, q3_k_kernels, sizeof q3_k_kernels / sizeof *q3_k_kernels, err);
}

PN_PLUGIN("org.pantheon.q3_k", "0.1.0", "MIT", "the quantization type q3_k", 0, q3_k_init)

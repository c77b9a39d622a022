/* The type q8_k: registration, conversion, and the kernel in C. */
#include <pantheon/kit/fit.h>
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "q8_k.h"

static void q8_k_dequantize(const void *row, float *out, size_t n)
{
    const pn_q8_k_block *b = row;
    for (; n >= PN_Q8_K_ELEMS; n -= PN_Q8_K_ELEMS, b++, out += PN_Q8_K_ELEMS) {
        const float d = pn_get_float(b->d);
        for (size_t i = 0; i < PN_Q8_K_ELEMS; i++) out[i] = d * (float)(int8_t)b->qs[i];
    }
}

/* The scale covers the range and every code is the nearest one: what is important makes no difference. */
static pn_status q8_k_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q8_k_block *b = row;
    (void)importance;
    for (; n >= PN_Q8_K_ELEMS; n -= PN_Q8_K_ELEMS, b++, x += PN_Q8_K_ELEMS) {
        float low = 0, high = 0;
        pn_status status = pn_range_of(x, PN_Q8_K_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        const float d = (high > -low ? high : -low) / 127.0f, inverse = pn_inverse(d);
        memcpy(b->d, &d, sizeof d);
        for (size_t g = 0; g < 16; g++) {
            int16_t sum = 0;
            for (size_t i = 16 * g; i < 16 * g + 16; i++) {
                const int code = pn_fit_code(x[i], inverse, 0.0f, -127, 127);
                b->qs[i] = (uint8_t)code;
                sum = (int16_t)(sum + code);
            }
            memcpy(b->sums + 2 * g, &sum, sizeof sum);
        }
    }
    return PN_OK;
}

static void q8_k_byteswap(void *row, size_t n)
{
    pn_q8_k_block *b = row;
    for (; n >= PN_Q8_K_ELEMS; n -= PN_Q8_K_ELEMS, b++) {
        pn_swap32(b->d);
        for (size_t i = 0; i < sizeof b->sums; i += 2) pn_swap16(b->sums + i);
    }
}

static void q8_k_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q8_k_block *b = (const pn_q8_k_block *)block;
    for (size_t g = 0; g < 8; g++) out->d[g] = pn_get_float(b->d);
    for (size_t i = 0; i < PN_Q8_K_ELEMS; i++) out->code[i] = (int8_t)b->qs[i];
}

static const pn_block_type q8_k_block = {sizeof(pn_q8_k_block), PN_Q8_K_ELEMS, 0, 0, q8_k_unpack};

static size_t q8_k_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q8_k_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q8_k_block);
}

static pn_status q8_k_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q8_k_block);
}

static const pn_quant q8_k_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q8_k",
                                   .summary = "8 bits, a float scale for each 256",
                                   .block_elems = PN_Q8_K_ELEMS,
                                   .block_bytes = sizeof(pn_q8_k_block),
                                   .dequantize = q8_k_dequantize,
                                   .quantize = q8_k_quantize,
                                   .byteswap = q8_k_byteswap};

static const pn_kernel q8_k_kernels[] = {
    PN_KERNEL(q8_k, i16, c, PN_SCORE_C, 0, 1, q8_k_scratch_c, q8_k_matmul_c),
    PN_KERNEL(q8_k, i8, c, PN_SCORE_C, 0, 1, q8_k_scratch_c, q8_k_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q8_k, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q8_k_scratch_avx2, pn_q8_k_matmul_avx2),
    PN_KERNEL(q8_k, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q8_k_scratch_avx2, pn_q8_k_fast_avx2),
    PN_KERNEL(q8_k, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q8_k_scratch_avx512, pn_q8_k_matmul_avx512),
    PN_KERNEL(q8_k, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q8_k_scratch_avx512, pn_q8_k_matmul_amx),
    PN_KERNEL(q8_k, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q8_k_scratch_avx512, pn_q8_k_fast_avx512),
    PN_KERNEL(q8_k, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q8_k_scratch_avx512, pn_q8_k_fast_amx),
#endif
};

static pn_status q8_k_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q8_k_type, q8_k_kernels, sizeof q8_k_kernels / sizeof *q8_k_kernels, err);
}

PN_PLUGIN("org.pantheon.q8_k", "0.1.0", "MIT", "the quantization type q8_k", 0, q8_k_init)

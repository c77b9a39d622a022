/* The type q5_0: registration, conversion, and the kernel in C. */
#include <pantheon/kit/fit.h>
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "q5_0.h"

/* Codes of element i and of element 16 + i, 0..31. */
static unsigned q5_0_low(const pn_q5_0_block *b, size_t i)
{
    return (b->qs[i] & 15u) | (pn_get32(b->qh) >> i & 1u) << 4;
}

static unsigned q5_0_high(const pn_q5_0_block *b, size_t i)
{
    return b->qs[i] >> 4 | (pn_get32(b->qh) >> (16 + i) & 1u) << 4;
}

static void q5_0_dequantize(const void *row, float *out, size_t n)
{
    const pn_q5_0_block *b = row;
    for (; n >= PN_Q5_0_ELEMS; n -= PN_Q5_0_ELEMS, b++, out += PN_Q5_0_ELEMS) {
        const float d = pn_get_half(b->d);
        for (size_t i = 0; i < 16; i++) {
            out[i] = d * (float)((int)q5_0_low(b, i) - 16);
            out[i + 16] = d * (float)((int)q5_0_high(b, i) - 16);
        }
    }
}

/* Codes 0..31 of a block. */
static void q5_0_put(pn_q5_0_block *b, const unsigned *code)
{
    uint32_t fifth = 0;
    for (size_t i = 0; i < 16; i++) b->qs[i] = (uint8_t)((code[i] & 15u) | (code[i + 16] & 15u) << 4);
    for (size_t i = 0; i < 32; i++) fifth |= (uint32_t)(code[i] >> 4 & 1u) << i;
    memcpy(b->qh, &fifth, sizeof fifth);
}

/* At first the element farthest from zero gets code 0, that is -16: its sign decides the sign of the scale. */
static pn_status q5_0_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q5_0_block *b = row;
    for (; n >= PN_Q5_0_ELEMS; n -= PN_Q5_0_ELEMS, b++, x += PN_Q5_0_ELEMS) {
        unsigned code[PN_Q5_0_ELEMS];
        float low = 0, high = 0, zero = 0;
        pn_status status = pn_range_of(x, PN_Q5_0_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        float d = (high > -low ? high : low) / -16.0f;
        if (!pn_fits_half(d))
            return pn_fail(err, PN_E_RANGE, "q5_0 cannot hold values from %g to %g: its scale is a half", (double)low,
                           (double)high);
        pn_fit(x, importance, PN_Q5_0_ELEMS, -16, 15, 0, &d, &zero);
        pn_put_half(b->d, d);
        for (size_t i = 0; i < PN_Q5_0_ELEMS; i++)
            code[i] = (unsigned)(pn_fit_code(x[i], pn_inverse(d), 0.0f, -16, 15) + 16);
        q5_0_put(b, code);
        importance = importance ? importance + PN_Q5_0_ELEMS : NULL;
    }
    return PN_OK;
}

static void q5_0_byteswap(void *row, size_t n)
{
    pn_q5_0_block *b = row;
    for (; n >= PN_Q5_0_ELEMS; n -= PN_Q5_0_ELEMS, b++) {
        pn_swap16(b->d);
        pn_swap32(b->qh);
    }
}

static void q5_0_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q5_0_block *b = (const pn_q5_0_block *)block;
    out->d[0] = pn_get_half(b->d);
    for (size_t i = 0; i < 16; i++) {
        out->code[i] = (int16_t)((int)q5_0_low(b, i) - 16);
        out->code[i + 16] = (int16_t)((int)q5_0_high(b, i) - 16);
    }
}

static const pn_block_type q5_0_block = {sizeof(pn_q5_0_block), PN_Q5_0_ELEMS, 0, 0, q5_0_unpack};

static size_t q5_0_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q5_0_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q5_0_block);
}

static pn_status q5_0_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q5_0_block);
}

static const pn_quant q5_0_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q5_0",
                                   .summary = "5 bits, a scale for each 32",
                                   .block_elems = PN_Q5_0_ELEMS,
                                   .block_bytes = sizeof(pn_q5_0_block),
                                   .dequantize = q5_0_dequantize,
                                   .quantize = q5_0_quantize,
                                   .byteswap = q5_0_byteswap};

static const pn_kernel q5_0_kernels[] = {
    PN_KERNEL(q5_0, i16, c, PN_SCORE_C, 0, 1, q5_0_scratch_c, q5_0_matmul_c),
    PN_KERNEL(q5_0, i8, c, PN_SCORE_C, 0, 1, q5_0_scratch_c, q5_0_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q5_0, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q5_0_scratch_avx2, pn_q5_0_matmul_avx2),
    PN_KERNEL(q5_0, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q5_0_scratch_avx2, pn_q5_0_fast_avx2),
    PN_KERNEL(q5_0, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q5_0_scratch_avx512, pn_q5_0_matmul_avx512),
    PN_KERNEL(q5_0, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q5_0_scratch_avx512, pn_q5_0_matmul_amx),
    PN_KERNEL(q5_0, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q5_0_scratch_avx512, pn_q5_0_fast_avx512),
    PN_KERNEL(q5_0, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q5_0_scratch_avx512, pn_q5_0_fast_amx),
#endif
};

static pn_status q5_0_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q5_0_type, q5_0_kernels, sizeof q5_0_kernels / sizeof *q5_0_kernels, err);
}

PN_PLUGIN("org.pantheon.q5_0", "0.1.0", "MIT", "the quantization type q5_0", 0, q5_0_init)

/* The type q4_0: registration, conversion, and the kernel in C. */
#include <pantheon/kit/fit.h>
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "q4_0.h"

static void q4_0_dequantize(const void *row, float *out, size_t n)
{
    const pn_q4_0_block *b = row;
    for (; n >= PN_Q4_0_ELEMS; n -= PN_Q4_0_ELEMS, b++, out += PN_Q4_0_ELEMS) {
        const float d = pn_get_half(b->d);
        for (size_t i = 0; i < 16; i++) {
            out[i] = d * (float)((b->qs[i] & 15) - 8);
            out[i + 16] = d * (float)((b->qs[i] >> 4) - 8);
        }
    }
}

/* At first the element farthest from zero gets code 0, that is -8: its sign decides the sign of the scale. */
static pn_status q4_0_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q4_0_block *b = row;
    for (; n >= PN_Q4_0_ELEMS; n -= PN_Q4_0_ELEMS, b++, x += PN_Q4_0_ELEMS) {
        float low = 0, high = 0, zero = 0;
        pn_status status = pn_range_of(x, PN_Q4_0_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        float d = (high > -low ? high : low) / -8.0f;
        if (!pn_fits_half(d))
            return pn_fail(err, PN_E_RANGE, "q4_0 cannot hold values from %g to %g: its scale is a half", (double)low,
                           (double)high);
        pn_fit(x, importance, PN_Q4_0_ELEMS, -8, 7, 0, &d, &zero);
        pn_put_half(b->d, d);
        for (size_t i = 0; i < 16; i++)
            b->qs[i] = (uint8_t)((pn_fit_code(x[i], pn_inverse(d), 0.0f, -8, 7) + 8) |
                                 (pn_fit_code(x[i + 16], pn_inverse(d), 0.0f, -8, 7) + 8) << 4);
        importance = importance ? importance + PN_Q4_0_ELEMS : NULL;
    }
    return PN_OK;
}

static void q4_0_byteswap(void *row, size_t n)
{
    pn_q4_0_block *b = row;
    for (; n >= PN_Q4_0_ELEMS; n -= PN_Q4_0_ELEMS, b++) pn_swap16(b->d);
}

static void q4_0_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q4_0_block *b = (const pn_q4_0_block *)block;
    out->d[0] = pn_get_half(b->d);
    for (size_t i = 0; i < 16; i++) {
        out->code[i] = (int16_t)((b->qs[i] & 15) - 8);
        out->code[i + 16] = (int16_t)((b->qs[i] >> 4) - 8);
    }
}

static const pn_block_type q4_0_block = {sizeof(pn_q4_0_block), PN_Q4_0_ELEMS, 0, 0, q4_0_unpack};

static size_t q4_0_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q4_0_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q4_0_block);
}

static pn_status q4_0_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q4_0_block);
}

static const pn_quant q4_0_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q4_0",
                                   .summary = "4 bits, a scale for each 32",
                                   .block_elems = PN_Q4_0_ELEMS,
                                   .block_bytes = sizeof(pn_q4_0_block),
                                   .dequantize = q4_0_dequantize,
                                   .quantize = q4_0_quantize,
                                   .byteswap = q4_0_byteswap};

static const pn_kernel q4_0_kernels[] = {
    PN_KERNEL(q4_0, i16, c, PN_SCORE_C, 0, 1, q4_0_scratch_c, q4_0_matmul_c),
    PN_KERNEL(q4_0, i8, c, PN_SCORE_C, 0, 1, q4_0_scratch_c, q4_0_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q4_0, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q4_0_scratch_avx2, pn_q4_0_matmul_avx2),
    PN_KERNEL(q4_0, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q4_0_scratch_avx2, pn_q4_0_fast_avx2),
    PN_KERNEL(q4_0, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q4_0_scratch_avx512, pn_q4_0_matmul_avx512),
    PN_KERNEL(q4_0, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q4_0_scratch_avx512, pn_q4_0_matmul_amx),
    PN_KERNEL(q4_0, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q4_0_scratch_avx512, pn_q4_0_fast_avx512),
    PN_KERNEL(q4_0, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q4_0_scratch_avx512, pn_q4_0_fast_amx),
#endif
};

static pn_status q4_0_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q4_0_type, q4_0_kernels, sizeof q4_0_kernels / sizeof *q4_0_kernels, err);
}

PN_PLUGIN("org.pantheon.q4_0", "0.1.0", "MIT", "the quantization type q4_0", 0, q4_0_init)

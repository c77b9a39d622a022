/* The type q8_1: registration, conversion, and the kernel in C. */
#include <pantheon/kit/fit.h>
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "q8_1.h"

static void q8_1_dequantize(const void *row, float *out, size_t n)
{
    const pn_q8_1_block *b = row;
    for (; n >= PN_Q8_1_ELEMS; n -= PN_Q8_1_ELEMS, b++, out += PN_Q8_1_ELEMS) {
        const float d = pn_get_half(b->d);
        for (size_t i = 0; i < PN_Q8_1_ELEMS; i++) out[i] = d * (float)b->qs[i];
    }
}

static pn_status q8_1_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q8_1_block *b = row;
    (void)importance; /* the largest element decides, not the weights of the errors */
    for (; n >= PN_Q8_1_ELEMS; n -= PN_Q8_1_ELEMS, b++, x += PN_Q8_1_ELEMS) {
        float low = 0, high = 0;
        int sum = 0;
        pn_status status = pn_range_of(x, PN_Q8_1_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        const float d = (high > -low ? high : -low) / 127.0f;
        pn_put_half(b->d, d);
        const float inverse = pn_inverse(pn_get_half(b->d)); /* of the scale as it is stored */
        for (size_t i = 0; i < PN_Q8_1_ELEMS; i++) {
            b->qs[i] = (int8_t)pn_fit_code(x[i], inverse, 0.0f, -127, 127);
            sum += b->qs[i];
        }
        const float s = pn_get_half(b->d) * (float)sum;
        if (!pn_fits_half(d) || !pn_fits_half(s))
            return pn_fail(err, PN_E_RANGE, "q8_1 cannot hold values from %g to %g: scale and sum are halfs",
                           (double)low, (double)high);
        pn_put_half(b->s, s);
    }
    return PN_OK;
}

static void q8_1_byteswap(void *row, size_t n)
{
    pn_q8_1_block *b = row;
    for (; n >= PN_Q8_1_ELEMS; n -= PN_Q8_1_ELEMS, b++) {
        pn_swap16(b->d);
        pn_swap16(b->s);
    }
}

static void q8_1_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q8_1_block *b = (const pn_q8_1_block *)block;
    out->d[0] = pn_get_half(b->d);
    for (size_t i = 0; i < PN_Q8_1_ELEMS; i++) out->code[i] = b->qs[i];
}

static const pn_block_type q8_1_block = {sizeof(pn_q8_1_block), PN_Q8_1_ELEMS, 0, 0, q8_1_unpack};

static size_t q8_1_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q8_1_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q8_1_block);
}

static pn_status q8_1_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q8_1_block);
}

static const pn_quant q8_1_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q8_1",
                                   .summary = "8 bits, a scale and the sum for each 32",
                                   .block_elems = PN_Q8_1_ELEMS,
                                   .block_bytes = sizeof(pn_q8_1_block),
                                   .dequantize = q8_1_dequantize,
                                   .quantize = q8_1_quantize,
                                   .byteswap = q8_1_byteswap};

static const pn_kernel q8_1_kernels[] = {
    PN_KERNEL(q8_1, i16, c, PN_SCORE_C, 0, 1, q8_1_scratch_c, q8_1_matmul_c),
    PN_KERNEL(q8_1, i8, c, PN_SCORE_C, 0, 1, q8_1_scratch_c, q8_1_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q8_1, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q8_1_scratch_avx2, pn_q8_1_matmul_avx2),
    PN_KERNEL(q8_1, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q8_1_scratch_avx2, pn_q8_1_fast_avx2),
    PN_KERNEL(q8_1, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q8_1_scratch_avx512, pn_q8_1_matmul_avx512),
    PN_KERNEL(q8_1, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q8_1_scratch_avx512, pn_q8_1_matmul_amx),
    PN_KERNEL(q8_1, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q8_1_scratch_avx512, pn_q8_1_fast_avx512),
    PN_KERNEL(q8_1, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q8_1_scratch_avx512, pn_q8_1_fast_amx),
#endif
};

static pn_status q8_1_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q8_1_type, q8_1_kernels, sizeof q8_1_kernels / sizeof *q8_1_kernels, err);
}

PN_PLUGIN("org.pantheon.q8_1", "0.1.0", "MIT", "the quantization type q8_1", 0, q8_1_init)

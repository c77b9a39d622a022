/* The type q8_0: registration, conversion, and the kernel in C. */
#include <pantheon/kit/fit.h>
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "q8_0.h"

static void q8_0_dequantize(const void *row, float *out, size_t n)
{
    const pn_q8_0_block *b = row;
    for (; n >= PN_Q8_0_ELEMS; n -= PN_Q8_0_ELEMS, b++, out += PN_Q8_0_ELEMS) {
        const float d = pn_get_half(b->d);
        for (size_t i = 0; i < PN_Q8_0_ELEMS; i++) out[i] = d * (float)b->qs[i];
    }
}

static pn_status q8_0_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q8_0_block *b = row;
    (void)importance; /* the largest element decides, not the weights of the errors */
    for (; n >= PN_Q8_0_ELEMS; n -= PN_Q8_0_ELEMS, b++, x += PN_Q8_0_ELEMS) {
        float low = 0, high = 0;
        pn_status status = pn_range_of(x, PN_Q8_0_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        const float d = (high > -low ? high : -low) / 127.0f;
        if (!pn_fits_half(d))
            return pn_fail(err, PN_E_RANGE, "q8_0 cannot hold values from %g to %g: its scale is a half", (double)low,
                           (double)high);
        pn_put_half(b->d, d);
        const float inverse = pn_inverse(pn_get_half(b->d)); /* of the scale as it is stored */
        for (size_t i = 0; i < PN_Q8_0_ELEMS; i++) b->qs[i] = (int8_t)pn_fit_code(x[i], inverse, 0.0f, -127, 127);
    }
    return PN_OK;
}

static void q8_0_byteswap(void *row, size_t n)
{
    pn_q8_0_block *b = row;
    for (; n >= PN_Q8_0_ELEMS; n -= PN_Q8_0_ELEMS, b++) pn_swap16(b->d);
}

/* As a KV cache type. */
static float q8_0_dot(const void *row, const float *x, size_t n)
{
    const pn_q8_0_block *b = row;
    float sum = 0;
    for (; n; b++) {
        const size_t m = n < PN_Q8_0_ELEMS ? n : PN_Q8_0_ELEMS;
        float part = 0;
        for (size_t i = 0; i < m; i++) part += (float)b->qs[i] * x[i];
        sum += pn_get_half(b->d) * part;
        x += m;
        n -= m;
    }
    return sum;
}

static void q8_0_axpy(float a, const void *row, float *y, size_t n)
{
    const pn_q8_0_block *b = row;
    for (; n; b++) {
        const size_t m = n < PN_Q8_0_ELEMS ? n : PN_Q8_0_ELEMS;
        const float d = pn_get_half(b->d);
        for (size_t i = 0; i < m; i++) y[i] += a * (d * (float)b->qs[i]);
        y += m;
        n -= m;
    }
}

static void q8_0_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q8_0_block *b = (const pn_q8_0_block *)block;
    out->d[0] = pn_get_half(b->d);
    for (size_t i = 0; i < PN_Q8_0_ELEMS; i++) out->code[i] = b->qs[i];
}

static const pn_block_type q8_0_block = {sizeof(pn_q8_0_block), PN_Q8_0_ELEMS, 0, 0, q8_0_unpack};

static size_t q8_0_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q8_0_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q8_0_block);
}

static pn_status q8_0_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q8_0_block);
}

static const pn_quant q8_0_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q8_0",
                                   .summary = "8 bits, a scale for each 32",
                                   .block_elems = PN_Q8_0_ELEMS,
                                   .block_bytes = sizeof(pn_q8_0_block),
                                   .dequantize = q8_0_dequantize,
                                   .quantize = q8_0_quantize,
                                   .byteswap = q8_0_byteswap,
                                   .dot = q8_0_dot,
                                   .axpy = q8_0_axpy};

static const pn_kernel q8_0_kernels[] = {
    PN_KERNEL(q8_0, i16, c, PN_SCORE_C, 0, 1, q8_0_scratch_c, q8_0_matmul_c),
    PN_KERNEL(q8_0, i8, c, PN_SCORE_C, 0, 1, q8_0_scratch_c, q8_0_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q8_0, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q8_0_scratch_avx2, pn_q8_0_matmul_avx2),
    PN_KERNEL(q8_0, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q8_0_scratch_avx2, pn_q8_0_fast_avx2),
    PN_KERNEL(q8_0, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q8_0_scratch_avx512, pn_q8_0_matmul_avx512),
    PN_KERNEL(q8_0, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q8_0_scratch_avx512, pn_q8_0_matmul_amx),
    PN_KERNEL(q8_0, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q8_0_scratch_avx512, pn_q8_0_fast_avx512),
    PN_KERNEL(q8_0, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q8_0_scratch_avx512, pn_q8_0_fast_amx),
#endif
};

static pn_status q8_0_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q8_0_type, q8_0_kernels, sizeof q8_0_kernels / sizeof *q8_0_kernels, err);
}

PN_PLUGIN("org.pantheon.q8_0", "0.1.0", "MIT", "the quantization type q8_0", 0, q8_0_init)

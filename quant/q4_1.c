/* The type q4_1: registration, conversion, and the kernel in C. */
#include <pantheon/kit/fit.h>
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "q4_1.h"

static void q4_1_dequantize(const void *row, float *out, size_t n)
{
    const pn_q4_1_block *b = row;
    for (; n >= PN_Q4_1_ELEMS; n -= PN_Q4_1_ELEMS, b++, out += PN_Q4_1_ELEMS) {
        const float d = pn_get_half(b->d), m = pn_get_half(b->m);
        for (size_t i = 0; i < 16; i++) {
            out[i] = d * (float)(b->qs[i] & 15) + m;
            out[i + 16] = d * (float)(b->qs[i] >> 4) + m;
        }
    }
}

static pn_status q4_1_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_q4_1_block *b = row;
    for (; n >= PN_Q4_1_ELEMS; n -= PN_Q4_1_ELEMS, b++, x += PN_Q4_1_ELEMS) {
        float low = 0, high = 0;
        pn_status status = pn_range_of(x, PN_Q4_1_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        float d = (high - low) / 15.0f, m = low;
        if (!pn_fits_half(d) || !pn_fits_half(m))
            return pn_fail(err, PN_E_RANGE, "q4_1 cannot hold values from %g to %g: scale and minimum are halfs",
                           (double)low, (double)high);
        pn_fit(x, importance, PN_Q4_1_ELEMS, 0, 15, 1, &d, &m);
        pn_put_half(b->d, d);
        pn_put_half(b->m, m);
        for (size_t i = 0; i < 16; i++)
            b->qs[i] = (uint8_t)(pn_fit_code(x[i], pn_inverse(d), m, 0, 15) |
                                 pn_fit_code(x[i + 16], pn_inverse(d), m, 0, 15) << 4);
        importance = importance ? importance + PN_Q4_1_ELEMS : NULL;
    }
    return PN_OK;
}

static void q4_1_byteswap(void *row, size_t n)
{
    pn_q4_1_block *b = row;
    for (; n >= PN_Q4_1_ELEMS; n -= PN_Q4_1_ELEMS, b++) {
        pn_swap16(b->d);
        pn_swap16(b->m);
    }
}

static void q4_1_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q4_1_block *b = (const pn_q4_1_block *)block;
    out->d[0] = pn_get_half(b->d);
    out->m[0] = pn_get_half(b->m);
    for (size_t i = 0; i < 16; i++) {
        out->code[i] = b->qs[i] & 15;
        out->code[i + 16] = b->qs[i] >> 4;
    }
}

static const pn_block_type q4_1_block = {sizeof(pn_q4_1_block), PN_Q4_1_ELEMS, 0, 1, q4_1_unpack};

static size_t q4_1_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q4_1_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q4_1_block);
}

static pn_status q4_1_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q4_1_block);
}

static const pn_quant q4_1_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q4_1",
                                   .summary = "4 bits, scale and minimum for each 32",
                                   .block_elems = PN_Q4_1_ELEMS,
                                   .block_bytes = sizeof(pn_q4_1_block),
                                   .dequantize = q4_1_dequantize,
                                   .quantize = q4_1_quantize,
                                   .byteswap = q4_1_byteswap};

static const pn_kernel q4_1_kernels[] = {
    PN_KERNEL(q4_1, i16, c, PN_SCORE_C, 0, 1, q4_1_scratch_c, q4_1_matmul_c),
    PN_KERNEL(q4_1, i8, c, PN_SCORE_C, 0, 1, q4_1_scratch_c, q4_1_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q4_1, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q4_1_scratch_avx2, pn_q4_1_matmul_avx2),
    PN_KERNEL(q4_1, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q4_1_scratch_avx2, pn_q4_1_fast_avx2),
    PN_KERNEL(q4_1, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q4_1_scratch_avx512, pn_q4_1_matmul_avx512),
    PN_KERNEL(q4_1, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q4_1_scratch_avx512, pn_q4_1_matmul_amx),
    PN_KERNEL(q4_1, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q4_1_scratch_avx512, pn_q4_1_fast_avx512),
    PN_KERNEL(q4_1, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q4_1_scratch_avx512, pn_q4_1_fast_amx),
#endif
};

static pn_status q4_1_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q4_1_type, q4_1_kernels, sizeof q4_1_kernels / sizeof *q4_1_kernels, err);
}

PN_PLUGIN("org.pantheon.q4_1", "0.1.0", "MIT", "the quantization type q4_1", 0, q4_1_init)

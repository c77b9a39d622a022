/* The type iq4_nl: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "iq4_nl.h"

static void iq4_nl_dequantize(const void *row, float *out, size_t n)
{
    const pn_iq4_nl_block *b = row;
    for (; n >= PN_IQ4_NL_ELEMS; n -= PN_IQ4_NL_ELEMS, b++, out += PN_IQ4_NL_ELEMS) {
        const float d = pn_get_half(b->d);
        for (size_t i = 0; i < 16; i++) {
            out[i] = d * (float)pn_iq4_book[b->qs[i] & 15];
            out[i + 16] = d * (float)pn_iq4_book[b->qs[i] >> 4];
        }
    }
}

static pn_status iq4_nl_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_iq4_nl_block *b = row;
    for (; n >= PN_IQ4_NL_ELEMS; n -= PN_IQ4_NL_ELEMS, b++, x += PN_IQ4_NL_ELEMS) {
        float low = 0, high = 0;
        pn_status status = pn_range_of(x, PN_IQ4_NL_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        const float d = pn_iq4_fit(x, importance, PN_IQ4_NL_ELEMS, high > -low ? high : low);
        if (!pn_fits_half(d))
            return pn_fail(err, PN_E_RANGE, "iq4_nl cannot hold values from %g to %g: its scale is a half", (double)low,
                           (double)high);
        pn_put_half(b->d, d);
        const float inverse = pn_inverse(pn_get_half(b->d)); /* of the scale as it is stored */
        for (size_t i = 0; i < 16; i++)
            b->qs[i] = (uint8_t)(pn_iq4_nearest(x[i] * inverse) | pn_iq4_nearest(x[i + 16] * inverse) << 4);
        importance = importance ? importance + PN_IQ4_NL_ELEMS : NULL;
    }
    return PN_OK;
}

static void iq4_nl_byteswap(void *row, size_t n)
{
    pn_iq4_nl_block *b = row;
    for (; n >= PN_IQ4_NL_ELEMS; n -= PN_IQ4_NL_ELEMS, b++) pn_swap16(b->d);
}

static void iq4_nl_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_iq4_nl_block *b = (const pn_iq4_nl_block *)block;
    out->d[0] = pn_get_half(b->d);
    for (size_t i = 0; i < 16; i++) {
        out->code[i] = pn_iq4_book[b->qs[i] & 15];
        out->code[i + 16] = pn_iq4_book[b->qs[i] >> 4];
    }
}

static const pn_block_type iq4_nl_block = {sizeof(pn_iq4_nl_block), PN_IQ4_NL_ELEMS, 0, 0, iq4_nl_unpack};

static size_t iq4_nl_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status iq4_nl_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &iq4_nl_block);
}

static pn_status iq4_nl_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &iq4_nl_block);
}

static const pn_quant iq4_nl_type = {.struct_size = sizeof(pn_quant),
                                     .name = "iq4_nl",
                                     .summary = "4 bits by a code book, a scale for each 32",
                                     .block_elems = PN_IQ4_NL_ELEMS,
                                     .block_bytes = sizeof(pn_iq4_nl_block),
                                     .dequantize = iq4_nl_dequantize,
                                     .quantize = iq4_nl_quantize,
                                     .byteswap = iq4_nl_byteswap};

static const pn_kernel iq4_nl_kernels[] = {
    PN_KERNEL(iq4_nl, i16, c, PN_SCORE_C, 0, 1, iq4_nl_scratch_c, iq4_nl_matmul_c),
    PN_KERNEL(iq4_nl, i8, c, PN_SCORE_C, 0, 1, iq4_nl_scratch_c, iq4_nl_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(iq4_nl, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq4_nl_scratch_avx2, pn_iq4_nl_matmul_avx2),
    PN_KERNEL(iq4_nl, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq4_nl_scratch_avx2, pn_iq4_nl_fast_avx2),
    PN_KERNEL(iq4_nl, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq4_nl_scratch_avx512,
              pn_iq4_nl_matmul_avx512),
    PN_KERNEL(iq4_nl, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_iq4_nl_scratch_avx512,
              pn_iq4_nl_matmul_amx),
    PN_KERNEL(iq4_nl, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq4_nl_scratch_avx512,
              pn_iq4_nl_fast_avx512),
    PN_KERNEL(iq4_nl, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_iq4_nl_scratch_avx512,
              pn_iq4_nl_fast_amx),
#endif
};

static pn_status iq4_nl_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &iq4_nl_type, iq4_nl_kernels, sizeof iq4_nl_kernels / sizeof *iq4_nl_kernels, err);
}

PN_PLUGIN("org.pantheon.iq4_nl", "0.1.0", "MIT", "the quantization type iq4_nl", 0, iq4_nl_init)

/* The type tq1_0: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "tq1_0.h"

/* The byte of element i, and which of its digits it is. */
typedef struct place {
    size_t byte, digit;
} place;

static place tq1_0_place(size_t i)
{
    return i < 160   ? (place){i % 32, i / 32}
           : i < 240 ? (place){32 + i % 16, (i - 160) / 16}
                     : (place){48 + i % 4, (i - 240) / 4};
}

static const uint8_t tq1_0_power[5] = {1, 3, 9, 27, 81};

/* Code of element i, -1..1. */
static int tq1_0_code(const pn_tq1_0_block *b, size_t i)
{
    const place p = tq1_0_place(i);
    const unsigned byte = p.byte < 48 ? b->qs[p.byte] : b->qh[p.byte - 48];
    return (int)((byte * tq1_0_power[p.digit] & 255u) * 3 >> 8) - 1;
}

static void tq1_0_dequantize(const void *row, float *out, size_t n)
{
    const pn_tq1_0_block *b = row;
    for (; n >= PN_TQ1_0_ELEMS; n -= PN_TQ1_0_ELEMS, b++, out += PN_TQ1_0_ELEMS) {
        const float d = pn_get_half(b->d);
        for (size_t i = 0; i < PN_TQ1_0_ELEMS; i++) out[i] = d * (float)tq1_0_code(b, i);
    }
}

static pn_status tq1_0_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_tq1_0_block *b = row;
    for (; n >= PN_TQ1_0_ELEMS; n -= PN_TQ1_0_ELEMS, b++, x += PN_TQ1_0_ELEMS) {
        float low = 0, high = 0;
        pn_status status = pn_range_of(x, PN_TQ1_0_ELEMS, &low, &high, err);
        if (status != PN_OK) return status;
        const float largest = high > -low ? high : -low;
        if (!pn_fits_half(largest))
            return pn_fail(err, PN_E_RANGE, "tq1_0 cannot hold values from %g to %g: its scale is a half", (double)low,
                           (double)high);
        const float d = pn_ternary_fit(x, importance, PN_TQ1_0_ELEMS, largest), inverse = pn_inverse(d);
        pn_put_half(b->d, d);
        unsigned number[52] = {0}; /* of five digits */
        for (size_t i = 0; i < PN_TQ1_0_ELEMS; i++) {
            const place p = tq1_0_place(i);
            number[p.byte] += (unsigned)(pn_fit_code(x[i], inverse, 0.0f, -1, 1) + 1) * tq1_0_power[4 - p.digit];
        }
        for (size_t i = 0; i < 52; i++) {
            const uint8_t fraction = (uint8_t)((number[i] * 256 + 242) / 243);
            if (i < 48) b->qs[i] = fraction;
            else b->qh[i - 48] = fraction;
        }
        importance = importance ? importance + PN_TQ1_0_ELEMS : NULL;
    }
    return PN_OK;
}

static void tq1_0_byteswap(void *row, size_t n)
{
    pn_tq1_0_block *b = row;
    for (; n >= PN_TQ1_0_ELEMS; n -= PN_TQ1_0_ELEMS, b++) pn_swap16(b->d);
}

static void tq1_0_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_tq1_0_block *b = (const pn_tq1_0_block *)block;
    for (size_t u = 0; u < PN_TQ1_0_ELEMS / 32; u++) out->d[u] = pn_get_half(b->d);
    for (size_t i = 0; i < PN_TQ1_0_ELEMS; i++) out->code[i] = (int16_t)tq1_0_code(b, i);
}

static const pn_block_type tq1_0_block = {sizeof(pn_tq1_0_block), PN_TQ1_0_ELEMS, 0, 0, tq1_0_unpack};

static size_t tq1_0_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status tq1_0_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &tq1_0_block);
}

static pn_status tq1_0_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &tq1_0_block);
}

static const pn_quant tq1_0_type = {.struct_size = sizeof(pn_quant),
                                    .name = "tq1_0",
                                    .summary = "ternary, five to a byte, a scale for each 256",
                                    .block_elems = PN_TQ1_0_ELEMS,
                                    .block_bytes = sizeof(pn_tq1_0_block),
                                    .dequantize = tq1_0_dequantize,
                                    .quantize = tq1_0_quantize,
                                    .byteswap = tq1_0_byteswap};

static const pn_kernel tq1_0_kernels[] = {
    PN_KERNEL(tq1_0, i16, c, PN_SCORE_C, 0, 1, tq1_0_scratch_c, tq1_0_matmul_c),
    PN_KERNEL(tq1_0, i8, c, PN_SCORE_C, 0, 1, tq1_0_scratch_c, tq1_0_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(tq1_0, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_tq1_0_scratch_avx2, pn_tq1_0_matmul_avx2),
    PN_KERNEL(tq1_0, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_tq1_0_scratch_avx2, pn_tq1_0_fast_avx2),
    PN_KERNEL(tq1_0, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_tq1_0_scratch_avx512,
              pn_tq1_0_matmul_avx512),
    PN_KERNEL(tq1_0, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_tq1_0_scratch_avx512,
              pn_tq1_0_matmul_amx),
    PN_KERNEL(tq1_0, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_tq1_0_scratch_avx512, pn_tq1_0_fast_avx512),
    PN_KERNEL(tq1_0, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_tq1_0_scratch_avx512, pn_tq1_0_fast_amx),
#endif
};

static pn_status tq1_0_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &tq1_0_type, tq1_0_kernels, sizeof tq1_0_kernels / sizeof *tq1_0_kernels, err);
}

PN_PLUGIN("org.pantheon.tq1_0", "0.1.0", "MIT", "the quantization type tq1_0", 0, tq1_0_init)

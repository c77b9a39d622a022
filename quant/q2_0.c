/* The type q2_0: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "q2_0.h"

static int q2_0_code(const pn_q2_0_block *b, size_t i)
{
    return (b->qs[i / 4] >> 2 * (i % 4) & 3) - 1;
}

static void q2_0_dequantize(const void *row, float *out, size_t n)
{
    const pn_q2_0_block *b = row;
    for (; n >= PN_Q2_0_ELEMS; n -= PN_Q2_0_ELEMS, b++, out += PN_Q2_0_ELEMS) {
        const float d = pn_get_half(b->d);
        for (size_t i = 0; i < PN_Q2_0_ELEMS; i++) out[i] = d * (float)q2_0_code(b, i);
    }
}

static void q2_0_byteswap(void *row, size_t n)
{
    pn_q2_0_block *b = row;
    for (; n >= PN_Q2_0_ELEMS; n -= PN_Q2_0_ELEMS, b++) pn_swap16(b->d);
}

static void q2_0_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_q2_0_block *b = (const pn_q2_0_block *)block;
    for (size_t u = 0; u < PN_Q2_0_ELEMS / 32; u++) out->d[u] = pn_get_half(b->d);
    for (size_t i = 0; i < PN_Q2_0_ELEMS; i++) out->code[i] = (int16_t)q2_0_code(b, i);
}

static const pn_block_type q2_0_block = {sizeof(pn_q2_0_block), PN_Q2_0_ELEMS, 0, 0, q2_0_unpack};

static size_t q2_0_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status q2_0_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &q2_0_block);
}

static pn_status q2_0_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &q2_0_block);
}

static const pn_quant q2_0_type = {.struct_size = sizeof(pn_quant),
                                   .name = "q2_0",
                                   .summary = "2 bits (-1, 0, 1, 2), a scale for each 64",
                                   .block_elems = PN_Q2_0_ELEMS,
                                   .block_bytes = sizeof(pn_q2_0_block),
                                   .dequantize = q2_0_dequantize,
                                   .byteswap = q2_0_byteswap};

static const pn_kernel q2_0_kernels[] = {
    PN_KERNEL(q2_0, i16, c, PN_SCORE_C, 0, 1, q2_0_scratch_c, q2_0_matmul_c),
    PN_KERNEL(q2_0, i8, c, PN_SCORE_C, 0, 1, q2_0_scratch_c, q2_0_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(q2_0, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q2_0_scratch_avx2, pn_q2_0_matmul_avx2),
    PN_KERNEL(q2_0, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_q2_0_scratch_avx2, pn_q2_0_fast_avx2),
    PN_KERNEL(q2_0, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q2_0_scratch_avx512, pn_q2_0_matmul_avx512),
    PN_KERNEL(q2_0, i16, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q2_0_scratch_avx512, pn_q2_0_matmul_amx),
    PN_KERNEL(q2_0, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_q2_0_scratch_avx512, pn_q2_0_fast_avx512),
    PN_KERNEL(q2_0, i8, amx, PN_SCORE_AMX, PN_LEVEL_AMX, 32, pn_q2_0_scratch_avx512, pn_q2_0_fast_amx),
#endif
};

static pn_status q2_0_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &q2_0_type, q2_0_kernels, sizeof q2_0_kernels / sizeof *q2_0_kernels, err);
}

PN_PLUGIN("org.pantheon.q2_0", "0.1.0", "MIT", "the quantization type q2_0", 0, q2_0_init)

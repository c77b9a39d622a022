/* The type iq1_s: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include "iq1_grid.h"
#include "iq1_s.h"

/* Exact: d * (2 scale + 1) * code has fewer bits than a float. */
static void iq1_s_dequantize(const void *row, float *out, size_t n)
{
    pn_c_dequantize(&iq1_s_block, row, out, n);
}

static void iq1_s_byteswap(void *row, size_t n)
{
    pn_iq1_s_block *b = row;
    for (; n >= PN_IQ1_S_ELEMS; n -= PN_IQ1_S_ELEMS, b++) {
        pn_swap16(b->d);
        for (size_t g = 0; g < 8; g++) pn_swap16(b->qh[g]);
    }
}

static size_t iq1_s_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status iq1_s_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &iq1_s_block);
}

static pn_status iq1_s_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &iq1_s_block);
}

static const pn_quant iq1_s_type = {.struct_size = sizeof(pn_quant),
                                    .name = "iq1_s",
                                    .summary = "code book of 2048 in 1.56 bits, a scale for each 32",
                                    .block_elems = PN_IQ1_S_ELEMS,
                                    .block_bytes = sizeof(pn_iq1_s_block),
                                    .dequantize = iq1_s_dequantize,
                                    .byteswap = iq1_s_byteswap};

static const pn_kernel iq1_s_kernels[] = {
    PN_KERNEL(iq1_s, i16, c, PN_SCORE_C, 0, 1, iq1_s_scratch_c, iq1_s_matmul_c),
    PN_KERNEL(iq1_s, i8, c, PN_SCORE_C, 0, 1, iq1_s_scratch_c, iq1_s_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(iq1_s, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq1_s_scratch_avx2, pn_iq1_s_matmul_avx2),
    PN_KERNEL(iq1_s, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq1_s_scratch_avx2, pn_iq1_s_fast_avx2),
    PN_KERNEL(iq1_s, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq1_s_scratch_avx512,
              pn_iq1_s_matmul_avx512),
    PN_KERNEL(iq1_s, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq1_s_scratch_avx512, pn_iq1_s_fast_avx512),
#endif
};

static pn_status iq1_s_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &iq1_s_type, iq1_s_kernels, sizeof iq1_s_kernels / sizeof *iq1_s_kernels, err);
}

PN_PLUGIN("org.pantheon.iq1_s", "0.1.0", "MIT", "the quantization type iq1_s", 0, iq1_s_init)

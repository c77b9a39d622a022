/* The type iq1_m: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include "iq1_grid.h"
#include "iq1_m.h"

/* Exact: d * (2 scale + 1) * code has fewer bits than a float. */
static void iq1_m_dequantize(const void *row, float *out, size_t n)
{
    pn_c_dequantize(&iq1_m_block, row, out, n);
}

static void iq1_m_byteswap(void *row, size_t n)
{
    pn_iq1_m_block *b = row;
    for (; n >= PN_IQ1_M_ELEMS; n -= PN_IQ1_M_ELEMS, b++) {
        for (size_t i = 0; i < 4; i++) pn_swap16(b->scales[i]);
    }
}

static size_t iq1_m_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status iq1_m_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &iq1_m_block);
}

static pn_status iq1_m_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &iq1_m_block);
}

static const pn_quant iq1_m_type = {.struct_size = sizeof(pn_quant),
                                    .name = "iq1_m",
                                    .summary = "code book of 2048 in 1.75 bits, a scale for each 16",
                                    .block_elems = PN_IQ1_M_ELEMS,
                                    .block_bytes = sizeof(pn_iq1_m_block),
                                    .dequantize = iq1_m_dequantize,
                                    .byteswap = iq1_m_byteswap};

static const pn_kernel iq1_m_kernels[] = {
    PN_KERNEL(iq1_m, i16, c, PN_SCORE_C, 0, 1, iq1_m_scratch_c, iq1_m_matmul_c),
    PN_KERNEL(iq1_m, i8, c, PN_SCORE_C, 0, 1, iq1_m_scratch_c, iq1_m_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(iq1_m, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq1_m_scratch_avx2, pn_iq1_m_matmul_avx2),
    PN_KERNEL(iq1_m, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq1_m_scratch_avx2, pn_iq1_m_fast_avx2),
    PN_KERNEL(iq1_m, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq1_m_scratch_avx512,
              pn_iq1_m_matmul_avx512),
    PN_KERNEL(iq1_m, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq1_m_scratch_avx512, pn_iq1_m_fast_avx512),
#endif
};

static pn_status iq1_m_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &iq1_m_type, iq1_m_kernels, sizeof iq1_m_kernels / sizeof *iq1_m_kernels, err);
}

PN_PLUGIN("org.pantheon.iq1_m", "0.1.0", "MIT", "the quantization type iq1_m", 0, iq1_m_init)

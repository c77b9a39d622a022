/* The type iq3_xxs: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include "iq3_xxs_grid.h"
#include "iq3_xxs.h"

/* Exact: d * (2 scale + 1) * code has fewer bits than a float. */
static void iq3_xxs_dequantize(const void *row, float *out, size_t n)
{
    pn_c_dequantize(&iq3_xxs_block, row, out, n);
}

static void iq3_xxs_byteswap(void *row, size_t n)
{
    pn_iq3_xxs_block *b = row;
    for (; n >= PN_IQ3_XXS_ELEMS; n -= PN_IQ3_XXS_ELEMS, b++) {
        pn_swap16(b->d);
        for (size_t g = 0; g < 8; g++) pn_swap32(b->signs[g]);
    }
}

static size_t iq3_xxs_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status iq3_xxs_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &iq3_xxs_block);
}

static pn_status iq3_xxs_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &iq3_xxs_block);
}

static const pn_quant iq3_xxs_type = {.struct_size = sizeof(pn_quant),
                                      .name = "iq3_xxs",
                                      .summary = "code book of 256 in 3.06 bits, a scale for each 32",
                                      .block_elems = PN_IQ3_XXS_ELEMS,
                                      .block_bytes = sizeof(pn_iq3_xxs_block),
                                      .dequantize = iq3_xxs_dequantize,
                                      .byteswap = iq3_xxs_byteswap};

static const pn_kernel iq3_xxs_kernels[] = {
    PN_KERNEL(iq3_xxs, i16, c, PN_SCORE_C, 0, 1, iq3_xxs_scratch_c, iq3_xxs_matmul_c),
    PN_KERNEL(iq3_xxs, i8, c, PN_SCORE_C, 0, 1, iq3_xxs_scratch_c, iq3_xxs_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(iq3_xxs, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq3_xxs_scratch_avx2, pn_iq3_xxs_matmul_avx2),
    PN_KERNEL(iq3_xxs, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq3_xxs_scratch_avx2, pn_iq3_xxs_fast_avx2),
    PN_KERNEL(iq3_xxs, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq3_xxs_scratch_avx512,
              pn_iq3_xxs_matmul_avx512),
    PN_KERNEL(iq3_xxs, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq3_xxs_scratch_avx512,
              pn_iq3_xxs_fast_avx512),
#endif
};

static pn_status iq3_xxs_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &iq3_xxs_type, iq3_xxs_kernels, sizeof iq3_xxs_kernels / sizeof *iq3_xxs_kernels,
                            err);
}

PN_PLUGIN("org.pantheon.iq3_xxs", "0.1.0", "MIT", "the quantization type iq3_xxs", 0, iq3_xxs_init)

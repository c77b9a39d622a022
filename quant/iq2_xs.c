/* The type iq2_xs: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include "iq2_xs_grid.h"
#include "iq2_xs.h"

/* Exact: d * (2 scale + 1) * code has fewer bits than a float. */
static void iq2_xs_dequantize(const void *row, float *out, size_t n)
{
    pn_c_dequantize(&iq2_xs_block, row, out, n);
}

static void iq2_xs_byteswap(void *row, size_t n)
{
    pn_iq2_xs_block *b = row;
    for (; n >= PN_IQ2_XS_ELEMS; n -= PN_IQ2_XS_ELEMS, b++) {
        pn_swap16(b->d);
        for (size_t i = 0; i < 32; i++) pn_swap16(b->qs[i]);
    }
}

static size_t iq2_xs_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status iq2_xs_matmul_c(const pn_matmul_args *args)
{
    return pn_c_i16_matmul(args, &iq2_xs_block);
}

static pn_status iq2_xs_fast_c(const pn_matmul_args *args)
{
    return pn_c_i8_matmul(args, &iq2_xs_block);
}

static const pn_quant iq2_xs_type = {.struct_size = sizeof(pn_quant),
                                     .name = "iq2_xs",
                                     .summary = "code book of 512 in 2.31 bits, a scale for each 16",
                                     .block_elems = PN_IQ2_XS_ELEMS,
                                     .block_bytes = sizeof(pn_iq2_xs_block),
                                     .dequantize = iq2_xs_dequantize,
                                     .byteswap = iq2_xs_byteswap};

static const pn_kernel iq2_xs_kernels[] = {
    PN_KERNEL(iq2_xs, i16, c, PN_SCORE_C, 0, 1, iq2_xs_scratch_c, iq2_xs_matmul_c),
    PN_KERNEL(iq2_xs, i8, c, PN_SCORE_C, 0, 1, iq2_xs_scratch_c, iq2_xs_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(iq2_xs, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq2_xs_scratch_avx2, pn_iq2_xs_matmul_avx2),
    PN_KERNEL(iq2_xs, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_iq2_xs_scratch_avx2, pn_iq2_xs_fast_avx2),
    PN_KERNEL(iq2_xs, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq2_xs_scratch_avx512,
              pn_iq2_xs_matmul_avx512),
    PN_KERNEL(iq2_xs, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_iq2_xs_scratch_avx512,
              pn_iq2_xs_fast_avx512),
#endif
};

static pn_status iq2_xs_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &iq2_xs_type, iq2_xs_kernels, sizeof iq2_xs_kernels / sizeof *iq2_xs_kernels, err);
}

PN_PLUGIN("org.pantheon.iq2_xs", "0.1.0", "MIT", "the quantization type iq2_xs", 0, iq2_xs_init)

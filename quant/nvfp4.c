/* The type nvfp4: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "nvfp4.h"

#define GROUP 16
#define GROUPS 4
#define LARGEST 0x7e /* the largest scale, 448 */

/* Half a scale: of doubled values. As a half its bits are 2^-8 times the scale. */
static float nvfp4_scale(uint8_t code)
{
    return code == 127 ? 0.0f : pn_half_to_float((uint16_t)((code & 127) << 7)) * 128.0f;
}

static void nvfp4_dequantize(const void *row, float *out, size_t n)
{
    const pn_nvfp4_block *b = row;
    for (; n >= PN_NVFP4_ELEMS; n -= PN_NVFP4_ELEMS, b++) {
        for (size_t g = 0; g < GROUPS; g++, out += GROUP) {
            const float d = nvfp4_scale(b->d[g]);
            for (size_t i = 0; i < 8; i++) {
                out[i] = d * (float)pn_e2m1_book[b->qs[8 * g + i] & 15];
                out[i + 8] = d * (float)pn_e2m1_book[b->qs[8 * g + i] >> 4];
            }
        }
    }
}

/* The scale whose squared error is smallest: the smallest one that holds `largest`, or one of those around it. */
static uint8_t nvfp4_fit(const float *x, const float *importance, float largest)
{
    double least = 0;
    int top = 0, best = 0;
    while (top < LARGEST && nvfp4_scale((uint8_t)top) * 12.0f < largest) top++;
    for (int code = top; code >= 0 && code >= top - 8; code--) {
        const double error = pn_e2m1_error(x, importance, GROUP, nvfp4_scale((uint8_t)code));
        if (code == top || error < least) {
            least = error;
            best = code;
        }
    }
    for (int code = top + 1; code <= LARGEST && code <= top + 8; code++) {
        const double error = pn_e2m1_error(x, importance, GROUP, nvfp4_scale((uint8_t)code));
        if (error < least) {
            least = error;
            best = code;
        }
    }
    return (uint8_t)best;
}

static pn_status nvfp4_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    pn_nvfp4_block *b = row;
    for (; n >= PN_NVFP4_ELEMS; n -= PN_NVFP4_ELEMS, b++) {
        for (size_t g = 0; g < GROUPS; g++, x += GROUP) {
            float low = 0, high = 0;
            pn_status status = pn_range_of(x, GROUP, &low, &high, err);
            if (status != PN_OK) return status;
            if (high > 448.0f * 6.0f || low < -448.0f * 6.0f)
                return pn_fail(err, PN_E_RANGE, "nvfp4 cannot hold values from %g to %g: 2688 is its largest",
                               (double)low, (double)high);
            b->d[g] = nvfp4_fit(x, importance, high > -low ? high : -low);
            const float inverse = pn_inverse(nvfp4_scale(b->d[g]));
            for (size_t i = 0; i < 8; i++)
                b->qs[8 * g + i] =
                    (uint8_t)(pn_e2m1_nearest(x[i] * inverse) | pn_e2m1_nearest(x[i + 8] * inverse) << 4);
            importance = importance ? importance + GROUP : NULL;
        }
    }
    return PN_OK;
}

static void nvfp4_unpack(const uint8_t *block, pn_codes *out)
{
    const pn_nvfp4_block *b = (const pn_nvfp4_block *)block;
    for (size_t g = 0; g < GROUPS; g++) {
        out->d[g] = nvfp4_scale(b->d[g]);
        for (size_t i = 0; i < 8; i++) {
            out->code[16 * g + i] = pn_e2m1_book[b->qs[8 * g + i] & 15];
            out->code[16 * g + i + 8] = pn_e2m1_book[b->qs[8 * g + i] >> 4];
        }
    }
}

static const char *const nvfp4_sides[] = {"scale"};

pn_status pn_nvfp4_scaled(const pn_matmul_args *args, pn_status status)
{
    const pn_tensor *side = args->weight->n_side ? args->weight->side[0] : NULL;
    if (status != PN_OK || !side) return status;
    if (!side->type || strcmp(side->type, "f32") || side->size != sizeof(float)) return PN_E_UNSUPPORTED;
    const float scale = pn_get_float(side->data);
    for (size_t c = 0; c < args->columns; c++)
        for (uint64_t r = args->row_begin; r < args->row_end; r++) args->out[c * args->out_stride + r] *= scale;
    return PN_OK;
}

static const pn_block_type nvfp4_block = {sizeof(pn_nvfp4_block), PN_NVFP4_ELEMS, 1, 0, nvfp4_unpack};

static size_t nvfp4_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    return pn_c_i16_scratch(columns);
}

static pn_status nvfp4_matmul_c(const pn_matmul_args *args)
{
    return pn_nvfp4_scaled(args, pn_c_i16_matmul(args, &nvfp4_block));
}

static pn_status nvfp4_fast_c(const pn_matmul_args *args)
{
    return pn_nvfp4_scaled(args, pn_c_i8_matmul(args, &nvfp4_block));
}

static const pn_quant nvfp4_type = {.struct_size = sizeof(pn_quant),
                                    .name = "nvfp4",
                                    .summary = "4-bit floats, an 8-bit float for each 16",
                                    .block_elems = PN_NVFP4_ELEMS,
                                    .block_bytes = sizeof(pn_nvfp4_block),
                                    .dequantize = nvfp4_dequantize,
                                    .quantize = nvfp4_quantize,
                                    .side_suffixes = nvfp4_sides,
                                    .n_side = 1};

static const pn_kernel nvfp4_kernels[] = {
    PN_KERNEL(nvfp4, i16, c, PN_SCORE_C, 0, 1, nvfp4_scratch_c, nvfp4_matmul_c),
    PN_KERNEL(nvfp4, i8, c, PN_SCORE_C, 0, 1, nvfp4_scratch_c, nvfp4_fast_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(nvfp4, i16, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_nvfp4_scratch_avx2, pn_nvfp4_matmul_avx2),
    PN_KERNEL(nvfp4, i8, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 16, pn_nvfp4_scratch_avx2, pn_nvfp4_fast_avx2),
    PN_KERNEL(nvfp4, i16, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_nvfp4_scratch_avx512,
              pn_nvfp4_matmul_avx512),
    PN_KERNEL(nvfp4, i8, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 32, pn_nvfp4_scratch_avx512, pn_nvfp4_fast_avx512),
#endif
};

static pn_status nvfp4_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &nvfp4_type, nvfp4_kernels, sizeof nvfp4_kernels / sizeof *nvfp4_kernels, err);
}

PN_PLUGIN("org.pantheon.nvfp4", "0.1.0", "MIT", "the quantization type nvfp4", 0, nvfp4_init)

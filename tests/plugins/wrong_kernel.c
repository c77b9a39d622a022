/* A kernel with a fault that checkasm must find: which one is chosen by the macro WRONG, a right one when it is 0.
 * Never chosen by itself: its score is 0. */
#include <pantheon/kit/tile_c.h>

#ifndef WRONG
#define WRONG 1
#endif

static void unpack_floats(const void *row, float *out, size_t n)
{
    memcpy(out, row, n * sizeof *out);
}

static size_t scratch(size_t cols, size_t columns)
{
    (void)cols;
    (void)columns;
    return pn_c_f32_scratch();
}

static pn_status matmul(const pn_matmul_args *a)
{
    pn_status status = pn_c_f32_matmul(a, sizeof(float), unpack_floats);
    float *last = a->out + (a->columns - 1) * a->out_stride + a->row_end - 1;
#if WRONG == 1 /* one element a little off, only where rows do not fill a tile */
    if ((a->row_end - a->row_begin) % 16) *last += *last / 4096;
#elif WRONG == 2 /* many columns not as one, in the last bit */
    uint32_t bits;
    memcpy(&bits, last, sizeof bits);
    bits ^= a->columns > 4 && *last != 0.0f;
    memcpy(last, &bits, sizeof bits);
#elif WRONG == 3 /* writes a row too many */
    last[1] = *last;
#elif WRONG == 4 /* reads behind the weights */
    const volatile uint8_t *w = a->weight->data;
    (void)w[a->weight->row_stride * (a->weight->rows - 1) + a->weight->cols * sizeof(float)];
#elif WRONG == 5 /* writes behind its scratch */
    ((uint8_t *)a->scratch)[a->scratch_bytes] = 1;
#elif WRONG == 6 /* the result of a row depends on where the range of rows begins */
    *last = a->row_begin % 2 ? *last * 0.9999999f : *last;
#else
    (void)last;
#endif
    return status;
}

static const pn_kernel kernel = {.struct_size = sizeof(pn_kernel),
                                 .score = 0,
                                 .name = "f32.f32.planted",
                                 .quant = "f32",
                                 .packing = WRONG == 7 ? "p7" : "f32",
                                 .row_tile = 1,
                                 .max_columns = 512,
                                 .scratch_bytes = scratch,
                                 .matmul = matmul};

static size_t column_bytes(size_t cols)
{
    return (cols * sizeof(float) + 63) & ~(size_t)63;
}

static void pack(const float *x, size_t cols, void *out)
{
    memset(out, 0, column_bytes(cols));
    memcpy(out, x, cols * sizeof *x);
}

static const pn_packing packing = {/* one that no test knows */
                                   .struct_size = sizeof(pn_packing), .precision = PN_EXACT, .name = "p7", .score = 1,
                                   .column_bytes = column_bytes,      .pack = pack};

static pn_status start(const pn_host *host, pn_error *err)
{
    pn_status status = WRONG == 7 ? pn_host_register_packing(host, &packing, err) : PN_OK;
    return status == PN_OK ? pn_host_register_kernel(host, &kernel, err) : status;
}

PN_PLUGIN("org.pantheon.test.wrong-kernel", "1.0", "MIT", "a kernel that is wrong", 0, start)

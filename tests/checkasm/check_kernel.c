/* checkasm: a kernel against a sum in double precision and against the kernel in C, in tight memory; one column against
 * many, a range of rows against all of them, bit for bit. */
#include "checkasm.h"

#include <math.h>
#include <stdlib.h>

#define TOLERANCE 1e-5 /* of the sum of absolute products */
/* Beside it, some roundings of the largest weight of a block times an activation: a type with a minimum sums d * q * x
 * and m * x apart, and where the two cancel an outlier's rounding can be larger than the products that are left. */
#define ROUNDING 2.4e-7
#define CANARY UINT32_C(0x7fabcdef) /* a NaN that no kernel makes */

/* One matrix and its packed columns. */
typedef struct problem {
    const pn_kernel *k;
    const pn_quant *q;
    const pn_packing *p;
    size_t rows, cols, columns;
    size_t row_bytes, stride, column_bytes;
    int input;
    bool raw, front;
    ca_block weight, packed;
    pn_qweight w;
    double *x; /* what the packed columns stand for */
} problem;

static void describe(const problem *b, size_t begin, size_t end, size_t first, size_t columns)
{
    ca_doing("%s: %zu x %zu, %s weights, row stride %zu, %s input, rows %zu to %zu, columns %zu to %zu of %zu%s",
             b->k->name, b->rows, b->cols, b->raw ? "raw" : "quantized", b->stride, ca_inputs[b->input], begin, end,
             first, first + columns, b->columns, b->front ? ", from the front of a page" : "");
}

static bool problem_make(problem *b, ca_rng *r)
{
    float *x = malloc(b->cols * sizeof *x);
    bool good = true;
    b->row_bytes = ca_row_bytes(b->q, b->cols);
    b->stride = b->row_bytes + (ca_below(r, 3) ? 0 : 1 + ca_below(r, 70));
    b->column_bytes = b->p->column_bytes(b->cols);
    b->weight = ca_alloc((b->rows - 1) * b->stride + b->row_bytes, 1, b->front);
    b->packed = ca_alloc(b->columns * b->column_bytes, 64, false);
    b->x = malloc(b->columns * b->cols * sizeof *b->x);
    memset(b->weight.data, 0xff, b->weight.size);
    for (size_t i = 0; i < b->rows; i++)
        good = good && ca_weights(r, b->q, b->raw, b->weight.data + i * b->stride, b->cols);
    for (size_t c = 0; c < b->columns; c++) {
        uint8_t *column = b->packed.data + c * b->column_bytes;
        ca_fill(r, b->input, x, b->cols);
        b->p->pack(x, b->cols, column);
        ca_expand(b->p->name)(column, b->cols, b->x + c * b->cols);
    }
    b->w = (pn_qweight){.struct_size = sizeof b->w,
                        .type = b->q,
                        .data = b->weight.data,
                        .rows = b->rows,
                        .cols = b->cols,
                        .row_stride = b->stride,
                        .planes = 1};
    free(x);
    return good || ca_fail("no weights could be made");
}

static void problem_free(problem *b)
{
    if (!ca_release(&b->weight) || !ca_release(&b->packed)) ca_fail("wrote beside its inputs");
    free(b->x);
}

/* out[columns][rows] by one call of `k` in tight memory; elements outside the range keep the canary, and so must
 * everything around. */
static bool call(const problem *b, const pn_kernel *k, size_t begin, size_t end, size_t first, size_t columns,
                 float *out)
{
    const size_t out_stride = b->rows + 5, scratch_bytes = k->scratch_bytes ? k->scratch_bytes(b->cols, columns) : 0;
    const uint32_t canary = CANARY;
    ca_block o = ca_alloc(((columns - 1) * out_stride + b->rows) * sizeof(float), 4, false);
    ca_block s = ca_alloc(scratch_bytes, 64, false);
    pn_matmul_args a = {.struct_size = sizeof a,
                        .weight = &b->w,
                        .row_begin = begin,
                        .row_end = end,
                        .packed = b->packed.data + first * b->column_bytes,
                        .packed_stride = b->column_bytes,
                        .columns = columns,
                        .out = (float *)(void *)o.data,
                        .out_stride = out_stride,
                        .scratch = s.data,
                        .scratch_bytes = scratch_bytes,
                        .ahead = begin % 2 ? (const void *)(uintptr_t)4096 : NULL}; /* nothing lies there */
    bool good = true;
    for (size_t i = 0; i < o.size; i += 4) memcpy(o.data + i, &canary, 4);
    describe(b, begin, end, first, columns);
    pn_status status = k->matmul(&a);
    if (status != PN_OK) good = ca_fail("returned %s", pn_status_name(status));
    for (size_t c = 0; c < columns; c++)
        for (size_t i = 0; i < (c + 1 < columns ? out_stride : b->rows); i++) {
            uint32_t bits;
            memcpy(&bits, o.data + (c * out_stride + i) * 4, 4);
            if ((bits == CANARY) != (i < begin || i >= end) && good)
                good = ca_fail("row %zu, column %zu: %s", i, c,
                               bits == CANARY ? "not written" : "written, but not asked for");
            if (i < b->rows) memcpy(out + c * b->rows + i, &bits, 4);
        }
    if (!ca_release(&o)) good = ca_fail("wrote beside the output");
    if (!ca_release(&s)) good = ca_fail("wrote beside the scratch");
    return good;
}

/* Every element against the sum in double precision, and against C. */
static void compare(const problem *b, const float *out, const float *c_out)
{
    float *w = malloc((b->cols + b->q->block_elems) * sizeof *w);
    float *largest = malloc(b->cols * sizeof *largest); /* per block */
    size_t wrong = 0;
    for (size_t r = 0; r < b->rows; r++) {
        b->q->dequantize(b->weight.data + r * b->stride, w, b->cols);
        memset(largest, 0, b->cols * sizeof *largest);
        for (size_t k = 0; k < b->cols; k++)
            largest[k / b->q->block_elems] = fmaxf(largest[k / b->q->block_elems], fabsf(w[k]));
        for (size_t c = 0; c < b->columns; c++) {
            const double *x = b->x + c * b->cols, got = (double)out[c * b->rows + r];
            double want = 0, size = 0, rounding = 0, bound;
            for (size_t k = 0; k < b->cols; k++) {
                want += (double)w[k] * x[k];
                size += fabs((double)w[k] * x[k]);
                rounding += (double)largest[k / b->q->block_elems] * fabs(x[k]);
            }
            bound =
                TOLERANCE * size + ROUNDING * rounding + 1e-37; /* the last: so small that floats lose their digits */
            if (!(fabs(got - want) <= bound) && wrong++ < 2)
                ca_fail("row %zu, column %zu: got %.9g, wanted %.9g within %.3g", r, c, got, want, bound);
            if (c_out && !(fabs(got - (double)c_out[c * b->rows + r]) <= 2 * bound) && wrong++ < 2)
                ca_fail("row %zu, column %zu: got %.9g, in C %.9g", r, c, got, (double)c_out[c * b->rows + r]);
        }
    }
    free(w);
    free(largest);
}

static bool same_bits(const problem *b, const float *all, const float *part, size_t begin, size_t end, size_t first,
                      size_t columns, const char *what)
{
    for (size_t c = 0; c < columns; c++)
        for (size_t r = begin; r < end; r++) {
            const float *x = all + (first + c) * b->rows + r, *y = part + c * b->rows + r;
            if (memcmp(x, y, sizeof *x))
                return ca_fail("row %zu, column %zu: %s %.9g, with the others %.9g", r, first + c, what, (double)*y,
                               (double)*x);
        }
    return true;
}

static void run(problem *b, ca_rng *r)
{
    float *all = calloc(b->columns * b->rows, sizeof *all), *part = calloc(b->columns * b->rows, sizeof *part);
    const pn_kernel *c = ca_c_kernel(b->k);
    bool good = problem_make(b, r);
    if (good && c && c != b->k) good = call(b, c, 0, b->rows, 0, b->columns, part);
    if (good && call(b, b->k, 0, b->rows, 0, b->columns, all)) {
        compare(b, all, c && c != b->k ? part : NULL);
        for (size_t i = 0; i < b->columns && good && b->columns > 1; i++)
            good = call(b, b->k, 0, b->rows, i, 1, part) && same_bits(b, all, part, 0, b->rows, i, 1, "alone");
        for (int i = 0; i < 3 && good; i++) {
            const size_t begin = ca_below(r, b->rows), end = begin + 1 + ca_below(r, b->rows - begin);
            const size_t first = ca_below(r, b->columns), columns = 1 + ca_below(r, b->columns - first);
            good = call(b, b->k, begin, end, first, columns, part) &&
                   same_bits(b, all, part, begin, end, first, columns, "in a part");
        }
        if (good && call(b, b->k, 0, b->rows, 0, b->columns, part))
            same_bits(b, all, part, 0, b->rows, 0, b->columns, "a second time");
    }
    problem_free(b);
    free(all);
    free(part);
}

void ca_check_kernel(const pn_kernel *k)
{
    static const size_t rows[] = {1, 3, 15, 16, 17, 31, 32, 33, 70}, columns[] = {1,  2,  3,  4,  5,  7,
                                                                                        8,  13, 15, 16, 17, 29,
                                                                                        32, 64};
    static const size_t blocks[] = {1, 2, 3, 7, 8, 9, 17, 33};
    static const size_t floats[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 100, 1023, 1025, 2100};
    const pn_quant *q = pn_runtime_find(ca.runtime, PN_KIND_QUANT, k->quant);
    const pn_packing *p = ca_packing(k->packing);
    const size_t n_cols = q && q->block_elems > 1 ? sizeof blocks / sizeof *blocks : sizeof floats / sizeof *floats;

    ca_begin("%s", k->name);
    if (!q) ca_fail("its type %s is not registered", k->quant);
    else if (!p) ca_fail("its packing %s is not registered", k->packing);
    else if (!ca_expand(k->packing))
        ca_fail("no test knows the packing %s: teach ca_expand what its columns stand for", k->packing);
    else
        for (size_t i = 0; i < 62 + n_cols * CA_INPUTS && !ca_failed(); i++) {
            ca_rng r = ca_rng_of(k->name, i);
            problem b = {.k = k, .q = q, .p = p};
            const bool tall = i < 2; /* so many rows that kernels divide them into stretches */
            const size_t n = i % n_cols;
            b.cols = q->block_elems > 1 ? blocks[n] * q->block_elems : floats[n];
            if (b.cols > 2100 || tall) b.cols = 2048 / q->block_elems * q->block_elems;
            b.rows = tall ? 460 + ca_below(&r, 60) : rows[ca_below(&r, sizeof rows / sizeof *rows)];
            b.columns = tall ? 1 + ca_below(&r, 2) : columns[ca_below(&r, sizeof columns / sizeof *columns)];
            if (k->max_columns && b.columns > k->max_columns) b.columns = k->max_columns;
            b.input = i < 62 ? CA_RANDOM : (int)((i - 62) / n_cols);
            b.raw = tall || ca_below(&r, 2);
            b.front = ca_below(&r, 4) == 0;
            if (p->column_bytes(b.cols)) run(&b, &r);
        }
    ca_end();
}

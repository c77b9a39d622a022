/* checkasm --bench: times kernels on one thread, with one column (weights from memory) and with many, beside what the
 * machine can do. */
#include "checkasm.h"

#include <stdlib.h>
#include <time.h>

#define COLS 2048
#define WEIGHT_BYTES (64u << 20)

/* Of this thread, so that other programs disturb less. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of some runs, and at least 0.1 s of them. */
static double time_call(const pn_kernel *k, const pn_matmul_args *a)
{
    double best = 1e9, total = 0;
    for (int i = 0; i < 3 || (total < 0.1 && i < 1000); i++) {
        double begin = seconds();
        k->matmul(a);
        begin = seconds() - begin;
        total += begin;
        best = begin < best ? begin : best;
    }
    return best;
}

/* Billions of multiply-adds a second of one core at a kernel's level and kind of arithmetic; 0 = unknown. */
static double limit_of(const pn_kernel *k)
{
    const pn_arithmetic kind = !strncmp(k->packing, "i16", 3)  ? PN_ARITHMETIC_I16
                               : !strncmp(k->packing, "i8", 2) ? PN_ARITHMETIC_I8
                                                               : PN_ARITHMETIC_F32;
    return 1e-9 * pn_measure_multiply(kind, k->cpu_features, 1, 5);
}

static void bench_kernel(const pn_kernel *k, double read)
{
    const pn_quant *q = pn_runtime_find(ca.runtime, PN_KIND_QUANT, k->quant);
    const pn_packing *p = ca_packing(k->packing);
    const size_t row = ca_row_bytes(q, COLS), rows = WEIGHT_BYTES / row, many = 512, some = k->cpu_features ? 1024 : 32;
    const size_t column = p->column_bytes(COLS);
    uint8_t *data = malloc(rows * row);
    ca_block packed = ca_alloc(many * column, 64, false);
    const size_t outs = rows > many * some ? rows : many * some;
    float *out = malloc(outs * sizeof *out);
    float x[COLS];
    ca_rng r = ca_rng_of(k->name, 1);
    ca_block scratch = ca_alloc(k->scratch_bytes ? k->scratch_bytes(COLS, many) : 0, 64, false);
    pn_qweight w = {
        .struct_size = sizeof w, .type = q, .data = data, .rows = rows, .cols = COLS, .row_stride = row, .planes = 1};
    pn_matmul_args a = {.struct_size = sizeof a,
                        .weight = &w,
                        .packed = packed.data,
                        .packed_stride = column,
                        .out = out,
                        .scratch = scratch.data,
                        .scratch_bytes = scratch.size};

    for (size_t i = 0; i < rows; i++)
        if (i < 8) ca_weights(&r, q, false, data + i * row, COLS);
        else memcpy(data + i * row, data + i % 8 * row, row);
    for (size_t c = 0; c < many; c++) {
        ca_fill(&r, CA_RANDOM, x, COLS);
        p->pack(x, COLS, packed.data + c * column);
    }
    a.row_end = a.out_stride = rows;
    a.columns = 1;
    const double one = (double)(rows * row) / time_call(k, &a) * 1e-9;
    a.row_end = a.out_stride = some;
    a.columns = many;
    const double macs = (double)(some * COLS * many) / time_call(k, &a) * 1e-9, limit = limit_of(k);
    printf("# %-20s %7.1f GB/s %4.0f %%   %8.1f G/s", k->name, one, 100 * one / read, macs);
    printf(limit > 0 ? " %4.0f %% of %.0f\n" : "\n", 100 * macs / limit, limit);
    fflush(stdout);
    ca_release(&packed);
    ca_release(&scratch);
    free(data);
    free(out);
}

void ca_bench_kernels(void)
{
    const size_t bytes = (size_t)256 << 20;
    uint8_t *memory = malloc(bytes);
    pn_registration g = {.struct_size = sizeof g};
    double read = 0;
    memset(memory, 1, bytes);
    for (int run = 0; run < 5; run++) {
        double begin = seconds(), speed;
        pn_measure_read(memory, bytes, 1, 1);
        speed = (double)bytes / (seconds() - begin) * 1e-9;
        read = speed > read ? speed : read;
    }
    free(memory);
    printf("# one thread; memory reads %.1f GB/s. One column: weights read; %s\n", read, "512 columns: multiply-adds");
    for (size_t i = 0; pn_runtime_registration(ca.runtime, i, &g, NULL) == PN_OK; i++)
        if (g.kind == PN_KIND_KERNEL && g.usable && strstr(g.name, ca.filter)) bench_kernel(g.item, read);
}

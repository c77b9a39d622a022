/* checkasm: a quantization type's conversions, and packings of activations. */
#include "checkasm.h"

#include <math.h>
#include <pantheon/kit/pack.h>
#include <stdlib.h>

/* ---- types
 * ----------------------------------------------------------------------------------------------------------------- */

/* At odd addresses, at the end of a page, in pieces: the same numbers. */
static void check_dequantize(const pn_quant *q, ca_rng *r, bool raw)
{
    const size_t blocks = 1 + ca_below(r, 9), n = blocks * q->block_elems, bytes = ca_row_bytes(q, n);
    ca_block row = ca_alloc(bytes, 1, false), out = ca_alloc(n * sizeof(float), 4, false);
    uint8_t *aligned = malloc(bytes);
    float *want = malloc(n * sizeof *want);

    ca_doing("%s.dequantize: %zu elements, %s", q->name, n, raw ? "random bytes" : "quantized");
    if (!ca_weights(r, q, raw, row.data, n)) {
        ca_fail("no weights could be made");
    } else {
        memcpy(aligned, row.data, bytes);
        q->dequantize(aligned, want, n);
        q->dequantize(row.data, (float *)(void *)out.data, n);
        if (memcmp(out.data, want, out.size)) ca_fail("other numbers at another address");
        for (size_t i = 0; i < blocks; i++)
            q->dequantize(row.data + i * q->block_bytes, (float *)(void *)out.data + i * q->block_elems,
                          q->block_elems);
        if (memcmp(out.data, want, out.size)) ca_fail("other numbers block by block");
    }
    if (!ca_release(&out) || !ca_release(&row)) ca_fail("wrote beside its output");
    free(aligned);
    free(want);
}

/* What comes back is near what went in: within what so many bits can do. */
static void check_quantize(const pn_quant *q, ca_rng *r)
{
    const size_t n = 8 * q->block_elems * (q->block_elems == 1 ? 37 : 1), bytes = ca_row_bytes(q, n);
    const double bits = 8.0 * q->block_bytes / q->block_elems;
    const double bound = !(q->flags & PN_QUANT_FLOAT) ? 2.5 * exp2(1.0 - bits) : bits > 31 ? 0.0 : 1.0 / 256.0;
    ca_block row = ca_alloc(bytes, 1, false);
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    double error = 0, size = 0;

    ca_doing("%s.quantize: %zu elements", q->name, n);
    for (size_t i = 0; i < n; i++) x[i] = ca_normal(r);
    if (q->quantize(x, NULL, row.data, n, NULL) != PN_OK) ca_fail("refuses ordinary numbers");
    q->dequantize(row.data, y, n);
    for (size_t i = 0; i < n; i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        size += (double)x[i] * (double)x[i];
    }
    if (!(sqrt(error / size) <= bound))
        ca_fail("relative error %.3g, at most %.3g expected of %.4g bits", sqrt(error / size), bound, bits);
    memset(x, 0, n * sizeof *x);
    if (q->quantize(x, NULL, row.data, n, NULL) != PN_OK) ca_fail("refuses zeros");
    q->dequantize(row.data, y, n);
    for (size_t i = 0; i < n; i++)
        if (y[i] != 0.0f && !ca_failed()) ca_fail("0 comes back as %g", (double)y[i]);
    x[ca_below(r, n)] = NAN; /* must not be undefined behaviour; refusing is right, floats may keep it */
    if (q->quantize(x, NULL, row.data, n, NULL) == PN_OK && !(q->flags & PN_QUANT_FLOAT)) ca_fail("accepts NaN");
    if (!ca_release(&row)) ca_fail("wrote beside its output");
    free(x);
    free(y);
}

/* Twice is as before, and what is swapped is only a matter of the bytes. */
static void check_byteswap(const pn_quant *q, ca_rng *r)
{
    const size_t n = 3 * q->block_elems, bytes = ca_row_bytes(q, n);
    ca_block row = ca_alloc(bytes, 1, false);
    uint8_t *before = malloc(bytes);
    size_t counts[256] = {0};
    ca_doing("%s.byteswap: %zu elements", q->name, n);
    for (size_t i = 0; i < bytes; i++) before[i] = row.data[i] = (uint8_t)ca_next(r);
    q->byteswap(row.data, n);
    if (!memcmp(row.data, before, bytes)) ca_fail("changes nothing");
    for (size_t i = 0; i < bytes; i++) {
        counts[before[i]]++;
        counts[row.data[i]]--;
    }
    for (size_t i = 0; i < 256; i++)
        if (counts[i]) ca_fail("bytes changed, not only their places");
    q->byteswap(row.data, n);
    if (memcmp(row.data, before, bytes)) ca_fail("twice is not as before");
    if (!ca_release(&row)) ca_fail("wrote beside the row");
    free(before);
}

/* dot and axpy, also of part of a block, against the dequantized row. */
static void check_rows(const pn_quant *q, ca_rng *r)
{
    const size_t blocks = 1 + ca_below(r, 6), whole = blocks * q->block_elems * (q->block_elems == 1 ? 19 : 1);
    const size_t n = whole - ca_below(r, q->block_elems), bytes = ca_row_bytes(q, whole);
    ca_block row = ca_alloc(bytes, 1, false), x = ca_alloc(n * sizeof(float), 4, false);
    float *w = malloc(whole * sizeof *w), *y = malloc(n * sizeof *y), a = ca_normal(r);
    double want = 0, size = 0;
    ca_doing("%s: dot and axpy of %zu elements", q->name, n);
    if (!ca_weights(r, q, false, row.data, whole)) ca_fail("no weights could be made");
    q->dequantize(row.data, w, whole);
    ca_fill(r, CA_RANDOM, (float *)(void *)x.data, n);
    memcpy(y, x.data, n * sizeof *y);
    for (size_t i = 0; i < n; i++) {
        want += (double)w[i] * (double)y[i];
        size += fabs((double)w[i] * (double)y[i]);
    }
    if (q->dot) {
        double got = (double)q->dot(row.data, y, n);
        if (!(fabs(got - want) <= 1e-5 * size)) ca_fail("dot: got %.9g, wanted %.9g", got, want);
    }
    if (q->axpy) {
        q->axpy(a, row.data, (float *)(void *)x.data, n);
        for (size_t i = 0; i < n && !ca_failed(); i++) {
            double got = (double)((float *)(void *)x.data)[i], add = (double)a * (double)w[i];
            if (!(fabs(got - ((double)y[i] + add)) <= 1e-6 * (fabs((double)y[i]) + fabs(add))))
                ca_fail("axpy: element %zu: got %.9g, wanted %.9g", i, got, (double)y[i] + add);
        }
    }
    if (!ca_release(&x) || !ca_release(&row)) ca_fail("wrote beside its output");
    free(w);
    free(y);
}

void ca_check_quant(const pn_quant *q)
{
    ca_begin("%s.dequantize", q->name);
    for (uint64_t i = 0; i < 40 && !ca_failed(); i++) {
        ca_rng r = ca_rng_of(q->name, i);
        check_dequantize(q, &r, i & 1);
    }
    ca_end();
    if (q->quantize) {
        ca_begin("%s.quantize", q->name);
        for (uint64_t i = 0; i < 20 && !ca_failed(); i++) {
            ca_rng r = ca_rng_of(q->name, 100 + i);
            check_quantize(q, &r);
        }
        ca_end();
    }
    if (q->byteswap) {
        ca_begin("%s.byteswap", q->name);
        for (uint64_t i = 0; i < 5 && !ca_failed(); i++) {
            ca_rng r = ca_rng_of(q->name, 200 + i);
            check_byteswap(q, &r);
        }
        ca_end();
    }
    if (q->dot || q->axpy) {
        ca_begin("%s.dot, axpy", q->name);
        for (uint64_t i = 0; i < 40 && !ca_failed(); i++) {
            ca_rng r = ca_rng_of(q->name, 300 + i);
            check_rows(q, &r);
        }
        ca_end();
    }
}

/* ---- packings
 * ----------------------------------------------------------------------------------------------------------------- */

/* The sums that "i16" promises beside the numbers. */
static void check_i16_sums(const uint8_t *packed, size_t cols)
{
    const pn_i16_layout l = pn_i16_layout_of(cols);
    const float *sum32 = (const float *)(const void *)(packed + l.sum32),
                *sum16 = (const float *)(const void *)(packed + l.sum16);
    const int16_t *q = (const int16_t *)(const void *)(packed + l.q);
    for (size_t i = 0; i < 2 * l.n32; i++) {
        int32_t sum = 0;
        for (size_t k = 0; k < 16; k++) sum += q[16 * i + k];
        if ((float)sum != sum16[i]) ca_fail("sum16[%zu] is %g, the numbers give %d", i, (double)sum16[i], sum);
        if (i % 2 && sum16[i - 1] + sum16[i] != sum32[i / 2])
            ca_fail("sum32[%zu] is %g, sum16 gives %g", i / 2, (double)sum32[i / 2], (double)(sum16[i - 1] + sum16[i]));
    }
    const int8_t *high = (const int8_t *)packed + l.high;
    for (size_t k = 0; k < 32 * l.n32; k++)
        if (256 * high[k] + packed[l.low + k] != q[pn_i16_place(k)])
            ca_fail("element %zu is %d, its bytes are %d and %d", k, q[pn_i16_place(k)], high[k], packed[l.low + k]);
    for (size_t k = cols; k < 32 * l.n32; k++)
        if (q[pn_i16_place(k)]) ca_fail("element %zu behind the last is %d, not 0", k, q[pn_i16_place(k)]);
}

/* Those of "i8", and the zeros behind its end. */
static void check_i8_sums(const uint8_t *packed, size_t cols, size_t bytes)
{
    const pn_i8_chunk *chunk = (const pn_i8_chunk *)(const void *)packed;
    const size_t end = (cols + 255) / 256 * 256;
    for (size_t k = 0; k < end; k += 16) {
        const pn_i8_chunk *c = chunk + k / 256;
        const size_t i = k % 256 / 16;
        int32_t sum = 0;
        for (size_t j = 0; j < 16; j++) {
            const int8_t q = c->q[k % 256 + j];
            sum += q;
            if (q == -128 || (q && k + j >= cols)) ca_fail("element %zu is %d", k + j, q);
        }
        if (sum != c->isum16[i] || c->scale[i / 2] * (float)sum != c->sum16[i])
            ca_fail("isum16[%zu] is %d, sum16 %g, the numbers give %d", i, c->isum16[i], (double)c->sum16[i], sum);
        if (i % 2 &&
            (sum += c->isum16[i - 1], sum != c->isum32[i / 2] || c->scale[i / 2] * (float)sum != c->sum32[i / 2]))
            ca_fail("isum32[%zu] is %d, sum32 %g, the numbers give %d", i / 2, c->isum32[i / 2],
                    (double)c->sum32[i / 2], sum);
    }
    for (size_t i = end / 256 * sizeof *chunk; i < bytes; i++)
        if (packed[i]) ca_fail("byte %zu behind the last record is %d, not 0", i, packed[i]);
}

/* The most that an element may be off in a packing, by the largest of those that share its scale. */
static double off_by(const char *packing, double largest)
{
    if (!strcmp(packing, "i16")) return largest < (double)PN_I16_TINY ? largest : largest / 32767.0 * 0.505;
    if (!strcmp(packing, "i8")) return largest < (double)PN_I8_TINY ? largest : largest / 127.0 * 0.5001;
    return 0;
}

/* Columns stand for the numbers that were packed: as near as the packing promises. */
static void check_pack(const pn_packing *p, ca_rng *r, size_t cols, int input)
{
    const size_t bytes = p->column_bytes(cols);
    const bool i16 = !strcmp(p->name, "i16"), i8 = !strcmp(p->name, "i8");
    const size_t together = i8 ? 32 : PN_I16_CHUNK; /* elements that share a scale */
    const pn_packing *lowest = p;
    ca_block x = ca_alloc(cols * sizeof(float), 4, false), out = ca_alloc(bytes, 64, false);
    float *in = (float *)(void *)x.data;
    uint8_t *again = malloc(bytes);
    double *y = malloc(cols * sizeof *y);

    ca_doing("%s (%s): %zu columns, %s input", p->name, p->cpu_features ? "vectors" : "C", cols, ca_inputs[input]);
    ca_fill(r, input, in, cols);
    p->pack(in, cols, out.data);
    for (size_t i = 0;; i++) { /* the packing of this name that needs the least of the processor */
        pn_registration g = {.struct_size = sizeof g};
        if (pn_runtime_registration(ca.runtime, i, &g, NULL) != PN_OK) break;
        const pn_packing *o = g.item;
        if (g.kind == PN_KIND_PACKING && !strcmp(o->name, p->name) && o->cpu_features < lowest->cpu_features)
            lowest = o;
    }
    memset(again, 0x5a, bytes);
    lowest->pack(in, cols, again);
    if (memcmp(again, out.data, bytes)) ca_fail("other bytes than the same packing at the lowest level");
    ca_expand(p->name)(out.data, cols, y);
    for (size_t begin = 0; begin < cols; begin += together) {
        const size_t end = cols - begin < together ? cols : begin + together;
        double largest = 0;
        for (size_t k = begin; k < end; k++) largest = fmax(largest, fabs((double)in[k]));
        for (size_t k = begin; k < end; k++)
            if (!(fabs(y[k] - (double)in[k]) <= off_by(p->name, largest)))
                ca_fail("element %zu: %.9g became %.9g", k, (double)in[k], y[k]);
    }
    if (i16) check_i16_sums(out.data, cols);
    if (i8) check_i8_sums(out.data, cols, bytes);
    if (!ca_release(&x) || !ca_release(&out)) ca_fail("wrote beside the column");
    free(again);
    free(y);
}

void ca_check_packing(const pn_packing *p)
{
    static const size_t cols[] = {1, 7, 16, 31, 32, 33, 64, 255, 256, 257, 288, 512, 1056, 2048};
    char level[128];
    ca_begin("packing %s [%s]", p->name,
             p->cpu_features ? pn_cpu_names(p->cpu_features, level, sizeof level) : "any CPU");
    if (!ca_expand(p->name))
        ca_fail("no test knows the packing %s: teach ca_expand what its columns stand for", p->name);
    else
        for (size_t i = 0; i < sizeof cols / sizeof *cols * CA_INPUTS && !ca_failed(); i++) {
            ca_rng r = ca_rng_of(p->name, i);
            const size_t n = cols[i / CA_INPUTS];
            if (p->column_bytes(n) % 64)
                ca_fail("a column of %zu takes %zu bytes, not a multiple of 64", n, p->column_bytes(n));
            else if (p->column_bytes(n)) check_pack(p, &r, n, (int)(i % CA_INPUTS));
        }
    ca_end();
}

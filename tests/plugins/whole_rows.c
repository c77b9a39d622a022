/* A quantization type that lays out a row its own way: one scale for the whole row, then its bytes; and a side tensor.
 * Two elements and four bytes per block, so that a format that counts blocks finds the right size. */
#include <pantheon/plugin.h>

static uint64_t row_bytes(uint64_t cols)
{
    return cols % 2 || cols < 4 || cols > UINT64_MAX / 2 ? 0 : cols * 2;
}

static void dequantize(const void *row, float *out, size_t n)
{
    const unsigned char *p = row;
    float scale;
    memcpy(&scale, p, sizeof scale);
    for (size_t i = 0; i < n; i++)
        out[i] = scale * (float)(signed char)p[4 + i];
}

static pn_status quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    unsigned char *p = row;
    float most = 0, scale;
    (void)importance;
    (void)err;
    for (size_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : -x[i] > most ? -x[i] : most;
    scale = most / 127;
    memset(row, 0, n * 2);
    memcpy(p, &scale, sizeof scale);
    for (size_t i = 0; i < n && most > 0; i++)
        p[4 + i] = (unsigned char)(signed char)(x[i] / scale);
    return PN_OK;
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const char *const sides[] = { "scale", "zero" };
    static const pn_quant type = {
        .struct_size = sizeof type,
        .name = "whole_rows",
        .summary = "test: one scale per row",
        .block_elems = 2,
        .block_bytes = 4,
        .row_bytes = row_bytes,
        .dequantize = dequantize,
        .quantize = quantize,
        .side_suffixes = sides,
        .n_side = 2,
    };
    return pn_host_register_quant(host, &type, err);
}

PN_PLUGIN("org.example.whole-rows", "1.0", "MIT", "test: rows with one scale", 0, start)

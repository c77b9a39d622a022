/* A quantization type that lays out a row its own way: one scale for the whole row, then its bytes; and a side tensor. Two
 * elements and four bytes per block, so that a format that counts blocks finds the right size. */
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

static pn_status start(const pn_host *host, pn_error *err)
{
    static const char *const sides[] = { "scale", "zero" };
    static const pn_quant type = {
        .struct_size = sizeof type, .name = "whole_rows", .summary = "test: one scale per row", .block_elems = 2, .block_bytes = 4,
        .row_bytes = row_bytes, .dequantize = dequantize, .side_suffixes = sides, .n_side = 2,
    };
    return pn_host_register_quant(host, &type, err);
}

PN_PLUGIN("org.example.whole-rows", "1.0", "MIT", "test: rows with one scale", 0, start)

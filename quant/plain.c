/* Tensors of plain numbers: i8, i16, i32, i64 and f64. Readable as data; no kernels, so the few weights that there may
 * be in them are dequantized row by row. */
#include <pantheon/kit/block.h>
#include <pantheon/plugin.h>

#define PLAIN(type, number)                                              \
    static void type##_dequantize(const void *row, float *out, size_t n) \
    {                                                                    \
        const uint8_t *p = row;                                          \
        for (size_t i = 0; i < n; i++) {                                 \
            number v;                                                    \
            memcpy(&v, p + i * sizeof v, sizeof v);                      \
            out[i] = (float)v;                                           \
        }                                                                \
    }

PLAIN(i8, int8_t)
PLAIN(i16, int16_t)
PLAIN(i32, int32_t)
PLAIN(i64, int64_t)
PLAIN(f64, double)

static void swap_2(void *row, size_t n)
{
    uint8_t *p = row;
    for (size_t i = 0; i < n; i++) pn_swap16(p + 2 * i);
}

static void swap_4(void *row, size_t n)
{
    uint8_t *p = row;
    for (size_t i = 0; i < n; i++) pn_swap32(p + 4 * i);
}

static void swap_8(void *row, size_t n)
{
    uint8_t *p = row;
    for (size_t i = 0; i < n; i++, p += 8) {
        uint8_t high[4];
        pn_swap32(p);
        pn_swap32(p + 4);
        memcpy(high, p, 4);
        memcpy(p, p + 4, 4);
        memcpy(p + 4, high, 4);
    }
}

static const pn_quant plain_types[] = {
    {.struct_size = sizeof(pn_quant),
     .name = "i8",
     .summary = "integers of 8 bits",
     .block_elems = 1,
     .block_bytes = 1,
     .dequantize = i8_dequantize},
    {.struct_size = sizeof(pn_quant),
     .name = "i16",
     .summary = "integers of 16 bits",
     .block_elems = 1,
     .block_bytes = 2,
     .dequantize = i16_dequantize,
     .byteswap = swap_2},
    {.struct_size = sizeof(pn_quant),
     .name = "i32",
     .summary = "integers of 32 bits",
     .block_elems = 1,
     .block_bytes = 4,
     .dequantize = i32_dequantize,
     .byteswap = swap_4},
    {.struct_size = sizeof(pn_quant),
     .name = "i64",
     .summary = "integers of 64 bits",
     .block_elems = 1,
     .block_bytes = 8,
     .dequantize = i64_dequantize,
     .byteswap = swap_8},
    {.struct_size = sizeof(pn_quant),
     .flags = PN_QUANT_FLOAT,
     .name = "f64",
     .summary = "64-bit floating point",
     .block_elems = 1,
     .block_bytes = 8,
     .dequantize = f64_dequantize,
     .byteswap = swap_8},
};

static pn_status plain_init(const pn_host *host, pn_error *err)
{
    pn_status status = PN_OK;
    for (size_t i = 0; i < sizeof plain_types / sizeof *plain_types && status == PN_OK; i++)
        status = pn_host_register_quant(host, &plain_types[i], err);
    return status;
}

PN_PLUGIN("org.pantheon.plain", "0.1.0", "MIT", "tensors of plain numbers: i8, i16, i32, i64, f64", 0, plain_init)

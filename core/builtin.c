/* What the core itself brings to the registry: the packings of kit/pack.h, once per CPU level. */
#include "ops.h"
#include "registry.h"

#include <pantheon/kit/pack.h>

/* Longest column for which no size below overflows. */
#define MAX_COLS (SIZE_MAX / 16)

static size_t f32_bytes(size_t cols)
{
    return cols > MAX_COLS ? 0 : ((cols + 15) & ~(size_t)15) * sizeof(float);
}

static size_t i16_bytes(size_t cols)
{
    return cols > MAX_COLS ? 0 : pn_i16_layout_of(cols).bytes;
}

static size_t i8_bytes(size_t cols)
{
    return cols > MAX_COLS ? 0 : pn_i8_bytes(cols);
}

static pn_status register_packing(const pn_host *host, const char *name, uint32_t precision, const pn_ops *ops,
                                  int32_t score, size_t (*column_bytes)(size_t cols),
                                  void (*pack)(const float *x, size_t cols, void *out), pn_error *err)
{
    pn_packing p = {
        .struct_size = sizeof p,
        .precision = precision,
        .name = name,
        .cpu_features = ops->cpu_features,
        .score = score,
        .column_bytes = column_bytes,
        .pack = pack,
    };
    return pn_host_register_packing(host, &p, err);
}

pn_status pn_builtin_register(const pn_host *host, pn_error *err)
{
    const pn_ops *ops;
    for (size_t i = 0; (ops = pn_ops_at(i)) != NULL; i++) {
        int32_t score = 10 * (int32_t)(i + 1);
        pn_status s = register_packing(host, "f32", PN_EXACT, ops, score, f32_bytes, ops->pack_f32, err);
        if (s == PN_OK)
            s = register_packing(host, "i16", PN_EXACT, ops, score, i16_bytes, ops->pack_i16, err);
        if (s == PN_OK)
            s = register_packing(host, "i8", PN_FAST, ops, score, i8_bytes, ops->pack_i8, err);
        if (s != PN_OK)
            return s;
    }
    return PN_OK;
}

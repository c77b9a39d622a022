/* Registering a type and its kernels in one call. */
#ifndef PANTHEON_KIT_REGISTER_H
#define PANTHEON_KIT_REGISTER_H

#include <pantheon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel of each level is worth: the highest that runs here wins. A rival that means to win takes more. */
enum { PN_SCORE_C = 100, PN_SCORE_AVX2 = 200, PN_SCORE_AVX512 = 300, PN_SCORE_AMX = 400, PN_SCORE_NEON = 200 };

/* One pn_kernel: TYPE.PACKING.LEVEL, for the CPU features, preferring `tile` rows at a time. */
#define PN_KERNEL(type, pack, level, worth, features, tile, scratch, body)                                             \
    {                                                                                                                  \
        .struct_size = sizeof(pn_kernel), .score = worth, .name = #type "." #pack "." #level, .quant = #type,          \
        .packing = #pack, .cpu_features = features, .row_tile = tile, .max_columns = 512, .scratch_bytes = scratch,    \
        .matmul = body                                                                                                 \
    }

PN_UNUSED static inline pn_status pn_register_type(const pn_host *host, const pn_quant *quant,
                                                   const pn_kernel *kernels, size_t n, pn_error *err)
{
    pn_status status = pn_host_register_quant(host, quant, err);
    for (size_t i = 0; i < n && status == PN_OK; i++)
        status = pn_host_register_kernel(host, &kernels[i], err);
    return status;
}

#ifdef __cplusplus
}
#endif
#endif

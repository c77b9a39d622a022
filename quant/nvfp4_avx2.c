/* nvfp4 kernels for AVX2. */
#include <pantheon/kit/simd_avx2.h>
#include "nvfp4_simd.h"

size_t pn_nvfp4_scratch_avx2(size_t cols, size_t columns)
{
    return pn_tile_scratch_bytes(&nvfp4_tile, cols, columns);
}

pn_status pn_nvfp4_matmul_avx2(const pn_matmul_args *args)
{
    return pn_nvfp4_scaled(args, pn_tile_i16_matmul(args, &nvfp4_tile));
}

pn_status pn_nvfp4_fast_avx2(const pn_matmul_args *args)
{
    return pn_nvfp4_scaled(args, pn_tile_i8_matmul(args, &nvfp4_tile));
}

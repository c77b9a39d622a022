/* The table of operations at the AVX-512 level. */
#include "vec_avx512.h"

#define PN_OPS_TABLE pn_ops_avx512
#define PN_OPS_LEVEL "avx512"
#define PN_OPS_FEATURES PN_LEVEL_AVX512

#include "ops_vec.h"

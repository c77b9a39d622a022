/* What a plugin looks like that was built when pn_quant ended at `dequantize` and pn_kernel at `matmul`. Behind the
 * short structs lies garbage that the host must not take for callbacks. */
#include "odd.h"

static pn_status multiply(const pn_matmul_args *a)
{
    for (size_t c = 0; c < a->columns; c++)
        for (uint64_t r = a->row_begin; r < a->row_end; r++) {
            const signed char *w = (const signed char *)a->weight->data + r * a->weight->row_stride;
            const float *x = (const float *)((const char *)a->packed + c * a->packed_stride);
            float sum = 0;
            for (uint64_t k = 0; k < a->weight->cols; k++)
                sum += (float)w[k] * x[k];
            a->out[c * a->out_stride + r] = sum;
        }
    return PN_OK;
}

static pn_status start(const pn_host *host, pn_error *err)
{
    pn_quant q;
    pn_kernel k;
    memset(&q, 0xee, sizeof q);
    q.struct_size = offsetof(pn_quant, quantize);
    q.flags = 0;
    q.name = "test.old";
    q.summary = "an old type";
    q.block_elems = q.block_bytes = 1;
    q.row_bytes = NULL;
    q.dequantize = odd_dequantize;
    pn_status s = pn_host_register_quant(host, &q, err);
    if (s != PN_OK)
        return s;
    memset(&k, 0xee, sizeof k);
    k.struct_size = offsetof(pn_kernel, accepts);
    k.score = 50;
    k.name = "test.old.f32";
    k.quant = "test.old";
    k.packing = "f32";
    k.cpu_features = 0;
    k.row_tile = 1;
    k.max_columns = 0;
    k.scratch_bytes = NULL;
    k.matmul = multiply;
    return pn_host_register_kernel(host, &k, err);
}

PN_PLUGIN("org.pantheon.test.old_structs", "1.0", "MIT", "older, shorter structs", 0, start)

/* Test plugin: operations of its own (some local to a token, one over units with a state per sequence) and an
 * architecture that uses them; a quantization type without any kernel. */
#include <pantheon/kit/decoder.h>

/* ---- operations -------------------------------------------------------------------------------------------------- */

static pn_status same_width(const pn_host *host, const pn_op_call *call, const uint32_t *widths, uint32_t *out,
                            pn_error *err)
{
    (void)host;
    if (call->n_inputs != 1 || call->params_size != sizeof(float))
        return pn_fail(err, PN_E_ARGUMENT, "%s takes one input and a factor", call->op);
    *out = widths[0];
    return PN_OK;
}

static float factor_of(const pn_op_args *a)
{
    float f;
    memcpy(&f, a->params, sizeof f);
    return f;
}

static pn_status times(const pn_op_args *a, size_t begin, size_t end)
{
    for (size_t t = begin; t < end; t++)
        for (uint32_t i = 0; i < a->output_width; i++)
            a->output[t * a->output_width + i] = a->inputs[0][t * a->input_widths[0] + i] * factor_of(a);
    return PN_OK;
}

/* Each element times that of a vector weight; without one it fails while it runs. */
static pn_status weigh_shape(const pn_host *host, const pn_op_call *call, const uint32_t *widths, uint32_t *out,
                             pn_error *err)
{
    (void)host;
    if (call->n_inputs != 1 || call->n_weights > 1) return pn_fail(err, PN_E_ARGUMENT, "%s takes one input", call->op);
    *out = widths[0];
    return PN_OK;
}

static pn_status weigh(const pn_op_args *a, size_t begin, size_t end)
{
    float row[1024];
    const pn_qweight *w = a->n_weights ? a->weights[0] : NULL;
    if (!w || w->rows != 1 || w->cols != a->output_width || w->cols > 1024) return PN_E_ARGUMENT;
    w->type->dequantize(w->data, row, (size_t)w->cols);
    for (size_t t = begin; t < end; t++)
        for (uint32_t i = 0; i < a->output_width; i++)
            a->output[t * a->output_width + i] = a->inputs[0][t * a->input_widths[0] + i] * row[i];
    return PN_OK;
}

/* y_t = x_t + factor * y_(t-1) of the same sequence: a recurrence over tokens, independent for each element. */
static size_t state_bytes(const pn_op_call *call, const uint32_t *widths)
{
    (void)call;
    return widths[0] * sizeof(float);
}

static size_t units(const pn_op_args *a)
{
    return a->output_width;
}

static pn_status recur(const pn_op_args *a, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        for (size_t t = 0; t < a->n_tokens; t++) {
            float *s = (float *)a->state[a->sequences[t]];
            s[i] = a->inputs[0][t * a->input_widths[0] + i] + factor_of(a) * s[i];
            a->output[t * a->output_width + i] = s[i];
        }
    }
    return PN_OK;
}

/* ---- architecture: logits = table * norm(recur(times(embedding))) ------------------------------------------------ */

static pn_status configure(const pn_host *host, pn_file *file, const char *name, void **params, pn_error *err)
{
    (void)file;
    (void)name;
    return pn_host_alloc(host, 1, 1, params, err);
}

static void release(const pn_host *host, void *params)
{
    pn_host_free(host, params, NULL);
}

static pn_status build(const pn_host *host, pn_plan *plan, const void *params, pn_error *err)
{
    pn_words w = pn_words_begin(host, plan, err);
    float two = 2, half = 0.5f;
    pn_wt table = pn_matrix(&w, 0, 0, "token_embd.weight");
    pn_val x = pn_embed(&w, table);
    (void)params;
    x = pn_word(&w, "test.times", &x, 1, NULL, 0, &two, sizeof two);
    x = pn_word(&w, "test.recur", &x, 1, NULL, 0, &half, sizeof half);
    pn_output(
        &w, pn_linear(&w, pn_rms_norm(&w, pn_select(&w, x), pn_vector(&w, 0, "output_norm.weight"), 1e-5f), table, 0));
    return w.status;
}

/* ---- architecture: the first layer of a llama alone: its keys depend on nothing but token and position ----------- */

static pn_status configure_one(const pn_host *host, pn_file *file, const char *name, void **params, pn_error *err)
{
    (void)name;
    pn_status st = pn_decoder_configure(host, file, PN_ROLE_RMS_EPS, "interleaved", params, err);
    if (!st) ((pn_decoder *)*params)->n_layers = 1;
    return st;
}

static pn_status build_one(const pn_host *host, pn_plan *plan, const void *params, pn_error *err)
{
    return pn_decoder_build(host, plan, params, err);
}

/* ---- a type without kernels: blocks of 32 bytes after a half-precision scale ------------------------------------- */

static float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = (h >> 10) & 31, fraction = h & 1023u, bits;
    float f;
    if (exponent == 0) {
        f = (float)fraction * (1.0f / 16777216.0f);
        return sign ? -f : f;
    }
    bits = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
    memcpy(&f, &bits, 4);
    return f;
}

static void dequantize(const void *row, float *out, size_t n)
{
    const unsigned char *p = row;
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, p + i / 32 * 34, 2);
        out[i] = half_to_float(h) * (float)(int8_t)p[i / 32 * 34 + 2 + i % 32];
    }
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const char *const names[] = {"test-words"};
    static const pn_op one = {.struct_size = sizeof one,
                              .axis = PN_AXIS_TOKENS,
                              .name = "test.times",
                              .summary = "x times factor",
                              .shape = same_width,
                              .run = times};
    static const pn_op two = {.struct_size = sizeof two,
                              .axis = PN_AXIS_UNITS,
                              .name = "test.recur",
                              .summary = "leaky sum",
                              .shape = same_width,
                              .state_bytes = state_bytes,
                              .units = units,
                              .run = recur};
    static const pn_op three = {.struct_size = sizeof three,
                                .axis = PN_AXIS_TOKENS,
                                .name = "test.weigh",
                                .summary = "x times a vector",
                                .shape = weigh_shape,
                                .run = weigh};
    static const pn_arch arch = {.struct_size = sizeof arch,
                                 .n_names = 1,
                                 .names = names,
                                 .summary = "test",
                                 .configure = configure,
                                 .build = build,
                                 .release = release};
    static const char *const one_names[] = {"test-one-layer"};
    static const pn_arch one_layer = {.struct_size = sizeof one_layer,
                                      .n_names = 1,
                                      .names = one_names,
                                      .summary = "test",
                                      .configure = configure_one,
                                      .build = build_one,
                                      .release = pn_decoder_release};
    static const pn_quant quant = {.struct_size = sizeof quant,
                                   .name = "plain8",
                                   .summary = "test",
                                   .block_elems = 32,
                                   .block_bytes = 34,
                                   .dequantize = dequantize};
    pn_status st;
    if ((st = pn_host_register_op(host, &one, err)) || (st = pn_host_register_op(host, &two, err)) ||
        (st = pn_host_register_op(host, &three, err)) || (st = pn_host_register_quant(host, &quant, err)) ||
        (st = pn_host_register_arch(host, &one_layer, err)))
        return st;
    return pn_host_register_arch(host, &arch, err);
}

PN_PLUGIN("org.test.own_words", "1.0", "MIT", "operations of its own", 0, start)

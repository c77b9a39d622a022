/* Plans of odd shapes, executed: attention layers of differing sizes (more heads per kv head than a tile holds, odd
 * head sizes, window, softcap), operations of plugins on selected tokens, against doubles; random walks over sequences
 * against fresh evaluations, bit for bit; shifts of keys that a rope did not make alone; how rows are shared out. */
#include "fixture.h"

#include "model.h"
#include "team.h"

#include <math.h>

enum { WIDTH = 64, VOCAB = 320, CONTEXT = 130 };

static pn_runtime *runtime;
static pn_file *file;
static float table[VOCAB][WIDTH], head[VOCAB][WIDTH], norm[WIDTH];

static int open_file(void **state)
{
    const char *set[] = {"plugins.load", fixture_words(), NULL};
    (void)state;
    runtime = fixture_runtime(set);
    assert_ok(pn_file_open(runtime, FIXTURE_MODEL, &file, err));
    assert_ok(pn_file_tensor_f32(file, pn_file_tensor(file, "token_embd.weight"), 0, VOCAB * WIDTH, *table, err));
    assert_ok(pn_file_tensor_f32(file, pn_file_tensor(file, "output.weight"), 0, VOCAB * WIDTH, *head, err));
    assert_ok(pn_file_tensor_f32(file, pn_file_tensor(file, "output_norm.weight"), 0, WIDTH, norm, err));
    return 0;
}

static int close_file(void **state)
{
    (void)state;
    pn_file_destroy(file);
    pn_runtime_destroy(runtime);
    return 0;
}

/* ---- writing plans ----------------------------------------------------------------------------------------------- */

typedef struct layer {
    uint32_t heads, kv_heads, key, value, window, q_row, k_row, v_row; /* rows of the table that make q, k and v */
    uint32_t rope_head; /* head size of the rope, 0 = none; all but an odd element turn */
    float softcap;
} layer;

static const layer odd_layers[] = {
    {.heads = 70, .kv_heads = 1, .key = 3, .value = 5, .q_row = 1, .k_row = 240, .v_row = 250},
    {.heads = 6,
     .kv_heads = 2,
     .key = 11,
     .value = 13,
     .window = 70,
     .q_row = 33,
     .k_row = 120,
     .v_row = 200,
     .rope_head = 11,
     .softcap = 5},
};

static pn_wt weight(pn_plan *p, const char *name, uint32_t n_dims, uint64_t begin, uint64_t rows)
{
    pn_weight_request r = {.struct_size = sizeof r, .name = name, .n_dims = n_dims, .row_begin = begin, .rows = rows};
    pn_wt out = 0;
    assert_ok(pn_plan_add_weight(p, &r, &out, err));
    return out;
}

static pn_status try_op(pn_plan *p, const char *name, const pn_val *in, uint32_t n_in, const pn_wt *w, uint32_t n_w,
                        const void *params, size_t size, pn_val *out, pn_error *err)
{
    pn_op_call c = {.struct_size = sizeof c,
                    .op = name,
                    .inputs = in,
                    .n_inputs = n_in,
                    .weights = w,
                    .n_weights = n_w,
                    .params = params,
                    .params_size = size};
    return pn_plan_add_op(p, &c, out, err);
}

static pn_val op(pn_plan *p, const char *name, pn_val a, pn_val b, pn_wt w0, pn_wt w1, const void *params, size_t size)
{
    pn_val in[2] = {a, b}, out = 0;
    pn_wt w[2] = {w0, w1};
    uint32_t n_w = !strcmp(name, "linear") || !strcmp(name, "rope") ? 2 : w0 ? 1 : 0;
    assert_ok(try_op(p, name, in, b ? 2 : a ? 1 : 0, w, n_w, params, size, &out, err));
    return out;
}

static pn_val turned(pn_plan *p, pn_val x, const layer *l)
{
    pn_rope_params r = {.struct_size = sizeof r,
                        .head_size = l->rope_head,
                        .n_dims = l->rope_head & ~1u,
                        .pairing = PN_ROPE_HALVES,
                        .base = 100,
                        .factor = 1};
    return l->rope_head ? op(p, "rope", x, 0, 0, 0, &r, sizeof r) : x;
}

/* x + attention, its result folded to the width of x. `after_rope`: an operation between the keys' rope and their use.
 */
static pn_val attention(pn_plan *p, pn_val x, const layer *l, const char *after_rope)
{
    pn_val in[3], out = 0;
    pn_attention_params a = {.struct_size = sizeof a,
                             .n_heads = l->heads,
                             .n_kv_heads = l->kv_heads,
                             .key_size = l->key,
                             .value_size = l->value,
                             .window = l->window,
                             .scale = 3,
                             .softcap = l->softcap};
    in[0] =
        turned(p, op(p, "linear", x, 0, weight(p, "token_embd.weight", 2, l->q_row, l->heads * l->key), 0, NULL, 0), l);
    in[1] = turned(
        p, op(p, "linear", x, 0, weight(p, "token_embd.weight", 2, l->k_row, l->kv_heads * l->key), 0, NULL, 0), l);
    if (after_rope) {
        pn_scale_params half = {sizeof half, 0.5f};
        in[1] = op(p, after_rope, in[1], 0, 0, 0, &half, sizeof half);
    }
    in[2] = op(p, "linear", x, 0, weight(p, "token_embd.weight", 2, l->v_row, l->kv_heads * l->value), 0, NULL, 0);
    assert_ok(try_op(p, "attention", in, 3, NULL, 0, &a, sizeof a, &out, err));
    for (uint32_t at = 0, all = l->heads * l->value; at < all; at += WIDTH) {
        pn_slice_params s = {sizeof s, at + WIDTH > all ? all - WIDTH : at, WIDTH};
        x = op(p, "add", x, op(p, "slice", out, 0, 0, 0, &s, sizeof s), 0, 0, NULL, 0);
    }
    return x;
}

/* A model around a plan written here. */
static pn_model *model_of(const layer *layers, size_t n, const char *after_rope)
{
    pn_model *m = calloc(1, sizeof *m);
    pn_norm_params eps = {sizeof eps, 1e-5f};
    m->runtime = runtime;
    m->file = file;
    m->vocab = m->n_tokens = VOCAB;
    assert_ok(pn_plan_create(runtime, file, &m->plan, err));
    pn_plan *p = m->plan;
    pn_val x = op(p, "embed", 0, 0, weight(p, "token_embd.weight", 2, 0, 0), 0, NULL, 0);
    for (size_t i = 0; i < n; i++) x = attention(p, x, &layers[i], after_rope);
    x = op(p, "rms_norm", x, 0, weight(p, "output_norm.weight", 1, 0, 0), 0, &eps, sizeof eps);
    x = op(p, "linear", op(p, "select", x, 0, 0, 0, NULL, 0), 0, weight(p, "output.weight", 2, 0, 0), 0, NULL, 0);
    assert_ok(pn_plan_set_output(p, x, PN_OUTPUT_LOGITS, err));
    assert_ok(pn_plan_finish(p, err));
    return m;
}

static void free_model(pn_model *m)
{
    pn_plan_destroy(m->plan);
    free(m);
}

static pn_session *session_of(pn_model *m, int32_t sequences, int32_t batch, int32_t threads)
{
    pn_session *s = NULL;
    pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
    o.context = CONTEXT;
    o.sequences = sequences;
    o.batch = batch;
    o.threads = threads;
    o.kv = "f32";
    assert_ok(pn_session_create(m, &o, &s, err));
    return s;
}

/* ---- the same in doubles ----------------------------------------------------------------------------------------- */

static void product(const float rows[][WIDTH], size_t first, size_t n, const double *x, double *y)
{
    for (size_t r = 0; r < n; r++) {
        y[r] = 0;
        for (int i = 0; i < WIDTH; i++) y[r] += (double)rows[first + r][i] * x[i];
    }
}

static void turn(double *x, uint32_t n, uint32_t size, int position)
{
    for (uint32_t h = 0; size && h < n / size; h++)
        for (uint32_t i = 0; i < size / 2; i++) {
            double *a = x + h * size + i, *b = a + size / 2, t = *a;
            double angle = position * pow(100, -2.0 * i / (size & ~1u)), c = cos(angle), s = sin(angle);
            *a = t * c - *b * s;
            *b = t * s + *b * c;
        }
}

static void reference_layer(const layer *l, double x[][WIDTH], int n)
{
    static double k[CONTEXT][VOCAB], v[CONTEXT][VOCAB];
    double q[VOCAB], p[CONTEXT], out[512];
    for (int t = 0; t < n; t++) {
        product(table, l->k_row, l->kv_heads * l->key, x[t], k[t]);
        product(table, l->v_row, l->kv_heads * l->value, x[t], v[t]);
        turn(k[t], l->kv_heads * l->key, l->rope_head, t);
    }
    for (int t = 0; t < n; t++) {
        int first = l->window && t >= (int)l->window ? t - (int)l->window + 1 : 0;
        product(table, l->q_row, l->heads * l->key, x[t], q);
        turn(q, l->heads * l->key, l->rope_head, t);
        for (uint32_t h = 0; h < l->heads; h++) {
            uint32_t g = h / (l->heads / l->kv_heads);
            double sum = 0, most = -1e300;
            for (int j = first; j <= t; j++) {
                double s = 0;
                for (uint32_t i = 0; i < l->key; i++) s += q[h * l->key + i] * k[j][g * l->key + i];
                s *= 3;
                p[j] = l->softcap > 0 ? (double)l->softcap * tanh(s / (double)l->softcap) : s;
                most = p[j] > most ? p[j] : most;
            }
            for (int j = first; j <= t; j++) sum += p[j] = exp(p[j] - most);
            for (uint32_t i = 0; i < l->value; i++) {
                out[h * l->value + i] = 0;
                for (int j = first; j <= t; j++) out[h * l->value + i] += p[j] / sum * v[j][g * l->value + i];
            }
        }
        for (uint32_t at = 0, all = l->heads * l->value; at < all; at += WIDTH)
            for (uint32_t i = 0; i < WIDTH; i++) x[t][i] += out[(at + WIDTH > all ? all - WIDTH : at) + i];
    }
}

static void reference(const layer *layers, size_t n_layers, const int32_t *ids, int n, double *logits)
{
    static double x[CONTEXT][WIDTH];
    double square = 0, y[WIDTH];
    for (int t = 0; t < n; t++)
        for (int i = 0; i < WIDTH; i++) x[t][i] = (double)table[ids[t]][i];
    for (size_t i = 0; i < n_layers; i++) reference_layer(&layers[i], x, n);
    for (int i = 0; i < WIDTH; i++) square += x[n - 1][i] * x[n - 1][i];
    for (int i = 0; i < WIDTH; i++) y[i] = x[n - 1][i] / sqrt(square / WIDTH + 1e-5) * (double)norm[i];
    product(head, 0, VOCAB, y, logits);
}

static void odd_shapes(void **state)
{
    pn_model *m = model_of(odd_layers, 2, NULL);
    pn_session *s = session_of(m, 1, 50, 3);
    pn_token t[CONTEXT];
    int32_t ids[CONTEXT];
    double want[VOCAB];
    (void)state;
    for (int i = 0; i < CONTEXT; i++) {
        ids[i] = (i * 53 + 19) % VOCAB;
        t[i] = (pn_token){.token = ids[i], .position = i, .wants_logits = i % 9 == 3 || i == CONTEXT - 1};
    }
    assert_ok(pn_session_eval(s, t, CONTEXT, err));
    for (int i = 0, at = 0; i < CONTEXT; i++) {
        if (!t[i].wants_logits) continue;
        reference(odd_layers, 2, ids, i + 1, want);
        for (int k = 0; k < VOCAB; k++)
            if (!(fabs((double)pn_session_logits(s, (size_t)at)[k] - want[k]) < 1e-3))
                fail_msg("position %d, logit %d: %g, expected %g", i, k, (double)pn_session_logits(s, (size_t)at)[k],
                         want[k]);
        at++;
    }
    assert_int_equal(pn_session_eval(s, t, 1, NULL), PN_E_ARGUMENT);
    t[0].position = -1;
    assert_int_equal(pn_session_eval(s, t, 1, NULL), PN_E_FULL);
    pn_session_destroy(s);
    free_model(m);
}

/* ---- random walks ------------------------------------------------------------------------------------------------ */

static uint32_t seed = 2024;
static int32_t below(int32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int32_t)((uint64_t)(seed >> 8) * (uint32_t)n >> 24);
}

static int countdown;
static int after_a_while(void *arg)
{
    (void)arg;
    return --countdown < 0;
}

enum { SEQUENCES = 3 };
typedef struct walk {
    pn_session *s, *fresh;
    int32_t ids[SEQUENCES][CONTEXT], length[SEQUENCES];
} walk;

/* The logits of a sequence's last token are those of its text evaluated alone. */
static void check_last(walk *w, int32_t q, const float *logits)
{
    pn_token t[CONTEXT];
    for (int32_t i = 0; i < w->length[q]; i++)
        t[i] = (pn_token){.token = w->ids[q][i], .position = -1, .wants_logits = i == w->length[q] - 1};
    assert_ok(pn_session_trim(w->fresh, 0, 0, err));
    assert_ok(pn_session_eval(w->fresh, t, (size_t)w->length[q], err));
    assert_non_null(logits);
    assert_memory_equal(logits, pn_session_logits(w->fresh, 0), VOCAB * sizeof(float));
}

/* Tokens of all sequences, interleaved at random; some evaluations are cancelled. */
static void step_eval(walk *w)
{
    pn_token t[3 * CONTEXT];
    int32_t before[SEQUENCES], n = 0, last[SEQUENCES] = {-1, -1, -1}, most = below(3) ? 12 : 100;
    size_t wanted = 0;
    memcpy(before, w->length, sizeof before);
    for (int32_t i = below(most) + 1, q = 0; i > 0; i--) {
        q = below(3) ? q : below(SEQUENCES);
        if (w->length[q] == CONTEXT) continue;
        w->ids[q][w->length[q]] = below(VOCAB);
        t[n] = (pn_token){.token = w->ids[q][w->length[q]++], .position = -1, .sequence = q};
        last[q] = n++;
    }
    for (int q = 0; q < SEQUENCES; q++)
        if (last[q] >= 0) t[last[q]].wants_logits = below(4) != 0;
    countdown = below(5) ? 1 << 30 : below(10);
    pn_status st = pn_session_eval(w->s, t, (size_t)n, NULL);
    if (st) {
        assert_int_equal(st, PN_E_CANCELLED);
        memcpy(w->length, before, sizeof before);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        if (t[i].wants_logits) check_last(w, t[i].sequence, pn_session_logits(w->s, wanted++));
    assert_null(pn_session_logits(w->s, wanted));
}

static void random_walks(void **state)
{
    pn_model *m = model_of(odd_layers, 2, NULL);
    (void)state;
    for (int round = 0; round < 6; round++) {
        walk w = {.fresh = session_of(m, 1, 64, 1)};
        pn_session_options o = PN_OPTIONS_INIT(pn_session_options);
        o.context = CONTEXT;
        o.sequences = SEQUENCES;
        o.batch = 7 + round * 13;
        o.threads = 1 + round % 3;
        o.kv = "f32";
        o.cancelled = after_a_while;
        assert_ok(pn_session_create(m, &o, &w.s, err));
        for (int step = 0; step < 40; step++) {
            int32_t a = below(SEQUENCES), b = below(SEQUENCES);
            if (below(3) == 0) {
                assert_ok(pn_session_copy(w.s, a, b, err));
                memcpy(w.ids[b], w.ids[a], sizeof w.ids[a]);
                w.length[b] = w.length[a];
            }
            if (below(3) == 0) {
                int32_t n = below(w.length[a] + 1);
                assert_ok(pn_session_trim(w.s, a, n, err));
                w.length[a] = n;
            }
            step_eval(&w);
            for (int q = 0; q < SEQUENCES; q++) assert_int_equal(pn_session_length(w.s, q), w.length[q]);
        }
        pn_session_destroy(w.s);
        pn_session_destroy(w.fresh);
    }
    free_model(m);
}

/* ---- shifts ------------------------------------------------------------------------------------------------------ */

static const layer two_ropes_per_head = {
    .heads = 6, .kv_heads = 2, .key = 22, .value = 13, .q_row = 33, .k_row = 170, .v_row = 230, .rope_head = 11};

static void shifts(void **state)
{
    pn_model *m = model_of(&two_ropes_per_head, 1, NULL);
    pn_session *s = session_of(m, 1, 64, 2);
    pn_token t[CONTEXT];
    int32_t kept[CONTEXT], n = 0;
    double want[VOCAB];
    (void)state;
    for (int i = 0; i < 100; i++) {
        t[i] = (pn_token){.token = (i * 53 + 19) % VOCAB, .position = -1};
        if (i < 7 || i >= 40) kept[n++] = t[i].token;
    }
    assert_ok(pn_session_eval(s, t, 99, err));
    assert_ok(pn_session_shift(s, 0, 7, 33, err));
    t[99].wants_logits = 1;
    assert_ok(pn_session_eval(s, t + 99, 1, err));
    reference(&two_ropes_per_head, 1, kept, n, want);
    for (int k = 0; k < VOCAB; k++)
        if (!(fabs((double)pn_session_logits(s, 0)[k] - want[k]) < 1e-3))
            fail_msg("logit %d: %g, expected %g", k, (double)pn_session_logits(s, 0)[k], want[k]);
    pn_session_destroy(s);
    free_model(m);

    /* keys that are not a rope's own result could not be turned: refused, and nothing is changed */
    m = model_of(&odd_layers[1], 1, "scale");
    s = session_of(m, 1, 64, 2);
    t[99].wants_logits = 0;
    assert_ok(pn_session_eval(s, t, 100, err));
    assert_int_equal(pn_session_shift(s, 0, 7, 33, NULL), PN_E_UNSUPPORTED);
    assert_int_equal(pn_session_length(s, 0), 100);
    pn_session_destroy(s);
    free_model(m);
}

/* ---- operations of plugins --------------------------------------------------------------------------------------- */

/* logits = 2 * (head (table[id] * norm)), the first and the last factor by operations of a plugin after `select`. */
static void custom_operations_on_selected_tokens(void **state)
{
    pn_model m = {.runtime = runtime, .file = file, .vocab = VOCAB, .n_tokens = VOCAB};
    float two = 2;
    (void)state;
    assert_ok(pn_plan_create(runtime, file, &m.plan, err));
    pn_val x = op(m.plan, "embed", 0, 0, weight(m.plan, "token_embd.weight", 2, 0, 0), 0, NULL, 0), y = 0;
    x = op(m.plan, "select", x, 0, 0, 0, NULL, 0);
    pn_error e = {0};
    assert_int_equal(try_op(m.plan, "test.recur", &x, 1, NULL, 0, &two, sizeof two, &y, &e), PN_E_ARGUMENT);
    assert_non_null(strstr(e.message, "select"));
    x = op(m.plan, "test.weigh", x, 0, weight(m.plan, "output_norm.weight", 1, 0, 0), 0, NULL, 0);
    x = op(m.plan, "linear", x, 0, weight(m.plan, "output.weight", 2, 0, 0), 0, NULL, 0);
    x = op(m.plan, "test.times", x, 0, 0, 0, &two, sizeof two);
    assert_ok(pn_plan_set_output(m.plan, x, PN_OUTPUT_LOGITS, err));
    assert_ok(pn_plan_finish(m.plan, err));
    pn_session *s = session_of(&m, 1, 16, 2);
    pn_token t[11];
    size_t at = 0;
    for (int i = 0; i < 11; i++) t[i] = (pn_token){.token = i * 29, .position = -1, .wants_logits = i % 3 == 1};
    assert_ok(pn_session_eval(s, t, 11, err));
    for (int i = 0; i < 11; i++) {
        if (!t[i].wants_logits) continue;
        for (int k = 0; k < VOCAB; k++) {
            double want = 0;
            for (int j = 0; j < WIDTH; j++)
                want += 2.0 * (double)head[k][j] * (double)table[t[i].token][j] * (double)norm[j];
            assert_true(fabs((double)pn_session_logits(s, at)[k] - want) < 1e-4);
        }
        at++;
    }
    assert_null(pn_session_logits(s, at));
    pn_session_destroy(s);

    /* a failure names the operation */
    t[0].token = 0;
    pn_plan_destroy(m.plan);
    assert_ok(pn_plan_create(runtime, file, &m.plan, err));
    x = op(m.plan, "embed", 0, 0, weight(m.plan, "token_embd.weight", 2, 0, 0), 0, NULL, 0);
    x = op(m.plan, "test.weigh", x, 0, 0, 0, NULL, 0);
    assert_ok(pn_plan_set_output(m.plan, x, PN_OUTPUT_LOGITS, err));
    s = NULL;
    m.vocab = WIDTH;
    s = session_of(&m, 1, 16, 2);
    assert_int_equal(pn_session_eval(s, t, 3, &e), PN_E_ARGUMENT);
    assert_non_null(strstr(e.message, "test.weigh"));
    assert_int_equal(pn_session_length(s, 0), 0);
    pn_session_destroy(s);
    pn_plan_destroy(m.plan);
}

/* What a newer plugin says in fields that are not known here is refused, not passed over. */
static void newer_words_are_refused(void **state)
{
    pn_plan *p = NULL;
    pn_error e = {0};
    pn_val y = 0;
    pn_wt w = 0;
    struct {
        pn_scale_params known;
        uint32_t more;
    } params = {{sizeof params, 2}, 0};
    struct {
        pn_weight_request known;
        uint64_t more;
    } request = {{.struct_size = sizeof request, .name = "output_norm.weight", .n_dims = 1}, 0};
    (void)state;
    assert_ok(pn_plan_create(runtime, file, &p, err));
    pn_val x = op(p, "embed", 0, 0, weight(p, "token_embd.weight", 2, 0, 0), 0, NULL, 0);
    assert_ok(try_op(p, "scale", &x, 1, NULL, 0, &params, sizeof params, &y, err));
    params.more = 1;
    assert_int_equal(try_op(p, "scale", &x, 1, NULL, 0, &params, sizeof params, &y, &e), PN_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "update"));
    assert_ok(pn_plan_add_weight(p, &request.known, &w, err));
    request.more = 1;
    assert_int_equal(pn_plan_add_weight(p, &request.known, &w, &e), PN_E_UNSUPPORTED);
    request.more = 0;
    request.known.flags = 1u << 31;
    assert_int_equal(pn_plan_add_weight(p, &request.known, &w, &e), PN_E_UNSUPPORTED);
    request.known.flags = 0;
    request.known.rows = 3;
    assert_int_equal(pn_plan_add_weight(p, &request.known, &w, &e), PN_E_ARGUMENT);
    pn_attention_params wide = {
        .struct_size = sizeof wide, .n_heads = WIDTH, .n_kv_heads = 1, .key_size = 1, .value_size = WIDTH, .scale = 1};
    pn_slice_params one = {sizeof one, 0, 1};
    pn_val in[3] = {x, op(p, "slice", x, 0, 0, 0, &one, sizeof one), x};
    p->values[in[2]].width = wide.value_size = 1u << 26; /* 64 heads of it do not fit 32 bits */
    p->values[in[0]].width = WIDTH;
    in[2] = p->n_values;
    p->values[in[2]].width = 1u << 26;
    assert_int_equal(try_op(p, "attention", in, 3, NULL, 0, &wide, sizeof wide, &y, &e), PN_E_ARGUMENT);
    pn_plan_destroy(p);
}

static void options_are_started(void **state)
{
    pn_model *m = model_of(&two_ropes_per_head, 1, NULL);
    pn_session_options o = {.context = 9};
    pn_session *s = NULL;
    pn_error e = {0};
    (void)state;
    assert_int_equal(pn_session_create(m, &o, &s, &e), PN_E_ARGUMENT);
    assert_non_null(strstr(e.message, "struct_size"));
    o.struct_size = sizeof o;
    o.threads = -3;
    assert_int_equal(pn_session_create(m, &o, &s, &e), PN_E_RANGE);
    o.threads = 1;
    o.kv = "a-type-with-a-name-that-is-long";
    assert_int_equal(pn_session_create(m, &o, &s, &e), PN_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, o.kv));
    free_model(m);
}

/* ---- sharing out rows -------------------------------------------------------------------------------------------- */

/* Whoever comes when, each unit is claimed once; a thread's first piece is where pn_work_first says. */
static void claim_rows(void **state)
{
    static const uint32_t teams[] = {1, 2, 3, 7, 64, 65};
    static const size_t totals[] = {0, 1, 2, 3, 13, 64, 127, 128, 129, 1000};
    (void)state;
    srand(7);
    for (size_t i = 0; i < 2 * (sizeof teams / sizeof *teams); i++)
        for (size_t j = 0; j < sizeof totals / sizeof *totals; j++) {
            const uint32_t team = teams[i / 2];
            const size_t own = pn_work_first(totals[j], team, i % 2 ? 7 : 4);
            uint8_t seen[1000] = {0};
            size_t begin = 0, end = 0, left = team;
            pn_work w;
            pn_work_reset(&w);
            while (left) {
                const uint32_t thread = (uint32_t)rand() % team;
                if (!pn_work_claim_rows(&w, totals[j], own, thread, team, &begin, &end)) {
                    left--;
                    continue;
                }
                assert_true(begin < end && end <= totals[j]);
                for (size_t u = begin; u < end; u++) assert_int_equal(seen[u]++, 0);
            }
            for (size_t u = 0; u < totals[j]; u++) assert_int_equal(seen[u], 1);
            assert_true(own * team < totals[j] || !own);
            if (!own) continue;
            pn_work_reset(&w);
            assert_true(pn_work_claim_rows(&w, totals[j], own, team - 1, team, &begin, &end));
            assert_true(begin == (team - 1) * own && end == team * own);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(random_walks),
        cmocka_unit_test(shifts),
        cmocka_unit_test(custom_operations_on_selected_tokens),
        cmocka_unit_test(newer_words_are_refused),
        cmocka_unit_test(options_are_started),
        cmocka_unit_test(claim_rows),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}

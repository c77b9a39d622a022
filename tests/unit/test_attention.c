/* Attention over a long cache against one plain softmax in doubles: windows, grouped heads, chunks joined by one thread
 * or by many. */
#include "fixture.h"

#include "exec.h"

#include <math.h>

enum { HEADS = 4, KV_HEADS = 2, D = 20, DV = 12, LENGTH = 1500, QUERIES = 5 };

static float k_[LENGTH][KV_HEADS * D], v_[LENGTH][KV_HEADS * DV];

static uint32_t seed = 12345;
static float uniform(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 8388608.0f - 1.0f;
}

static void plain(const pn_attention_params *p, const float *q, int32_t position, double *out)
{
    double score[LENGTH], sum = 0, most = -1e300;
    int32_t first = p->window && position >= (int32_t)p->window ? position - (int32_t)p->window + 1 : 0;
    for (uint32_t h = 0; h < HEADS; h++) {
        uint32_t g = h / (HEADS / KV_HEADS);
        sum = 0;
        most = -1e300;
        for (int32_t j = first; j <= position; j++) {
            score[j] = 0;
            for (int i = 0; i < D; i++) score[j] += (double)q[h * D + i] * (double)k_[j][g * D + i];
            score[j] *= (double)p->scale;
            most = score[j] > most ? score[j] : most;
        }
        for (int i = 0; i < DV; i++) out[h * DV + i] = 0;
        for (int32_t j = first; j <= position; j++) {
            double e = exp(score[j] - most);
            sum += e;
            for (int i = 0; i < DV; i++) out[h * DV + i] += e * (double)v_[j][g * DV + i];
        }
        for (int i = 0; i < DV; i++) out[h * DV + i] /= sum;
    }
}

static void run(uint32_t window, int split)
{
    pn_plan_value values[5] = {
        {0}, {.width = HEADS * D}, {.width = KV_HEADS * D}, {.width = KV_HEADS * DV}, {.width = HEADS * DV}};
    pn_plan_node node = {.kind = PN_OP_ATTENTION, .n_inputs = 3, .inputs = {1, 2, 3}, .output = 4};
    node.p.attention = (pn_attention_params){.struct_size = sizeof node.p.attention,
                                             .n_heads = HEADS,
                                             .n_kv_heads = KV_HEADS,
                                             .key_size = D,
                                             .value_size = DV,
                                             .window = window,
                                             .scale = 1.5f};
    pn_plan plan = {.values = values, .nodes = &node, .n_values = 4, .n_nodes = 1, .output = 99, .n_caches = 1};
    pn_kv *kv = NULL;
    assert_ok(pn_kv_create(&plan, "f32", LENGTH, 1, &kv, err));
    const pn_ops *ops = pn_ops_for(0);
    pn_kv_extend(kv, 0, LENGTH);
    for (int32_t j = 0; j < LENGTH; j++) {
        for (int i = 0; i < KV_HEADS * D; i++) k_[j][i] = uniform() * (float)(1 + j % 7);
        for (int i = 0; i < KV_HEADS * DV; i++) v_[j][i] = uniform();
        pn_kv_store(kv, ops, 0, 0, j, k_[j], v_[j]);
    }
    /* The arena is the queries, then the results. */
    static float arena[QUERIES * (HEADS * D + HEADS * DV)];
    pn_buffer buffers[5] = {{0}, {.offset = 0}, {0}, {0}, {.offset = HEADS * D * sizeof(float)}};
    int32_t positions[QUERIES], sequences[QUERIES] = {0};
    pn_tile tile = {.first = 0, .n = QUERIES};
    static pn_exec ex;
    ex = (pn_exec){.plan = &plan,
                   .ops = ops,
                   .kv = kv,
                   .batch = QUERIES,
                   .buffers = buffers,
                   .arena = (unsigned char *)arena,
                   .n_tokens = QUERIES,
                   .positions = positions,
                   .sequences = sequences,
                   .tiles = &tile,
                   .n_tiles = 1,
                   .n_chunks = 1};
    assert_ok(pn_partials_init(&ex.partials, &plan, LENGTH, err));
    for (int t = 0; t < QUERIES; t++) positions[t] = LENGTH - QUERIES + t;
    for (int i = 0; i < QUERIES * HEADS * D; i++) arena[i] = uniform();
    void *scratch = aligned_alloc(64, (pn_exec_attention_scratch(kv) + 63) / 64 * 64);
    if (split) {
        ex.n_chunks = (LENGTH - 1) / PN_CHUNK_KEYS + 1;
        for (uint32_t i = 0; i < ex.partials.n_pending; i++) ex.partials.pending[i] = (uint32_t)ex.n_chunks;
    }
    for (uint32_t h = 0; h < KV_HEADS; h++) {
        /* any order: the last to be done joins */
        for (uint32_t c = (uint32_t)ex.n_chunks; split && c-- > 0;)
            pn_exec_attention_chunk(&ex, &node, 0, h, c, scratch);
        if (!split) pn_exec_attention(&ex, &node, 0, h, scratch);
    }
    for (int t = 0; t < QUERIES; t++) {
        double want[HEADS * DV];
        plain(&node.p.attention, arena + t * HEADS * D, positions[t], want);
        for (int i = 0; i < HEADS * DV; i++)
            if (!(fabs(want[i] - (double)pn_exec_row(&ex, 4, (size_t)t)[i]) < 2e-5))
                fail_msg("window %u, split %d, query %d, element %d: %g, expected %g", window, split, t, i,
                         (double)pn_exec_row(&ex, 4, (size_t)t)[i], want[i]);
    }
    free(scratch);
    pn_partials_free(&ex.partials);
    pn_kv_destroy(kv);
}

static void whole(void **state)
{
    (void)state;
    run(0, 0);
}
static void whole_in_chunks(void **state)
{
    (void)state;
    run(0, 1);
}
static void window(void **state)
{
    (void)state;
    run(700, 0);
    run(3, 0);
}
static void window_in_chunks(void **state)
{
    (void)state;
    run(700, 1);
    run(3, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(whole_in_chunks),
        cmocka_unit_test(window),
        cmocka_unit_test(window_in_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

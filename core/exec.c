/* Runs a scheduled plan: one OpenMP parallel region per evaluation, threads claim pieces of each phase and meet at a
 * barrier. */
#include "exec.h"

#include "alloc.h"

#include <inttypes.h>
#include <omp.h>

#define FEW_BYTES (1u << 20) /* of weights for each thread in a row phase */

/* Elements that unpacking a row writes: whole blocks, so more than `cols` where a type lays out rows its own way. */
static size_t unpacked_elems(const pn_qweight *w)
{
    size_t block = w->type->block_elems, cols = (size_t)w->cols;
    return cols + (block - cols % block) % block;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static size_t scratch_for(const pn_exec *ex)
{
    size_t most = pn_exec_attention_scratch(ex->kv);
    for (uint32_t i = 0; i < ex->n_linears; i++) {
        const pn_linear_run *l = &ex->linears[i];
        const pn_qweight *q = &ex->plan->weights[ex->plan->nodes[l->node].weights[0]].q;
        size_t n = unpacked_elems(q) * sizeof(float), columns = ex->batch;
        if (l->kernel && l->kernel->max_columns && columns > l->kernel->max_columns) columns = l->kernel->max_columns;
        if (l->kernel) n = l->kernel->scratch_bytes ? l->kernel->scratch_bytes((size_t)q->cols, columns) : 0;
        most = n > most ? n : most;
    }
    for (uint32_t i = 0; i < ex->plan->n_nodes; i++) {
        const pn_plan_node *n = &ex->plan->nodes[i];
        if (n->kind == PN_OP_EMBED) {
            size_t bytes = unpacked_elems(&ex->plan->weights[n->weights[0]].q) * sizeof(float);
            most = bytes > most ? bytes : most;
        }
        if (n->kind != PN_OP_CUSTOM || !n->op->scratch_bytes) continue;
        uint32_t widths[PN_NODE_INPUTS] = {0};
        pn_op_call call = pn_plan_call(ex->plan, n, widths);
        size_t bytes = n->op->scratch_bytes(&call, widths);
        most = bytes > most ? bytes : most;
    }
    return most < SIZE_MAX / 2 ? pn_round64(most) + 64 : 0;
}

/* What custom operations see that does not change from one evaluation to the next. */
static pn_status prepare_custom(pn_exec *ex, pn_error *err)
{
    size_t n = ex->plan->n_nodes;
    ex->custom = pn_calloc(n, sizeof *ex->custom);
    ex->custom_inputs = pn_calloc(n * PN_NODE_INPUTS, sizeof *ex->custom_inputs);
    ex->custom_widths = pn_calloc(n * PN_NODE_INPUTS, sizeof *ex->custom_widths);
    ex->custom_weights = pn_calloc(n * PN_NODE_WEIGHTS, sizeof *ex->custom_weights);
    if (!ex->custom || !ex->custom_inputs || !ex->custom_widths || !ex->custom_weights)
        return pn_fail(err, PN_E_NOMEM, "no memory for the operations of plugins");
    for (size_t i = 0; i < n; i++) {
        const pn_plan_node *node = &ex->plan->nodes[i];
        pn_op_args *a = &ex->custom[i];
        if (node->kind != PN_OP_CUSTOM) continue;
        for (uint32_t k = 0; k < node->n_inputs; k++)
            ex->custom_widths[i * PN_NODE_INPUTS + k] = ex->plan->values[node->inputs[k]].width;
        for (uint32_t k = 0; k < node->n_weights; k++)
            ex->custom_weights[i * PN_NODE_WEIGHTS + k] =
                node->weights[k] ? &ex->plan->weights[node->weights[k]].q : NULL;
        *a = (pn_op_args){.struct_size = sizeof *a,
                          .n_inputs = node->n_inputs,
                          .inputs = ex->custom_inputs + i * PN_NODE_INPUTS,
                          .input_widths = ex->custom_widths + i * PN_NODE_INPUTS,
                          .output_width = ex->plan->values[node->output].width,
                          .n_weights = node->n_weights,
                          .weights = ex->custom_weights + i * PN_NODE_WEIGHTS,
                          .params = node->params,
                          .params_size = node->params_size,
                          .layer = node->layer};
        if (node->op->state_bytes)
            a->state = (void *const *)(ex->kv->states + (size_t)node->cache * (size_t)ex->kv->n_sequences);
    }
    return PN_OK;
}

static pn_status prepare(pn_exec *ex, uint32_t precision, int32_t context, pn_error *err)
{
    pn_status st = pn_exec_schedule(ex, precision, err);
    if (st) return st;
    ex->ropes = pn_calloc(ex->plan->n_ropes, sizeof *ex->ropes);
    ex->selected = pn_calloc(ex->batch, sizeof *ex->selected);
    ex->tiles = pn_calloc(ex->batch, sizeof *ex->tiles);
    ex->selected_positions = pn_calloc(ex->batch, sizeof *ex->selected_positions);
    ex->selected_sequences = pn_calloc(ex->batch, sizeof *ex->selected_sequences);
    if (!ex->ropes || !ex->selected || !ex->tiles || !ex->selected_positions || !ex->selected_sequences)
        return pn_fail(err, PN_E_NOMEM, "no memory for a batch of %zu tokens", ex->batch);
    for (uint32_t i = 0; i < ex->n_items; i++) {
        if (ex->items[i].kind != PN_ITEM_ROPE_TABLE) continue;
        st = pn_rope_table_init(&ex->ropes[ex->items[i].index], ex->plan, &ex->plan->nodes[ex->items[i].node], context,
                                ex->batch, err);
        if (st) return st;
    }
    if (ex->arena_bytes > SIZE_MAX / 2 / ex->batch)
        return pn_fail(err, PN_E_RANGE, "a batch of %zu tokens is too large", ex->batch);
    ex->arena_bytes *= ex->batch;
    ex->packed_bytes *= ex->batch;
    ex->arena = pn_pages_alloc(ex->arena_bytes + 64);
    if (!ex->arena)
        return pn_fail(err, PN_E_NOMEM, "no memory for an arena of %zu bytes: lower [runtime] batch", ex->arena_bytes);
    ex->scratch_bytes = scratch_for(ex);
    if (!ex->scratch_bytes || ex->scratch_bytes > SIZE_MAX / 2 / ex->n_threads)
        return pn_fail(err, PN_E_RANGE, "an operation or kernel wants more scratch than there can be");
    ex->scratch = pn_alloc_aligned(64, ex->scratch_bytes * ex->n_threads);
    if (!ex->scratch)
        return pn_fail(err, PN_E_NOMEM, "no memory for %" PRIu32 " times %zu bytes of scratch", ex->n_threads,
                       ex->scratch_bytes);
    if ((st = pn_partials_init(&ex->partials, ex->plan, context, err))) return st;
    return prepare_custom(ex, err);
}

pn_status pn_exec_create(const pn_plan *plan, pn_kv *kv, uint32_t precision, int32_t context, size_t batch,
                         uint32_t n_threads, uint32_t spin, pn_exec **out, pn_error *err)
{
    pn_exec *ex = pn_alloc_aligned(64, pn_round64(sizeof *ex));
    if (!ex) return pn_fail(err, PN_E_NOMEM, "no memory for a session");
    memset(ex, 0, sizeof *ex);
    ex->plan = plan;
    ex->kv = kv;
    ex->ops = pn_ops_for(pn_runtime_cpu(plan->runtime));
    ex->n_threads = n_threads;
    ex->batch = batch;
    ex->spin = spin;
    pn_status st = prepare(ex, precision, context, err);
    if (st) pn_exec_destroy(ex);
    else *out = ex;
    return st;
}

void pn_exec_destroy(pn_exec *ex)
{
    if (!ex) return;
    if (ex->ropes)
        for (uint32_t i = 0; i < ex->plan->n_ropes; i++) pn_rope_table_free(&ex->ropes[i]);
    if (ex->arena) pn_pages_free(ex->arena, ex->arena_bytes + 64);
    pn_free_aligned(ex->scratch);
    pn_free(ex->ropes);
    pn_free(ex->selected);
    pn_free(ex->tiles);
    pn_free(ex->selected_positions);
    pn_free(ex->selected_sequences);
    pn_partials_free(&ex->partials);
    pn_free(ex->phases);
    pn_free(ex->items);
    pn_free(ex->linears);
    pn_free(ex->buffers);
    pn_free(ex->custom);
    pn_free(ex->custom_inputs);
    pn_free(ex->custom_widths);
    pn_free(ex->custom_weights);
    pn_free_aligned(ex);
}

/* ---- token phases ------------------------------------------------------------------------------------------------ */

/* The first failure counts; its node is read after the parallel region. */
static void fail(pn_exec *ex, pn_status st, uint32_t node)
{
    int32_t none = 0;
    if (st && atomic_compare_exchange_strong(&ex->failed, &none, st)) ex->failed_node = node;
}

static void embed(const pn_exec *ex, const pn_plan_node *n, size_t t, float *scratch)
{
    const pn_qweight *w = &ex->plan->weights[n->weights[0]].q;
    const unsigned char *row = (const unsigned char *)w->data + (size_t)ex->tokens[t] * w->row_stride;
    float *y = pn_exec_row(ex, n->output, t);
    size_t cols = (size_t)w->cols, elems = unpacked_elems(w);
    w->type->dequantize(row, elems == cols ? y : scratch, elems);
    if (elems != cols) memcpy(y, scratch, cols * sizeof *y);
}

static const float *vector(const pn_exec *ex, const pn_plan_node *n, uint32_t i)
{
    return n->weights[i] ? ex->plan->weights[n->weights[i]].vector : NULL;
}

static void run_rope(const pn_exec *ex, const pn_plan_node *n, size_t t, const float *x, float *y, size_t width)
{
    const pn_rope_table *r = &ex->ropes[n->cache];
    const pn_rope_params *p = &n->p.rope;
    size_t token = ex->plan->values[n->output].selected ? ex->selected[t] : t;
    memcpy(y, x, width * sizeof *y);
    ex->ops->rope(y, width / p->head_size, p->head_size, p->n_dims, p->pairing, r->cosine + token * r->n_pairs,
                  r->sine + token * r->n_pairs);
}

/* One operation for one token. */
static pn_status run_node(const pn_exec *ex, uint32_t index, size_t t, uint32_t thread, void *scratch)
{
    const pn_plan_node *n = &ex->plan->nodes[index];
    const pn_ops *o = ex->ops;
    size_t width = ex->plan->values[n->output].width;
    float *y = pn_exec_row(ex, n->output, t);
    const float *a = n->n_inputs > 0 ? pn_exec_row(ex, n->inputs[0], t) : NULL;
    const float *b = n->n_inputs > 1 ? pn_exec_row(ex, n->inputs[1], t) : NULL;
    switch (n->kind) {
    case PN_OP_EMBED: embed(ex, n, t, scratch); break;
    case PN_OP_RMS_NORM: o->rms_norm(a, vector(ex, n, 0), n->p.norm.eps, width, y); break;
    case PN_OP_LAYER_NORM: o->layer_norm(a, vector(ex, n, 0), vector(ex, n, 1), n->p.norm.eps, width, y); break;
    case PN_OP_ADD: o->add(a, b, width, y); break;
    case PN_OP_MUL: o->mul(a, b, width, y); break;
    case PN_OP_SCALE: o->scale(a, n->p.scale.factor, width, y); break;
    case PN_OP_ACTIVATION: o->activation(n->p.activation.kind, a, width, y); break;
    case PN_OP_GLU: o->glu(n->p.activation.kind, a, b, width, y); break;
    case PN_OP_ROPE: run_rope(ex, n, t, a, y, width); break;
    case PN_OP_SLICE: memcpy(y, a + n->p.slice.begin, width * sizeof *y); break;
    case PN_OP_SELECT:
        if (!ex->plan->values[n->inputs[0]].selected) a = pn_exec_row(ex, n->inputs[0], ex->selected[t]);
        memcpy(y, a, width * sizeof *y);
        break;
    case PN_OP_CUSTOM: {
        pn_op_args args = ex->custom[index];
        args.scratch = scratch;
        args.thread = thread;
        return n->op->run(&args, t, t + 1);
    }
    default: return PN_E_INTERNAL;
    }
    return PN_OK;
}

static void token_items(pn_exec *ex, const pn_phase *ph, size_t t, uint32_t thread, void *scratch)
{
    for (uint32_t i = 0; i < ph->n_items; i++) {
        const pn_item *it = &ex->items[ph->first + i];
        const pn_plan_node *n = &ex->plan->nodes[it->node];
        switch (it->kind) {
        case PN_ITEM_NODE: fail(ex, run_node(ex, it->node, t, thread, scratch), it->node); break;
        case PN_ITEM_PACK: {
            const pn_buffer *b = &ex->buffers[it->index];
            b->packing->pack(pn_exec_row(ex, b->value, t), ex->plan->values[b->value].width,
                             pn_exec_data(ex, it->index) + t * b->bytes);
            break;
        }
        case PN_ITEM_STORE:
            fail(ex,
                 pn_kv_store(ex->kv, ex->ops, n->cache, ex->sequences[t], ex->positions[t],
                             pn_exec_row(ex, n->inputs[1], t), pn_exec_row(ex, n->inputs[2], t)),
                 it->node);
            break;
        case PN_ITEM_ROPE_TABLE: pn_rope_table_fill(&ex->ropes[it->index], t, ex->positions[t]); break;
        }
    }
}

/* ---- row phases -------------------------------------------------------------------------------------------------- */

/* A type without a kernel: each row is unpacked to floats and multiplied with every column. Slow and exact. */
static void dequantize_and_dot(const pn_exec *ex, const pn_plan_node *n, size_t begin, size_t end, size_t columns,
                               float *row)
{
    const pn_qweight *w = &ex->plan->weights[n->weights[0]].q;
    for (size_t r = begin; r < end; r++) {
        w->type->dequantize((const unsigned char *)w->data + r * w->row_stride, row, unpacked_elems(w));
        for (size_t c = 0; c < columns; c++)
            pn_exec_row(ex, n->output, c)[r] = ex->ops->dot(row, pn_exec_row(ex, n->inputs[0], c), (size_t)w->cols);
    }
}

static void run_rows(pn_exec *ex, const pn_linear_run *l, size_t begin, size_t end, size_t columns, const void *ahead,
                     void *scratch)
{
    const pn_plan_node *n = &ex->plan->nodes[l->node];
    const pn_qweight *w = &ex->plan->weights[n->weights[0]].q;
    const float *bias = vector(ex, n, 1);
    if (!l->kernel) {
        dequantize_and_dot(ex, n, begin, end, columns, scratch);
    } else {
        size_t most = l->kernel->max_columns ? l->kernel->max_columns : columns, stride = ex->buffers[l->packed].bytes;
        for (size_t c = 0; c < columns; c += most) {
            pn_matmul_args a = {.struct_size = sizeof a,
                                .weight = w,
                                .row_begin = begin,
                                .row_end = end,
                                .packed = pn_exec_data(ex, l->packed) + c * stride,
                                .packed_stride = stride,
                                .columns = columns - c < most ? columns - c : most,
                                .out = pn_exec_row(ex, n->output, c),
                                .out_stride = (size_t)w->rows,
                                .scratch = scratch,
                                .scratch_bytes = ex->scratch_bytes,
                                .ahead = ahead};
            fail(ex, l->kernel->matmul(&a), l->node);
        }
    }
    if (bias)
        for (size_t c = 0; c < columns; c++) {
            float *y = pn_exec_row(ex, n->output, c);
            ex->ops->add(y + begin, bias + begin, end - begin, y + begin);
        }
}

static size_t phase_columns(const pn_exec *ex, const pn_phase *ph)
{
    return ph->selected ? ex->n_selected : ex->n_tokens;
}

static size_t phase_units(const pn_exec *ex, const pn_phase *ph)
{
    const size_t columns = phase_columns(ex, ph);
    const pn_item *it = &ex->items[ph->first];
    const pn_plan_node *n = &ex->plan->nodes[it->node];
    switch (ph->kind) {
    case PN_PHASE_TOKENS: return columns;
    case PN_PHASE_ROWS: return columns ? ph->n_units : 0;
    case PN_PHASE_ATTENTION: return ex->n_tiles * n->p.attention.n_kv_heads * ex->n_chunks;
    default: return columns ? n->op->units(&ex->custom[it->node]) : 0;
    }
}

/* Where the weights of unit `unit` of a row phase begin; NULL behind the last. */
static const void *unit_data(const pn_exec *ex, const pn_phase *ph, size_t unit)
{
    for (uint32_t i = 0; i < ph->n_items; i++) {
        const pn_linear_run *l = &ex->linears[ex->items[ph->first + i].index];
        const pn_qweight *w = &ex->plan->weights[ex->plan->nodes[l->node].weights[0]].q;
        if (unit < l->n_units) return (const unsigned char *)w->data + unit * l->unit_rows * w->row_stride;
        unit -= l->n_units;
    }
    return NULL;
}

static void row_units(pn_exec *ex, const pn_phase *ph, size_t begin, size_t end, size_t columns, const void *ahead,
                      void *scratch)
{
    size_t base = 0;
    for (uint32_t i = 0; i < ph->n_items && base < end; i++) {
        const pn_linear_run *l = &ex->linears[ex->items[ph->first + i].index];
        size_t rows = (size_t)ex->plan->weights[ex->plan->nodes[l->node].weights[0]].q.rows;
        size_t b = begin > base ? begin - base : 0, e = end - base < l->n_units ? end - base : l->n_units;
        base += l->n_units;
        if (b < e)
            run_rows(ex, l, b * l->unit_rows, e * l->unit_rows < rows ? e * l->unit_rows : rows, columns,
                     base < end ? unit_data(ex, ph, base) : ahead, scratch);
    }
}

/* Units of each thread's first piece. With one column a phase of few bytes takes some ten microseconds, and claims,
 * whose counter goes from core to core, cost more than an uneven end: the first piece is most of a thread's share then.
 */
static size_t first_units(const pn_exec *ex, const pn_phase *ph, uint32_t team)
{
    const int few = phase_columns(ex, ph) == 1 && ph->bytes / team < FEW_BYTES;
    return pn_work_first(phase_units(ex, ph), team, few ? 7 : 4);
}

/* What `thread` reads first in the next row phase; behind the last it is the first one, of the token that follows. */
static const void *first_data(const pn_exec *ex, uint32_t thread, uint32_t team)
{
    for (uint32_t i = 1; i <= ex->n_phases; i++) {
        const pn_phase *ph = &ex->phases[(ex->phase + i) % ex->n_phases];
        if (ph->kind == PN_PHASE_ROWS) return unit_data(ex, ph, thread * first_units(ex, ph, team));
    }
    return NULL;
}

/* With one column, what comes behind a long piece is claimed before, so that a kernel can ask for it while it computes;
 * behind a short one it is not, as another thread may be free sooner. */
static void run_row_phase(pn_exec *ex, const pn_phase *ph, uint32_t thread, uint32_t team, void *scratch)
{
    const size_t columns = phase_columns(ex, ph), units = phase_units(ex, ph), first = first_units(ex, ph, team);
    size_t begin, end, next_begin = 0, next_end = 0;
    int more = pn_work_claim_rows(&ex->work, units, first, thread, team, &begin, &end);
    while (more) {
        const int early = columns == 1 && end - begin > 1;
        more = early && pn_work_claim_rows(&ex->work, units, first, thread, team, &next_begin, &next_end);
        row_units(ex, ph, begin, end, columns, more ? unit_data(ex, ph, next_begin) : first_data(ex, thread, team),
                  scratch);
        if (!early) more = pn_work_claim_rows(&ex->work, units, first, thread, team, &next_begin, &next_end);
        begin = next_begin;
        end = next_end;
    }
}

/* ---- phases and threads ------------------------------------------------------------------------------------------ */

static void attention_unit(const pn_exec *ex, const pn_plan_node *n, size_t unit, void *scratch)
{
    uint32_t chunk = (uint32_t)(unit % ex->n_chunks),
             head = (uint32_t)(unit / ex->n_chunks % n->p.attention.n_kv_heads);
    /* Late tiles see the most keys: long pieces first. */
    uint32_t tile = (uint32_t)(ex->n_tiles - 1 - unit / ex->n_chunks / n->p.attention.n_kv_heads);
    if (ex->n_chunks == 1) pn_exec_attention(ex, n, tile, head, scratch);
    else pn_exec_attention_chunk(ex, n, tile, head, chunk, scratch);
}

static void run_phase(pn_exec *ex, const pn_phase *ph, uint32_t thread, uint32_t team)
{
    const pn_item *it = &ex->items[ph->first];
    const pn_plan_node *n = &ex->plan->nodes[it->node];
    unsigned char *scratch = ex->scratch + thread * ex->scratch_bytes;
    size_t units = phase_units(ex, ph), grain = 1, b, e;
    if (ph->kind == PN_PHASE_TOKENS) {
        grain = units / (team * 4u);
        grain = grain < 1 ? 1 : grain > 16 ? 16 : grain;
    }
    if (ph->kind == PN_PHASE_ROWS) {
        run_row_phase(ex, ph, thread, team, scratch);
        return;
    }
    while (pn_work_claim(&ex->work, units, grain, &b, &e)) {
        switch (ph->kind) {
        case PN_PHASE_TOKENS:
            for (size_t t = b; t < e; t++) token_items(ex, ph, t, thread, scratch);
            break;
        case PN_PHASE_ROWS: break; /* above */
        case PN_PHASE_ATTENTION:
            for (size_t u = b; u < e; u++) attention_unit(ex, n, u, scratch);
            break;
        case PN_PHASE_UNITS: {
            pn_op_args args = ex->custom[it->node];
            args.scratch = scratch;
            args.thread = thread;
            fail(ex, n->op->run(&args, b, e), it->node);
            break;
        }
        }
    }
}

/* Two linears of a phase are one to an observer when both read the same input and the same tensor (rows of it). */
static int seen(const pn_exec *ex, const pn_phase *ph, uint32_t item)
{
    const pn_plan_node *n = &ex->plan->nodes[ex->items[ph->first + item].node];
    for (uint32_t i = 0; i < item; i++) {
        const pn_plan_node *o = &ex->plan->nodes[ex->items[ph->first + i].node];
        if (o->inputs[0] == n->inputs[0] &&
            ex->plan->weights[o->weights[0]].tensor == ex->plan->weights[n->weights[0]].tensor)
            return 1;
    }
    return 0;
}

static void observe(pn_exec *ex, const pn_phase *ph)
{
    size_t columns = phase_columns(ex, ph);
    for (uint32_t i = 0; i < ph->n_items && columns; i++) {
        const pn_plan_node *n = &ex->plan->nodes[ex->items[ph->first + i].node];
        if (!seen(ex, ph, i))
            ex->observe(ex->observe_arg, ex->plan->weights[n->weights[0]].tensor, pn_exec_row(ex, n->inputs[0], 0),
                        columns, ex->plan->values[n->inputs[0]].width);
    }
}

/* A thread of the team, as the barrier knows it. */
typedef struct member {
    pn_exec *ex;
    uint32_t thread, team;
} member;

/* Token phases of a single token cannot be shared out: the last thread at the barrier does them at once, which spares
 * the team a barrier each. */
static int is_single(const pn_exec *ex, const pn_phase *ph)
{
    return ph->kind == PN_PHASE_TOKENS && phase_columns(ex, ph) <= 1;
}

/* Makes ex->phase the next one to run. On the last thread to arrive at a barrier, while the others wait. */
static void between_phases(void *arg)
{
    const member *m = arg;
    pn_exec *ex = m->ex;
    for (;;) {
        ex->phase++;
        if (ex->cancelled && ex->cancelled(ex->cancelled_arg)) fail(ex, PN_E_CANCELLED, 0);
        ex->stop = atomic_load(&ex->failed) != 0;
        pn_work_reset(&ex->work);
        if (ex->stop || ex->phase >= ex->n_phases) return;
        if (!is_single(ex, &ex->phases[ex->phase])) break;
        run_phase(ex, &ex->phases[ex->phase], m->thread, m->team);
    }
    if (ex->observe && ex->phases[ex->phase].kind == PN_PHASE_ROWS) observe(ex, &ex->phases[ex->phase]);
}

static void run_thread(pn_exec *ex, uint32_t thread, uint32_t team)
{
    member m = {ex, thread, team};
    while (ex->phase < ex->n_phases && !ex->stop) {
        run_phase(ex, &ex->phases[ex->phase], thread, team);
        pn_barrier_wait(&ex->barrier, between_phases, &m);
    }
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

static void set_batch(pn_exec *ex, const uint8_t *wants)
{
    int32_t last_position = 0;
    ex->n_selected = 0;
    ex->n_tiles = 0;
    for (size_t t = 0; t < ex->n_tokens; t++) {
        pn_tile *last = ex->n_tiles ? &ex->tiles[ex->n_tiles - 1] : NULL;
        if (wants[t]) {
            ex->selected_positions[ex->n_selected] = ex->positions[t];
            ex->selected_sequences[ex->n_selected] = ex->sequences[t];
            ex->selected[ex->n_selected++] = (uint32_t)t;
        }
        last_position = ex->positions[t] > last_position ? ex->positions[t] : last_position;
        if (last && last->n < PN_TILE_TOKENS && ex->sequences[t] == ex->sequences[t - 1] &&
            ex->positions[t] == ex->positions[t - 1] + 1)
            last->n++;
        else ex->tiles[ex->n_tiles++] = (pn_tile){.first = (uint32_t)t, .n = 1};
    }
    ex->n_chunks =
        ex->partials.memory && ex->n_tokens <= PN_SPLIT_TOKENS ? (size_t)last_position / PN_CHUNK_KEYS + 1 : 1;
    for (uint32_t i = 0; i < ex->partials.n_pending; i++)
        atomic_store_explicit(&ex->partials.pending[i], (uint32_t)ex->n_chunks, memory_order_relaxed);
    for (uint32_t i = 0; i < ex->plan->n_nodes; i++) {
        const pn_plan_node *n = &ex->plan->nodes[i];
        pn_op_args *a = &ex->custom[i];
        if (n->kind != PN_OP_CUSTOM) continue;
        int selected = ex->plan->values[n->output].selected;
        for (uint32_t k = 0; k < n->n_inputs; k++)
            ex->custom_inputs[(size_t)i * PN_NODE_INPUTS + k] = pn_exec_row(ex, n->inputs[k], 0);
        a->output = pn_exec_row(ex, n->output, 0);
        a->n_tokens = selected ? ex->n_selected : ex->n_tokens;
        a->positions = selected ? ex->selected_positions : ex->positions;
        a->sequences = selected ? ex->selected_sequences : ex->sequences;
    }
}

/* Which operation failed, and with which weight. */
static pn_status failure(const pn_exec *ex, pn_status st, pn_error *err)
{
    const pn_plan_node *n = &ex->plan->nodes[ex->failed_node];
    const pn_tensor *w = n->kind == PN_OP_LINEAR ? ex->plan->weights[n->weights[0]].tensor : NULL;
    return pn_fail(err, st, "'%s' in layer %" PRIu32 "%s%.*s failed with status %d (%s)", pn_plan_op_name(n), n->layer,
                   w ? " with tensor " : "", w && w->name.size < 200 ? (int)w->name.size : 0, w ? w->name.data : "",
                   (int)st, pn_status_name(st));
}

pn_status pn_exec_run(pn_exec *ex, size_t n, const int32_t *tokens, const int32_t *positions, const int32_t *sequences,
                      const uint8_t *wants, float *logits, pn_error *err)
{
    ex->n_tokens = n;
    ex->tokens = tokens;
    ex->positions = positions;
    ex->sequences = sequences;
    ex->logits = logits;
    set_batch(ex, wants);
    atomic_store(&ex->failed, 0);
    pn_work_reset(&ex->work);
    ex->stop = 0;
    ex->phase = 0;
#pragma omp parallel num_threads((int)ex->n_threads)
    {
        uint32_t team = (uint32_t)omp_get_num_threads(), thread = (uint32_t)omp_get_thread_num();
        /* The team may be smaller than asked for: the barrier counts who is there. */
#pragma omp single
        pn_barrier_init(&ex->barrier, team, ex->spin);
        run_thread(ex, thread, team);
    }
    pn_status st = atomic_load(&ex->failed);
    if (st == PN_E_CANCELLED) return pn_fail(err, st, "the evaluation was cancelled");
    return st ? failure(ex, st, err) : PN_OK;
}

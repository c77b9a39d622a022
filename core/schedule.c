/* Turns a plan into phases: what is local to a token runs together, matmuls whose inputs are packed run together,
 * buffers share an arena. */
#include "alloc.h"
#include "exec.h"
#include "registry.h"

#include <inttypes.h>

#define NOT_YET UINT32_MAX

/* Scheduling state. Arrays are indexed by value (1 ..), node or buffer. */
typedef struct scheduler {
    pn_exec *ex;
    const pn_plan *plan;
    uint32_t *made;   /* [value] phase that makes it, or NOT_YET */
    uint32_t *packed; /* [buffer - n_values - 1] phase that packs it */
    uint8_t *done;    /* [node] */
    uint8_t *stored;  /* [node] attention: keys and values are written */
} scheduler;

static pn_status add_item(scheduler *s, pn_item_kind kind, uint32_t node, uint32_t index, pn_error *err)
{
    pn_exec *ex = s->ex;
    pn_status st = pn_grow((void **)&ex->items, ex->n_items, &ex->cap_items, sizeof *ex->items, err);
    if (!st) ex->items[ex->n_items++] = (pn_item){.kind = kind, .node = node, .index = index};
    return st;
}

/* Close a phase whose items began at `first`; nothing when there are none. */
static pn_status add_phase(scheduler *s, pn_phase_kind kind, int selected, uint32_t first, pn_error *err)
{
    pn_exec *ex = s->ex;
    if (ex->n_items == first) return PN_OK;
    pn_status st = pn_grow((void **)&ex->phases, ex->n_phases, &ex->cap_phases, sizeof *ex->phases, err);
    if (!st)
        ex->phases[ex->n_phases++] =
            (pn_phase){.kind = kind, .selected = selected, .first = first, .n_items = ex->n_items - first};
    return st;
}

static int token_local(const pn_plan_node *n)
{
    switch (n->kind) {
    case PN_OP_LINEAR:
    case PN_OP_ATTENTION: return 0;
    case PN_OP_CUSTOM: return n->op->axis == PN_AXIS_TOKENS;
    default: return 1;
    }
}

/* Inputs are there when phase `now` runs: made before it, or (with_own) made by it for the same token. */
static int inputs_ready(const scheduler *s, const pn_plan_node *n, uint32_t now, int with_own)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        uint32_t made = s->made[n->inputs[i]];
        if (made == NOT_YET || made > now || (made == now && !with_own)) return 0;
    }
    return 1;
}

static int is_selected(const scheduler *s, pn_val v)
{
    return s->plan->values[v].selected;
}

/* Packings and cache writes that what was made so far permits. */
static pn_status add_token_tail(scheduler *s, uint32_t now, int selected, pn_error *err)
{
    pn_exec *ex = s->ex;
    pn_status st;
    for (uint32_t i = 0; i < ex->n_linears; i++) {
        const pn_plan_node *n = &s->plan->nodes[ex->linears[i].node];
        uint32_t b = ex->linears[i].packed;
        if (!ex->linears[i].kernel || is_selected(s, n->inputs[0]) != selected || !inputs_ready(s, n, now, 1) ||
            s->packed[b - s->plan->n_values - 1] != NOT_YET)
            continue;
        s->packed[b - s->plan->n_values - 1] = now;
        ex->buffers[b].birth = now;
        if ((st = add_item(s, PN_ITEM_PACK, ex->linears[i].node, b, err))) return st;
    }
    for (uint32_t i = 0; i < s->plan->n_nodes && !selected; i++) {
        const pn_plan_node *n = &s->plan->nodes[i];
        if (n->kind != PN_OP_ATTENTION || s->stored[i]) continue;
        if (s->made[n->inputs[1]] == NOT_YET || s->made[n->inputs[2]] == NOT_YET) continue;
        s->stored[i] = 1;
        if ((st = add_item(s, PN_ITEM_STORE, i, 0, err))) return st;
    }
    return PN_OK;
}

static pn_status token_phase(scheduler *s, int selected, pn_error *err)
{
    uint32_t first = s->ex->n_items, now = s->ex->n_phases;
    for (int again = 1; again;) {
        again = 0;
        for (uint32_t i = 0; i < s->plan->n_nodes; i++) {
            const pn_plan_node *n = &s->plan->nodes[i];
            if (s->done[i] || !token_local(n) || is_selected(s, n->output) != selected) continue;
            if (!inputs_ready(s, n, now, n->kind != PN_OP_SELECT || is_selected(s, n->inputs[0]))) continue;
            s->done[i] = 1;
            s->made[n->output] = now;
            pn_status st = add_item(s, PN_ITEM_NODE, i, 0, err);
            if (st) return st;
            again = 1;
        }
    }
    pn_status st = add_token_tail(s, now, selected, err);
    return st ? st : add_phase(s, PN_PHASE_TOKENS, selected, first, err);
}

static pn_status row_phase(scheduler *s, int selected, pn_error *err)
{
    pn_exec *ex = s->ex;
    uint32_t first = ex->n_items, now = ex->n_phases;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < ex->n_linears; i++) {
        const pn_linear_run *l = &ex->linears[i];
        const pn_plan_node *n = &s->plan->nodes[l->node];
        if (s->done[l->node] || is_selected(s, n->output) != selected || !inputs_ready(s, n, now, 0)) continue;
        if (l->kernel && (s->packed[l->packed - s->plan->n_values - 1] == NOT_YET ||
                          s->packed[l->packed - s->plan->n_values - 1] >= now))
            continue;
        s->done[l->node] = 1;
        s->made[n->output] = now;
        rows += s->plan->weights[n->weights[0]].q.rows;
        pn_status st = add_item(s, PN_ITEM_NODE, l->node, i, err);
        if (st) return st;
    }
    pn_status st = add_phase(s, PN_PHASE_ROWS, selected, first, err);
    if (st || ex->n_items == first) return st;
    /* About 16 pieces per thread, whole tiles of rows each. */
    pn_phase *ph = &ex->phases[ex->n_phases - 1];
    size_t want = (size_t)(rows / (ex->n_threads * 16u)) + 1;
    for (uint32_t i = 0; i < ph->n_items; i++) {
        pn_linear_run *l = &ex->linears[ex->items[ph->first + i].index];
        const pn_qweight *q = &s->plan->weights[s->plan->nodes[l->node].weights[0]].q;
        size_t tile = l->kernel ? l->kernel->row_tile : 8, all = (size_t)q->rows;
        l->unit_rows = (want + tile - 1) / tile * tile;
        l->n_units = (all + l->unit_rows - 1) / l->unit_rows;
        ph->n_units += l->n_units;
        ph->bytes += q->rows * q->row_stride;
    }
    return PN_OK;
}

static pn_status other_phase(scheduler *s, pn_error *err)
{
    for (uint32_t i = 0; i < s->plan->n_nodes; i++) {
        const pn_plan_node *n = &s->plan->nodes[i];
        uint32_t now = s->ex->n_phases, first = s->ex->n_items;
        if (s->done[i] || token_local(n) || n->kind == PN_OP_LINEAR || !inputs_ready(s, n, now, 0)) continue;
        if (n->kind == PN_OP_ATTENTION && !s->stored[i]) continue;
        s->done[i] = 1;
        s->made[n->output] = now;
        pn_status st = add_item(s, PN_ITEM_NODE, i, 0, err);
        if (st) return st;
        return add_phase(s, n->kind == PN_OP_ATTENTION ? PN_PHASE_ATTENTION : PN_PHASE_UNITS, is_selected(s, n->output),
                         first, err);
    }
    return PN_OK;
}

/* Cosine tables come first; then phases as long as something can run. */
static pn_status make_phases(scheduler *s, pn_error *err)
{
    pn_status st;
    for (uint32_t table = 0; table < s->plan->n_ropes; table++) {
        for (uint32_t i = 0; i < s->plan->n_nodes; i++) {
            if (s->plan->nodes[i].kind != PN_OP_ROPE || s->plan->nodes[i].cache != table) continue;
            if ((st = add_item(s, PN_ITEM_ROPE_TABLE, i, table, err))) return st;
            break;
        }
    }
    if ((st = add_phase(s, PN_PHASE_TOKENS, 0, 0, err))) return st;
    for (;;) {
        uint32_t before = s->ex->n_phases;
        if ((st = token_phase(s, 0, err)) || (st = token_phase(s, 1, err)) || (st = row_phase(s, 0, err)) ||
            (st = row_phase(s, 1, err)) || (st = other_phase(s, err)))
            return st;
        if (s->ex->n_phases == before) break;
    }
    for (uint32_t i = 0; i < s->plan->n_nodes; i++)
        if (!s->done[i])
            return pn_fail(err, PN_E_INTERNAL, "plan: '%s' in layer %" PRIu32 " cannot be scheduled",
                           pn_plan_op_name(&s->plan->nodes[i]), s->plan->nodes[i].layer);
    return PN_OK;
}

/* ---- kernels and buffers ----------------------------------------------------------------------------------------- */

static pn_status choose_kernels(scheduler *s, uint32_t precision, pn_error *err)
{
    pn_exec *ex = s->ex;
    for (uint32_t i = 0; i < s->plan->n_nodes; i++) {
        const pn_plan_node *n = &s->plan->nodes[i];
        if (n->kind != PN_OP_LINEAR) continue;
        const pn_qweight *q = &s->plan->weights[n->weights[0]].q;
        pn_linear_run *l = &ex->linears[ex->n_linears];
        l->node = i;
        pn_status st = pn_registry_pick_kernel(s->plan->runtime, q, precision, &l->kernel, &l->packing, l->why,
                                               sizeof l->why, err);
        if (st) return st;
        if (l->kernel) {
            uint32_t b = s->plan->n_values + 1;
            while (b <= ex->n_buffers && (ex->buffers[b].value != n->inputs[0] || ex->buffers[b].packing != l->packing))
                b++;
            if (b > ex->n_buffers) {
                size_t bytes = l->packing->column_bytes((size_t)q->cols);
                if (!bytes || bytes % 64)
                    return pn_fail(err, PN_E_UNSUPPORTED, "packing '%s' cannot hold a column of %" PRIu64 " elements",
                                   l->packing->name, q->cols);
                ex->n_buffers = b;
                ex->buffers[b] = (pn_buffer){.bytes = bytes, .value = n->inputs[0], .packing = l->packing};
            }
            l->packed = b;
        }
        ex->n_linears++;
    }
    return PN_OK;
}

static void read_by(pn_buffer *b, uint32_t phase)
{
    if (b->death < phase) b->death = phase;
}

/* When each buffer is last read. Values are born where they are made. */
static void set_lives(scheduler *s)
{
    pn_exec *ex = s->ex;
    for (uint32_t v = 1; v <= s->plan->n_values; v++) ex->buffers[v].birth = s->made[v];
    for (uint32_t p = 0; p < ex->n_phases; p++) {
        for (uint32_t k = 0; k < ex->phases[p].n_items; k++) {
            const pn_item *it = &ex->items[ex->phases[p].first + k];
            const pn_plan_node *n = &s->plan->nodes[it->node];
            if (it->kind == PN_ITEM_ROPE_TABLE) continue;
            for (uint32_t i = 0; i < n->n_inputs; i++) read_by(&ex->buffers[n->inputs[i]], p);
            if (ex->phases[p].kind == PN_PHASE_ROWS && ex->linears[it->index].kernel)
                read_by(&ex->buffers[ex->linears[it->index].packed], p);
        }
    }
    for (uint32_t b = 1; b <= ex->n_buffers; b++)
        if (ex->buffers[b].death < ex->buffers[b].birth) ex->buffers[b].death = ex->buffers[b].birth;
}

/* First fit: the lowest place that no buffer alive at the same time uses. Returns the end of the highest, in bytes per
 * token. */
static size_t lay_out(pn_exec *ex, uint32_t skip)
{
    size_t end = 0;
    for (uint32_t b = 1; b <= ex->n_buffers; b++) {
        pn_buffer *x = &ex->buffers[b];
        size_t at = 0;
        if (b == skip) continue;
        for (int moved = 1; moved;) {
            moved = 0;
            for (uint32_t o = 1; o < b; o++) {
                const pn_buffer *y = &ex->buffers[o];
                if (o == skip || y->death < x->birth || x->death < y->birth || at + x->bytes <= y->offset ||
                    y->offset + y->bytes <= at)
                    continue;
                at = y->offset + y->bytes;
                moved = 1;
            }
        }
        x->offset = at;
        if (at + x->bytes > end) end = at + x->bytes;
    }
    return end;
}

static pn_status schedule(scheduler *s, uint32_t precision, pn_error *err)
{
    pn_exec *ex = s->ex;
    uint32_t nv = s->plan->n_values, nn = s->plan->n_nodes;
    ex->linears = pn_calloc(nn, sizeof *ex->linears);
    ex->buffers = pn_calloc((size_t)nv + nn + 1, sizeof *ex->buffers);
    s->made = pn_calloc((size_t)nv + 1, sizeof *s->made);
    s->packed = pn_calloc((size_t)nn + 1, sizeof *s->packed);
    s->done = pn_calloc((size_t)nn + 1, 1);
    s->stored = pn_calloc((size_t)nn + 1, 1);
    if (!ex->linears || !ex->buffers || !s->made || !s->packed || !s->done || !s->stored)
        return pn_fail(err, PN_E_NOMEM, "no memory for a schedule");
    for (uint32_t v = 1; v <= nv; v++)
        ex->buffers[v].bytes = ((size_t)s->plan->values[v].width * sizeof(float) + 63) & ~(size_t)63;
    ex->n_buffers = nv;
    memset(s->made, 0xff, ((size_t)nv + 1) * sizeof *s->made);
    memset(s->packed, 0xff, ((size_t)nn + 1) * sizeof *s->packed);
    pn_status st = choose_kernels(s, precision, err);
    if (!st) st = make_phases(s, err);
    if (st) return st;
    set_lives(s);
    for (uint32_t b = nv + 1; b <= ex->n_buffers; b++) ex->packed_bytes += ex->buffers[b].bytes;
    ex->arena_bytes = lay_out(ex, s->plan->output);
    return PN_OK;
}

pn_status pn_exec_schedule(pn_exec *ex, uint32_t precision, pn_error *err)
{
    scheduler s = {.ex = ex, .plan = ex->plan};
    pn_status st = schedule(&s, precision, err);
    pn_free(s.made);
    pn_free(s.packed);
    pn_free(s.done);
    pn_free(s.stored);
    return st;
}

/* Builds plans: checks every call of an architecture plugin, finds weights, works out widths. */
#include "plan.h"

#include "alloc.h"
#include "file.h"
#include "registry.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>

/* What each word takes. max_weights counts optional ones; required is how many of them must not be 0. */
static const struct pn_word_rule {
    const char *name;
    pn_op_kind kind;
    uint32_t inputs, weights, required;
    size_t params;
} rules[] = {
    {"embed", PN_OP_EMBED, 0, 1, 1, 0},
    {"rms_norm", PN_OP_RMS_NORM, 1, 1, 1, sizeof(pn_norm_params)},
    {"layer_norm", PN_OP_LAYER_NORM, 1, 2, 1, sizeof(pn_norm_params)},
    {"linear", PN_OP_LINEAR, 1, 2, 1, 0},
    {"rope", PN_OP_ROPE, 1, 2, 0, sizeof(pn_rope_params)},
    {"attention", PN_OP_ATTENTION, 3, 0, 0, sizeof(pn_attention_params)},
    {"add", PN_OP_ADD, 2, 0, 0, 0},
    {"mul", PN_OP_MUL, 2, 0, 0, 0},
    {"scale", PN_OP_SCALE, 1, 0, 0, sizeof(pn_scale_params)},
    {"activation", PN_OP_ACTIVATION, 1, 0, 0, sizeof(pn_activation_params)},
    {"glu", PN_OP_GLU, 2, 0, 0, sizeof(pn_activation_params)},
    {"slice", PN_OP_SLICE, 1, 0, 0, sizeof(pn_slice_params)},
    {"select", PN_OP_SELECT, 1, 0, 0, 0},
};

const char *pn_plan_op_name(const pn_plan_node *node)
{
    if (node->kind == PN_OP_CUSTOM) return node->op->name;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == node->kind) return rules[i].name;
    return "?";
}

pn_op_call pn_plan_call(const pn_plan *plan, const pn_plan_node *n, uint32_t widths[PN_NODE_INPUTS])
{
    for (uint32_t k = 0; k < n->n_inputs; k++) widths[k] = plan->values[n->inputs[k]].width;
    return (pn_op_call){.struct_size = sizeof(pn_op_call),
                        .op = n->op->name,
                        .layer = n->layer,
                        .inputs = n->inputs,
                        .n_inputs = n->n_inputs,
                        .weights = n->weights,
                        .n_weights = n->n_weights,
                        .params = n->params,
                        .params_size = n->params_size};
}

pn_status pn_plan_create(pn_runtime *rt, pn_file *file, pn_plan **out, pn_error *err)
{
    pn_plan *p = pn_calloc(1, sizeof *p);
    if (!p) return pn_fail(err, PN_E_NOMEM, "no memory for a plan");
    p->runtime = rt;
    p->file = file;
    *out = p;
    return PN_OK;
}

void pn_plan_destroy(pn_plan *p)
{
    if (!p) return;
    for (uint32_t i = 1; i <= p->n_weights; i++) pn_free_aligned(p->weights[i].vector);
    for (uint32_t i = 0; i < p->n_nodes; i++) pn_free(p->nodes[i].params);
    pn_free(p->weights);
    pn_free(p->values);
    pn_free(p->nodes);
    pn_free(p);
}

static void dims_text(pn_text *t, const uint64_t *dims, uint32_t n)
{
    pn_text_add(t, "[");
    for (uint32_t i = 0; i < n; i++) {
        if (dims[i]) pn_text_add(t, "%s%" PRIu64, i ? ", " : "", dims[i]);
        else pn_text_add(t, "%s*", i ? ", " : "");
    }
    pn_text_add(t, "]");
}

/* The tensor's shape without leading dimensions of 1 beyond `n`; 0 when it does not have n dimensions. */
static int shape_fits(const pn_tensor *t, const pn_weight_request *r)
{
    uint32_t skip = 0;
    while (t->n_dims - skip > r->n_dims && t->dims[skip] == 1) skip++;
    if (t->n_dims - skip != r->n_dims) return 0;
    for (uint32_t i = 0; i < r->n_dims; i++)
        if (r->dims[i] ? t->dims[skip + i] != r->dims[i] : t->dims[skip + i] == 0) return 0;
    return 1;
}

static pn_status load_vector(pn_plan *p, const pn_tensor *t, pn_plan_weight *w, pn_error *err)
{
    uint64_t n = pn_tensor_elements(t);
    if (n > UINT32_MAX)
        return pn_fail(err, PN_E_RANGE, "%s: vector of %" PRIu64 " elements is too long", pn_file_path(p->file), n);
    w->n = n;
    w->vector = pn_alloc_aligned(64, ((size_t)n * sizeof(float) + 63) & ~(size_t)63);
    if (!w->vector) return pn_fail(err, PN_E_NOMEM, "no memory for a vector of %" PRIu64 " floats", n);
    pn_status st = pn_file_tensor_f32(p->file, t, 0, n, w->vector, err);
    /* Operations of plugins see it as a matrix of one row. */
    if (!st) st = pn_file_weight(p->file, t, &w->q, err);
    if (st) {
        pn_free_aligned(w->vector);
        w->vector = NULL;
    }
    return st;
}

/* Does a newer plugin's struct say anything in fields that are not known here? They would be passed over silently. */
static int beyond(const void *item, size_t size, size_t known)
{
    const unsigned char *byte = item;
    for (size_t i = known; i < size; i++)
        if (byte[i]) return 1;
    return 0;
}

pn_status pn_plan_add_weight(pn_plan *p, const pn_weight_request *request, pn_wt *out, pn_error *err)
{
    /* An older plugin's struct may be shorter; what it lacks is zero. */
    pn_weight_request full = {0}, *r = &full;
    memcpy(r, request, request->struct_size < sizeof full ? request->struct_size : sizeof full);
    const pn_tensor *t = NULL;
    pn_status st;
    *out = 0;
    if (!r->name || r->n_dims < 1 || r->n_dims > 2)
        return pn_fail(err, PN_E_ARGUMENT, "weight request: a name and 1 or 2 dimensions are wanted, found %" PRIu32,
                       r->n_dims);
    if (r->flags & ~(uint32_t)PN_WEIGHT_OPTIONAL || beyond(request, request->struct_size, sizeof full))
        return pn_fail(err, PN_E_UNSUPPORTED,
                       "weight request for '%s': flags or fields that are not known here: update Pantheon", r->name);
    if ((r->rows || r->row_begin) && (r->n_dims != 2 || !r->rows))
        return pn_fail(err, PN_E_ARGUMENT, "weight request for '%s': a part must be rows of a matrix", r->name);
    st = pn_file_tensor_neutral(p->file, r->name, &t, err);
    if (st == PN_E_NOT_FOUND && (r->flags & PN_WEIGHT_OPTIONAL)) {
        if (err) memset(err, 0, offsetof(pn_error, message) + 1);
        return PN_OK;
    }
    if (st) return st;
    for (uint32_t i = 1; i <= p->n_weights; i++) {
        if (p->weights[i].tensor == t && shape_fits(t, r) && (p->weights[i].vector != NULL) == (r->n_dims == 1) &&
            p->weights[i].row_begin == r->row_begin && p->weights[i].rows == r->rows) {
            *out = i;
            return PN_OK;
        }
    }
    if (!shape_fits(t, r)) {
        char found[256], wanted[256];
        pn_text tf = {found, sizeof found, 0}, tw = {wanted, sizeof wanted, 0};
        dims_text(&tf, t->dims, t->n_dims);
        dims_text(&tw, r->dims, r->n_dims);
        return pn_fail(err, PN_E_FORMAT, "%s: tensor '%.*s' has shape %s, expected %s (rows first)",
                       pn_file_path(p->file), (int)t->name.size, t->name.data, found, wanted);
    }
    st = pn_grow((void **)&p->weights, p->n_weights + 1, &p->cap_weights, sizeof *p->weights, err);
    if (st) return st;
    pn_plan_weight *w = &p->weights[p->n_weights + 1];
    memset(w, 0, sizeof *w);
    w->tensor = t;
    w->row_begin = r->row_begin;
    w->rows = r->rows;
    st = r->n_dims == 1 ? load_vector(p, t, w, err) : pn_file_weight(p->file, t, &w->q, err);
    if (st) return st;
    if (r->rows) {
        if (r->row_begin > w->q.rows || r->rows > w->q.rows - r->row_begin)
            return pn_fail(err, PN_E_RANGE,
                           "%s: tensor '%.*s' has %" PRIu64 " rows, of which %" PRIu64 " from %" PRIu64
                           " on are wanted",
                           pn_file_path(p->file), (int)t->name.size, t->name.data, w->q.rows, r->rows, r->row_begin);
        w->q.data = (const unsigned char *)w->q.data + r->row_begin * w->q.row_stride;
        w->q.rows = r->rows;
    }
    *out = ++p->n_weights;
    return PN_OK;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static pn_status bad(const pn_op_call *c, pn_error *err, const char *format, ...) PN_PRINTF(3, 4);
static pn_status bad(const pn_op_call *c, pn_error *err, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return pn_fail(err, PN_E_ARGUMENT, "plan: '%s' in layer %" PRIu32 ": %s", c->op ? c->op : "(no name)", c->layer,
                   text);
}

static uint32_t vector_length(const pn_plan *p, pn_wt w)
{
    return (uint32_t)p->weights[w].n;
}

/* A vector weight of exactly n elements (or absent when optional). */
static pn_status want_vector(const pn_plan *p, const pn_op_call *c, pn_wt w, uint32_t n, const char *what,
                             pn_error *err)
{
    if (!w) return PN_OK;
    if (!p->weights[w].vector || vector_length(p, w) != n)
        return bad(c, err, "%s must be a vector of %" PRIu32, what, n);
    return PN_OK;
}

static pn_status check_rope(const pn_plan *p, const pn_op_call *c, const pn_rope_params *r, uint32_t width,
                            pn_error *err)
{
    if (!r->head_size || width % r->head_size || r->n_dims > r->head_size || r->n_dims % 2 || !r->n_dims)
        return bad(c, err, "head size %" PRIu32 " and %" PRIu32 " rotated elements do not fit a width of %" PRIu32,
                   r->head_size, r->n_dims, width);
    if (r->pairing != PN_ROPE_INTERLEAVED && r->pairing != PN_ROPE_HALVES)
        return bad(c, err, "unknown pairing %" PRIu32, r->pairing);
    if (r->scaling > PN_ROPE_LONGROPE || !(r->base > 0) || !(r->factor > 0) || !isfinite(r->base) ||
        !isfinite(r->factor))
        return bad(c, err, "scaling %" PRIu32 ", base %g and factor %g are not usable", r->scaling, (double)r->base,
                   (double)r->factor);
    if ((r->scaling == PN_ROPE_YARN || r->scaling == PN_ROPE_LONGROPE) && !r->original_context)
        return bad(c, err, "this scaling needs the original context length");
    if ((r->scaling == PN_ROPE_YARN || r->scaling == PN_ROPE_LONGROPE) &&
        !(r->attn_factor > 0 && isfinite(r->attn_factor)))
        return bad(c, err, "this scaling needs an attention factor, found %g", (double)r->attn_factor);
    if (r->scaling == PN_ROPE_YARN && !(r->base > 1 && r->beta_fast > 0 && r->beta_slow > 0 &&
                                        isfinite(r->beta_fast) && isfinite(r->beta_slow) && isfinite(r->ext_factor)))
        return bad(c, err, "base %g, turns %g and %g are not usable for this scaling", (double)r->base,
                   (double)r->beta_fast, (double)r->beta_slow);
    for (int i = 0; i < 2; i++) {
        pn_status st = want_vector(p, c, c->weights[i], r->n_dims / 2, "the frequency factors", err);
        if (st) return st;
    }
    return PN_OK;
}

static pn_status check_attention(const pn_plan *p, const pn_op_call *c, const pn_attention_params *a, pn_error *err)
{
    uint64_t q = p->values[c->inputs[0]].width, k = p->values[c->inputs[1]].width, v = p->values[c->inputs[2]].width;
    if (!a->n_heads || !a->n_kv_heads || a->n_heads % a->n_kv_heads)
        return bad(c, err, "%" PRIu32 " heads cannot share %" PRIu32 " key/value heads", a->n_heads, a->n_kv_heads);
    if (q != (uint64_t)a->n_heads * a->key_size || k != (uint64_t)a->n_kv_heads * a->key_size ||
        v != (uint64_t)a->n_kv_heads * a->value_size || !q || !v)
        return bad(c, err,
                   "widths q %" PRIu64 ", k %" PRIu64 ", v %" PRIu64 " do not fit %" PRIu32 "/%" PRIu32
                   " heads of %" PRIu32 " and %" PRIu32,
                   q, k, v, a->n_heads, a->n_kv_heads, a->key_size, a->value_size);
    if ((uint64_t)a->n_heads * a->value_size > UINT32_MAX / 8)
        return bad(c, err, "%" PRIu32 " heads with values of %" PRIu32 " are too many", a->n_heads, a->value_size);
    if (a->flags) return bad(c, err, "flags %" PRIu32 " are reserved", a->flags);
    return PN_OK;
}

/* Checks one of the core's words and gives the width of its result. Inputs are valid values; params were copied to
 * node->p. */
static pn_status shape_of(pn_plan *p, const pn_op_call *c, pn_plan_node *n, uint32_t *width, pn_error *err)
{
    uint32_t a = c->n_inputs > 0 ? p->values[c->inputs[0]].width : 0;
    uint32_t b = c->n_inputs > 1 ? p->values[c->inputs[1]].width : 0;
    const pn_plan_weight *w = c->n_weights ? &p->weights[c->weights[0]] : NULL;
    pn_status st = PN_OK;
    *width = a;
    switch (n->kind) {
    case PN_OP_EMBED:
        if (w->vector) return bad(c, err, "the table must be a matrix");
        if (w->q.cols > UINT32_MAX / 8 || w->q.rows > INT32_MAX) return bad(c, err, "the table is too large");
        *width = (uint32_t)w->q.cols;
        return PN_OK;
    case PN_OP_RMS_NORM:
    case PN_OP_LAYER_NORM:
        st = want_vector(p, c, c->weights[0], a, "the scale", err);
        if (!st && n->kind == PN_OP_LAYER_NORM) st = want_vector(p, c, c->weights[1], a, "the bias", err);
        return st;
    case PN_OP_LINEAR:
        if (w->vector || w->q.cols != a)
            return bad(c, err, "a matrix of %" PRIu32 " columns is wanted, found %" PRIu64, a,
                       w->vector ? w->n : w->q.cols);
        if (w->q.rows > UINT32_MAX / 8) return bad(c, err, "%" PRIu64 " rows are too many", w->q.rows);
        *width = (uint32_t)w->q.rows;
        return want_vector(p, c, c->weights[1], *width, "the bias", err);
    case PN_OP_ROPE: return check_rope(p, c, &n->p.rope, a, err);
    case PN_OP_ATTENTION:
        *width = n->p.attention.n_heads * n->p.attention.value_size;
        return check_attention(p, c, &n->p.attention, err);
    case PN_OP_ADD:
    case PN_OP_MUL:
    case PN_OP_GLU:
        if (a != b) return bad(c, err, "widths %" PRIu32 " and %" PRIu32 " differ", a, b);
        break;
    case PN_OP_SLICE:
        if (!n->p.slice.width || n->p.slice.begin > a || n->p.slice.width > a - n->p.slice.begin)
            return bad(c, err, "elements %" PRIu32 "+%" PRIu32 " lie outside a width of %" PRIu32, n->p.slice.begin,
                       n->p.slice.width, a);
        *width = n->p.slice.width;
        break;
    default: break;
    }
    if ((n->kind == PN_OP_ACTIVATION || n->kind == PN_OP_GLU) &&
        (n->p.activation.kind < PN_ACT_SILU || n->p.activation.kind > PN_ACT_RELU))
        return bad(c, err, "unknown activation %" PRIu32, n->p.activation.kind);
    return PN_OK;
}

static pn_status shape_of_custom(pn_plan *p, const pn_op_call *c, pn_plan_node *n, int selected, uint32_t *width,
                                 pn_error *err)
{
    const pn_reg_entry *e = pn_registry_find(p->runtime, PN_KIND_OP, c->op);
    uint32_t widths[PN_NODE_INPUTS] = {0};
    if (!e) return pn_registry_missing(p->runtime, PN_KIND_OP, pn_str_from(c->op), err);
    for (uint32_t i = 0; i < c->n_inputs; i++) widths[i] = p->values[c->inputs[i]].width;
    n->op = e->item;
    if (n->op->state_bytes && n->op->axis == PN_AXIS_TOKENS)
        return bad(c, err, "the operation keeps a state of each sequence, so it must not be cut by tokens");
    if (n->op->state_bytes && selected)
        return bad(c, err, "an operation with state needs all tokens: it cannot follow 'select'");
    pn_status st = n->op->shape(e->host, c, widths, width, err);
    if (st) return st;
    if (!*width || *width > UINT32_MAX / 8) return bad(c, err, "the operation gave a width of %" PRIu32, *width);
    n->params_size = c->params_size;
    n->params = pn_calloc(1, c->params_size + 1);
    if (!n->params) return pn_fail(err, PN_E_NOMEM, "no memory for the parameters of '%s'", c->op);
    if (c->params_size) memcpy(n->params, c->params, c->params_size);
    if (n->op->state_bytes) n->cache = p->n_states++;
    return PN_OK;
}

/* Two ropes with the same parameters and factors share a table of cosines. */
static uint32_t rope_table(pn_plan *p, const pn_plan_node *n)
{
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const pn_plan_node *o = &p->nodes[i];
        pn_rope_params a = n->p.rope, b = o->p.rope;
        a.head_size = b.head_size = a.pairing = b.pairing = 0;
        if (o->kind == PN_OP_ROPE && !memcmp(&a, &b, sizeof a) && !memcmp(o->weights, n->weights, 2 * sizeof(pn_wt)))
            return o->cache;
    }
    return p->n_ropes++;
}

/* Inputs and weights exist; all inputs are of one domain. */
static pn_status check_operands(pn_plan *p, const pn_op_call *c, int *selected, pn_error *err)
{
    if (!c->op) return bad(c, err, "no operation is named");
    if (c->struct_size > sizeof *c && beyond(c, c->struct_size, sizeof *c))
        return pn_fail(err, PN_E_UNSUPPORTED, "plan: '%s' says more than is known here: update Pantheon", c->op);
    if (c->n_inputs > PN_NODE_INPUTS || c->n_weights > PN_NODE_WEIGHTS)
        return bad(c, err, "more than %d inputs or %d weights", PN_NODE_INPUTS, PN_NODE_WEIGHTS);
    *selected = 0;
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        pn_val v = c->inputs[i];
        if (!v || v > p->n_values) return bad(c, err, "input %" PRIu32 " is no value", i);
        if (i && p->values[v].selected != *selected)
            return bad(c, err, "one input is for all tokens, another only for the selected ones");
        *selected = p->values[v].selected;
    }
    for (uint32_t i = 0; i < c->n_weights; i++)
        if (c->weights[i] > p->n_weights) return bad(c, err, "weight %" PRIu32 " is no weight", i);
    return PN_OK;
}

pn_status pn_plan_add_op(pn_plan *p, const pn_op_call *c, pn_val *out, pn_error *err)
{
    const struct pn_word_rule *rule = NULL;
    pn_plan_node n;
    uint32_t width = 0;
    int selected = 0;
    *out = 0;
    memset(&n, 0, sizeof n);
    pn_status st = check_operands(p, c, &selected, err);
    if (st) return st;
    if ((st = pn_grow((void **)&p->nodes, p->n_nodes, &p->cap_nodes, sizeof *p->nodes, err)) ||
        (st = pn_grow((void **)&p->values, p->n_values + 1, &p->cap_values, sizeof *p->values, err)))
        return st;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].name, c->op)) rule = &rules[i];
    n.layer = c->layer;
    n.n_inputs = c->n_inputs;
    n.n_weights = c->n_weights;
    if (c->n_inputs) memcpy(n.inputs, c->inputs, c->n_inputs * sizeof *n.inputs);
    if (c->n_weights) memcpy(n.weights, c->weights, c->n_weights * sizeof *n.weights);
    if (!rule) {
        n.kind = PN_OP_CUSTOM;
        st = shape_of_custom(p, c, &n, selected, &width, err);
    } else {
        n.kind = rule->kind;
        if (c->n_inputs != rule->inputs || c->n_weights != rule->weights)
            return bad(c, err, "takes %" PRIu32 " inputs and %" PRIu32 " weights, found %" PRIu32 " and %" PRIu32,
                       rule->inputs, rule->weights, c->n_inputs, c->n_weights);
        for (uint32_t i = 0; i < rule->required; i++)
            if (!c->weights[i]) return bad(c, err, "weight %" PRIu32 " is required", i);
        /* An older plugin's struct may be shorter; what it lacks is zero. */
        size_t size = c->params_size < rule->params ? c->params_size : rule->params;
        if (c->params_size > size && beyond(c->params, c->params_size, size))
            return pn_fail(err, PN_E_UNSUPPORTED,
                           "plan: '%s' in layer %" PRIu32 " has parameters that are not known here: update Pantheon",
                           c->op, c->layer);
        if (size) memcpy(&n.p, c->params, size);
        st = shape_of(p, c, &n, &width, err);
    }
    if (st) return st;
    if (n.kind == PN_OP_ATTENTION) {
        if (selected) return bad(c, err, "attention needs all tokens: it cannot follow 'select'");
        n.cache = p->n_caches++;
    }
    if (n.kind == PN_OP_SELECT) selected = 1;
    if (n.kind == PN_OP_ROPE) n.cache = rope_table(p, &n);
    n.output = ++p->n_values;
    p->values[n.output] = (pn_plan_value){.width = width, .node = p->n_nodes, .selected = selected};
    p->nodes[p->n_nodes++] = n;
    *out = n.output;
    return PN_OK;
}

pn_status pn_plan_set_output(pn_plan *p, pn_val value, uint32_t kind, pn_error *err)
{
    if (kind != PN_OUTPUT_LOGITS)
        return pn_fail(err, PN_E_UNSUPPORTED, "plan: outputs of kind %" PRIu32 " are not known here: update Pantheon",
                       kind);
    if (!value || value > p->n_values) return pn_fail(err, PN_E_ARGUMENT, "plan: the output is no value");
    if (!p->values[value].selected) {
        pn_op_call c = {.struct_size = sizeof c, .op = "select", .inputs = &value, .n_inputs = 1};
        return pn_plan_add_op(p, &c, &p->output, err);
    }
    p->output = value;
    return PN_OK;
}

pn_status pn_plan_finish(pn_plan *p, pn_error *err)
{
    if (!p->output) return pn_fail(err, PN_E_ARGUMENT, "plan: the architecture plugin named no output");
    if (p->values[p->output].width > INT32_MAX)
        return pn_fail(err, PN_E_RANGE, "plan: a vocabulary of %" PRIu32 " is too large", p->values[p->output].width);
    for (uint32_t v = 1; v <= p->n_values; v++) {
        int used = v == p->output;
        for (uint32_t i = 0; i < p->n_nodes && !used; i++)
            for (uint32_t k = 0; k < p->nodes[i].n_inputs; k++) used |= p->nodes[i].inputs[k] == v;
        if (!used) {
            const pn_plan_node *n = &p->nodes[p->values[v].node];
            return pn_fail(err, PN_E_ARGUMENT, "plan: the result of '%s' in layer %" PRIu32 " is never used",
                           pn_plan_op_name(n), n->layer);
        }
    }
    return PN_OK;
}

uint64_t pn_plan_weight_bytes(const pn_plan *p)
{
    uint64_t sum = 0;
    for (uint32_t w = 1; w <= p->n_weights; w++) {
        int linear = 0, embed = 0;
        for (uint32_t i = 0; i < p->n_nodes; i++) {
            linear |= p->nodes[i].kind == PN_OP_LINEAR && p->nodes[i].weights[0] == w;
            embed |= p->nodes[i].kind == PN_OP_EMBED && p->nodes[i].weights[0] == w;
        }
        if (p->weights[w].vector) sum += p->weights[w].n * sizeof(float);
        else if (linear) sum += p->weights[w].q.rows * p->weights[w].q.row_stride;
        else if (embed) sum += p->weights[w].q.row_stride;
    }
    return sum;
}

double pn_plan_multiply_adds(const pn_plan *p, uint64_t tokens, uint64_t outputs)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const pn_plan_node *n = &p->nodes[i];
        const pn_qweight *q = n->kind == PN_OP_LINEAR ? &p->weights[n->weights[0]].q : NULL;
        const uint64_t columns = p->values[n->output].selected ? outputs : tokens;
        if (q) sum += (double)q->rows * (double)q->cols * (double)columns;
    }
    return sum;
}

size_t pn_plan_describe(const pn_plan *p, char *text, size_t capacity)
{
    pn_text t = {text, capacity, 0};
    if (capacity) text[0] = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const pn_plan_node *n = &p->nodes[i];
        pn_text_add(&t, "%4" PRIu32 "  layer %-3" PRIu32 " %%%-4" PRIu32 " [%" PRIu32 "%s] = %s", i, n->layer,
                    n->output, p->values[n->output].width, p->values[n->output].selected ? ", selected" : "",
                    pn_plan_op_name(n));
        for (uint32_t k = 0; k < n->n_inputs; k++) pn_text_add(&t, " %%%" PRIu32, n->inputs[k]);
        for (uint32_t k = 0; k < n->n_weights; k++) {
            const pn_tensor *w = n->weights[k] ? p->weights[n->weights[k]].tensor : NULL;
            if (w) pn_text_add(&t, " %.*s:%s", (int)w->name.size, w->name.data, w->type ? w->type : "?");
        }
        pn_text_add(&t, "\n");
    }
    return t.size;
}

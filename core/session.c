/* Sessions: a sequence state, a prepared plan and the logits of the last evaluation. Checks a batch, cuts it into
 * pieces, undoes it on failure. */
#include "alloc.h"
#include "exec.h"
#include "model.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>

#define DEFAULT_CONTEXT_LIMIT 4096 /* tokens, when the model was trained for more and nobody asked for more */

struct pn_session {
    pn_model *model;
    pn_kv *kv;
    pn_exec *exec;
    int32_t context, n_sequences, batch, threads;
    uint32_t precision;
    char *kv_type;
    void (*progress)(void *arg, size_t done, size_t total);
    void *progress_arg;
    float *logits; /* [batch][vocab] */
    size_t logits_bytes, n_logits;
    int32_t *tokens, *positions, *sequences; /* [batch] */
    uint8_t *wants;                          /* [batch] */
    int32_t *next;                           /* [n_sequences] length while a batch is checked */
    int32_t *before;                         /* [n_sequences] length before the call */
};

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static uint32_t spin_rounds(const pn_config *cfg, int32_t threads)
{
    const char *text = pn_config_text(cfg, "runtime", "spin");
    if (text && !strcmp(text, "spin")) return UINT32_MAX;
    if (text && !strcmp(text, "sleep")) return 0;
    int64_t n = pn_config_int(cfg, "runtime", "spin");
    /* A few microseconds, then sleep: on a busy machine a waiting thread must not take the processor from a working
     * one. */
    return n >= 0 ? (uint32_t)(n > UINT32_MAX ? UINT32_MAX : n) : threads > pn_team_default() ? 64 : 1000;
}

static pn_status settle_options(pn_session *s, const pn_session_options *o, pn_error *err)
{
    const pn_config *cfg = pn_runtime_config(s->model->runtime);
    int64_t context = o->context ? o->context : pn_config_int(cfg, "runtime", "context");
    int64_t batch = o->batch ? o->batch : pn_config_int(cfg, "runtime", "batch");
    int64_t threads = o->threads ? o->threads : pn_config_int(cfg, "runtime", "threads");
    const char *activations = pn_config_text(cfg, "runtime", "activations");
    const char *kv = o->kv ? o->kv : pn_config_text(cfg, "runtime", "kv");
    if (context == 0)
        context =
            s->model->context && s->model->context < DEFAULT_CONTEXT_LIMIT ? s->model->context : DEFAULT_CONTEXT_LIMIT;
    if (threads == 0) threads = pn_team_default();
    s->n_sequences = o->sequences ? o->sequences : 1;
    if (context < 1 || context > 1 << 24)
        return pn_fail(err, PN_E_RANGE, "context: %" PRId64 " is not in 1 to %d", context, 1 << 24);
    if (batch < 1 || batch > 65536) return pn_fail(err, PN_E_RANGE, "batch: %" PRId64 " is not in 1 to 65536", batch);
    if (threads < 1 || threads > 1024)
        return pn_fail(err, PN_E_RANGE, "threads: %" PRId64 " is not in 1 to 1024", threads);
    if (s->n_sequences < 1 || s->n_sequences > 65536)
        return pn_fail(err, PN_E_RANGE, "sequences: %" PRId32 " is not in 1 to 65536", s->n_sequences);
    if (o->precision > PN_FAST)
        return pn_fail(err, PN_E_RANGE, "precision: %" PRIu32 " is neither exact nor fast", o->precision);
    s->context = (int32_t)context;
    /* No evaluation can have more tokens than all sequences together can hold. */
    int64_t most = context * s->n_sequences;
    s->batch = (int32_t)(batch < most ? batch : most);
    s->threads = (int32_t)threads;
    s->precision = o->precision ? o->precision : activations && !strcmp(activations, "fast") ? PN_FAST : PN_EXACT;
    s->kv_type = pn_strdup(kv && *kv ? kv : "f16");
    return s->kv_type ? PN_OK : pn_fail(err, PN_E_NOMEM, "no memory for a session");
}

static pn_status prepare(pn_session *s, const pn_session_options *o, pn_error *err)
{
    size_t batch, sequences;
    pn_status st = settle_options(s, o, err);
    if (st) return st;
    batch = (size_t)s->batch;
    sequences = (size_t)s->n_sequences;
    s->progress = o->progress;
    s->progress_arg = o->progress_arg;
    s->tokens = pn_calloc(batch, sizeof *s->tokens);
    s->positions = pn_calloc(batch, sizeof *s->positions);
    s->sequences = pn_calloc(batch, sizeof *s->sequences);
    s->wants = pn_calloc(batch, sizeof *s->wants);
    s->next = pn_calloc(sequences, sizeof *s->next);
    s->before = pn_calloc(sequences, sizeof *s->before);
    s->logits_bytes = batch * (size_t)s->model->vocab * sizeof(float);
    s->logits = pn_pages_alloc(s->logits_bytes);
    if (!s->tokens || !s->positions || !s->sequences || !s->wants || !s->next || !s->before || !s->logits)
        return pn_fail(err, PN_E_NOMEM, "no memory for batches of %zu tokens: lower [runtime] batch", batch);
    if ((st = pn_kv_create(s->model->plan, s->kv_type, s->context, s->n_sequences, &s->kv, err))) return st;
    st = pn_exec_create(s->model->plan, s->kv, s->precision, s->context, batch, (uint32_t)s->threads,
                        spin_rounds(pn_runtime_config(s->model->runtime), s->threads), &s->exec, err);
    if (st) return st;
    s->exec->cancelled = o->cancelled;
    s->exec->cancelled_arg = o->cancelled_arg;
    s->exec->observe = o->observe;
    s->exec->observe_arg = o->observe_arg;
    return PN_OK;
}

pn_status pn_session_create(pn_model *model, const pn_session_options *options, pn_session **out, pn_error *err)
{
    pn_session_options o = {0};
    if (!model || !out) return pn_fail(err, PN_E_ARGUMENT, "pn_session_create: an argument is NULL");
    if (options && options->struct_size < offsetof(pn_session_options, sequences))
        return pn_fail(err, PN_E_ARGUMENT, "pn_session_create: struct_size is %" PRIu32 "; start with PN_OPTIONS_INIT",
                       options->struct_size);
    if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    pn_session *s = pn_calloc(1, sizeof *s);
    if (!s) return pn_fail(err, PN_E_NOMEM, "no memory for a session");
    s->model = model;
    pn_status st = prepare(s, &o, err);
    if (st) pn_session_destroy(s);
    else *out = s;
    return st;
}

void pn_session_destroy(pn_session *s)
{
    if (!s) return;
    pn_exec_destroy(s->exec);
    pn_kv_destroy(s->kv);
    if (s->logits) pn_pages_free(s->logits, s->logits_bytes);
    pn_free(s->tokens);
    pn_free(s->positions);
    pn_free(s->sequences);
    pn_free(s->wants);
    pn_free(s->next);
    pn_free(s->before);
    pn_free(s->kv_type);
    pn_free(s);
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

/* Everything that can be wrong with a batch is found before anything is changed. */
static pn_status check(pn_session *s, const pn_token *t, size_t n, pn_error *err)
{
    size_t wanted = 0;
    memcpy(s->next, s->kv->length, (size_t)s->n_sequences * sizeof *s->next);
    for (size_t i = 0; i < n; i++) {
        if (t[i].token < 0 || t[i].token >= s->model->n_tokens)
            return pn_fail(err, PN_E_RANGE, "token %zu of the batch: id %" PRId32 " is not in 0 to %" PRId32, i,
                           t[i].token, s->model->n_tokens - 1);
        if (t[i].sequence < 0 || t[i].sequence >= s->n_sequences)
            return pn_fail(err, PN_E_RANGE, "token %zu of the batch: sequence %" PRId32 " is not in 0 to %" PRId32, i,
                           t[i].sequence, s->n_sequences - 1);
        int32_t *next = &s->next[t[i].sequence];
        if (t[i].position != -1 && t[i].position != *next)
            return pn_fail(err, PN_E_ARGUMENT,
                           "token %zu of the batch: position %" PRId32 " of sequence %" PRId32 ", expected %" PRId32, i,
                           t[i].position, t[i].sequence, *next);
        if (*next >= s->context)
            return pn_fail(err, PN_E_FULL,
                           "the context of %" PRId32 " tokens is full: sequence %" PRId32 " holds %" PRId32
                           " and %zu more were given",
                           s->context, t[i].sequence, s->kv->length[t[i].sequence], n);
        ++*next;
        wanted += t[i].wants_logits != 0;
    }
    if (wanted > (size_t)s->batch)
        return pn_fail(err, PN_E_FULL,
                       "logits of %zu tokens are wanted, but one call keeps those of %" PRId32
                       ": cut the batch, or raise "
                       "[runtime] batch",
                       wanted, s->batch);
    return PN_OK;
}

/* Put every sequence back to where it was. A state that cannot be cut short is emptied. */
static void undo(pn_session *s)
{
    for (int32_t q = 0; q < s->n_sequences; q++)
        if (s->kv->length[q] != s->before[q]) pn_kv_trim(s->kv, q, s->kv->n_states ? 0 : s->before[q]);
}

static pn_status evaluate_piece(pn_session *s, const pn_token *t, size_t n, pn_error *err)
{
    size_t wanted = 0;
    for (size_t i = 0; i < n; i++) {
        s->tokens[i] = t[i].token;
        s->sequences[i] = t[i].sequence;
        s->positions[i] = s->kv->length[t[i].sequence];
        s->wants[i] = t[i].wants_logits != 0;
        wanted += s->wants[i];
        pn_kv_extend(s->kv, t[i].sequence, 1);
    }
    pn_status st = pn_exec_run(s->exec, n, s->tokens, s->positions, s->sequences, s->wants,
                               s->logits + s->n_logits * (size_t)s->model->vocab, err);
    if (!st) s->n_logits += wanted;
    return st;
}

pn_status pn_session_eval(pn_session *s, const pn_token *tokens, size_t n, pn_error *err)
{
    if (!s || (!tokens && n)) return pn_fail(err, PN_E_ARGUMENT, "pn_session_eval: an argument is NULL");
    pn_status st = check(s, tokens, n, err);
    if (st) return st;
    memcpy(s->before, s->kv->length, (size_t)s->n_sequences * sizeof *s->before);
    s->n_logits = 0;
    for (size_t done = 0; done < n;) {
        size_t piece = n - done < (size_t)s->batch ? n - done : (size_t)s->batch;
        st = evaluate_piece(s, tokens + done, piece, err);
        if (st) {
            undo(s);
            s->n_logits = 0;
            return st;
        }
        done += piece;
        if (s->progress) s->progress(s->progress_arg, done, n);
    }
    return PN_OK;
}

const float *pn_session_logits(const pn_session *s, size_t i)
{
    return i < s->n_logits ? s->logits + i * (size_t)s->model->vocab : NULL;
}

/* ---- sequences --------------------------------------------------------------------------------------------------- */

static int valid(const pn_session *s, int32_t sequence)
{
    return sequence >= 0 && sequence < s->n_sequences;
}

int32_t pn_session_length(const pn_session *s, int32_t sequence)
{
    return valid(s, sequence) ? s->kv->length[sequence] : -1;
}

pn_status pn_session_trim(pn_session *s, int32_t sequence, int32_t length, pn_error *err)
{
    if (!valid(s, sequence))
        return pn_fail(err, PN_E_RANGE, "sequence %" PRId32 " is not in 0 to %" PRId32, sequence, s->n_sequences - 1);
    if (length < 0) return pn_fail(err, PN_E_RANGE, "a length of %" PRId32 " is negative", length);
    if (length && length < s->kv->length[sequence] && s->kv->n_states)
        return pn_fail(err, PN_E_STATE,
                       "this model keeps a state that cannot be cut short: trim to 0 and evaluate again");
    pn_kv_trim(s->kv, sequence, length);
    return PN_OK;
}

/* Re-rotates keys for positions `drop` lower. */
typedef struct turn_back {
    const pn_exec *ex;
    const uint32_t *rope_of; /* [KV layer] plan node of the rope that made its keys, or UINT32_MAX */
    float *cosine, *sine;    /* [table] one after the other, most pairs each */
    size_t stride;
} turn_back;

static void turn(const void *arg, uint32_t layer, float *key)
{
    const turn_back *t = arg;
    if (t->rope_of[layer] == UINT32_MAX) return;
    const pn_plan_node *n = &t->ex->plan->nodes[t->rope_of[layer]];
    const pn_rope_params *p = &n->p.rope;
    t->ex->ops->rope(key, t->ex->kv->layers[layer].key_size / p->head_size, p->head_size, p->n_dims, p->pairing,
                     t->cosine + n->cache * t->stride, t->sine + n->cache * t->stride);
}

/* Does a value hold rotated elements? turned: [value] of those before. What attention and operations of plugins put out
 * counts as another token's content, which a shift leaves as it is. */
static uint8_t is_turned(const pn_plan_node *n, const uint8_t *turned)
{
    uint8_t any = n->kind == PN_OP_ROPE;
    for (uint32_t k = 0; k < n->n_inputs && n->kind != PN_OP_ATTENTION && n->kind != PN_OP_CUSTOM; k++)
        any |= turned[n->inputs[k]];
    return any;
}

/* Which rope made the keys of each cache layer. Keys are a rope's result, whose input is not rotated itself, or not
 * rotated at all; anything else could not be turned to other positions. turned: [n_values + 1], zeroed. */
static pn_status find_ropes(const pn_plan *plan, uint32_t *rope_of, uint8_t *turned, pn_error *err)
{
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const pn_plan_node *n = &plan->nodes[i];
        turned[n->output] = is_turned(n, turned);
        if (n->kind != PN_OP_ATTENTION) continue;
        const pn_plan_node *maker = &plan->nodes[plan->values[n->inputs[1]].node];
        int rope = maker->kind == PN_OP_ROPE;
        rope_of[n->cache] = rope ? (uint32_t)(maker - plan->nodes) : UINT32_MAX;
        if (maker->kind == PN_OP_CUSTOM || turned[rope ? maker->inputs[0] : n->inputs[1]] || turned[n->inputs[2]] ||
            (rope && n->p.attention.key_size % maker->p.rope.head_size))
            return pn_fail(err, PN_E_UNSUPPORTED,
                           "the keys of layer %" PRIu32
                           " are made by '%s' in a way that cannot be undone: this model's context cannot be shifted",
                           n->layer, pn_plan_op_name(maker));
    }
    return PN_OK;
}

static pn_status shift(pn_session *s, int32_t sequence, int32_t keep, int32_t drop, pn_error *err)
{
    const pn_exec *ex = s->exec;
    turn_back t = {.ex = ex};
    size_t widest = 0;
    for (uint32_t i = 0; i < ex->plan->n_ropes; i++)
        t.stride = ex->ropes[i].n_pairs > t.stride ? ex->ropes[i].n_pairs : t.stride;
    for (uint32_t i = 0; i < s->kv->n_layers; i++)
        widest = s->kv->layers[i].key_size > widest ? s->kv->layers[i].key_size : widest;
    size_t tables = ex->plan->n_ropes * t.stride;
    float *room = pn_calloc(2 * tables + widest, sizeof *room);
    uint32_t *rope_of = pn_calloc(s->kv->n_layers, sizeof *rope_of);
    uint8_t *turned = pn_calloc((size_t)ex->plan->n_values + 1, sizeof *turned);
    pn_status st = room && rope_of && turned ? find_ropes(ex->plan, rope_of, turned, err)
                                             : pn_fail(err, PN_E_NOMEM, "no memory to shift a context");
    if (!st) {
        t.rope_of = rope_of;
        t.cosine = room;
        t.sine = room + tables;
        /* The magnitude is in the keys already: turn only. */
        for (uint32_t i = 0; i < ex->plan->n_ropes; i++) {
            for (uint32_t k = 0; k < ex->ropes[i].n_pairs; k++) {
                t.cosine[i * t.stride + k] = (float)cos(-drop * ex->ropes[i].frequency[k]);
                t.sine[i * t.stride + k] = (float)sin(-drop * ex->ropes[i].frequency[k]);
            }
        }
        st = pn_kv_shift(s->kv, ex->ops, sequence, keep, drop, turn, &t, room + 2 * tables);
        if (st)
            pn_fail(err, st, "the KV cache's type '%s' cannot hold a turned key: the first %" PRId32 " tokens are left",
                    s->kv_type, keep);
    }
    pn_free(room);
    pn_free(rope_of);
    pn_free(turned);
    return st;
}

pn_status pn_session_shift(pn_session *s, int32_t sequence, int32_t keep, int32_t drop, pn_error *err)
{
    if (!valid(s, sequence))
        return pn_fail(err, PN_E_RANGE, "sequence %" PRId32 " is not in 0 to %" PRId32, sequence, s->n_sequences - 1);
    int32_t length = s->kv->length[sequence];
    if (keep < 0 || drop < 0 || keep > length || drop > length - keep)
        return pn_fail(err, PN_E_RANGE,
                       "keeping %" PRId32 " and dropping %" PRId32 " of %" PRId32 " tokens is not possible", keep, drop,
                       length);
    if (s->kv->n_states)
        return pn_fail(err, PN_E_STATE,
                       "this model keeps a state that cannot be shifted: trim to 0 and evaluate again");
    return drop ? shift(s, sequence, keep, drop, err) : PN_OK;
}

pn_status pn_session_copy(pn_session *s, int32_t from, int32_t to, pn_error *err)
{
    if (!valid(s, from) || !valid(s, to))
        return pn_fail(err, PN_E_RANGE, "sequences %" PRId32 " and %" PRId32 " are not both in 0 to %" PRId32, from, to,
                       s->n_sequences - 1);
    pn_kv_copy(s->kv, from, to);
    return PN_OK;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

size_t pn_session_max_logits(const pn_session *s)
{
    return (size_t)s->batch;
}
int32_t pn_session_context(const pn_session *s)
{
    return s->context;
}
int32_t pn_session_batch(const pn_session *s)
{
    return s->batch;
}
int32_t pn_session_threads(const pn_session *s)
{
    return s->threads;
}

size_t pn_session_describe(const pn_session *s, char *text, size_t capacity)
{
    const pn_exec *ex = s->exec;
    pn_text t = {text, capacity, 0};
    if (capacity) text[0] = 0;
    pn_text_add(&t,
                "context %" PRId32 ", sequences %" PRId32 ", batch %" PRId32 ", threads %" PRId32
                ", kv %s, activations %s, operations %s\n",
                s->context, s->n_sequences, s->batch, s->threads, s->kv_type,
                s->precision == PN_FAST ? "fast" : "exact", ex->ops->level);
    for (uint32_t i = 0; i < ex->n_linears; i++) {
        const pn_linear_run *l = &ex->linears[i];
        const pn_tensor *w = ex->plan->weights[ex->plan->nodes[l->node].weights[0]].tensor;
        pn_text_add(&t, "%.*s: %s, %s (%s)\n", (int)w->name.size, w->name.data, w->type ? w->type : "?",
                    l->kernel ? l->kernel->name : "dequantize and dot", l->why);
    }
    return t.size;
}

uint64_t pn_session_bytes(const pn_session *s, const char *what)
{
    if (!what) return 0;
    if (!strcmp(what, "arena")) return s->exec->arena_bytes;
    if (!strcmp(what, "packed")) return s->exec->packed_bytes;
    if (!strcmp(what, "kv")) return pn_kv_bytes(s->kv);
    if (!strcmp(what, "scratch")) return s->exec->scratch_bytes * s->exec->n_threads;
    return 0;
}

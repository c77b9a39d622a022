/* Text to tokens: special tokens are split out, spaces become U+2581, characters are merged by score, and what has no
 * piece falls back to bytes or the unknown token. */
#include "spm.h"

#define NONE UINT32_MAX

/* A piece of the text. Symbols that were merged into the one before have size 0. */
typedef struct symbol {
    uint32_t at, size;          /* bytes of the escaped text */
    uint32_t prev, next;        /* NONE at the ends; prev of a merged symbol: what its left had taken in before it */
    uint32_t last;              /* the symbol taken in last, NONE = none */
    int32_t id;                 /* token of this text, -1 = none */
    int32_t pair;               /* token of this text and the next symbol's, -1 = none */
} symbol;

typedef struct encoder {
    const spm *t;
    const pn_host *host;
    int32_t *ids;
    size_t capacity, count;
    char *text;                 /* one stretch of plain text, escaped */
    size_t size, text_room;
    symbol *symbols;
    size_t n_symbols, symbol_room;
    uint64_t *heap;             /* rank in the high half, symbol in the low: the least is the next merge */
    size_t n_heap, heap_room;
} encoder;

static void emit(encoder *e, int32_t id)
{
    if (e->count < e->capacity)
        e->ids[e->count] = id;
    e->count++;
}

static pn_status grow(const pn_host *host, void **memory, size_t *room, size_t want, size_t size, pn_error *err)
{
    pn_status s;
    if (want <= *room)
        return PN_OK;
    want = want + want / 2 + 64;
    s = pn_host_resize(host, want, size, memory, err);
    if (!s)
        *room = want;
    return s;
}

/* ---- the heap -------------------------------------------------------------------------------------------------- */

static int less(uint64_t a, uint64_t b)
{
    SPM_COUNT(comparisons);
    return a < b;
}

static void heap_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t moving = heap[i];
    size_t child;
    while ((child = i * 2 + 1) < n) {
        if (child + 1 < n && less(heap[child + 1], heap[child]))
            child++;
        if (!less(heap[child], moving))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static void heap_push(encoder *e, uint64_t item)
{
    size_t i = e->n_heap++;
    while (i && less(item, e->heap[(i - 1) / 2])) {
        e->heap[i] = e->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e->heap[i] = item;
}

static uint64_t heap_pop(encoder *e)
{
    uint64_t top = e->heap[0];
    if (--e->n_heap) {
        e->heap[0] = e->heap[e->n_heap];
        heap_down(e->heap, e->n_heap, 0);
    }
    return top;
}

/* ---- merging --------------------------------------------------------------------------------------------------- */

static int32_t find(const encoder *e, uint32_t at, uint32_t size)
{
    SPM_COUNT(lookups);
    return pn_vocab_find(&e->t->vocab, e->text + at, size);
}

/* Sets the pair of a symbol and its next; returns whether there is one. */
static int pair_up(encoder *e, uint32_t left)
{
    symbol *s = &e->symbols[left];
    s->pair = s->next == NONE ? -1 : find(e, s->at, s->size + e->symbols[s->next].size);
    return s->pair >= 0;
}

static uint64_t candidate(const encoder *e, uint32_t left)
{
    return (uint64_t)e->t->ranks[e->symbols[left].pair] << 32 | left;
}

static void propose(encoder *e, uint32_t left)
{
    if (left != NONE && pair_up(e, left))
        heap_push(e, candidate(e, left));
}

/* The escaped text as one symbol per character, or per byte of what is no UTF-8. */
static void split(encoder *e)
{
    uint32_t at = 0, n = 0;
    while (at < e->size) {
        size_t step = pn_utf8_step(e->text + at, e->size - at);
        symbol *s = &e->symbols[n];
        s->at = at;
        s->size = step ? (uint32_t)step : 1;
        s->prev = n ? n - 1 : NONE;
        s->last = NONE;
        s->id = find(e, at, s->size);
        at += s->size;
        s->next = at < e->size ? ++n : NONE;
    }
    e->n_symbols = n + 1;
}

/* Merges the pair of the best score, the leftmost of equals, until none is left. An entry of the heap counts when its
 * symbol still has a pair of that rank: entries whose pair has changed meanwhile are passed over. */
static void merge_all(encoder *e)
{
    size_t i;
    e->n_heap = 0;
    for (i = 0; i < e->n_symbols; i++)
        if (pair_up(e, (uint32_t)i))
            e->heap[e->n_heap++] = candidate(e, (uint32_t)i);
    for (i = e->n_heap / 2; i-- > 0;)
        heap_down(e->heap, e->n_heap, i);
    while (e->n_heap) {
        uint64_t c = heap_pop(e);
        uint32_t left = (uint32_t)c, right;
        symbol *l = &e->symbols[left], *r;
        if (l->pair < 0 || candidate(e, left) != c)
            continue;
        right = l->next;
        r = &e->symbols[right];
        l->id = l->pair;
        l->size += r->size;
        l->next = r->next;
        r->size = 0;
        r->pair = -1;
        r->prev = l->last;
        l->last = right;
        if (l->next != NONE)
            e->symbols[l->next].prev = left;
        propose(e, l->prev);
        propose(e, left);
    }
}

/* ---- output ---------------------------------------------------------------------------------------------------- */

/* Undoes the last merge of a symbol. */
static void part(encoder *e, symbol *l)
{
    uint32_t right = l->last;
    symbol *r = &e->symbols[right];
    r->size = l->at + l->size - r->at;
    l->size = r->at - l->at;
    r->next = l->next;
    l->next = right;
    l->last = r->prev;
    l->id = find(e, l->at, l->size);
    r->id = find(e, r->at, r->size);
}

/* Never silence: a character without a piece is its bytes, or the unknown token, or an error. */
static pn_status emit_bytes(encoder *e, const symbol *s, pn_error *err)
{
    const spm *t = e->t;
    const uint8_t *p = (const uint8_t *)e->text + s->at;
    uint32_t i;
    for (i = 0; i < s->size; i++)
        if (t->byte_id[p[i]] < 0)
            break;
    if (i == s->size) {
        for (i = 0; i < s->size; i++)
            emit(e, t->byte_id[p[i]]);
        return PN_OK;
    }
    if (t->info.unk < 0)
        return pn_fail(err, PN_E_UNSUPPORTED, "the vocabulary has no piece for \"%.*s\" of the text, no token for its "
                       "byte 0x%02x, and no unknown token to stand for it", (int)s->size, (const char *)p, p[i]);
    emit(e, t->info.unk);
    return PN_OK;
}

/* Pieces that are not to be used serve only on the way to longer ones: they are taken apart again. */
static pn_status emit_symbols(encoder *e, pn_error *err)
{
    pn_status s = PN_OK;
    uint32_t at = 0;
    while (!s && at != NONE) {
        symbol *y = &e->symbols[at];
        int unused = y->id >= 0 && e->t->vocab.types[y->id] == PN_TOKEN_UNUSED;
        if (unused && y->last != NONE) {
            part(e, y);
            continue;
        }
        if (y->id >= 0 && !unused)
            emit(e, y->id);
        else
            s = emit_bytes(e, y, err);
        at = y->next;
    }
    return s;
}

/* ---- a text ---------------------------------------------------------------------------------------------------- */

static pn_status escape(encoder *e, const char *text, size_t size, int prefix, pn_error *err)
{
    size_t i, n = size + (prefix ? SPM_SPACE_SIZE : 0);
    char *out;
    pn_status s;
    for (i = 0; i < size; i++)
        n += text[i] == ' ' ? SPM_SPACE_SIZE - 1 : 0;
    s = grow(e->host, (void **)&e->text, &e->text_room, n, 1, err);
    if (s)
        return s;
    e->size = n;
    out = e->text;
    if (prefix) {
        memcpy(out, SPM_SPACE, SPM_SPACE_SIZE);
        out += SPM_SPACE_SIZE;
    }
    for (i = 0; i < size; i++) {
        if (text[i] == ' ') {
            memcpy(out, SPM_SPACE, SPM_SPACE_SIZE);
            out += SPM_SPACE_SIZE;
        } else {
            *out++ = text[i];
        }
    }
    return PN_OK;
}

/* Most symbols that the escaped text can have. */
static size_t count_symbols(const encoder *e)
{
    size_t at, n = 0;
    for (at = 0; at < e->size; n++) {
        size_t step = pn_utf8_step(e->text + at, e->size - at);
        at += step ? step : 1;
    }
    return n;
}

static pn_status encode_plain(encoder *e, const char *text, size_t size, int prefix, pn_error *err)
{
    size_t n;
    pn_status s;
    if (!size)
        return PN_OK;
    s = escape(e, text, size, prefix && e->t->space_prefix, err);
    if (s)
        return s;
    n = count_symbols(e);
    s = grow(e->host, (void **)&e->symbols, &e->symbol_room, n, sizeof *e->symbols, err);
    /* Every merge takes one symbol away and proposes at most two. */
    if (!s)
        s = grow(e->host, (void **)&e->heap, &e->heap_room, n * 3, sizeof *e->heap, err);
    if (s)
        return s;
    split(e);
    merge_all(e);
    return emit_symbols(e, err);
}

/* White space after a special token is part of it in this vocabulary, but for these. */
static size_t strip(const spm *t, int32_t id, const char *text, size_t size)
{
    static const char *const keep[] = { "<unk>", "<s>", "<|endoftext|>" };
    size_t i;
    for (i = 0; i < sizeof keep / sizeof *keep; i++)
        if (!t->strip_right || pn_str_is(t->vocab.tokens[id], keep[i]))
            return 0;
    for (i = 0; i < size && text[i] && strchr(" \t\n\v\f\r", text[i]); i++)
        ;
    return i;
}

static pn_status encode_all(encoder *e, const char *text, size_t size, uint32_t flags, pn_error *err)
{
    const pn_vocab *v = &e->t->vocab;
    size_t from = 0, at = 0;
    int prefix = !(flags & PN_ENCODE_CONTINUED);
    pn_status s = PN_OK;
    while (!s && at < size) {
        uint8_t first = (uint8_t)text[at];
        int32_t id = -1;
        if (v->special_from[first] != v->special_from[first + 1])
            id = pn_vocab_special(v, text + at, size - at, (flags & PN_ENCODE_SPECIAL) != 0);
        if (id < 0) {
            at++;
            continue;
        }
        s = encode_plain(e, text + from, at - from, prefix, err);
        if (!s)
            emit(e, id);
        prefix = 1;
        at += v->tokens[id].size;
        at += strip(e->t, id, text + at, size - at);
        from = at;
    }
    return s || from == size ? s : encode_plain(e, text + from, size - from, prefix, err);
}

pn_status spm_encode(const pn_host *host, const void *state, const char *text, size_t size, uint32_t flags,
                     int32_t *ids, size_t capacity, size_t *count, pn_error *err)
{
    const spm *t = state;
    encoder e;
    pn_status s;
    /* Escaped, a text has up to three times the bytes, and places have 32 bits. */
    if (size > (size_t)UINT32_MAX / 4)
        return pn_fail(err, PN_E_RANGE, "a text of %zu bytes is too long to tokenize at once; the limit is %u", size,
                       UINT32_MAX / 4);
    memset(&e, 0, sizeof e);
    e.t = t;
    e.host = host;
    e.ids = ids;
    e.capacity = capacity;
    if ((flags & PN_ENCODE_ADD_BOS) && t->info.add_bos && t->info.bos >= 0)
        emit(&e, t->info.bos);
    s = encode_all(&e, text, size, flags, err);
    if ((flags & PN_ENCODE_ADD_EOS) && t->info.add_eos && t->info.eos >= 0)
        emit(&e, t->info.eos);
    pn_host_free(host, e.text, NULL);
    pn_host_free(host, e.symbols, NULL);
    pn_host_free(host, e.heap, NULL);
    if (s)
        return s;
    *count = e.count;
    if (e.count > capacity)
        return pn_fail(err, PN_E_FULL, "the text has %zu tokens, but there is room for %zu", e.count, capacity);
    return PN_OK;
}

/* Text to tokens: special tokens are split out, the rest is cut into words, each word's bytes are merged by rank. */
#include "bpe.h"

#define DEAD INT32_MIN          /* id of a symbol that was merged into the one before */
#define NO_BYTE(b) (-2 - (int32_t)(b))  /* id of a byte that has no token */
#define NONE UINT32_MAX

typedef struct symbol {
    int32_t id;
    uint32_t prev, next;        /* NONE at the ends */
} symbol;

typedef struct encoder {
    const bpe *b;
    const pn_host *host;
    int32_t *ids;
    size_t capacity, count;
    symbol *symbols;
    size_t n_symbols;           /* room */
    uint64_t *heap;             /* rank in the high half, place in the low: the least is the next merge */
    size_t n_heap, heap_room;
    char *name;                 /* a word in the byte-level alphabet */
    size_t name_room;
} encoder;

static void emit(encoder *e, int32_t id)
{
    if (e->count < e->capacity)
        e->ids[e->count] = id;
    e->count++;
}

/* Never silence: a byte that has no token is the unknown token, or an error. */
static pn_status emit_symbol(encoder *e, int32_t id, pn_error *err)
{
    if (id >= 0)
        emit(e, id);
    else if (e->b->vocab.info.unk >= 0)
        emit(e, e->b->vocab.info.unk);
    else
        return pn_fail(err, PN_E_UNSUPPORTED,
                       "the vocabulary has no token for byte 0x%02x of the text, and no unknown token to stand for it",
                       (unsigned)NO_BYTE(id));
    return PN_OK;
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

static void heap_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t moving = heap[i];
    size_t child;
    while ((child = i * 2 + 1) < n) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (moving <= heap[child])
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static void heap_push(encoder *e, uint64_t item)
{
    size_t i = e->n_heap++;
    while (i && item < e->heap[(i - 1) / 2]) {
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

static uint64_t candidate(const encoder *e, uint32_t left)
{
    uint32_t right = e->symbols[left].next;
    uint32_t rank = right == NONE ? NONE : bpe_vocab_rank(&e->b->vocab, e->symbols[left].id, e->symbols[right].id);
    return (uint64_t)rank << 32 | left;
}

#define NO_MERGE(c) ((uint32_t)((c) >> 32) == NONE)

static void propose(encoder *e, uint32_t left)
{
    uint64_t c = left == NONE ? UINT64_MAX : candidate(e, left);
    if (!NO_MERGE(c))
        heap_push(e, c);
}

/* Merges the pair of the least rank, the leftmost of equals, until none is left. Entries of the heap whose symbols have
 * changed meanwhile are passed over. */
static void merge_all(encoder *e)
{
    const bpe_vocab *v = &e->b->vocab;
    symbol *sym = e->symbols;
    while (e->n_heap) {
        uint64_t c = heap_pop(e);
        const bpe_merge *m = &v->merges[c >> 32];
        uint32_t left = (uint32_t)c, right = sym[left].next;
        if (sym[left].id != m->left || right == NONE || sym[right].id != m->right)
            continue;
        sym[left].id = m->merged;
        sym[left].next = sym[right].next;
        sym[right].id = DEAD;
        if (sym[left].next != NONE)
            sym[sym[left].next].prev = left;
        propose(e, sym[left].prev);
        propose(e, left);
    }
}

/* The word as one entry of the vocabulary, or -1. */
static int32_t whole_word(encoder *e, const char *word, size_t size, pn_error *err, pn_status *s)
{
    size_t i, n = 0;
    *s = PN_OK;
    if (size > e->b->vocab.longest)
        return -1;
    *s = grow(e->host, (void **)&e->name, &e->name_room, size * 2, 1, err);
    if (*s)
        return -1;
    for (i = 0; i < size; i++)
        n += bpe_utf8_encode(bpe_alphabet_char((uint8_t)word[i]), e->name + n);
    return bpe_vocab_find(&e->b->vocab, e->name, n, NULL, 0);
}

static pn_status encode_word(void *arg, const char *word, size_t size, pn_error *err)
{
    encoder *e = arg;
    const int32_t *byte_id = e->b->vocab.byte_id;
    pn_status s = PN_OK;
    size_t i;
    uint32_t at;
    if (e->b->pre.flags & BPE_WHOLE_WORDS) {
        int32_t id = whole_word(e, word, size, err, &s);
        if (s)
            return s;
        if (id >= 0) {
            emit(e, id);
            return PN_OK;
        }
    }
    /* Every merge takes one symbol away and proposes at most two. */
    s = grow(e->host, (void **)&e->symbols, &e->n_symbols, size, sizeof *e->symbols, err);
    if (!s)
        s = grow(e->host, (void **)&e->heap, &e->heap_room, size * 3, sizeof *e->heap, err);
    if (s)
        return s;
    for (i = 0; i < size; i++) {
        uint8_t b = (uint8_t)word[i];
        e->symbols[i].id = byte_id[b] >= 0 ? byte_id[b] : NO_BYTE(b);
        e->symbols[i].prev = i ? (uint32_t)i - 1 : NONE;
        e->symbols[i].next = i + 1 < size ? (uint32_t)i + 1 : NONE;
    }
    e->n_heap = 0;
    for (i = 0; i + 1 < size; i++) {
        uint64_t c = candidate(e, (uint32_t)i);
        if (!NO_MERGE(c))
            e->heap[e->n_heap++] = c;
    }
    for (i = e->n_heap / 2; i-- > 0;)
        heap_down(e->heap, e->n_heap, i);
    merge_all(e);
    for (at = 0; !s && at != NONE; at = e->symbols[at].next)
        s = emit_symbol(e, e->symbols[at].id, err);
    return s;
}

/* ---- a text ---------------------------------------------------------------------------------------------------- */

static pn_status encode_plain(encoder *e, const char *text, size_t size, pn_error *err)
{
    const bpe_pre *pre = &e->b->pre;
    bpe_text clean;
    pn_status s;
    if (!size)
        return PN_OK;
    s = bpe_text_clean(e->host, text, size, (pre->flags & BPE_NFC) != 0, &clean, err);
    if (!s)
        s = bpe_pre_split(pre, clean.bytes, clean.shadow, clean.size, encode_word, e, err);
    bpe_text_free(e->host, &clean);
    return s;
}

static pn_status encode_all(encoder *e, const char *text, size_t size, int control, pn_error *err)
{
    const bpe_vocab *v = &e->b->vocab;
    size_t from = 0, at = 0;
    pn_status s = PN_OK;
    while (!s && at < size) {
        uint8_t first = (uint8_t)text[at];
        int32_t id = -1;
        if (v->special_from[first] != v->special_from[first + 1])
            id = bpe_vocab_special(v, text + at, size - at, control);
        if (id < 0) {
            at++;
            continue;
        }
        s = encode_plain(e, text + from, at - from, err);
        if (!s)
            emit(e, id);
        at += v->tokens[id].size;
        from = at;
    }
    return s ? s : encode_plain(e, text + from, size - from, err);
}

pn_status bpe_encode(const pn_host *host, const void *state, const char *text, size_t size, uint32_t flags,
                     int32_t *ids, size_t capacity, size_t *count, pn_error *err)
{
    const bpe *b = state;
    const pn_tokenizer_info *t = &b->vocab.info;
    encoder e;
    pn_status s;
    /* A repaired text has up to three times the bytes, and their numbers have 32 bits. */
    if (size > (size_t)UINT32_MAX / 4)
        return pn_fail(err, PN_E_RANGE, "a text of %zu bytes is too long to tokenize at once; the limit is %u", size,
                       UINT32_MAX / 4);
    if (!size)
        text = "";      /* nothing may be added to a null pointer, not even zero */
    memset(&e, 0, sizeof e);
    e.b = b;
    e.host = host;
    e.ids = ids;
    e.capacity = capacity;
    if ((flags & PN_ENCODE_ADD_BOS) && t->add_bos && t->bos >= 0)
        emit(&e, t->bos);
    s = encode_all(&e, text, size, (flags & PN_ENCODE_SPECIAL) != 0, err);
    if ((flags & PN_ENCODE_ADD_EOS) && t->add_eos && t->eos >= 0)
        emit(&e, t->eos);
    pn_host_free(host, e.symbols, NULL);
    pn_host_free(host, e.heap, NULL);
    pn_host_free(host, e.name, NULL);
    if (s)
        return s;
    *count = e.count;
    if (e.count > capacity)
        return pn_fail(err, PN_E_FULL, "the text has %zu tokens, but there is room for %zu", e.count, capacity);
    return PN_OK;
}

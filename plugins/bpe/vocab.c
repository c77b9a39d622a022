/* The vocabulary: token texts by hash, merges by pair, bytes, special tokens. Everything that a file can get wrong is
 * found here, so that encoding meets no surprises. */
#include <stdlib.h>

#include "bpe.h"

#define WORST_TOKENS (1u << 28)

/* ---- the byte-level alphabet ----------------------------------------------------------------------------------- */

static int stands_for_itself(uint32_t c)
{
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

/* The bytes that do not: 0..32, 127..160, 173; numbered from U+0100 in that order. */
uint32_t bpe_alphabet_char(uint8_t byte)
{
    if (stands_for_itself(byte))
        return byte;
    return 0x100 + (byte <= 32 ? byte : byte <= 160 ? byte - 127u + 33 : 67u);
}

int bpe_alphabet_byte(uint32_t cp)
{
    if (cp < 0x100)
        return stands_for_itself(cp) ? (int)cp : -1;
    cp -= 0x100;
    return cp < 33 ? (int)cp : cp < 67 ? (int)(cp - 33 + 127) : cp == 67 ? 173 : -1;
}

/* ---- roles ----------------------------------------------------------------------------------------------------- */

static pn_status role(const pn_host *host, pn_file *file, const char *name, pn_role_value *out, pn_error *err)
{
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    return pn_host_file_role(host, file, name, out, err);
}

/* A warning; too long ones are cut. */
static PN_PRINTF(2, 3) void warn(const pn_host *host, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    pn_host_log(host, PN_LOG_WARN, text, NULL);
}

/* A token id; one outside the vocabulary is ignored with a warning. */
static pn_status id_role(bpe_vocab *v, pn_file *file, const char *name, int32_t *out, pn_error *err)
{
    pn_role_value r;
    int64_t id;
    pn_status s = role(v->host, file, name, &r, err);
    *out = -1;
    if (s || !r.present)
        return s;
    if (pn_value_int(&r.value, &id) && id >= 0 && id < v->info.n_tokens)
        *out = (int32_t)id;
    else
        warn(v->host, "%s is not the number of one of the %d tokens; ignored", r.key, (int)v->info.n_tokens);
    return PN_OK;
}

static pn_status flag_role(bpe_vocab *v, pn_file *file, const char *name, int32_t *out, pn_error *err)
{
    pn_role_value r;
    int64_t on;
    pn_status s = role(v->host, file, name, &r, err);
    *out = -1;
    if (s || !r.present)
        return s;
    if (!pn_value_int(&r.value, &on))
        return pn_fail(err, PN_E_FORMAT, "%s is neither true nor false", r.key);
    *out = on != 0;
    return PN_OK;
}

/* ---- hash tables ----------------------------------------------------------------------------------------------- */

/* Two halves, so that a concatenation need not be made. The seed differs from run to run: no file can aim at it. */
static uint64_t hash_bytes(uint64_t h, const char *p, size_t n)
{
    while (n >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
        p += 8;
        n -= 8;
    }
    while (n--) {
        h = (h ^ (uint8_t)*p++) * UINT64_C(0xd6e8feb86659fd93);
        h ^= h >> 32;
    }
    return h;
}

static uint64_t hash_pair(const bpe_vocab *v, int32_t left, int32_t right)
{
    uint64_t h = (v->seed ^ ((uint64_t)(uint32_t)left << 32 | (uint32_t)right)) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 29;
}

static size_t table_size(size_t items)
{
    size_t n = 16;
    while (n < items * 2)
        n *= 2;
    return n;
}

/* The text's bytes are hashed one half at a time, byte-wise at the seam: the halves may be cut anywhere. */
static uint64_t hash_text(const bpe_vocab *v, const char *a, size_t a_size, const char *b, size_t b_size)
{
    char seam[8];
    uint64_t h = v->seed;
    size_t whole = a_size & ~(size_t)7, rest = a_size - whole, take;
    h = hash_bytes(h, a, whole);
    if (rest && rest + b_size >= 8) {
        take = 8 - rest;
        memcpy(seam, a + whole, rest);
        memcpy(seam + rest, b, take);
        h = hash_bytes(h, seam, 8);
        b += take;
        b_size -= take;
        rest = 0;
    }
    h = hash_bytes(h, a + whole, rest);
    return hash_bytes(h, b, b_size);
}

/* Slot of the text, or the free slot where it would be. */
static size_t slot_of(const bpe_vocab *v, const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t i = hash_text(v, a, a_size, b, b_size) & v->slot_mask;
    for (; v->slots[i]; i = (i + 1) & v->slot_mask) {
        const pn_str *t = &v->tokens[v->slots[i] - 1];
        if (t->size == a_size + b_size && (!a_size || !memcmp(t->data, a, a_size)) &&
            (!b_size || !memcmp(t->data + a_size, b, b_size)))
            break;
    }
    return i;
}

int32_t bpe_vocab_find(const bpe_vocab *v, const char *a, size_t a_size, const char *b, size_t b_size)
{
    return (int32_t)v->slots[slot_of(v, a, a_size, b, b_size)] - 1;
}

static size_t pair_slot(const bpe_vocab *v, int32_t left, int32_t right)
{
    size_t i = hash_pair(v, left, right) & v->pair_mask;
    for (; v->pairs[i]; i = (i + 1) & v->pair_mask) {
        const bpe_merge *m = &v->merges[v->pairs[i] - 1];
        if (m->left == left && m->right == right)
            break;
    }
    return i;
}

uint32_t bpe_vocab_rank(const bpe_vocab *v, int32_t left, int32_t right)
{
    return v->pairs[pair_slot(v, left, right)] - 1;
}

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static pn_status read_types(bpe_vocab *v, pn_file *file, pn_error *err)
{
    pn_role_value r;
    uint64_t i, n = (uint64_t)v->info.n_tokens;
    pn_status s = role(v->host, file, PN_ROLE_TOKEN_TYPES, &r, err);
    void *types = NULL;
    if (!s)
        s = pn_host_alloc(v->host, n, 1, &types, err);
    if (s)
        return s;
    v->types = types;
    memset(v->types, PN_TOKEN_NORMAL, n);
    if (!r.present)
        return PN_OK;
    if (r.value.type != PN_T_ARRAY || r.value.count != n)
        return pn_fail(err, PN_E_FORMAT, "%s has %llu entries, but there are %llu tokens; the file is damaged", r.key,
                       (unsigned long long)(r.value.type == PN_T_ARRAY ? r.value.count : 1), (unsigned long long)n);
    for (i = 0; i < n; i++) {
        pn_value t = pn_value_at(&r.value, i);
        int64_t type;
        if (!pn_value_int(&t, &type))
            return pn_fail(err, PN_E_FORMAT, "%s holds something else than whole numbers", r.key);
        /* A kind that is not known is an ordinary token. */
        if (type >= PN_TOKEN_NORMAL && type <= PN_TOKEN_BYTE)
            v->types[i] = (uint8_t)type;
    }
    return PN_OK;
}

static pn_status read_tokens(bpe_vocab *v, pn_file *file, pn_error *err)
{
    pn_role_value r;
    size_t i, n;
    void *slots = NULL;
    pn_status s = role(v->host, file, PN_ROLE_TOKENS, &r, err);
    if (s)
        return s;
    if (!r.present)
        return pn_fail(err, PN_E_FORMAT, "the file holds no list of tokens (%s): it has no vocabulary", r.key);
    if (r.value.type != PN_T_ARRAY || r.value.item_type != PN_T_STRING || !r.value.count)
        return pn_fail(err, PN_E_FORMAT, "%s is no list of strings: there is no vocabulary", r.key);
    if (r.value.count > WORST_TOKENS)
        return pn_fail(err, PN_E_UNSUPPORTED, "%s has %llu entries; at most %u can be handled", r.key,
                       (unsigned long long)r.value.count, WORST_TOKENS);
    n = (size_t)r.value.count;
    v->tokens = r.value.as.items;
    v->info.n_tokens = (int32_t)n;
    s = read_types(v, file, err);
    if (!s) {
        v->slot_mask = table_size(n) - 1;
        s = pn_host_alloc(v->host, v->slot_mask + 1, sizeof *v->slots, &slots, err);
    }
    if (s)
        return s;
    v->slots = slots;
    for (i = 0; i < n; i++) {
        const pn_str *t = &v->tokens[i];
        if (t->size > v->longest)
            v->longest = t->size;
        /* Control tokens are found by bpe_vocab_special alone: no merge leads to one. Of equals the last counts. */
        if (v->types[i] != PN_TOKEN_CONTROL && v->types[i] != PN_TOKEN_UNKNOWN)
            v->slots[slot_of(v, t->data, t->size, NULL, 0)] = (uint32_t)i + 1;
    }
    return PN_OK;
}

/* "<0x41>" of a byte token, else -1. */
int bpe_byte_text(pn_str t)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *high, *low;
    if (t.size != 6 || memcmp(t.data, "<0x", 3) || t.data[5] != '>')
        return -1;
    high = memchr(digits, t.data[3], 16);
    low = memchr(digits, t.data[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static void find_bytes(bpe_vocab *v)
{
    int32_t i;
    int b;
    for (b = 0; b < 256; b++)
        v->byte_id[b] = -1;
    for (i = 0; i < v->info.n_tokens; i++)
        if (v->types[i] == PN_TOKEN_BYTE && (b = bpe_byte_text(v->tokens[i])) >= 0)
            v->byte_id[b] = i;
    for (b = 0; b < 256; b++) {
        char text[4];
        int32_t id = bpe_vocab_find(v, text, bpe_utf8_encode(bpe_alphabet_char((uint8_t)b), text), NULL, 0);
        if (id >= 0)
            v->byte_id[b] = id;
    }
}

/* ---- merges ---------------------------------------------------------------------------------------------------- */

/* "left right", cut at the first blank after the first byte. 0 = not such a text, or not of this vocabulary. */
static int parse_merge(const bpe_vocab *v, pn_str text, bpe_merge *m)
{
    const char *blank = text.size > 1 ? memchr(text.data + 1, ' ', text.size - 1) : NULL;
    size_t left, right;
    if (!blank)
        return 0;
    left = (size_t)(blank - text.data);
    right = text.size - left - 1;
    m->left = bpe_vocab_find(v, text.data, left, NULL, 0);
    m->right = bpe_vocab_find(v, blank + 1, right, NULL, 0);
    m->merged = bpe_vocab_find(v, text.data, left, blank + 1, right);
    return right && m->left >= 0 && m->right >= 0 && m->merged >= 0;
}

static pn_status read_merges(bpe_vocab *v, pn_file *file, pn_error *err)
{
    pn_role_value r;
    const pn_str *texts;
    uint64_t i, bad = 0, first_bad = 0;
    void *merges = NULL, *pairs = NULL;
    pn_status s = role(v->host, file, PN_ROLE_MERGES, &r, err);
    if (s)
        return s;
    if (!r.present)
        return pn_fail(err, PN_E_FORMAT, "the file holds no list of merges (%s), without which text is no tokens",
                       r.key);
    if (r.value.type != PN_T_ARRAY || (r.value.item_type != PN_T_STRING && r.value.count))
        return pn_fail(err, PN_E_FORMAT, "%s is no list of strings", r.key);
    if (r.value.count > WORST_TOKENS)
        return pn_fail(err, PN_E_UNSUPPORTED, "%s has %llu entries; at most %u can be handled", r.key,
                       (unsigned long long)r.value.count, WORST_TOKENS);
    s = pn_host_alloc(v->host, (size_t)r.value.count, sizeof *v->merges, &merges, err);
    v->merges = merges;
    v->pair_mask = table_size((size_t)r.value.count) - 1;
    if (!s)
        s = pn_host_alloc(v->host, v->pair_mask + 1, sizeof *v->pairs, &pairs, err);
    v->pairs = pairs;
    if (s)
        return s;
    texts = r.value.as.items;
    for (i = 0; i < r.value.count; i++) {
        bpe_merge m;
        size_t slot;
        if (!parse_merge(v, texts[i], &m)) {
            first_bad = bad++ ? first_bad : i;
            continue;
        }
        slot = pair_slot(v, m.left, m.right);
        if (v->pairs[slot])
            continue;       /* the better rank stays */
        v->merges[v->n_merges] = m;
        v->pairs[slot] = ++v->n_merges;
    }
    if (bad)
        warn(v->host, "%s: %llu of %llu entries are not two tokens and a blank between that make a third; ignored "
             "(the first is number %llu: \"%.*s\")", r.key, (unsigned long long)bad, (unsigned long long)r.value.count,
             (unsigned long long)first_bad, (int)(texts[first_bad].size < 60 ? texts[first_bad].size : 60),
             texts[first_bad].size ? texts[first_bad].data : "");
    return PN_OK;
}

/* ---- special tokens -------------------------------------------------------------------------------------------- */

static int is_special(const bpe_vocab *v, int32_t id)
{
    uint8_t t = v->types[id];
    return (t == PN_TOKEN_CONTROL || t == PN_TOKEN_USER || t == PN_TOKEN_UNKNOWN) && v->tokens[id].size;
}

static int compare_texts(const pn_str *a, const pn_str *b)
{
    size_t n = a->size < b->size ? a->size : b->size;
    int c = memcmp(a->data, b->data, n);
    return c ? c : (a->size > b->size) - (a->size < b->size);
}

/* In place, without recursion and without a worst case that a file could bring about. */
static void sift(const bpe_vocab *v, int32_t *ids, size_t root, size_t n)
{
    int32_t moving = ids[root];
    size_t child;
    while ((child = root * 2 + 1) < n) {
        if (child + 1 < n && compare_texts(&v->tokens[ids[child]], &v->tokens[ids[child + 1]]) < 0)
            child++;
        if (compare_texts(&v->tokens[moving], &v->tokens[ids[child]]) >= 0)
            break;
        ids[root] = ids[child];
        root = child;
    }
    ids[root] = moving;
}

static void heap_sort(const bpe_vocab *v, int32_t *ids, size_t n)
{
    size_t i;
    for (i = n / 2; i-- > 0;)
        sift(v, ids, i, n);
    for (i = n; i-- > 1;) {
        int32_t top = ids[0];
        ids[0] = ids[i];
        ids[i] = top;
        sift(v, ids, 0, i);
    }
}

static pn_status find_specials(bpe_vocab *v, pn_error *err)
{
    int32_t id;
    uint32_t n = 0, b;
    void *specials = NULL;
    pn_status s;
    for (id = 0; id < v->info.n_tokens; id++)
        n += is_special(v, id) != 0;
    s = pn_host_alloc(v->host, n, sizeof *v->specials, &specials, err);
    if (s)
        return s;
    v->specials = specials;
    for (id = 0, n = 0; id < v->info.n_tokens; id++)
        if (is_special(v, id))
            v->specials[n++] = id;
    heap_sort(v, v->specials, n);
    for (b = 256, v->special_from[256] = n; b-- > 0;) {
        while (n && (uint8_t)v->tokens[v->specials[n - 1]].data[0] >= b)
            n--;
        v->special_from[b] = n;
    }
    return PN_OK;
}

/* Narrows the sorted list, byte by byte, to the tokens that agree with the text so far. */
int32_t bpe_vocab_special(const bpe_vocab *v, const char *text, size_t size, int control)
{
    size_t depth = 1;
    uint32_t low = v->special_from[(uint8_t)text[0]], high = v->special_from[(uint8_t)text[0] + 1];
    int32_t best = -1;
    while (low < high) {
        uint32_t end = high;
        for (; low < high && v->tokens[v->specials[low]].size == depth; low++)
            if (control || v->types[v->specials[low]] == PN_TOKEN_USER)
                best = v->specials[low];
        if (depth == size)
            break;
        while (low < high) {
            uint32_t mid = low + (high - low) / 2;
            if ((uint8_t)v->tokens[v->specials[mid]].data[depth] < (uint8_t)text[depth])
                low = mid + 1;
            else
                high = mid;
        }
        for (high = end, end = low; end < high;) {
            uint32_t mid = end + (high - end) / 2;
            if ((uint8_t)v->tokens[v->specials[mid]].data[depth] == (uint8_t)text[depth])
                end = mid + 1;
            else
                high = mid;
        }
        high = end;
        depth++;
    }
    return best;
}

/* What ends a turn when the file does not say: a control token of a well-known name. */
static int32_t find_end_of_turn(const bpe_vocab *v)
{
    static const char *const names[] = { "<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>",
                                         "<|END_OF_TURN_TOKEN|>" };
    size_t i, size;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t id = bpe_vocab_special(v, names[i], size = strlen(names[i]), 1);
        if (id >= 0 && v->tokens[id].size == size && v->types[id] == PN_TOKEN_CONTROL)
            return id;
    }
    return -1;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static pn_status read_info(bpe_vocab *v, pn_file *file, pn_error *err)
{
    pn_tokenizer_info *t = &v->info;
    int32_t id;
    pn_status s = id_role(v, file, PN_ROLE_BOS, &t->bos, err);
    if (!s)
        s = id_role(v, file, PN_ROLE_EOS, &t->eos, err);
    if (!s)
        s = id_role(v, file, PN_ROLE_EOT, &t->eot, err);
    if (!s)
        s = id_role(v, file, PN_ROLE_UNK, &t->unk, err);
    if (!s)
        s = id_role(v, file, PN_ROLE_PAD, &t->pad, err);
    if (!s)
        s = flag_role(v, file, PN_ROLE_ADD_BOS, &t->add_bos, err);
    if (!s)
        s = flag_role(v, file, PN_ROLE_ADD_EOS, &t->add_eos, err);
    if (s)
        return s;
    if (t->eot < 0)
        t->eot = find_end_of_turn(v);
    for (id = 0; t->unk < 0 && id < t->n_tokens; id++)
        if (v->types[id] == PN_TOKEN_UNKNOWN)
            t->unk = id;
    return PN_OK;
}

pn_status bpe_vocab_open(const pn_host *host, pn_file *file, bpe_vocab *v, pn_error *err)
{
    pn_status s;
    v->host = host;
    v->info.struct_size = sizeof v->info;
    v->seed = (uint64_t)(uintptr_t)v * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)(uintptr_t)&s;
    s = read_tokens(v, file, err);
    if (s)
        return s;
    find_bytes(v);
    s = read_merges(v, file, err);
    if (!s)
        s = find_specials(v, err);
    if (!s)
        s = read_info(v, file, err);
    return s;
}

void bpe_vocab_close(bpe_vocab *v)
{
    pn_host_free(v->host, v->types, NULL);
    pn_host_free(v->host, v->slots, NULL);
    pn_host_free(v->host, v->merges, NULL);
    pn_host_free(v->host, v->pairs, NULL);
    pn_host_free(v->host, v->specials, NULL);
}

/* What tokenizers share: steps through UTF-8, tokens of a file found by their text, special tokens in a text.
 *
 *     st = pn_vocab_read(host, file, &v, err);             tokens and kinds, checked; kinds may be changed now
 *     st = pn_vocab_index(&v, PN_VOCAB_KIND(PN_TOKEN_NORMAL) | PN_VOCAB_KIND(PN_TOKEN_USER), err);
 *     id = pn_vocab_find(&v, "abc", 3);                    -1 when no token of these kinds has that text
 *     id = pn_vocab_special(&v, text, size, control);      the longest special token that the text begins with
 *     pn_vocab_free(&v);                                   also after a failure
 *
 * Lookups may be made from any thread, at once. pn_vocab_special takes at most PN_VOCAB_SPECIAL_LONGEST steps.
 */
#ifndef PANTHEON_KIT_TEXT_H
#define PANTHEON_KIT_TEXT_H

#include <pantheon/kit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

/* Bytes of the well-formed character at text (Unicode 15, table 3-7: no surrogates, nothing overlong), or 0 when it is
 * ill-formed or size is 0. */
PN_UNUSED static inline size_t pn_utf8_step(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char least = 0x80, most = 0xbf;
    size_t n, i;
    if (!size)
        return 0;
    if (p[0] < 0x80)
        return 1;
    n = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : p[0] >= 0xe0 && p[0] <= 0xef ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;
    if (!n || n > size)
        return 0;
    switch (p[0]) {
    case 0xe0: least = 0xa0; break;
    case 0xed: most = 0x9f; break;
    case 0xf0: least = 0x90; break;
    case 0xf4: most = 0x8f; break;
    default: break;
    }
    if (p[1] < least || p[1] > most)
        return 0;
    for (i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* 0x41 of "<0x41>", the text of a token that stands for a byte; else -1. */
PN_UNUSED static inline int pn_byte_token(pn_str text)
{
    int i, value = 0;
    if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>')
        return -1;
    for (i = 3; i < 5; i++) {
        char c = text.data[i];
        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if (c >= 'A' && c <= 'F')
            value = value * 16 + (c - 'A' + 10);
        else
            return -1;
    }
    return value;
}

/* ---- messages and ids -------------------------------------------------------------------------------------------- */

/* A warning; too long ones are cut. */
PN_UNUSED PN_PRINTF(2, 3) static inline void pn_warn(const pn_host *host, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    pn_host_log(host, PN_LOG_WARN, text, NULL);
}

/* A token id; -1 when the file does not say, or, with a warning, when it names none of the n tokens. */
PN_UNUSED static inline pn_status pn_role_token(const pn_host *host, pn_file *file, const char *role, int32_t n,
                                                int32_t *out, pn_error *err)
{
    pn_role_value r;
    int64_t id = -1;
    char words[96];
    pn_status s = pn_role_get(host, file, role, 0, &r, err);
    if (s)
        return s;
    *out = -1;
    if (!r.present)
        return PN_OK;
    if (pn_value_int(&r.value, &id) && id >= 0 && id < n)
        *out = (int32_t)id;
    else
        pn_warn(host, "'%s' is %s, which is not the number of one of the %d tokens; ignored", pn_role_key(&r, role),
                pn_value_words(&r.value, words, sizeof words), (int)n);
    return PN_OK;
}

/* ---- the vocabulary ---------------------------------------------------------------------------------------------- */

#define PN_VOCAB_MOST (INT32_C(1) << 28)
/* Bytes; longer special tokens are not looked for, as every place of a text asks for all of them. */
#define PN_VOCAB_SPECIAL_LONGEST 512
#define PN_VOCAB_KIND(type) (1u << (type))
#define PN_VOCAB_SPECIAL \
    (PN_VOCAB_KIND(PN_TOKEN_CONTROL) | PN_VOCAB_KIND(PN_TOKEN_USER) | PN_VOCAB_KIND(PN_TOKEN_UNKNOWN))

/* Start it zeroed. */
typedef struct pn_vocab {
    const pn_host *host;
    const pn_str *tokens;       /* [n], the file's memory */
    uint8_t *types;             /* [n], PN_TOKEN_* */
    int32_t n;
    int32_t has_types;          /* 0: the file gives no kinds; all are PN_TOKEN_NORMAL */
    size_t longest;             /* bytes of the longest text that pn_vocab_find knows */
    uint32_t *slots;            /* text -> id + 1, 0 = free; linear probing */
    size_t slot_mask;
    uint64_t seed;              /* differs from run to run: no file can aim at it */
    int32_t *specials;          /* tokens of PN_VOCAB_SPECIAL that are not too long, sorted by text */
    uint32_t special_from[257]; /* those that begin with byte b: special_from[b] .. special_from[b + 1] - 1 */
} pn_vocab;

PN_UNUSED static inline pn_status pn_vocab_read_types(pn_file *file, pn_vocab *v, pn_error *err)
{
    pn_role_value r;
    void *types = NULL;
    int32_t i;
    pn_status s = pn_role_get(v->host, file, PN_ROLE_TOKEN_TYPES, 0, &r, err);
    if (s)
        return s;
    if (r.present && (r.value.type != PN_T_ARRAY || !pn_type_size(r.value.item_type)))
        return pn_fail(err, PN_E_FORMAT, "'%s' is no array of integers", pn_role_key(&r, PN_ROLE_TOKEN_TYPES));
    if (r.present && r.value.count != (uint64_t)v->n)
        return pn_fail(err, PN_E_FORMAT, "'%s' has %llu entries, but there are %d tokens; the file is damaged",
                       pn_role_key(&r, PN_ROLE_TOKEN_TYPES), (unsigned long long)r.value.count, (int)v->n);
    s = pn_host_alloc(v->host, (size_t)v->n, 1, &types, err);
    if (s)
        return s;
    v->types = (uint8_t *)types;
    v->has_types = r.present != 0;
    memset(v->types, PN_TOKEN_NORMAL, (size_t)v->n);
    for (i = 0; r.present && i < v->n; i++) {
        pn_value item = pn_value_at(&r.value, (uint64_t)i);
        int64_t type;
        if (!pn_value_int(&item, &type))
            return pn_fail(err, PN_E_FORMAT, "item %d of '%s' is no integer", (int)i,
                           pn_role_key(&r, PN_ROLE_TOKEN_TYPES));
        /* A kind that is not known is an ordinary token. */
        if (type >= PN_TOKEN_NORMAL && type <= PN_TOKEN_BYTE)
            v->types[i] = (uint8_t)type;
    }
    return PN_OK;
}

/* Tokens and their kinds; pn_vocab_index comes next. */
PN_UNUSED static inline pn_status pn_vocab_read(const pn_host *host, pn_file *file, pn_vocab *v, pn_error *err)
{
    pn_value tokens;
    pn_status s;
    v->host = host;
    s = pn_role_array(host, file, PN_ROLE_TOKENS, 1, 1, &tokens, err);
    if (s)
        return s;
    if (!tokens.count || tokens.count > (uint64_t)PN_VOCAB_MOST)
        return pn_fail(err, PN_E_FORMAT, "the file's vocabulary has %llu tokens; wanted 1 .. %d",
                       (unsigned long long)tokens.count, (int)PN_VOCAB_MOST);
    v->tokens = (const pn_str *)tokens.as.items;
    v->n = (int32_t)tokens.count;
    return pn_vocab_read_types(file, v, err);
}

PN_UNUSED static inline uint64_t pn_vocab_hash(const pn_vocab *v, const char *text, size_t size)
{
    uint64_t h = v->seed ^ size, w;
    for (; size >= 8; text += 8, size -= 8) {
        memcpy(&w, text, 8);
        h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    for (; size; text++, size--)
        h = (h ^ (uint8_t)*text) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

/* Slot of the text, or the free slot where it would be. */
PN_UNUSED static inline size_t pn_vocab_slot(const pn_vocab *v, const char *text, size_t size)
{
    size_t i = (size_t)pn_vocab_hash(v, text, size) & v->slot_mask;
    for (; v->slots[i]; i = (i + 1) & v->slot_mask) {
        const pn_str *t = &v->tokens[v->slots[i] - 1];
        if (t->size == size && memcmp(t->data, text, size) == 0)
            break;
    }
    return i;
}

/* The token of that text, -1 = none. */
PN_UNUSED static inline int32_t pn_vocab_find(const pn_vocab *v, const char *text, size_t size)
{
    return size && size <= v->longest ? (int32_t)v->slots[pn_vocab_slot(v, text, size)] - 1 : -1;
}

PN_UNUSED static inline int pn_vocab_order(pn_str a, pn_str b)
{
    int c = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return c ? c : (a.size > b.size) - (a.size < b.size);
}

PN_UNUSED static inline void pn_vocab_sift(const pn_vocab *v, size_t root, size_t n)
{
    int32_t *ids = v->specials, moving = ids[root];
    size_t child;
    while ((child = root * 2 + 1) < n) {
        if (child + 1 < n && pn_vocab_order(v->tokens[ids[child]], v->tokens[ids[child + 1]]) < 0)
            child++;
        if (pn_vocab_order(v->tokens[moving], v->tokens[ids[child]]) >= 0)
            break;
        ids[root] = ids[child];
        root = child;
    }
    ids[root] = moving;
}

PN_UNUSED static inline int pn_vocab_is_special(const pn_vocab *v, int32_t id)
{
    size_t size = v->tokens[id].size;
    return size && size <= PN_VOCAB_SPECIAL_LONGEST && (PN_VOCAB_KIND(v->types[id]) & PN_VOCAB_SPECIAL);
}

PN_UNUSED static inline pn_status pn_vocab_sort_specials(pn_vocab *v, pn_error *err)
{
    void *memory = NULL;
    size_t n = 0, i, too_long = 0;
    uint32_t b;
    int32_t id;
    pn_status s;
    for (id = 0; id < v->n; id++) {
        n += pn_vocab_is_special(v, id) != 0;
        if (v->tokens[id].size > PN_VOCAB_SPECIAL_LONGEST && (PN_VOCAB_KIND(v->types[id]) & PN_VOCAB_SPECIAL))
            too_long++;
    }
    if (too_long)
        pn_warn(v->host, "%zu special tokens have more than %d bytes and are not recognised in texts", too_long,
                PN_VOCAB_SPECIAL_LONGEST);
    s = pn_host_alloc(v->host, n, sizeof *v->specials, &memory, err);
    if (s)
        return s;
    v->specials = (int32_t *)memory;
    for (id = 0, n = 0; id < v->n; id++)
        if (pn_vocab_is_special(v, id))
            v->specials[n++] = id;
    for (i = n / 2; i-- > 0;)
        pn_vocab_sift(v, i, n);
    for (i = n; i-- > 1;) {
        int32_t top = v->specials[0];
        v->specials[0] = v->specials[i];
        v->specials[i] = top;
        pn_vocab_sift(v, 0, i);
    }
    for (b = 256, v->special_from[256] = (uint32_t)n; b-- > 0;) {
        while (n && (uint8_t)v->tokens[v->specials[n - 1]].data[0] >= b)
            n--;
        v->special_from[b] = (uint32_t)n;
    }
    return PN_OK;
}

/* Make tokens of these kinds (PN_VOCAB_KIND) found by text, of equals the last, and those of PN_VOCAB_SPECIAL found in
 * texts, whatever `kinds` says of them. */
PN_UNUSED static inline pn_status pn_vocab_index(pn_vocab *v, uint32_t kinds, pn_error *err)
{
    void *slots = NULL;
    size_t room = 16;
    int32_t id;
    pn_status s;
    while (room < (size_t)v->n * 2)
        room *= 2;
    s = pn_host_alloc(v->host, room, sizeof *v->slots, &slots, err);
    if (s)
        return s;
    v->slots = (uint32_t *)slots;
    v->slot_mask = room - 1;
    v->seed = ((uint64_t)(uintptr_t)slots ^ (uint64_t)(uintptr_t)&room << 20) * UINT64_C(0xd6e8feb86659fd93);
    for (id = 0; id < v->n; id++) {
        const pn_str *t = &v->tokens[id];
        if (!t->size || !(PN_VOCAB_KIND(v->types[id]) & kinds))
            continue;
        if (t->size > v->longest)
            v->longest = t->size;
        v->slots[pn_vocab_slot(v, t->data, t->size)] = (uint32_t)id + 1;
    }
    return pn_vocab_sort_specials(v, err);
}

/* Longest special token that text (size > 0) begins with, -1 = none. control: any; else user-defined ones alone.
 * Narrows the sorted list, byte by byte, to the tokens that agree with the text so far. */
PN_UNUSED static inline int32_t pn_vocab_special(const pn_vocab *v, const char *text, size_t size, int control)
{
    size_t depth = 1;
    uint32_t low = v->special_from[(uint8_t)text[0]], high = v->special_from[(uint8_t)text[0] + 1];
    int32_t best = -1;
    while (low < high) {
        uint32_t from, to;
        for (; low < high && v->tokens[v->specials[low]].size == depth; low++)
            if (control || v->types[v->specials[low]] == PN_TOKEN_USER)
                best = v->specials[low];
        if (depth == size)
            break;
        for (from = low, to = high; from < to;) {
            uint32_t mid = from + (to - from) / 2;
            if ((uint8_t)v->tokens[v->specials[mid]].data[depth] < (uint8_t)text[depth])
                from = mid + 1;
            else
                to = mid;
        }
        low = from;
        for (to = high; from < to;) {
            uint32_t mid = from + (to - from) / 2;
            if ((uint8_t)v->tokens[v->specials[mid]].data[depth] == (uint8_t)text[depth])
                from = mid + 1;
            else
                to = mid;
        }
        high = from;
        depth++;
    }
    return best;
}

/* The special token of exactly that text, -1 = none. */
PN_UNUSED static inline int32_t pn_vocab_special_named(const pn_vocab *v, const char *text)
{
    size_t size = strlen(text);
    int32_t id = size ? pn_vocab_special(v, text, size, 1) : -1;
    return id >= 0 && v->tokens[id].size == size ? id : -1;
}

PN_UNUSED static inline void pn_vocab_free(pn_vocab *v)
{
    if (!v->host)
        return;
    pn_host_free(v->host, v->types, NULL);
    pn_host_free(v->host, v->slots, NULL);
    pn_host_free(v->host, v->specials, NULL);
    memset(v, 0, sizeof *v);
}

#ifdef __cplusplus
}
#endif
#endif

/* A cursor over bytes that somebody else wrote: every read is checked, no sum can wrap, and the first error sticks.
 *
 *     pn_cursor c = pn_cursor_begin(data, size);
 *     uint32_t version = pn_cursor_u32(&c, "version");
 *     uint64_t count = pn_cursor_u64(&c, "number of records");
 *     if (count > pn_cursor_left(&c) / 12)
 *         pn_cursor_fail(&c, "number of records", count, pn_cursor_left(&c) / 12);
 *     return pn_cursor_status(&c, "records.bin", err);
 *
 * After the first failure every read gives 0 (or an empty string) and the position stays where the bad item begins, so
 * that only the end needs a check - and every loop, which must stop when pn_cursor_ok says 0. Numbers are in the host's
 * byte order and are read by memcpy: nothing needs to be aligned. The `what` of a call names the item for the message
 * and must be a static string.
 */
#ifndef PANTHEON_KIT_CURSOR_H
#define PANTHEON_KIT_CURSOR_H

#include <pantheon/kit/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_cursor {
    const unsigned char *data;
    uint64_t size;
    uint64_t pos;               /* always <= size */
    const char *what;           /* the item that failed; NULL while all is well */
    uint64_t found, limit;      /* of that item: what the bytes say or need, and the most that is possible */
    int short_read;             /* 1: needed `found` bytes and `limit` are left; 0: a number out of range */
} pn_cursor;

PN_UNUSED static inline pn_cursor pn_cursor_begin(const void *data, uint64_t size)
{
    pn_cursor c;
    memset(&c, 0, sizeof c);
    c.data = (const unsigned char *)data;
    c.size = data ? size : 0;
    return c;
}

PN_UNUSED static inline int pn_cursor_ok(const pn_cursor *c) { return c->what == NULL; }

/* Bytes between the position and the end. */
PN_UNUSED static inline uint64_t pn_cursor_left(const pn_cursor *c) { return c->size - c->pos; }

/* Record a failure at the position unless there is one already: the item `what` says `found` where at most `limit` can
 * be. */
PN_UNUSED static inline void pn_cursor_fail(pn_cursor *c, const char *what, uint64_t found, uint64_t limit)
{
    if (!c->what) {
        c->what = what;
        c->found = found;
        c->limit = limit;
    }
}

/* The next n bytes, or NULL (also when an error sticks). A pointer for n = 0 is valid but must not be read. */
PN_UNUSED static inline const void *pn_cursor_take(pn_cursor *c, uint64_t n, const char *what)
{
    const unsigned char *p;
    if (c->what)
        return NULL;
    if (n > pn_cursor_left(c)) {
        pn_cursor_fail(c, what, n, pn_cursor_left(c));
        c->short_read = 1;
        return NULL;
    }
    p = c->data ? c->data + c->pos : (const unsigned char *)"";
    c->pos += n;
    return p;
}

PN_UNUSED static inline void pn_cursor_skip(pn_cursor *c, uint64_t n, const char *what)
{
    (void)pn_cursor_take(c, n, what);
}

/* `count` items of `item` bytes each: the product cannot wrap. NULL as above. */
PN_UNUSED static inline const void *pn_cursor_items(pn_cursor *c, uint64_t count, uint64_t item, const char *what)
{
    if (!c->what && item && count > pn_cursor_left(c) / item) {
        pn_cursor_fail(c, what, count, pn_cursor_left(c) / item);
        return NULL;
    }
    return pn_cursor_take(c, count * item, what);
}

/* Numbers. */
#define PN_CURSOR_READ(name, type)                                                     \
    PN_UNUSED static inline type pn_cursor_##name(pn_cursor *c, const char *what)       \
    {                                                                                   \
        type v = 0;                                                                     \
        const void *p = pn_cursor_take(c, sizeof v, what);                              \
        if (p)                                                                          \
            memcpy(&v, p, sizeof v);                                                    \
        return v;                                                                       \
    }
PN_CURSOR_READ(u8, uint8_t)
PN_CURSOR_READ(i8, int8_t)
PN_CURSOR_READ(u16, uint16_t)
PN_CURSOR_READ(i16, int16_t)
PN_CURSOR_READ(u32, uint32_t)
PN_CURSOR_READ(i32, int32_t)
PN_CURSOR_READ(u64, uint64_t)
PN_CURSOR_READ(i64, int64_t)
PN_CURSOR_READ(f32, float)
PN_CURSOR_READ(f64, double)
#undef PN_CURSOR_READ

/* A string of `n` bytes, at most `most`; it points into the data and is not terminated. {NULL, 0} after a failure. */
PN_UNUSED static inline pn_str pn_cursor_str(pn_cursor *c, uint64_t n, uint64_t most, const char *what)
{
    pn_str s;
    const void *p = NULL;
    if (n > most)
        pn_cursor_fail(c, what, n, most);
    else
        p = pn_cursor_take(c, n, what);
    s.data = (const char *)p;
    s.size = p ? (size_t)n : 0;
    return s;
}

/* The same, preceded by its length as u64 or u32. On failure the position is that of the length. */
PN_UNUSED static inline pn_str pn_cursor_str_u64(pn_cursor *c, uint64_t most, const char *what)
{
    uint64_t at = c->pos;
    pn_str s = pn_cursor_str(c, pn_cursor_u64(c, what), most, what);
    if (c->what)
        c->pos = at;
    return s;
}

PN_UNUSED static inline pn_str pn_cursor_str_u32(pn_cursor *c, uint64_t most, const char *what)
{
    uint64_t at = c->pos;
    pn_str s = pn_cursor_str(c, pn_cursor_u32(c, what), most, what);
    if (c->what)
        c->pos = at;
    return s;
}

/* The first multiple of `align` (> 0) that is not before the position, or UINT64_MAX when there is none. It may lie
 * past the end. */
PN_UNUSED static inline uint64_t pn_cursor_aligned(const pn_cursor *c, uint64_t align)
{
    uint64_t rest = c->pos % align;
    uint64_t pad = rest ? align - rest : 0;
    return pad > UINT64_MAX - c->pos ? UINT64_MAX : c->pos + pad;
}

/* Move to the next multiple of `align` (> 0); past the end is a failure. */
PN_UNUSED static inline void pn_cursor_align(pn_cursor *c, uint64_t align, const char *what)
{
    uint64_t to = pn_cursor_aligned(c, align);
    pn_cursor_skip(c, to - c->pos, what);
}

/* PN_OK, or PN_E_FORMAT with the sticking error in words: `name` stands for the file. */
PN_UNUSED static inline pn_status pn_cursor_status(const pn_cursor *c, const char *name, pn_error *err)
{
    if (!c->what)
        return PN_OK;
    if (c->short_read)
        pn_fail(err, PN_E_FORMAT,
                "%s: at byte %llu: %s needs %llu bytes, but the file ends after %llu: it is cut short or damaged", name,
                (unsigned long long)c->pos, c->what, (unsigned long long)c->found, (unsigned long long)c->limit);
    else
        pn_fail(err, PN_E_FORMAT,
                "%s: at byte %llu: %s is %llu, but at most %llu is possible here: the file is cut short or damaged",
                name, (unsigned long long)c->pos, c->what, (unsigned long long)c->found, (unsigned long long)c->limit);
    if (err)
        err->offset = c->pos;
    return PN_E_FORMAT;
}

#ifdef __cplusplus
}
#endif
#endif

/* Unicode normalization to the composed form (UAX #15), with utf8proc's data. Combining marks are put in order here,
 * because the library's own sort is quadratic on long runs of them. */
#include <utf8proc.h>

#include "bpe.h"

typedef struct composer {
    const pn_host *host;
    int32_t *cp;                /* decomposed characters */
    size_t n, room;
    int32_t *spare;             /* as long as the longest run of marks so far */
    size_t spare_room;
} composer;

static pn_status room_for(const pn_host *host, int32_t **memory, size_t *room, size_t want, pn_error *err)
{
    pn_status s;
    void *p = *memory;
    if (want <= *room)
        return PN_OK;
    want += want / 2 + 64;
    s = pn_host_resize(host, want, sizeof **memory, &p, err);
    if (s)
        return s;
    *memory = p;
    *room = want;
    return PN_OK;
}

static unsigned class_of(int32_t cp)
{
    return (unsigned)utf8proc_get_property(cp)->combining_class & 255u;
}

/* Stable counting sort of a run of marks by combining class. */
static pn_status order_run(composer *c, size_t from, size_t to, pn_error *err)
{
    size_t count[257] = { 0 }, i;
    pn_status s;
    for (i = from + 1; i < to && class_of(c->cp[i - 1]) <= class_of(c->cp[i]); i++)
        ;
    if (i >= to)
        return PN_OK;
    s = room_for(c->host, &c->spare, &c->spare_room, to - from, err);
    if (s)
        return s;
    for (i = from; i < to; i++)
        count[class_of(c->cp[i]) + 1]++;
    for (i = 1; i < 257; i++)
        count[i] += count[i - 1];
    for (i = from; i < to; i++)
        c->spare[count[class_of(c->cp[i])]++] = c->cp[i];
    memcpy(c->cp + from, c->spare, (to - from) * sizeof *c->cp);
    return PN_OK;
}

static pn_status order_marks(composer *c, pn_error *err)
{
    size_t i = 0, from;
    pn_status s = PN_OK;
    while (!s && i < c->n) {
        if (!class_of(c->cp[i])) {
            i++;
            continue;
        }
        from = i;
        while (i < c->n && class_of(c->cp[i]))
            i++;
        if (i - from > 1)
            s = order_run(c, from, i, err);
    }
    return s;
}

static pn_status decompose(composer *c, const char *text, size_t size, pn_error *err)
{
    size_t i = 0;
    while (i < size) {
        uint32_t cp = 0;
        utf8proc_ssize_t k = 1;
        int boundary = 0;
        pn_status s = room_for(c->host, &c->cp, &c->room, c->n + 8, err);
        if (s)
            return s;
        i += bpe_utf8_decode(text + i, size - i, &cp);
        if (cp < 0x80 || (cp >= 0xd800 && cp < 0xe000))
            c->cp[c->n] = (int32_t)cp;
        else
            k = utf8proc_decompose_char((int32_t)cp, c->cp + c->n, (utf8proc_ssize_t)(c->room - c->n),
                                        UTF8PROC_DECOMPOSE, &boundary);
        if (k < 0 || (size_t)k > c->room - c->n)
            return pn_fail(err, PN_E_INTERNAL, "character U+%04X cannot be decomposed", cp);
        c->n += (size_t)k;
    }
    return PN_OK;
}

static pn_status encode(composer *c, char **out, size_t *out_size, pn_error *err)
{
    void *bytes = NULL;
    size_t i, n = 0;
    pn_status s = pn_host_alloc(c->host, c->n + 1, 4, &bytes, err);
    if (s)
        return s;
    for (i = 0; i < c->n; i++)
        n += bpe_utf8_encode((uint32_t)c->cp[i], (char *)bytes + n);
    *out = bytes;
    *out_size = n;
    return PN_OK;
}

pn_status bpe_nfc(const pn_host *host, const char *text, size_t size, char **out, size_t *out_size, pn_error *err)
{
    composer c;
    utf8proc_ssize_t n;
    pn_status s;
    memset(&c, 0, sizeof c);
    c.host = host;
    s = decompose(&c, text, size, err);
    if (!s)
        s = order_marks(&c, err);
    if (!s) {
        n = utf8proc_normalize_utf32(c.cp, (utf8proc_ssize_t)c.n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (n < 0)
            s = pn_fail(err, PN_E_INTERNAL, "text cannot be normalized: %s", utf8proc_errmsg(n));
        else
            c.n = (size_t)n;
    }
    if (!s)
        s = encode(&c, out, out_size, err);
    pn_host_free(host, c.cp, NULL);
    pn_host_free(host, c.spare, NULL);
    return s;
}

/* Text on its way from tokens to the user: puts characters together that span tokens, finds stop strings that span
 * tokens, and makes valid UTF-8 of whatever bytes a model gives. */
#include "stream.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

int tool_utf8_next(const char *s, size_t n, uint32_t *code)
{
    const unsigned char *b = (const unsigned char *)s;
    unsigned char low = 0x80, high = 0xBF;  /* what the second byte may be: no overlong forms, surrogates, > U+10FFFF */
    uint32_t c;
    int length;
    if (b[0] < 0x80) {
        if (code)
            *code = b[0];
        return 1;
    }
    if (b[0] < 0xC2 || b[0] > 0xF4)
        return -1;
    length = b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
    c = (uint32_t)b[0] & (0x7Fu >> length);
    if (b[0] == 0xE0)
        low = 0xA0;
    else if (b[0] == 0xED)
        high = 0x9F;
    else if (b[0] == 0xF0)
        low = 0x90;
    else if (b[0] == 0xF4)
        high = 0x8F;
    for (int i = 1; i < length; i++) {
        if ((size_t)i >= n)
            return 0;
        if (b[i] < low || b[i] > high)
            return -i;
        low = 0x80;
        high = 0xBF;
        c = c << 6 | (b[i] & 0x3Fu);
    }
    if (code)
        *code = c;
    return length;
}

void tool_stream_begin(tool_stream *s, tool_write_fn write, void *arg)
{
    *s = (tool_stream){ .write = write, .arg = arg };
}

void tool_stream_end(tool_stream *s)
{
    for (size_t i = 0; i < s->n_stops; i++)
        free(s->stops[i]);
    free(s->stops);
    free(s->held);
    *s = (tool_stream){ 0 };
}

int tool_stream_stop(tool_stream *s, const char *text)
{
    char **more, *copy;
    if (!*text)
        return 0;
    more = realloc(s->stops, (s->n_stops + 1) * sizeof *more);
    if (!more)
        return -1;
    s->stops = more;
    copy = strdup(text);
    if (!copy)
        return -1;
    s->stops[s->n_stops++] = copy;
    return 0;
}

static void show(tool_stream *s, const char *text, size_t n)
{
    if (n > 0 && !s->failed && s->write(s->arg, text, n) != 0)
        s->failed = true;
}

/* Show held[0 .. end-1] as valid UTF-8 and forget it; an unfinished character stays unless `last`. */
static void show_until(tool_stream *s, size_t end, bool last)
{
    size_t from = 0, at = 0;    /* held[from .. at-1] is valid and not shown yet */
    while (at < end) {
        int n = tool_utf8_next(s->held + at, end - at, NULL);
        if (n > 0) {
            at += (size_t)n;
            continue;
        }
        if (n == 0 && !last)
            break;
        show(s, s->held + from, at - from);
        show(s, REPLACEMENT, sizeof REPLACEMENT - 1);
        at += n == 0 ? end - at : (size_t)-n;
        from = at;
    }
    show(s, s->held + from, at - from);
    if (s->size > at)
        memmove(s->held, s->held + at, s->size - at);
    s->size -= at;
}

/* Where the stop string begins that is whole first, so that it does not matter how the bytes are cut; s->size: none is.
 */
static size_t find_stop(const tool_stream *s)
{
    size_t begin = s->size, end = s->size + 1;
    for (size_t i = 0; i < s->n_stops; i++) {
        size_t n = strlen(s->stops[i]), at;
        const char *p = s->size >= n ? memmem(s->held, s->size, s->stops[i], n) : NULL;
        if (!p)
            continue;
        at = (size_t)(p - s->held);
        if (at + n < end || (at + n == end && at < begin)) {
            begin = at;
            end = at + n;
        }
    }
    return begin;
}

/* Length of the longest end of what is held with which a stop string could begin. */
static size_t begun_stop(const tool_stream *s)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->n_stops; i++) {
        size_t n = strlen(s->stops[i]) - 1;
        for (n = n < s->size ? n : s->size; n > longest; n--)
            if (memcmp(s->held + s->size - n, s->stops[i], n) == 0)
                longest = n;
    }
    return longest;
}

int tool_stream_push(tool_stream *s, const char *bytes, size_t n)
{
    size_t at;
    if (s->stopped)
        return 1;
    if (n > s->capacity - s->size) {
        size_t capacity = (s->size + n) * 2 + 64;
        char *more = realloc(s->held, capacity);
        if (!more) {
            s->failed = true;
            return -1;
        }
        s->held = more;
        s->capacity = capacity;
    }
    if (n > 0)
        memcpy(s->held + s->size, bytes, n);
    s->size += n;
    at = find_stop(s);
    if (at < s->size) {
        s->size = at;
        show_until(s, at, true);
        s->stopped = true;
    } else {
        show_until(s, s->size - begun_stop(s), false);
    }
    return s->failed ? -1 : s->stopped;
}

int tool_stream_finish(tool_stream *s)
{
    bool failed;
    if (s->size > 0)
        show_until(s, s->size, true);
    failed = s->failed;
    s->size = 0;
    s->stopped = false;
    s->failed = false;
    return failed ? -1 : 0;
}

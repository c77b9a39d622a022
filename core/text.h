/* A bounded text buffer for descriptions: appends, never overruns, remembers the length it would have needed. */
#ifndef PN_TEXT_H
#define PN_TEXT_H

#include <pantheon/kit/types.h>

typedef struct pn_text {
    char *data;
    size_t capacity;
    size_t size; /* without terminator; may exceed capacity */
} pn_text;

PN_PRINTF(2, 3) static inline void pn_text_add(pn_text *t, const char *format, ...)
{
    va_list ap;
    int n;
    size_t room = t->size < t->capacity ? t->capacity - t->size : 0;
    va_start(ap, format);
    n = vsnprintf(room ? t->data + t->size : NULL, room, format, ap);
    va_end(ap);
    if (n > 0) t->size += (size_t)n;
}

#endif

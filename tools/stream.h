/* Text on its way from tokens to the user: characters are put together and stop strings found before it is shown. */
#ifndef PN_STREAM_H
#define PN_STREAM_H

#include <stdbool.h>
#include <stddef.h>

/* Receives valid UTF-8. Non-zero: it cannot be written. */
typedef int (*tool_write_fn)(void *arg, const char *text, size_t size);

typedef struct tool_stream {
    tool_write_fn write;
    void *arg;
    char *held;                 /* bytes not shown yet: part of a character, or what may become a stop string */
    size_t size, capacity;
    char **stops;               /* own copies */
    size_t n_stops;
    bool stopped;               /* a stop string was met; nothing is shown any more */
    bool failed;                /* `write` failed */
} tool_stream;

void tool_stream_begin(tool_stream *s, tool_write_fn write, void *arg);
/* Text before which the stream ends. An empty one is ignored. 0, or -1: no memory. */
int tool_stream_stop(tool_stream *s, const char *text);
/* More bytes. Shows what can be shown. 0; 1: a stop string was met; -1: writing failed or no memory. */
int tool_stream_push(tool_stream *s, const char *bytes, size_t n);
/* Show what is held: an incomplete character becomes U+FFFD. The stream is then as after _begin, with its stop strings.
 * 0, or -1. */
int tool_stream_finish(tool_stream *s);
void tool_stream_end(tool_stream *s);

#endif

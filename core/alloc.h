/* The library's allocator: every allocation in core/ goes through these, so that a test can fail the n-th. */
#ifndef PN_ALLOC_H
#define PN_ALLOC_H

#include <pantheon/pantheon.h>

/* NULL on failure or when the product overflows; zeroed; count or size 0 gives a unique pointer. Thread-safe. */
void *pn_calloc(size_t count, size_t size);
/* count * size bytes, grown or shrunk; NULL on failure or overflow (memory stays valid). New bytes are not zeroed. */
void *pn_realloc(void *memory, size_t count, size_t size);
void pn_free(void *memory);
/* Grow *items, which hold `count`, so that one more of `size` bytes fits. */
pn_status pn_grow(void **items, size_t count, size_t *capacity, size_t size, pn_error *err);
/* The next multiple of 64, the alignment of scratch and arenas. */
static inline size_t pn_round64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}
/* Aligned to `align` (a power of two >= 16), not zeroed; freed by pn_free_aligned. */
void *pn_alloc_aligned(size_t align, size_t size);
void pn_free_aligned(void *memory);
/* Copies; NULL on failure. */
char *pn_strdup(const char *text);
char *pn_strndup(const char *text, size_t size);
/* Anonymous zero pages for big buffers that are touched late (arena, KV cache): NULL on failure. Counted as one
 * allocation. */
void *pn_pages_alloc(size_t size);
void pn_pages_free(void *memory, size_t size);

#endif

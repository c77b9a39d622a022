/* The library's allocator: one replaceable function behind every allocation, overflow-checked and counted. */
#include "alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static pn_alloc_fn custom;
static void *custom_arg;
static _Atomic uint64_t calls;

void pn_set_allocator(pn_alloc_fn fn, void *arg)
{
    custom = fn;
    custom_arg = fn ? arg : NULL;
}

uint64_t pn_allocation_count(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

static void count_call(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

/* count * size, at least 1; 0 when the product overflows or no object can be that big. */
static size_t product(size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n) || n > PTRDIFF_MAX)
        return 0;
    return n ? n : 1;
}

void *pn_calloc(size_t count, size_t size)
{
    size_t n = product(count, size);
    if (!n)
        return NULL;
    count_call();
    if (!custom)
        return calloc(1, n);
    void *memory = custom(custom_arg, NULL, n);
    if (memory)
        memset(memory, 0, n);
    return memory;
}

void *pn_realloc(void *memory, size_t count, size_t size)
{
    size_t n = product(count, size);
    if (!n)
        return NULL;
    count_call();
    return custom ? custom(custom_arg, memory, n) : realloc(memory, n);
}

void pn_free(void *memory)
{
    if (!memory)
        return;
    if (custom)
        custom(custom_arg, memory, 0);
    else
        free(memory);
}

/* The pointer that the allocator gave lies just before the aligned one. */
void *pn_alloc_aligned(size_t align, size_t size)
{
    if (align < sizeof(void *) || (align & (align - 1)) || size > PTRDIFF_MAX - align - sizeof(void *))
        return NULL;
    char *raw = pn_realloc(NULL, 1, size + align + sizeof(void *));
    if (!raw)
        return NULL;
    size_t past = ((uintptr_t)raw + sizeof(void *)) & (align - 1);
    char *memory = raw + sizeof(void *) + (past ? align - past : 0);
    memcpy(memory - sizeof(void *), &raw, sizeof(void *));
    return memory;
}

void pn_free_aligned(void *memory)
{
    void *raw;
    if (!memory)
        return;
    memcpy(&raw, (char *)memory - sizeof(void *), sizeof(void *));
    pn_free(raw);
}

char *pn_strndup(const char *text, size_t size)
{
    if (size == SIZE_MAX)
        return NULL;
    char *copy = pn_realloc(NULL, size + 1, 1);
    if (!copy)
        return NULL;
    if (size)
        memcpy(copy, text, size);
    copy[size] = 0;
    return copy;
}

char *pn_strdup(const char *text)
{
    return pn_strndup(text, strlen(text));
}

/* With an allocator of the embedder's own, big buffers come from it too. */
void *pn_pages_alloc(size_t size)
{
    if (size > PTRDIFF_MAX)
        return NULL;
    if (custom) {
        void *memory = pn_alloc_aligned(4096, size);
        if (memory)
            memset(memory, 0, size);
        return memory;
    }
    count_call();
    void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void pn_pages_free(void *memory, size_t size)
{
    if (!memory)
        return;
    if (custom)
        pn_free_aligned(memory);
    else
        munmap(memory, size ? size : 1);
}

pn_status pn_grow(void **items, size_t count, size_t *capacity, size_t size, pn_error *err)
{
    if (count < *capacity)
        return PN_OK;
    size_t more = *capacity ? 2 * *capacity : 16;
    void *grown = pn_realloc(*items, more, size);
    if (!grown)
        return pn_fail(err, PN_E_NOMEM, "no memory for %zu list entries", more);
    *items = grown;
    *capacity = more;
    return PN_OK;
}

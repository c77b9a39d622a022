/* The counting and failing allocator of the unit tests. */
#include "memwatch.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls, fail_from;
static int64_t live, peak, largest;

static void *watch(void *arg, void *memory, size_t size)
{
    void *p = NULL;
    (void)arg;
    pthread_mutex_lock(&lock);
    int64_t before = memory ? (int64_t)malloc_usable_size(memory) : 0;
    if (size == 0) {
        free(memory);
        live -= before;
    } else {
        calls++;
        if ((int64_t)size > largest)
            largest = (int64_t)size;
        if (!fail_from || calls < fail_from)
            p = realloc(memory, size);
        if (p)
            live += (int64_t)malloc_usable_size(p) - before;
        if (live > peak)
            peak = live;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

void memwatch_begin(long fail_at)
{
    calls = 0;
    fail_from = fail_at;
    live = peak = largest = 0;
    pn_set_allocator(watch, NULL);
}

void memwatch_end(void) { pn_set_allocator(NULL, NULL); }
long memwatch_calls(void) { return calls; }
int64_t memwatch_live(void) { return live; }
int64_t memwatch_peak(void) { return peak; }
int64_t memwatch_largest(void) { return largest; }

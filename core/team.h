/* The team of threads that evaluates: barrier, work counters, how many threads this process should use. */
#ifndef PN_TEAM_H
#define PN_TEAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A barrier of `size` threads that spins for `spin` rounds, then sleeps on a futex. */
typedef struct pn_barrier {
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t phase;
    _Alignas(64) _Atomic uint32_t sleepers;
    uint32_t size;
    uint32_t spin;
} pn_barrier;

void pn_barrier_init(pn_barrier *b, uint32_t size, uint32_t spin);
/* Returns when all threads have arrived; what they wrote before is visible after. The last to arrive first runs
 * last(arg) when it is not NULL. */
void pn_barrier_wait(pn_barrier *b, void (*last)(void *arg), void *arg);

/* A counter from which threads claim pieces of a range. */
typedef struct pn_work {
    _Alignas(64) _Atomic size_t next;
} pn_work;

/* Claim up to `grain` of [0, total): 1 and [*begin, *end), or 0 when all is claimed. */
static inline int pn_work_claim(pn_work *w, size_t total, size_t grain, size_t *begin, size_t *end)
{
    size_t b = atomic_fetch_add_explicit(&w->next, grain, memory_order_relaxed);
    if (b >= total) return 0;
    *begin = b;
    *end = total - b < grain ? total : b + grain;
    return 1;
}

/* The same with pieces that shrink as the range runs out, a share of what is left for each of `team` threads: long
 * pieces stream through memory, short ones at the end let all finish together. */
static inline int pn_work_claim_shrinking(pn_work *w, size_t total, size_t team, size_t *begin, size_t *end)
{
    size_t b = atomic_load_explicit(&w->next, memory_order_relaxed), n;
    do {
        if (b >= total) return 0;
        n = (total - b) / (2 * team);
        n = n < 1 ? 1 : n;
    } while (!atomic_compare_exchange_weak_explicit(&w->next, &b, b + n, memory_order_relaxed, memory_order_relaxed));
    *begin = b;
    *end = b + n;
    return 1;
}

/* Physical cores that this process may run on (affinity mask, processor quota of its control group), at least 1. */
int pn_team_default(void);

#endif

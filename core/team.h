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

/* What threads claim pieces of a range from: a counter, and a bit for each thread whose first piece is taken. */
typedef struct pn_work {
    _Alignas(64) _Atomic size_t next;
    _Atomic uint64_t taken;
} pn_work;

static inline void pn_work_reset(pn_work *w)
{
    atomic_store_explicit(&w->next, 0, memory_order_relaxed);
    atomic_store_explicit(&w->taken, 0, memory_order_relaxed);
}

/* Claim up to `grain` of [0, total): 1 and [*begin, *end), or 0 when all is claimed. */
static inline int pn_work_claim(pn_work *w, size_t total, size_t grain, size_t *begin, size_t *end)
{
    size_t b = atomic_fetch_add_explicit(&w->next, grain, memory_order_relaxed);
    if (b >= total) return 0;
    *begin = b;
    *end = total - b < grain ? total : b + grain;
    return 1;
}

/* How long the first piece of each thread is in pn_work_claim_rows, as eighths of its share (fewer than 8, so that
 * something is left to even out): thread t has it from t times that. */
static inline size_t pn_work_first(size_t total, uint32_t team, uint32_t eighths)
{
    return team <= 64 ? eighths * total / (8 * (size_t)team) : 0;
}

static inline int pn_work_take(pn_work *w, uint32_t thread)
{
    const uint64_t bit = UINT64_C(1) << thread;
    return !(atomic_load_explicit(&w->taken, memory_order_relaxed) & bit) &&
           !(atomic_fetch_or_explicit(&w->taken, bit, memory_order_relaxed) & bit);
}

/* The same with pieces that shrink as the range runs out, a share of what is left for each thread: long pieces stream
 * through memory, short ones at the end let all finish together. The first piece of a thread is known before it claims
 * it, so that it can be asked for ahead of time; one whose thread does not come in time is left to the others. */
static inline int pn_work_claim_rows(pn_work *w, size_t total, size_t first, uint32_t thread, uint32_t team,
                                     size_t *begin, size_t *end)
{
    const size_t rest = total - first * team;
    size_t b = atomic_load_explicit(&w->next, memory_order_relaxed), n;
    if (first && pn_work_take(w, thread)) {
        *begin = thread * first;
        *end = *begin + first;
        return 1;
    }
    while (b < rest) {
        n = (rest - b) / (2 * (size_t)team);
        n = n < 1 ? 1 : n;
        if (!atomic_compare_exchange_weak_explicit(&w->next, &b, b + n, memory_order_relaxed, memory_order_relaxed))
            continue;
        *begin = total - rest + b;
        *end = *begin + n;
        return 1;
    }
    for (uint32_t t = 0; first && t < team; t++) {
        if (!pn_work_take(w, t)) continue;
        *begin = t * first;
        *end = *begin + first;
        return 1;
    }
    return 0;
}

/* Physical cores that this process may run on (affinity mask, processor quota of its control group), at least 1. */
int pn_team_default(void);

#endif

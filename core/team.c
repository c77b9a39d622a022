/* Barrier on atomics and futex; the default number of threads. */
#include "team.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

void pn_barrier_init(pn_barrier *b, uint32_t size, uint32_t spin)
{
    atomic_store(&b->arrived, 0);
    atomic_store(&b->phase, 0);
    atomic_store(&b->sleepers, 0);
    b->size = size;
    b->spin = spin;
}

void pn_barrier_wait(pn_barrier *b, void (*last)(void *arg), void *arg)
{
    uint32_t phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == b->size) {
        if (last) last(arg);
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        /* Sequentially consistent, so that a sleeper either sees the new phase or is counted before we look. */
        atomic_store(&b->phase, phase + 1);
        if (atomic_load(&b->sleepers))
            syscall(SYS_futex, (uint32_t *)&b->phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        return;
    }
    for (uint32_t i = 0; i < b->spin; i++) {
        if (atomic_load_explicit(&b->phase, memory_order_acquire) != phase) return;
        relax();
    }
    atomic_fetch_add(&b->sleepers, 1);
    while (atomic_load(&b->phase) == phase)
        syscall(SYS_futex, (uint32_t *)&b->phase, FUTEX_WAIT_PRIVATE, phase, NULL, NULL, 0);
    atomic_fetch_sub(&b->sleepers, 1);
}

/* First number in a one-line file, or -1. */
static long read_number(const char *path)
{
    FILE *f = fopen(path, "re");
    long n = -1;
    if (!f) return -1;
    if (fscanf(f, "%ld", &n) != 1) n = -1;
    fclose(f);
    return n;
}

/* Processors per second that the control group grants, rounded up; 0 = no limit known. */
static int group_quota(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    long long quota, period;
    int n = 0;
    if (!f) return 0;
    if (fscanf(f, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0)
        n = (int)((quota + period - 1) / period);
    fclose(f);
    return n;
}

int pn_team_default(void)
{
    cpu_set_t set;
    long seen[CPU_SETSIZE];
    int cores = 0, cpus = 0, quota = group_quota();
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        char path[128];
        long core, package, id;
        int known = 0;
        if (!CPU_ISSET(i, &set)) continue;
        cpus++;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_id", i);
        core = read_number(path);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
        package = read_number(path);
        if (core < 0) continue;
        id = package * 65536 + core;
        for (int k = 0; k < cores; k++) known |= seen[k] == id;
        if (!known) seen[cores++] = id;
    }
    if (!cores) cores = cpus ? cpus : 1;
    return quota && quota < cores ? quota : cores;
}

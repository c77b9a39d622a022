/* Measures what this machine can do: read memory, which limits decoding, and multiply and add, which limits prompts. */
#include "measure.h"

#include <pantheon/pantheon.h>

#include <omp.h>
#include <stddef.h>
#include <time.h>

/* Streams per thread: a core's prefetchers follow many, and few leave bandwidth unused (see pn_tile_walk of
 * kit/tile_i16.h). */
#define STREAMS 16
#define LINE 64

typedef uint64_t words __attribute__((vector_size(16), aligned(1), may_alias));

/* Sum of the 64-bit words of `lines` cache lines in each of the streams that begin `lines` lines apart. */
static uint64_t sum_streams(const char *data, size_t lines)
{
    words sum[STREAMS] = {{0}}, all = {0};
    for (size_t i = 0; i < lines; i++)
        for (size_t s = 0; s < STREAMS; s++) {
            const words *p = (const words *)(const void *)(data + (s * lines + i) * LINE);
            sum[s] += (p[0] + p[1]) + (p[2] + p[3]);
        }
    for (size_t s = 0; s < STREAMS; s++) all += sum[s];
    return all[0] + all[1];
}

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double pn_measure_read(const void *data, size_t bytes, int threads, int repeats)
{
    double best = 0;
    int team = threads < 1 ? 1 : threads;
    size_t lines = bytes / LINE / STREAMS / (size_t)team; /* of one stream of one thread */
    volatile uint64_t keep = 0;
    if (!data || lines == 0) return 0;
    for (int r = 0; r < (repeats < 1 ? 1 : repeats); r++) {
        uint64_t total = 0;
        double begin = 0, end = 0, read, speed;
        int got = 1;
#pragma omp parallel num_threads(team) reduction(+ : total)
        {
            size_t share = STREAMS * lines * LINE;
#pragma omp single
            {
                got = omp_get_num_threads();
                begin = now(CLOCK_MONOTONIC);
            }
            total += sum_streams((const char *)data + (size_t)omp_get_thread_num() * share, lines);
#pragma omp barrier
#pragma omp single
            end = now(CLOCK_MONOTONIC);
        }
        keep = keep + total;
        read = (double)lines * STREAMS * LINE * (double)got;
        speed = end > begin ? read / (end - begin) : 0;
        best = speed > best ? speed : best;
    }
    return best;
}

/* Some milliseconds. */
#define MULTIPLY_ROUNDS 2000000

static pn_measure_loop find_loop(pn_arithmetic kind, uint64_t cpu)
{
#ifdef PN_HAVE_X86
    static const pn_measure_loops *const levels[] = {&pn_measure_amx, &pn_measure_avx512, &pn_measure_avx2};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if ((uint32_t)kind <= PN_ARITHMETIC_F32 && (cpu & levels[i]->features) == levels[i]->features &&
            levels[i]->loop[kind])
            return levels[i]->loop[kind];
#endif
    (void)kind;
    (void)cpu;
    return NULL;
}

/* Each thread counts its own processor time, so that other programs lower the result less. */
double pn_measure_multiply(pn_arithmetic kind, uint64_t cpu, int threads, int repeats)
{
    double best = 0;
    int team = threads < 1 ? 1 : threads;
    const pn_measure_loop loop = find_loop(kind, cpu);
    if (!loop) return 0;
    for (int r = 0; r < (repeats < 1 ? 1 : repeats); r++) {
        double speed = 0;
#pragma omp parallel num_threads(team) reduction(+ : speed)
        {
            double begin, seconds, done;
#pragma omp barrier
            begin = now(CLOCK_THREAD_CPUTIME_ID);
            done = loop(MULTIPLY_ROUNDS);
            seconds = now(CLOCK_THREAD_CPUTIME_ID) - begin;
            speed += seconds > 0 ? done / seconds : 0;
        }
        best = speed > best ? speed : best;
    }
    return best;
}

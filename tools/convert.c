/* Rows of a tensor to another type. Chunks of rows are numbered; workers take the next number while a slot is free, the
 * caller takes the results out in order. */
#include "convert.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* About so many elements are a chunk; a chunk has at least one row. */
enum { CHUNK_ELEMENTS = 1 << 17, SLOTS_PER_THREAD = 2 };

typedef struct slot {
    float *x;
    unsigned char *bytes;
    size_t x_room, bytes_room;
    bool done;
} slot;

struct converter {
    pthread_mutex_t lock;
    pthread_cond_t work, result;
    pthread_t *threads;
    int n_threads;
    slot *slots;
    size_t n_slots;
    bool quit;

    /* the job under way; all under the lock */
    const convert_job *job;
    uint64_t cols, rows, chunk_rows, row_bytes, chunks;
    uint64_t next, taken; /* chunks given to workers, chunks the sink has had */
    size_t busy;          /* workers inside a chunk */
    pn_error err;         /* the first failure */
};

/* ---- a chunk ---------------------------------------------------------------------------------------------------- */

static uint64_t rows_in(const converter *c, uint64_t chunk)
{
    uint64_t first = chunk * c->chunk_rows;
    return c->rows - first < c->chunk_rows ? c->rows - first : c->chunk_rows;
}

static pn_status make_room(converter *c, slot *s, pn_error *err)
{
    size_t x = (size_t)(c->chunk_rows * c->cols) * sizeof *s->x, bytes = (size_t)(c->chunk_rows * c->row_bytes);
    if (s->x_room < x) {
        free(s->x);
        s->x = malloc(x);
        s->x_room = s->x ? x : 0;
    }
    if (s->bytes_room < bytes) {
        free(s->bytes);
        s->bytes = malloc(bytes);
        s->bytes_room = s->bytes ? bytes : 0;
    }
    return s->x && s->bytes ? PN_OK : pn_fail(err, PN_E_NOMEM, "no memory for %zu bytes of rows", x + bytes);
}

static pn_status convert_chunk(converter *c, uint64_t chunk, slot *s, pn_error *err)
{
    const convert_job *j = c->job;
    uint64_t first = chunk * c->chunk_rows, n = rows_in(c, chunk), plane_rows = c->rows / j->planes;
    pn_status st = make_room(c, s, err);
    if (!st) st = pn_file_tensor_f32(j->file, j->tensor, first * c->cols, n * c->cols, s->x, err);
    for (uint64_t r = 0; r < n && !st; r++) {
        const float *x = s->x + r * c->cols;
        for (uint64_t i = 0; i < c->cols; i++)
            if (!isfinite(x[i]))
                return pn_fail(err, PN_E_FORMAT, "%s: tensor '%.*s': row %llu column %llu is %g, no finite number",
                               pn_file_path(j->file), (int)j->tensor->name.size, j->tensor->name.data,
                               (unsigned long long)(first + r), (unsigned long long)i, (double)x[i]);
        const float *weights = j->importance ? j->importance + (first + r) / plane_rows * c->cols : NULL;
        st = j->type->quantize(x, weights, s->bytes + r * c->row_bytes, (size_t)c->cols, err);
        if (st)
            pn_error_wrap(err, "%s: tensor '%.*s' to %s", pn_file_path(j->file), (int)j->tensor->name.size,
                          j->tensor->name.data, j->type->name);
    }
    return st;
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

static void *work(void *arg)
{
    converter *c = arg;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->quit && (c->next >= c->chunks || c->next - c->taken >= c->n_slots))
            pthread_cond_wait(&c->work, &c->lock);
        if (c->quit) break;
        pn_error err = {0};
        uint64_t chunk = c->next++;
        slot *s = &c->slots[chunk % c->n_slots];
        c->busy++;
        pthread_mutex_unlock(&c->lock);
        pn_status st = convert_chunk(c, chunk, s, &err);
        pthread_mutex_lock(&c->lock);
        c->busy--;
        s->done = true;
        if (st && !c->err.status) c->err = err;
        pthread_cond_signal(&c->result);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

converter *convert_open(int threads)
{
    converter *c = calloc(1, sizeof *c);
    if (c) {
        c->threads = calloc((size_t)threads, sizeof *c->threads);
        c->n_slots = (size_t)threads * SLOTS_PER_THREAD;
        c->slots = calloc(c->n_slots, sizeof *c->slots);
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->work, NULL);
        pthread_cond_init(&c->result, NULL);
    }
    if (!c || !c->threads || !c->slots) {
        tool_failf("no memory for %d threads", threads);
        convert_close(c);
        return NULL;
    }
    while (c->n_threads < threads && !pthread_create(&c->threads[c->n_threads], NULL, work, c)) c->n_threads++;
    if (c->n_threads) return c;
    tool_failf("no thread can be started");
    convert_close(c);
    return NULL;
}

void convert_close(converter *c)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->quit = true;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->n_threads; i++) pthread_join(c->threads[i], NULL);
    for (size_t i = 0; c->slots && i < c->n_slots; i++) {
        free(c->slots[i].x);
        free(c->slots[i].bytes);
    }
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->result);
    free(c->slots);
    free(c->threads);
    free(c);
}

/* Sizes of the job; 0 chunks when it is empty. Under the lock. */
static void begin(converter *c, const convert_job *job)
{
    c->job = job;
    c->cols = job->tensor->dims[job->tensor->n_dims - 1];
    c->rows = pn_tensor_elements(job->tensor) / c->cols;
    c->row_bytes = pn_quant_row_bytes(job->type, c->cols);
    c->chunk_rows = c->cols < CHUNK_ELEMENTS ? CHUNK_ELEMENTS / c->cols : 1;
    c->chunks = (c->rows + c->chunk_rows - 1) / c->chunk_rows;
    c->next = c->taken = 0;
    c->err = (pn_error){0};
    for (size_t i = 0; i < c->n_slots; i++) c->slots[i].done = false;
    pthread_cond_broadcast(&c->work);
}

int convert_run(converter *c, const convert_job *job, convert_sink sink, void *arg)
{
    int status = 0;
    pthread_mutex_lock(&c->lock);
    begin(c, job);
    while (!status && c->taken < c->chunks) {
        slot *s = &c->slots[c->taken % c->n_slots];
        while (!s->done && !c->err.status) pthread_cond_wait(&c->result, &c->lock);
        if (c->err.status) break;
        uint64_t n = rows_in(c, c->taken);
        pthread_mutex_unlock(&c->lock);
        status = sink(arg, s->bytes, (size_t)(n * c->row_bytes), n * c->cols);
        pthread_mutex_lock(&c->lock);
        s->done = false;
        c->taken++;
        pthread_cond_broadcast(&c->work);
    }
    /* Nobody may touch the job once this returns. */
    c->chunks = c->next;
    while (c->busy) pthread_cond_wait(&c->result, &c->lock);
    c->chunks = c->next = c->taken = 0;
    if (!status && c->err.status) status = tool_fail(&c->err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

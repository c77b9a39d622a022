/* Rows of a tensor to another type, by several threads, in order and with bounded memory. */
#ifndef PN_CONVERT_H
#define PN_CONVERT_H

#include "tool.h"

typedef struct convert_job {
    const pn_file *file;
    const pn_tensor *tensor;
    const pn_quant *type;    /* what its rows become */
    const float *importance; /* planes times cols weights, or NULL */
    uint64_t planes;
} convert_job;

/* Receives the bytes of the rows in order, on the thread that called convert_run; 0, or non-zero to stop. */
typedef int (*convert_sink)(void *arg, const void *bytes, size_t size, uint64_t elements);

typedef struct converter converter;

/* Threads that wait for work; NULL after printing why. */
converter *convert_open(int threads);
void convert_close(converter *c);
/* 0; 1 after printing why; or what the sink returned. */
int convert_run(converter *c, const convert_job *job, convert_sink sink, void *arg);

#endif

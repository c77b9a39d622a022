/* Reads files of per-column statistics. */
#include "importance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct importance {
    pn_file *file;
};

importance *importance_open(pn_runtime *runtime, const char *path)
{
    pn_error err = {0};
    importance *imp = calloc(1, sizeof *imp);
    size_t n = strlen(IMPORTANCE_SUMS), found = 0;
    if (!imp) {
        tool_failf("no memory");
        return NULL;
    }
    if (pn_file_open(runtime, path, &imp->file, &err) != PN_OK) {
        pn_error_wrap(&err, "--importance");
        tool_fail(&err);
        free(imp);
        return NULL;
    }
    for (size_t i = 0; i < pn_file_tensor_count(imp->file); i++) {
        pn_str name = pn_file_tensor_at(imp->file, i)->name;
        found += name.size > n && memcmp(name.data + name.size - n, IMPORTANCE_SUMS, n) == 0;
    }
    if (found) return imp;
    tool_failf("--importance: %s: it has no tensor NAME" IMPORTANCE_SUMS
               ": no file of importance (pantheon importance makes one)",
               path);
    importance_close(imp);
    return NULL;
}

void importance_close(importance *imp)
{
    if (!imp) return;
    pn_file_destroy(imp->file);
    free(imp);
}

/* All numbers of a statistics tensor, finite and not negative. */
static float *numbers(const importance *imp, const pn_tensor *t, size_t *n)
{
    pn_error err = {0};
    uint64_t elements = pn_tensor_elements(t);
    float *x = elements && elements < SIZE_MAX / sizeof *x ? malloc((size_t)elements * sizeof *x) : NULL;
    if (!x) {
        tool_failf("%s: tensor '%.*s': no memory for %llu numbers", pn_file_path(imp->file), (int)t->name.size,
                   t->name.data, (unsigned long long)elements);
        return NULL;
    }
    if (pn_file_tensor_f32(imp->file, t, 0, elements, x, &err) != PN_OK) {
        tool_fail(&err);
        free(x);
        return NULL;
    }
    for (uint64_t i = 0; i < elements; i++)
        if (!isfinite(x[i]) || x[i] < 0) {
            tool_failf("%s: tensor '%.*s': number %llu is %g; wanted finite numbers of at least 0",
                       pn_file_path(imp->file), (int)t->name.size, t->name.data, (unsigned long long)i, (double)x[i]);
            free(x);
            return NULL;
        }
    *n = (size_t)elements;
    return x;
}

int importance_of(const importance *imp, const pn_tensor *tensor, float **out, uint64_t *planes)
{
    char name[1100];
    size_t n_sums, n_counts = 1, cols = (size_t)tensor->dims[tensor->n_dims - 1], size = tensor->name.size;
    uint64_t rows = pn_tensor_elements(tensor) / tensor->dims[tensor->n_dims - 1];
    *out = NULL;
    if (size > 1000 || memchr(tensor->name.data, 0, size)) return 0;
    snprintf(name, sizeof name, "%.*s" IMPORTANCE_SUMS, (int)size, tensor->name.data);
    const pn_tensor *sums = pn_file_tensor(imp->file, name);
    if (!sums) return 0;
    snprintf(name, sizeof name, "%.*s" IMPORTANCE_COUNTS, (int)size, tensor->name.data);
    const pn_tensor *counts = pn_file_tensor(imp->file, name);
    if (!counts) return tool_failf("%s: it has no tensor '%s'", pn_file_path(imp->file), name);
    float *x = numbers(imp, sums, &n_sums), *c = x ? numbers(imp, counts, &n_counts) : NULL;
    int status = x && c ? 0 : 1;
    if (!status && (n_sums % cols || n_sums / cols != n_counts || rows % n_counts))
        status = tool_failf("%s: '%.*s' has %zu sums and %zu counts, but the tensor of the model has %llu rows of %zu "
                            "columns: it is of another model",
                            pn_file_path(imp->file), (int)size, tensor->name.data, n_sums, n_counts,
                            (unsigned long long)rows, cols);
    /* A plane that never saw a vector says nothing: all its columns weigh the same. */
    for (size_t i = 0; !status && i < n_sums; i++) x[i] = c[i / cols] > 0 ? x[i] / c[i / cols] : 1;
    free(c);
    if (status) {
        free(x);
        return status;
    }
    *out = x;
    *planes = n_counts;
    return 0;
}

/* Token ids in memory that grows. */
#include "alloc.h"

pn_status pn_ids_push(pn_ids *ids, const int32_t *more, size_t n, pn_error *err)
{
    if (n > ids->capacity - ids->count) {
        size_t want = ids->capacity < 32 ? 64 : ids->capacity * 2;
        int32_t *data;
        if (n > SIZE_MAX / 4 / sizeof *data || ids->count > SIZE_MAX / 4 / sizeof *data)
            return pn_fail(err, PN_E_NOMEM, "no memory for %zu more token ids", n);
        if (want < ids->count + n)
            want = ids->count + n;
        data = pn_realloc(ids->data, want, sizeof *data);
        if (!data)
            return pn_fail(err, PN_E_NOMEM, "no memory for %zu token ids", want);
        ids->data = data;
        ids->capacity = want;
    }
    if (n)
        memcpy(ids->data + ids->count, more, n * sizeof *more);
    ids->count += n;
    return PN_OK;
}

void pn_ids_free(pn_ids *ids)
{
    if (!ids)
        return;
    pn_free(ids->data);
    memset(ids, 0, sizeof *ids);
}

/* Names near to one that was not found: by edit distance, and those that contain it. */
#include "near.h"

#include <stdlib.h>

enum { LONGEST = 96, SHOWN = 3 };

pn_str near_tensor(const pn_file *file, size_t index)
{
    const pn_tensor *t = pn_file_tensor_at(file, index);
    return t ? t->name : (pn_str){ NULL, 0 };
}

pn_str near_key(const pn_file *file, size_t index)
{
    pn_str key = { NULL, 0 };
    return pn_file_value_at(file, index, &key, NULL, NULL) == PN_OK ? key : (pn_str){ NULL, 0 };
}

/* Levenshtein's distance, or a large number when a name is long. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            if (corner + 1 < best)
                best = corner + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

const char *near_names(const pn_file *file, near_name name, const char *wanted, char *text, size_t capacity)
{
    struct { size_t distance; pn_str name; } best[SHOWN];
    size_t n = 0, length = strlen(wanted), at = 0, limit = length / 3 < 2 ? 2 : length / 3;
    pn_str s;
    for (size_t i = 0; (s = name(file, i)).data; i++) {
        size_t d = distance(wanted, length, s.data, s.size);
        if (d > limit && length >= 3 && memmem(s.data, s.size, wanted, length))
            d = limit;
        if (d > limit)
            continue;
        size_t place = n < SHOWN ? n++ : SHOWN;
        for (; place > 0 && best[place - 1].distance > d; place--)
            if (place < SHOWN)
                best[place] = best[place - 1];
        if (place < SHOWN) {
            best[place].distance = d;
            best[place].name = s;
        }
    }
    text[0] = 0;
    for (size_t i = 0; i < n && at < capacity; i++)
        at += (size_t)snprintf(text + at, capacity - at, "%s%.*s",
                               i ? ", " : "; near: ", (int)(best[i].name.size > 100 ? 100 : best[i].name.size),
                               best[i].name.data);
    return text;
}

/* Files of a reference run. Everything is little-endian:
 *
 *      0  8 bytes  "PNTLOGIT"
 *      8  u32      version, 1
 *     12  u32      vocabulary: logits per row
 *     16  u32      tokens per window
 *     20  u32      0
 *     24  u64      tokens of the text
 *     32  u64      rows: scored tokens
 *     40  i32[]    the tokens
 *         f32[][]  a row of logits for each scored token, in order; the file ends there
 *
 * Logits are kept whole, so that a model compared with itself differs by nothing. */
#include "reference.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char MAGIC[] = "PNTLOGIT";
enum { HEADER = 40, VERSION = 1 };

static uint64_t get(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    while (n-- > 0) v = v << 8 | p[n];
    return v;
}

static void set(unsigned char *p, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(v >> (8 * i));
}

static int cut_short(const reference *r, const char *what)
{
    if (ferror(r->f)) return tool_failf("%s: cannot read: %s", r->path, strerror(errno));
    return tool_failf("%s: the file ends inside %s", r->path, what);
}

/* The sizes that the header states must be those of the file. */
static int check_size(const reference *r)
{
    struct stat st;
    if (r->vocab < 1 || r->context < 2 || r->context > 1 << 24 || r->vocab > INT32_MAX)
        return tool_failf("%s: it says %lu logits per row and windows of %lu tokens: it is damaged", r->path,
                          (unsigned long)r->vocab, (unsigned long)r->context);
    if (fstat(fileno(r->f), &st) || !S_ISREG(st.st_mode)) return tool_failf("%s: it is no regular file", r->path);
    uint64_t left = (uint64_t)st.st_size - HEADER, row = (uint64_t)r->vocab * 4;
    if (r->tokens > left / 4 || r->rows != (left - r->tokens * 4) / row || (left - r->tokens * 4) % row)
        return tool_failf(
            "%s: it has %llu bytes, which are not those of %llu tokens and %llu rows of %lu logits: it is "
            "damaged or cut short",
            r->path, (unsigned long long)st.st_size, (unsigned long long)r->tokens, (unsigned long long)r->rows,
            (unsigned long)r->vocab);
    return 0;
}

int reference_open(reference *r, const char *path)
{
    unsigned char head[HEADER];
    *r = (reference){.path = path, .f = fopen(path, "rb")};
    if (!r->f) return tool_failf("%s: cannot open: %s", path, strerror(errno));
    if (fread(head, 1, HEADER, r->f) != HEADER) return cut_short(r, "its header");
    if (memcmp(head, MAGIC, 8) != 0)
        return tool_failf("%s: it is no reference run: those are made with pantheon perplexity --save", path);
    if (get(head + 8, 4) != VERSION || get(head + 20, 4) != 0)
        return tool_failf("%s: it is a reference run of version %lu; version %d can be read", path,
                          (unsigned long)get(head + 8, 4), VERSION);
    r->vocab = (uint32_t)get(head + 12, 4);
    r->context = (uint32_t)get(head + 16, 4);
    r->tokens = get(head + 24, 8);
    r->rows = get(head + 32, 8);
    if (check_size(r)) return 1;
    r->row = malloc((size_t)r->vocab * sizeof *r->row);
    return r->row ? 0 : tool_failf("%s: no memory for rows of %lu logits", path, (unsigned long)r->vocab);
}

int reference_check(reference *r, uint32_t vocab, uint32_t context, const int32_t *tokens, size_t n, uint64_t rows)
{
    unsigned char bytes[4096];
    if (vocab != r->vocab)
        return tool_failf("%s: the reference has %lu logits per token, this model %lu: it is of another vocabulary",
                          r->path, (unsigned long)r->vocab, (unsigned long)vocab);
    if (context != r->context)
        return tool_failf("%s: the reference has windows of %lu tokens, not %lu: leave --context out", r->path,
                          (unsigned long)r->context, (unsigned long)context);
    if (n != r->tokens)
        return tool_failf("%s: the reference has %llu tokens, this text %zu: it is of another text or vocabulary",
                          r->path, (unsigned long long)r->tokens, n);
    for (size_t i = 0; i < n;) {
        size_t k = n - i < sizeof bytes / 4 ? n - i : sizeof bytes / 4;
        if (fread(bytes, 4, k, r->f) != k) return cut_short(r, "its tokens");
        for (size_t j = 0; j < k; j++, i++)
            if ((int32_t)(uint32_t)get(bytes + 4 * j, 4) != tokens[i])
                return tool_failf("%s: token %zu of the reference is %ld, of this text %ld: it is of another text or "
                                  "vocabulary",
                                  r->path, i, (long)(int32_t)(uint32_t)get(bytes + 4 * j, 4), (long)tokens[i]);
    }
    if (rows != r->rows)
        return tool_failf("%s: the reference has %llu scored tokens where %llu are wanted: it is damaged", r->path,
                          (unsigned long long)r->rows, (unsigned long long)rows);
    return 0;
}

int reference_row(reference *r)
{
    float most = -INFINITY;
    if (fread(r->row, 4, r->vocab, r->f) != r->vocab) return cut_short(r, "its logits");
    for (uint32_t i = 0; i < r->vocab; i++) {
        unsigned char bytes[4];
        memcpy(bytes, &r->row[i], 4);
        uint32_t u = (uint32_t)get(bytes, 4);
        memcpy(&r->row[i], &u, 4);
        if (isnan(r->row[i]) || r->row[i] == INFINITY)
            return tool_failf("%s: logit %lu of scored token %llu is %g: it is damaged", r->path, (unsigned long)i,
                              (unsigned long long)r->next, (double)r->row[i]);
        if (r->row[i] > most) most = r->row[i];
    }
    if (most == -INFINITY)
        return tool_failf("%s: scored token %llu has no finite logit: it is damaged", r->path,
                          (unsigned long long)r->next);
    r->next++;
    return 0;
}

void reference_close(reference *r)
{
    if (r->f) fclose(r->f);
    free(r->row);
    *r = (reference){0};
}

int reference_begin(const output *o, const char *path, uint32_t vocab, uint32_t context, const int32_t *tokens,
                    size_t n, uint64_t rows)
{
    unsigned char head[HEADER] = {0}, bytes[4];
    memcpy(head, MAGIC, 8);
    set(head + 8, VERSION, 4);
    set(head + 12, vocab, 4);
    set(head + 16, context, 4);
    set(head + 24, n, 8);
    set(head + 32, rows, 8);
    bool good = fwrite(head, 1, HEADER, o->f) == HEADER;
    for (size_t i = 0; i < n && good; i++) {
        set(bytes, (uint32_t)tokens[i], 4);
        good = fwrite(bytes, 1, 4, o->f) == 4;
    }
    return good ? 0 : tool_failf("%s: cannot be written: %s", path, strerror(errno));
}

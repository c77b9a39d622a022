/* The INI reader: text to (section, key, value, line). inih reads the lines; this file refuses beforehand what inih
 * would cut, merge or skip in silence, and checks afterwards that every byte of every line is accounted for. */
#include "alloc.h"
#include "config.h"

#include <ini.h>
#include <limits.h>
#include <pthread.h>

#define MAX_TEXT ((size_t)16 << 20)

/* A line that says something: a section's name (key NULL) or a key with its value. */
typedef struct entry {
    pn_ini_line out;
    const char *begin, *end; /* the line in the text, without blanks around it */
} entry;

typedef struct reader {
    const char *name;
    const char *start;      /* the bytes given */
    const char *text, *end; /* the same after a byte order mark */
    pn_error *err;

    entry *entries;
    size_t n_entries;
    size_t n_lines, longest;
    char *pool; /* copies of names and values; as large as the text, and never full */
    size_t used;

    const char *next; /* what inih reads next */
    size_t line;      /* number of the line that it read last */
    size_t done;      /* entries that it has confirmed */
    pn_status status;
} reader;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static pn_status fail_at(reader *r, size_t line, const char *at, const char *text)
{
    pn_fail(r->err, PN_E_CONFIG, "%s:%zu: %s", r->name, line, text);
    if (r->err && at) r->err->offset = (uint64_t)(at - r->start);
    return PN_E_CONFIG;
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

/* Length of the UTF-8 sequence at p, 0 when it is not one (overlong, surrogate, past U+10FFFF, cut). */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

size_t pn_utf8_valid(const char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        size_t n = utf8_length((const unsigned char *)text + at, size - at);
        if (n == 0) break;
        at += n;
    }
    return at;
}

static pn_status check_encoding(reader *r, const char *text, size_t size)
{
    size_t line = 1;
    if (size > MAX_TEXT)
        return pn_fail(r->err, PN_E_CONFIG, "%s: %zu bytes are too many for a configuration; at most %zu are read",
                       r->name, size, MAX_TEXT);
    r->start = r->text = text;
    r->end = text + size;
    if (size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return fail_at(r, 1, text, "the file is UTF-16 (or UTF-32); save it as UTF-8");
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) r->text += 3;
    for (const char *p = r->text; p < r->end;) {
        unsigned char c = (unsigned char)*p;
        size_t n = utf8_length((const unsigned char *)p, (size_t)(r->end - p));
        char words[128];
        if (c == 0)
            return fail_at(r, line, p,
                           "the line holds a zero byte; a configuration is plain UTF-8 text (is it UTF-16?)");
        if (c == '\r' && (r->end - p < 2 || p[1] != '\n'))
            return fail_at(r, line, p, "a carriage return stands without a line feed; lines end in LF or CR LF");
        if (n == 0) {
            snprintf(words, sizeof words, "byte 0x%02x does not belong to valid UTF-8; save the file as UTF-8", c);
            return fail_at(r, line, p, words);
        }
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
            snprintf(words, sizeof words, "the line holds a control character (0x%02x); in double quotes write \\u%04x",
                     c, c);
            return fail_at(r, line, p, words);
        }
        line += c == '\n';
        p += n;
    }
    r->n_lines = line;
    return PN_OK;
}

/* ---- quotes ------------------------------------------------------------------------------------------------------ */

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* The `digits` hexadecimal digits at p, or UINT32_MAX. */
static uint32_t hex(const char *p, int digits)
{
    uint32_t value = 0;
    for (int i = 0; i < digits; i++) {
        char c = p[i];
        uint32_t d = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                            : UINT32_MAX;
        if (d == UINT32_MAX) return UINT32_MAX;
        value = value << 4 | d;
    }
    return value;
}

/* The escape at *p (after the backslash) to out; NULL when fine, else what is wrong with it. */
static const char *unescape(const char **p, char *out, size_t *n)
{
    static const char from[] = "nrt\\\"", to[] = "\n\r\t\\\"";
    char c = *(*p)++;
    const char *at = c ? strchr(from, c) : NULL;
    *n = 1;
    if (at) {
        *out = to[at - from];
        return NULL;
    }
    if (c != 'u' && c != 'U')
        return "in double quotes only the escapes \\n \\r \\t \\\\ \\\" \\uXXXX \\UXXXXXXXX are known; "
               "in single quotes a backslash is just itself";
    int digits = c == 'u' ? 4 : 8;
    uint32_t code = hex(*p, digits);
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return "\\u takes four and \\U eight hexadecimal digits of a Unicode character other than zero";
    *p += digits;
    *n = put_utf8(out, code);
    return NULL;
}

/* Remove the quotes around a value, in place; escapes work in double quotes. NULL when fine, else what is wrong. */
static const char *unquote(char *value, bool *quoted)
{
    char quote = *value;
    const char *p = value + 1;
    char *out = value;
    *quoted = quote == '"' || quote == '\'';
    if (!*quoted) return NULL;
    while (*p && *p != quote) {
        if (*p == '\\' && quote == '"') {
            size_t n;
            p++;
            const char *wrong = unescape(&p, out, &n);
            if (wrong) return wrong;
            out += n;
        } else {
            *out++ = *p++;
        }
    }
    if (!*p)
        return quote == '"' ? "the value begins with \" but has no closing one"
                            : "the value begins with ' but has no closing one";
    if (p[1])
        return "text follows the closing quote; quotes go around the whole value, or put it in quotes of the other "
               "kind";
    *out = 0;
    return NULL;
}

/* ---- what inih must not decide ----------------------------------------------------------------------------------- */

static char *keep(reader *r, const char *text, size_t size)
{
    char *copy = r->pool + r->used;
    memcpy(copy, text, size);
    copy[size] = 0;
    r->used += size + 1;
    return copy;
}

static pn_status scan_section(reader *r, entry *e)
{
    const char *close = memchr(e->begin, ']', (size_t)(e->end - e->begin));
    const char *first = e->begin + 1, *rest;
    if (!close) return fail_at(r, e->out.line, e->begin, "a section begins with '[' but has no ']'");
    for (rest = close + 1; rest < e->end && is_blank(*rest);) rest++;
    if (rest < e->end && *rest != ';' && *rest != '#')
        return fail_at(r, e->out.line, rest, "text follows the ']' of a section; keys go on lines of their own");
    while (first < close && is_blank(*first)) first++;
    while (close > first && is_blank(close[-1])) close--;
    e->out.section = keep(r, first, (size_t)(close - first));
    return PN_OK;
}

/* Find the lines that say something, and refuse those that cannot be held. */
static pn_status scan(reader *r)
{
    const char *section = "";
    size_t line = 0;
    for (const char *p = r->text; p < r->end;) {
        const char *stop = memchr(p, '\n', (size_t)(r->end - p)), *begin = p, *end = stop ? stop : r->end;
        size_t length = (size_t)(end - begin);
        p = stop ? stop + 1 : r->end;
        line++;
        r->longest = length > r->longest ? length : r->longest;
        if (end > begin && end[-1] == '\r') end--;
        while (begin < end && is_blank(*begin)) begin++;
        while (end > begin && is_blank(end[-1])) end--;
        if (begin == end || *begin == ';' || *begin == '#') continue;
        entry *e = &r->entries[r->n_entries++];
        e->begin = begin;
        e->end = end;
        e->out.line = line;
        if (*begin == '[') {
            pn_status status = scan_section(r, e);
            if (status != PN_OK) return status;
            section = e->out.section;
            continue;
        }
        e->out.section = section;
        e->out.key = ""; /* inih will tell */
        if (*begin == '=' || *begin == ':') return fail_at(r, line, begin, "a value without a key");
        if (!memchr(begin, '=', (size_t)(end - begin)) && !memchr(begin, ':', (size_t)(end - begin)))
            return fail_at(r, line, begin, "neither a comment, nor a [section], nor key = value");
    }
    return PN_OK;
}

/* ---- inih -------------------------------------------------------------------------------------------------------- */

static char *next_line(char *line, int capacity, void *arg)
{
    reader *r = arg;
    const char *stop;
    size_t length;
    if (r->next >= r->end) return NULL;
    stop = memchr(r->next, '\n', (size_t)(r->end - r->next));
    length = (size_t)((stop ? stop + 1 : r->end) - r->next);
    if (capacity < 1 || length >= (size_t)capacity) {
        r->status = fail_at(r, r->line + 1, r->next, "the line is longer than the INI library can hold");
        return NULL;
    }
    memcpy(line, r->next, length);
    line[length] = 0;
    r->next += length;
    r->line++;
    return line;
}

/* Does key, blanks, one separator, blanks, value make up the whole line? */
static bool accounts_for(const entry *e, const char *key, const char *value)
{
    size_t k = strlen(key), v = strlen(value), size = (size_t)(e->end - e->begin);
    const char *p, *stop;
    if (k >= size || v > size - k - 1 || memcmp(e->begin, key, k) != 0 || memcmp(e->end - v, value, v) != 0)
        return false;
    stop = e->end - v;
    for (p = e->begin + k; p < stop && is_blank(*p);) p++;
    if (p == stop || (*p != '=' && *p != ':')) return false;
    for (p++; p < stop && is_blank(*p);) p++;
    return p == stop;
}

static int on_value(void *arg, const char *section, const char *key, const char *value)
{
    reader *r = arg;
    const char *wrong;
    char *copy;
    entry *e;
    (void)section; /* cut at 49 bytes; ours is whole */
    while (r->done < r->n_entries && !r->entries[r->done].out.key) r->done++;
    e = &r->entries[r->done];
    if (r->done >= r->n_entries || e->out.line != r->line || !accounts_for(e, key, value)) {
        r->status = fail_at(r, r->line, NULL, "the INI library does not hold this line whole");
        return 0;
    }
    r->done++;
    e->out.key = keep(r, key, strlen(key));
    e->out.value = copy = keep(r, value, strlen(value));
    wrong = unquote(copy, &e->out.quoted);
    if (wrong) r->status = fail_at(r, r->line, e->begin, wrong);
    return wrong == NULL;
}

/* The library's settings are globals of the process: ours are set under a lock and taken back. */
static int parse(reader *r)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char comments[] = ";#";
    int result;
    pthread_mutex_lock(&lock);
    const bool multiline = ini_allow_multiline, bom = ini_allow_bom, inlined = ini_allow_inline_comments,
               stack = ini_use_stack, grow = ini_allow_realloc, stop = ini_stop_on_first_error,
               no_value = ini_allow_no_value;
    const int max_line = ini_max_line, initial = ini_initial_alloc;
    char *const prefixes = ini_start_comment_prefixes;
    ini_allow_multiline = ini_allow_bom = ini_allow_inline_comments = false;
    ini_use_stack = ini_allow_realloc = ini_allow_no_value = false;
    ini_stop_on_first_error = true;
    ini_start_comment_prefixes = comments;
    ini_max_line = ini_initial_alloc = (int)(r->longest + 4); /* line feed, zero, and never exactly full */
    result = ini_parse_stream(next_line, r, on_value, r);
    ini_allow_multiline = multiline;
    ini_allow_bom = bom;
    ini_allow_inline_comments = inlined;
    ini_use_stack = stack;
    ini_allow_realloc = grow;
    ini_stop_on_first_error = stop;
    ini_allow_no_value = no_value;
    ini_max_line = max_line;
    ini_initial_alloc = initial;
    ini_start_comment_prefixes = prefixes;
    pthread_mutex_unlock(&lock);
    return result;
}

static pn_status read_all(reader *r)
{
    pn_status status = scan(r);
    int result;
    if (status != PN_OK) return status;
    r->next = r->text;
    result = parse(r);
    if (r->status != PN_OK) return r->status;
    if (result == -2) return pn_fail(r->err, PN_E_NOMEM, "%s: no memory for a line of %zu bytes", r->name, r->longest);
    if (result != 0)
        return fail_at(r, result > 0 ? (size_t)result : r->line, NULL, "the INI library cannot read this line");
    while (r->done < r->n_entries && !r->entries[r->done].out.key) r->done++;
    if (r->done != r->n_entries)
        return fail_at(r, r->entries[r->done].out.line, NULL, "the INI library passes over this line");
    return PN_OK;
}

pn_status pn_ini_read(const char *name, const char *text, size_t size, pn_ini_fn fn, void *arg, pn_error *err)
{
    reader r = {.name = name, .err = err};
    pn_status status = check_encoding(&r, text, size);
    if (status != PN_OK) return status;
    r.entries = pn_calloc(r.n_lines, sizeof *r.entries);
    r.pool = pn_calloc(size + 2, 1);
    if (!r.entries || !r.pool) status = pn_fail(err, PN_E_NOMEM, "%s: no memory to read %zu lines", name, r.n_lines);
    if (status == PN_OK) status = read_all(&r);
    for (size_t i = 0; status == PN_OK && i < r.n_entries; i++) status = fn(arg, &r.entries[i].out, err);
    pn_free(r.entries);
    pn_free(r.pool);
    return status;
}

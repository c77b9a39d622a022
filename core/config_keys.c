/* The table of configuration keys: sections, types, ranges, built-in values, help; and what is said of a wrong one. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define TEXT_(s, k, t, f, v, r, h)                                                         \
    {                                                                                      \
        .section = s, .key = k, .type = t, .flags = f, .fallback = v, .rest = r, .help = h \
    }
#define BOOL(s, k, v, h) TEXT_(s, k, PN_KEY_BOOL, 0, v, NULL, h)
#define STRING(s, k, f, h) TEXT_(s, k, PN_KEY_STRING, f, "", NULL, h)
#define PATH(s, k, f, h) TEXT_(s, k, PN_KEY_PATH, f, "", NULL, h)
#define NAME(s, k, f, v, h) TEXT_(s, k, PN_KEY_NAME, f, v, NULL, h)
#define NAMES(s, k, f, r, h) TEXT_(s, k, PN_KEY_NAME, PN_KEY_PREFIX | (f), "", r, h)
#define WORD(s, k, v, w, h)                                                               \
    {                                                                                     \
        .section = s, .key = k, .type = PN_KEY_WORD, .fallback = v, .words = w, .help = h \
    }
#define INT(s, k, f, v, w, lo, hi, h)                                                                              \
    {                                                                                                              \
        .section = s, .key = k, .type = PN_KEY_INT, .flags = f, .fallback = v, .words = w, .imin = lo, .imax = hi, \
        .help = h                                                                                                  \
    }
#define FLOAT(s, k, v, lo, hi, h)                                                                      \
    {                                                                                                  \
        .section = s, .key = k, .type = PN_KEY_FLOAT, .fallback = v, .fmin = lo, .fmax = hi, .help = h \
    }

static const pn_key table[] = {
    PATH("model", "path", 0, "the model file or folder (path)"),
    STRING("model", "name", 0, "what to call the model; empty: the file's own name for it (text)"),

    PATH("plugins", "load", PN_KEY_LIST, "a plugin file to load before all others; must load (path, once per item)"),
    PATH("plugins", "path", PN_KEY_LIST, "a folder searched for plugins before the usual ones (path, once per item)"),

    INT("runtime", "threads", 0, "0", NULL, 0, 1024,
        "threads that evaluate; 0: one per physical core this process may use (whole number, 0 to 1024)"),
    INT("runtime", "batch", 0, "512", NULL, 1, 65536,
        "tokens of a prompt evaluated at a time (whole number, 1 to 65536)"),
    INT("runtime", "context", 0, "0", NULL, 0, 16777216,
        "tokens a sequence can hold; 0: what the model was trained for, 4096 at most (whole number, 0 to 16777216)"),
    WORD(
        "runtime", "context_end", "stop", "stop shift",
        "when the context is full: stop says so and ends the generation; shift forgets the older half (stop or shift)"),
    INT("runtime", "keep", 0, "0", NULL, 0, 16777216,
        "tokens at the beginning that context_end = shift never forgets (whole number, 0 to 16777216)"),
    NAME("runtime", "kv", 0, "f16", "type of the KV cache: f16, f32 or a loaded type that can serve (name)"),
    WORD("runtime", "activations", "exact", "exact fast",
         "rounding of activations: exact is 16 bits or more, fast is 8 bits (exact or fast)"),
    BOOL("runtime", "prefault", "false", "read the whole model into memory when it is opened (true or false)"),
    BOOL("runtime", "lock", "false", "lock the model in memory, so that it is never paged out (true or false)"),
    INT("runtime", "spin", 0, "auto", "auto spin sleep", 0, 1000000000,
        "waiting at a barrier: checks before sleeping; spin: never sleep, sleep: at once "
        "(auto, spin, sleep or whole number, 0 to 1000000000)"),

    WORD("tokenizer", "add_bos", "auto", "auto true false",
         "begin with the start token; auto: if the model file says so (auto, true or false)"),
    STRING("tokenizer", "pre", 0, "name of the pre-tokenizer, in place of the model file's (text)"),
    STRING("tokenizer", "pattern", 0, "regular expression of the pre-tokenizer, in place of the named one (text)"),

    FLOAT("sampling", "temperature", "0", 0, 100,
          "0: always the likeliest token; higher: more variety (number, 0 to 100)"),
    INT("sampling", "top_k", 0, "40", NULL, 0, INT32_MAX,
        "choose among the k likeliest tokens; 0: off (whole number, 0 to 2147483647)"),
    FLOAT("sampling", "top_p", "0.95", 0, 1,
          "choose among the likeliest tokens that make up this probability; 1: off (number, 0 to 1)"),
    FLOAT("sampling", "min_p", "0.05", 0, 1,
          "drop tokens less likely than this share of the likeliest; 0: off (number, 0 to 1)"),
    FLOAT("sampling", "repeat_penalty", "1", 0, 100,
          "above 1: make tokens that were just used less likely; 1: off (number, 0 to 100)"),
    INT("sampling", "repeat_last", 0, "64", NULL, 1, 1048576,
        "how many recent tokens the repetition penalty looks at (whole number, 1 to 1048576)"),
    INT("sampling", "seed", PN_KEY_EMPTY, "", NULL, 0, INT64_MAX,
        "the same seed gives the same text; empty: a new one each time (whole number, 0 to 9223372036854775807, or "
        "empty)"),
    INT("sampling", "n", 0, "-1", NULL, -1, INT32_MAX,
        "tokens to generate at most; -1: until the model ends or the context is full (whole number, -1 to 2147483647)"),

    STRING("prompt", "template", 0, "name of the chat template; empty: recognised in the model file (text)"),
    STRING("prompt", "system", PN_KEY_PROSE, "system message that opens each conversation; empty: none (text)"),
    STRING("prompt", "system_prefix", PN_KEY_PROSE,
           "what stands before a system message, in place of a template (text)"),
    STRING("prompt", "system_suffix", PN_KEY_PROSE, "what stands after a system message (text)"),
    STRING("prompt", "user_prefix", PN_KEY_PROSE,
           "what stands before the user's message, in place of a template (text)"),
    STRING("prompt", "user_suffix", PN_KEY_PROSE, "what stands after the user's message (text)"),
    STRING("prompt", "assistant_prefix", PN_KEY_PROSE,
           "what stands before the model's answer, in place of a template (text)"),
    STRING("prompt", "assistant_suffix", PN_KEY_PROSE, "what stands after the model's answer (text)"),
    STRING("prompt", "stop", PN_KEY_PROSE | PN_KEY_LIST,
           "text that ends the generation when it appears (text, once per item)"),

    NAMES("arch", "alias.", 0, "NAME", "treat a file's architecture NAME as this other one (name)"),
    NAMES("quant", "alias.", PN_KEY_NUMBERED, "NUMBER",
          "type that a file's NUMBER stands for, by its name or the id of its plugin (name)"),
    NAMES("plugins", "pin.", 0, "NAME",
          "id of the plugin that provides the format, tokenizer, template or operation NAME, when several do (name)"),
    NAMES("arch", "pin.", 0, "NAME", "id of the plugin that provides architecture NAME, when several do (name)"),
    NAMES("quant", "pin.", 0, "NAME", "id of the plugin that provides type NAME, when several do (name)"),
    NAMES("kernels", "", 0, "TYPE", "name of the kernel to use for weights of TYPE, in place of the best score (name)"),
    {.section = "sampling",
     .key = "bias.",
     .type = PN_KEY_FLOAT,
     .flags = PN_KEY_PREFIX | PN_KEY_NUMBERED,
     .fallback = "",
     .fmin = -HUGE_VAL,
     .fmax = 1e6,
     .rest = "TOKEN",
     .help = "added to the logit of token id TOKEN; -inf forbids it (number, -inf to 1e+06)"},
};

enum { N_KEYS = sizeof table / sizeof table[0] };
_Static_assert(N_KEYS <= PN_KEY_COUNT_MAX, "PN_KEY_COUNT_MAX is too small");

static const char *const sections[] = {"model",   "plugins",   "arch",     "quant",  "kernels",
                                       "runtime", "tokenizer", "sampling", "prompt", "server"};
enum { N_SECTIONS = sizeof sections / sizeof sections[0] };

const pn_key *pn_key_at(size_t index)
{
    return index < N_KEYS ? &table[index] : NULL;
}

size_t pn_key_count(void)
{
    return N_KEYS;
}

pn_status pn_config_key_at(size_t index, pn_config_key *out, pn_error *err)
{
    const pn_key *k = pn_key_at(index);
    if (!k) return pn_fail(err, PN_E_RANGE, "there is no configuration key %zu", index);
    *out = (pn_config_key){
        .struct_size = (uint32_t)sizeof *out,
        .list = k->flags & PN_KEY_LIST ? 1 : 0,
        .section = k->section,
        .key = k->key,
        .rest = k->rest ? k->rest : "",
        .fallback = k->fallback,
        .help = k->help,
    };
    return PN_OK;
}

size_t pn_key_find(const char *section, const char *key)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        size_t n = strlen(table[i].key);
        bool same = table[i].flags & PN_KEY_PREFIX ? strncmp(key, table[i].key, n) == 0 && key[n]
                                                   : strcmp(key, table[i].key) == 0;
        if (same && strcmp(section, table[i].section) == 0) return i;
    }
    return SIZE_MAX;
}

/* ---- words for people -------------------------------------------------------------------------------------------- */

const char *pn_key_range(const pn_key *key, char *text, size_t capacity)
{
    char words[64] = "";
    size_t used = 0;
    /* "a b c": "a, b or c"; before a number "a, b or " */
    for (const char *w = key->words; w && *w && used + 1 < sizeof words;) {
        size_t n = strcspn(w, " ");
        bool last = !w[n];
        const char *more = key->type == PN_KEY_INT  ? (last ? " or " : ", ")
                           : last                   ? ""
                           : strchr(w + n + 1, ' ') ? ", "
                                                    : " or ";
        int put = snprintf(words + used, sizeof words - used, "%.*s%s", (int)n, w, more);
        used += put < 0 ? 0 : (size_t)put;
        w += n + !last;
    }
    switch (key->type) {
    case PN_KEY_BOOL: snprintf(text, capacity, "true or false"); break;
    case PN_KEY_INT:
        snprintf(text, capacity, "%swhole number, %lld to %lld%s", words, (long long)key->imin, (long long)key->imax,
                 key->flags & PN_KEY_EMPTY ? ", or empty" : "");
        break;
    case PN_KEY_FLOAT: snprintf(text, capacity, "number, %g to %g", key->fmin, key->fmax); break;
    case PN_KEY_WORD: snprintf(text, capacity, "%s", words); break;
    case PN_KEY_NAME: snprintf(text, capacity, "name"); break;
    case PN_KEY_PATH:
    case PN_KEY_STRING:
        snprintf(text, capacity, "%s%s", key->type == PN_KEY_PATH ? "path" : "text",
                 key->flags & PN_KEY_LIST ? ", once per item" : "");
        break;
    }
    return text;
}

/* How much of a user's text goes into a message: 200 bytes at most, whole characters. */
static int shown(const char *text)
{
    size_t n = strlen(text);
    return (int)(n > 200 ? pn_utf8_valid(text, 200) : n);
}

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Edits (insert, delete, change, swap of neighbours) between two words, cut at MAX_WORD; case costs nothing. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX_WORD = 63 };
    size_t rows[3][MAX_WORD + 1], na = strnlen(a, MAX_WORD), nb = strnlen(b, MAX_WORD);
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    memset(rows, 0, sizeof rows);
    for (size_t j = 0; j <= nb; j++) last[j] = j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            bool same = lower(a[i - 1]) == lower(b[j - 1]);
            size_t best = last[j - 1] + !same;
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[nb];
}

static size_t key_distance(const pn_key *key, const char *word)
{
    char begin[64];
    size_t n = strcspn(word, ".");
    if (!(key->flags & PN_KEY_PREFIX)) return distance(key->key, word);
    if (!word[n]) return distance(key->key, word) + 1; /* a key that wants a dot is not what a word without one means */
    snprintf(begin, sizeof begin, "%.*s.", (int)(n < 60 ? n : 60), word);
    return distance(key->key, begin);
}

pn_status pn_key_check_section(const char *section, const char *where, pn_error *err)
{
    size_t best = 0, least = SIZE_MAX;
    for (size_t i = 0; i < N_SECTIONS; i++) {
        size_t d = distance(sections[i], section);
        if (strcmp(sections[i], section) == 0) return PN_OK;
        if (d < least) {
            best = i;
            least = d;
        }
    }
    return pn_fail(err, PN_E_CONFIG,
                   "%s: unknown section [%.*s]; the nearest known one is [%s] (known: model, plugins, arch, quant, "
                   "kernels, runtime, tokenizer, sampling, prompt)",
                   where, shown(section), section, sections[best]);
}

pn_status pn_key_unknown(const char *section, const char *key, const char *where, pn_error *err)
{
    const pn_key *nearest = NULL, *other = NULL;
    size_t least = SIZE_MAX, elsewhere = SIZE_MAX;
    if (*section) {
        pn_status status = pn_key_check_section(section, where, err);
        if (status != PN_OK) return status;
    }
    if (strcmp(section, "server") == 0)
        return pn_fail(err, PN_E_CONFIG,
                       "%s: [server] %.*s: the section is reserved for a later version, which will have a server; "
                       "remove its keys",
                       where, shown(key), key);
    for (size_t i = 0; i < N_KEYS; i++) {
        bool here = strcmp(table[i].section, section) == 0;
        size_t d = key_distance(&table[i], key);
        if (here && d < least) {
            nearest = &table[i];
            least = d;
        } else if (!here && d < elsewhere && *table[i].key) {
            other = &table[i];
            elsewhere = d;
        }
    }
    /* A key in the wrong section is likelier than one misspelt beyond recognition. */
    if (other && (!nearest || (elsewhere < least && elsewhere <= 1))) nearest = other;
    if (!*section)
        return pn_fail(err, PN_E_CONFIG,
                       "%s: key '%.*s' stands before any [section]; the nearest known key is '%s%s' of [%s]", where,
                       shown(key), key, nearest->key, nearest->rest ? nearest->rest : "", nearest->section);
    return pn_fail(err, PN_E_CONFIG, "%s: unknown key '%.*s' in [%s]; the nearest known key is '%s%s' of [%s]", where,
                   shown(key), key, section, nearest->key, nearest->rest ? nearest->rest : "", nearest->section);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A whole number of any size. */
static bool is_integer(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    return *p && !p[strspn(p, "0123456789")];
}

bool pn_key_parse_int(const char *text, int64_t *out)
{
    if (!is_integer(text)) return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    *out = value;
    return errno == 0;
}

/* [sign] digits [. digits] [e [sign] digits], or [sign] inf. */
static bool is_float(const char *p)
{
    size_t whole, part = 0;
    p += *p == '-' || *p == '+';
    if (strcmp(p, "inf") == 0) return true;
    whole = strspn(p, "0123456789");
    p += whole;
    if (*p == '.') {
        part = strspn(p + 1, "0123456789");
        p += part + 1;
    }
    if (whole + part == 0) return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        whole = strspn(p, "0123456789");
        p += whole;
        if (whole == 0) return false;
    }
    return !*p;
}

bool pn_key_parse_float(const char *text, double *out)
{
    locale_t plain;
    if (!is_float(text)) return false;
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a host program's locale may want a decimal comma */
    if (!plain) return false;
    *out = strtod_l(text, NULL, plain);
    freelocale(plain);
    return true;
}

static const char *bool_word(const char *value)
{
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(value, yes[i]) == 0) return "true";
        if (strcmp(value, no[i]) == 0) return "false";
    }
    return NULL;
}

static bool is_word(const char *words, const char *value)
{
    size_t size = strlen(value);
    for (const char *w = words; w && *w;) {
        size_t n = strcspn(w, " ");
        if (n == size && memcmp(w, value, n) == 0) return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

/* "nothing", "the whole number 5000", "'four'": what was found, for an error. */
static const char *found(const char *value, char *text, size_t capacity)
{
    double f;
    int cut = shown(value);
    const char *more = value[cut] ? "..." : "";
    if (!*value) snprintf(text, capacity, "nothing");
    else if (is_integer(value)) snprintf(text, capacity, "the whole number %.*s%s", cut, value, more);
    else if (pn_key_parse_float(value, &f)) snprintf(text, capacity, "the number %.*s%s", cut, value, more);
    else snprintf(text, capacity, "'%.*s'%s", cut, value, more);
    return text;
}

static pn_status wrong(const pn_key *key, const char *name, const char *value, const char *where, const char *what,
                       pn_error *err)
{
    char range[128], is[256];
    return pn_fail(err, PN_E_CONFIG, "%s: [%s] %.*s: %s; wanted: %s; found: %s", where, key->section, shown(name), name,
                   what, pn_key_range(key, range, sizeof range), found(value, is, sizeof is));
}

pn_status pn_key_check(const pn_key *key, const char *name, const char *value, const char *where,
                       const char **canonical, pn_error *err)
{
    int64_t i;
    double f;
    *canonical = value;
    if (key->flags & PN_KEY_NUMBERED) {
        const char *number = name + strlen(key->key);
        if (*number < '0' || *number > '9' || (*number == '0' && number[1]) || !pn_key_parse_int(number, &i) ||
            i > INT32_MAX)
            return pn_fail(err, PN_E_CONFIG, "%s: [%s] %.*s: after '%s' comes a whole number, 0 to 2147483647", where,
                           key->section, shown(name), name, key->key);
    }
    if (!*value && (key->flags & (PN_KEY_EMPTY | PN_KEY_LIST))) return PN_OK;
    switch (key->type) {
    case PN_KEY_BOOL:
        *canonical = bool_word(value);
        if (!*canonical) return wrong(key, name, value, where, "not a yes or no", err);
        break;
    case PN_KEY_INT:
        if (is_word(key->words, value)) break;
        if (!is_integer(value)) return wrong(key, name, value, where, "not a whole number", err);
        if (!pn_key_parse_int(value, &i) || i < key->imin || i > key->imax)
            return wrong(key, name, value, where, "out of range", err);
        break;
    case PN_KEY_FLOAT:
        if (!pn_key_parse_float(value, &f))
            return wrong(key, name, value, where,
                         strchr(value, ',') ? "not a number (the decimal sign is a dot)" : "not a number", err);
        if (f < key->fmin || f > key->fmax) return wrong(key, name, value, where, "out of range", err);
        break;
    case PN_KEY_WORD:
        if (!is_word(key->words, value)) return wrong(key, name, value, where, "unknown word", err);
        break;
    case PN_KEY_NAME:
        if (!*value) return wrong(key, name, value, where, "empty", err);
        break;
    case PN_KEY_STRING:
    case PN_KEY_PATH: break;
    }
    return PN_OK;
}

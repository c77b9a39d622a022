/* What the subcommands share: messages, setting up a runtime from the command line, input and output, Ctrl-C. */
#include "tool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- messages --------------------------------------------------------------------------------------------------- */

static void say(const char *kind, const char *message)
{
    fflush(stdout);     /* what was printed before belongs before it on a terminal */
    fprintf(stderr, "pantheon: %s", kind);
    tool_print_safe(stderr, message, strlen(message), true);
    fputc('\n', stderr);
}

static void say_list(const char *kind, const char *format, va_list ap)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, ap);
    say(kind, text);
}

int tool_fail(const pn_error *err)
{
    say("", err->message[0] ? err->message : pn_status_name(err->status));
    return 1;
}

int tool_failf(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say_list("", format, ap);
    va_end(ap);
    return 1;
}

void tool_say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say_list("", format, ap);
    va_end(ap);
}

int tool_usage(const char *command, const char *format, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    fflush(stdout);
    fprintf(stderr, "pantheon %s: ", command);
    tool_print_safe(stderr, text, strlen(text), true);
    fprintf(stderr, "\nsee 'pantheon %s --help'\n", command);
    return 2;
}

void tool_say_kernels(const pn_session *session)
{
    size_t n = pn_session_describe(session, NULL, 0);
    char *text = malloc(n + 1);
    if (text) {
        pn_session_describe(session, text, n + 1);
        tool_print_safe(stderr, text, n, true);
    }
    free(text);
}

/* Edit distance (insert, delete, replace, swap of neighbours = 1 each), bounded by the length of the names we have. */
static size_t distance(const char *a, const char *b)
{
    enum { MOST = 32 };
    size_t rows[3][MOST + 1], n = strlen(a), m = strlen(b);
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    if (n > MOST || m > MOST)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *spare = before;
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        before = last;
        last = now;
        now = spare;
    }
    return last[m];
}

const char *tool_nearest(const char *text, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    size_t best = strlen(text) < 4 ? 2 : 3;     /* a distance below this is near */
    if (!*text)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(text, names[i]);
        if (d < best) {
            best = d;
            nearest = names[i];
        }
    }
    for (size_t i = 0; i < n && !nearest; i++)
        if (strlen(text) >= 3 && strncmp(names[i], text, strlen(text)) == 0)
            nearest = names[i];
    return nearest;
}

/* ---- setting up ------------------------------------------------------------------------------------------------- */

int tool_setup_begin(tool_setup *s)
{
    pn_error err = { 0 };
    *s = (tool_setup){ 0 };
    return pn_config_create(&s->config, &err) != PN_OK ? tool_fail(&err) : 0;
}

/* Returns the new entry, or NULL after printing why. */
static tool_set *add_set(tool_setup *s)
{
    tool_set *more = realloc(s->sets, (s->n_sets + 1) * sizeof *more);
    if (!more) {
        tool_failf("no memory for the command line's settings");
        return NULL;
    }
    s->sets = more;
    more[s->n_sets] = (tool_set){ 0 };
    return &more[s->n_sets++];
}

int tool_setup_set(tool_setup *s, const char *name, const char *value, const char *option)
{
    tool_set *set = add_set(s);
    if (!set)
        return 1;
    set->name = name;
    set->value = value;
    set->option = option;
    return -1;
}

int tool_option(tool_setup *s, const char *command, int option, const char *argument)
{
    tool_set *set;
    const char *equals;
    switch (option) {
    case 'c':
        if (s->ini)
            return tool_usage(command, "-c is given twice ('%s' and '%s'); a file can take in another with 'include ='",
                              s->ini, argument);
        s->ini = argument;
        return -1;
    case 't':
        return tool_setup_set(s, "runtime.threads", argument, "-t");
    case 'v':
        s->verbose++;
        return -1;
    case TOOL_SET:
        equals = strchr(argument, '=');
        if (!equals || equals == argument || !memchr(argument, '.', (size_t)(equals - argument)))
            return tool_usage(command, "--set %s: wanted section.key=value, for instance --set runtime.threads=4",
                              argument);
        set = add_set(s);
        if (!set)
            return 1;
        set->owned = strndup(argument, (size_t)(equals - argument));
        if (!set->owned)
            return tool_failf("no memory for the command line's settings");
        set->name = set->owned;
        set->value = equals + 1;
        set->option = "--set";
        return -1;
    case '?':
        fprintf(stderr, "see 'pantheon %s --help'\n", command);
        return 2;
    default:
        return 0;
    }
}

static void print_log(void *arg, uint32_t level, const char *message)
{
    /* From any thread: lines must not mix. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const tool_setup *s = arg;
    if (level < PN_LOG_WARN && (s->verbose < 1 || (level < PN_LOG_INFO && s->verbose < 2)))
        return;
    pthread_mutex_lock(&lock);
    say(level >= PN_LOG_WARN ? "warning: " : "", message);
    pthread_mutex_unlock(&lock);
}

int tool_setup_config(tool_setup *s)
{
    pn_error err = { 0 };
    if (s->configured)
        return 0;
    if (s->ini && pn_config_load(s->config, s->ini, &err) != PN_OK)
        return tool_fail(&err);
    for (size_t i = 0; i < s->n_sets; i++) {
        const tool_set *set = &s->sets[i];
        if (pn_config_set(s->config, set->name, set->value, &err) != PN_OK) {
            pn_error_wrap(&err, "%s", set->option);
            tool_fail(&err);
            return err.status == PN_E_NOMEM ? 1 : 2;
        }
    }
    s->configured = true;
    return 0;
}

int tool_setup_runtime(tool_setup *s)
{
    pn_error err = { 0 };
    pn_runtime_options options = PN_OPTIONS_INIT(pn_runtime_options);
    int status = tool_setup_config(s);
    if (status)
        return status;
    options.log = print_log;
    options.log_arg = s;
    return pn_runtime_create(s->config, &options, &s->runtime, &err) != PN_OK ? tool_fail(&err) : 0;
}

void tool_setup_end(tool_setup *s)
{
    pn_runtime_destroy(s->runtime);
    pn_config_destroy(s->config);
    for (size_t i = 0; i < s->n_sets; i++)
        free(s->sets[i].owned);
    free(s->sets);
    *s = (tool_setup){ 0 };
}

uint32_t tool_origin(const pn_config *config, const char *section, const char *key)
{
    pn_config_entry e = PN_OPTIONS_INIT(pn_config_entry);
    for (size_t i = 0; pn_config_entry_at(config, i, &e, NULL) == PN_OK; i++)
        if (strcmp(e.section, section) == 0 && strcmp(e.key, key) == 0)
            return e.origin;
    return PN_ORIGIN_DEFAULT;
}

int tool_integer(const char *command, const char *option, const char *text, int64_t least, int64_t most, int64_t *out)
{
    char *end;
    long long v;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (end == text || *end)
        return tool_usage(command, "%s: '%s' is no whole number", option, text);
    if (errno || v < least || v > most)
        return tool_usage(command, "%s: %s lies outside %lld .. %lld", option, text, (long long)least, (long long)most);
    *out = v;
    return 0;
}

/* ---- input and output ------------------------------------------------------------------------------------------- */

char *tool_read_all(FILE *stream, const char *name, size_t *size)
{
    size_t n = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    while (text) {
        size_t got = fread(text + n, 1, capacity - n - 1, stream);
        n += got;
        if (got == 0)
            break;
        if (capacity - n - 1 == 0) {
            char *more = capacity <= SIZE_MAX / 2 ? realloc(text, capacity * 2) : NULL;
            if (!more) {
                free(text);
                text = NULL;
                break;
            }
            text = more;
            capacity *= 2;
        }
    }
    if (!text) {
        tool_failf("%s: no memory for more than %zu bytes of it", name, n);
        return NULL;
    }
    if (ferror(stream)) {
        tool_failf("%s: cannot read: %s", name, strerror(errno));
        free(text);
        return NULL;
    }
    text[n] = 0;
    *size = n;
    return text;
}

char *tool_read_file(const char *path, size_t *size)
{
    FILE *f;
    char *text;
    if (strcmp(path, "-") == 0)
        return tool_read_all(stdin, "standard input", size);
    f = fopen(path, "rb");
    if (!f) {
        tool_failf("%s: cannot open: %s", path, strerror(errno));
        return NULL;
    }
    text = tool_read_all(f, path, size);
    fclose(f);
    return text;
}

static int output_errno;    /* of the first write to stdout that failed */

int tool_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    if (!output_errno)
        output_errno = errno;
    return -1;
}

/* A write that failed inside the C library left no errno behind; a pipe without a reader still shows. */
static bool reader_is_gone(void)
{
    struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

int tool_finish(void)
{
    static bool told;
    if (tool_flush() == 0)
        return 0;
    if (!told && output_errno != EPIPE && (output_errno || !reader_is_gone()))
        tool_failf("standard output: cannot write: %s", output_errno ? strerror(output_errno) : "it failed before");
    told = true;
    return 1;
}

void tool_json_string(FILE *out, const char *text, size_t size)
{
    fputc('"', out);
    for (size_t i = 0; i < size;) {
        uint32_t c;
        int n = tool_utf8_next(text + i, size - i, &c);
        if (n <= 0) {
            fputs("\xEF\xBF\xBD", out);
            i += n < 0 ? (size_t)-n : size - i;
            continue;
        }
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", (int)c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c < 0x20 || c == 0x7F)
            fprintf(out, "\\u%04x", (unsigned)c);
        else
            fwrite(text + i, 1, (size_t)n, out);
        i += (size_t)n;
    }
    fputc('"', out);
}

/* Characters that make a terminal do something, or reorder what is read: controls, line ends, direction overrides. */
static bool harmful(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

void tool_print_safe(FILE *out, const char *text, size_t size, bool keep)
{
    for (size_t i = 0; i < size;) {
        uint32_t c;
        int n = tool_utf8_next(text + i, size - i, &c);
        if (n <= 0) {
            fputs("\xEF\xBF\xBD", out);
            i += n < 0 ? (size_t)-n : size - i;
            continue;
        }
        if (!harmful(c) || (keep && (c == '\n' || c == '\t')))
            fwrite(text + i, 1, (size_t)n, out);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c == '\r')
            fputs("\\r", out);
        else if (c < 0x100)
            fprintf(out, "\\x%02x", (unsigned)c);
        else
            fprintf(out, "\\u%04x", (unsigned)c);
        i += (size_t)n;
    }
}

double tool_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t tool_peak_memory(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

/* ---- Ctrl-C ----------------------------------------------------------------------------------------------------- */

static atomic_int interrupted;      /* written by the handler, read by threads that evaluate */

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    atomic_store(&interrupted, 1);
}

void tool_interrupt_catch(bool on)
{
    struct sigaction a = { 0 };
    sigemptyset(&a.sa_mask);
    atomic_store(&interrupted, 0);
    a.sa_handler = on ? note_interrupt : SIG_DFL;
    /* After the first one the usual effect is back, so that a program that does not react can be ended. */
    a.sa_flags = on ? (int)(SA_RESETHAND | SA_RESTART) : 0;
    sigaction(SIGINT, &a, NULL);
}

void tool_interrupt_on_term(void)
{
    struct sigaction a = { 0 };
    sigemptyset(&a.sa_mask);
    a.sa_handler = note_interrupt;
    a.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    sigaction(SIGTERM, &a, NULL);
}

bool tool_interrupted(void)
{
    return atomic_load(&interrupted) != 0;
}

int tool_cancelled(void *unused)
{
    (void)unused;
    return atomic_load(&interrupted) != 0;
}

/* Lines that the user types: editing and history through libedit on a terminal, plain lines otherwise. */
#include "line.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

struct line_reader {
    EditLine *el;               /* NULL: no terminal */
    History *history;
    char *path;                 /* of the history file; NULL: kept nowhere */
    const char *prompt;
    bool cancelled;             /* Ctrl-C was typed */
    char *line;                 /* what line_read gave last */
    size_t capacity;
};

enum { HISTORY_LINES = 1000 };

/* ---- the history file ------------------------------------------------------------------------------------------- */

/* Make the folders of a path that lacks them, for the user alone. */
static void make_folders(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        (void)mkdir(path, 0700);    /* when it fails, so does opening the file, which is then said */
        *p = '/';
    }
}

static char *history_path(const char *name)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool own = state && *state == '/';     /* the standard says: relative ones are ignored */
    size_t n;
    char *path;
    if (!own && (!home || *home != '/'))
        return NULL;
    n = strlen(own ? state : home) + strlen("/.local/state/pantheon/") + strlen(name) + 1;
    path = malloc(n);
    if (path)
        snprintf(path, n, "%s%s/pantheon/%s", own ? state : home, own ? "" : "/.local/state", name);
    return path;
}

/* Written beside it and moved there, so that a crash or a full disk leaves the old one. */
static void save_history(line_reader *r)
{
    HistEvent event;
    size_t n = strlen(r->path) + 8;
    char *temporary = malloc(n);
    FILE *f = NULL;
    int fd;
    if (!temporary)
        return;
    make_folders(r->path);
    snprintf(temporary, n, "%s.XXXXXX", r->path);
    fd = mkstemp(temporary);        /* mode 0600 */
    if (fd >= 0)
        f = fdopen(fd, "w");
    if (!f || history(r->history, &event, H_SAVE_FP, f) < 0 || fflush(f) != 0 || rename(temporary, r->path) != 0) {
        tool_say("warning: %s: the history cannot be kept: %s", r->path, strerror(errno));
        if (fd >= 0)
            unlink(temporary);
    }
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    free(temporary);
}

/* ---- the terminal ----------------------------------------------------------------------------------------------- */

static char *prompt_text(EditLine *el)
{
    line_reader *r = NULL;
    el_get(el, EL_CLIENTDATA, &r);
    /* libedit does not write to it */
    return (char *)(uintptr_t)r->prompt;
}

static unsigned char cancel(EditLine *el, int key)
{
    line_reader *r = NULL;
    (void)key;
    el_get(el, EL_CLIENTDATA, &r);
    r->cancelled = true;
    return CC_NEWLINE;
}

static bool open_terminal(line_reader *r, const char *history_name)
{
    HistEvent event;
    FILE *shown = isatty(STDOUT_FILENO) ? stdout : stderr;
    /* Characters of several bytes are edited as one; numbers keep their decimal point. */
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    r->el = el_init("pantheon", stdin, shown, stderr);
    r->history = history_init();
    if (!r->el || !r->history)
        return false;
    history(r->history, &event, H_SETSIZE, HISTORY_LINES);
    history(r->history, &event, H_SETUNIQUE, 1);
    el_set(r->el, EL_CLIENTDATA, r);
    el_set(r->el, EL_PROMPT, prompt_text);
    el_set(r->el, EL_EDITOR, "emacs");
    el_set(r->el, EL_SIGNAL, 1);
    el_set(r->el, EL_HIST, history, r->history);
    /* The wide form keeps the pointers; the narrow one copies them and forgets the copies. */
    el_wset(r->el, EL_ADDFN, L"pantheon-cancel", L"forget the line", cancel);
    el_set(r->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(r->el, NULL);
    el_set(r->el, EL_BIND, "^C", "pantheon-cancel", NULL);
    r->path = history_path(history_name);
    if (r->path)
        history(r->history, &event, H_LOAD, r->path);   /* a first time has none */
    return true;
}

line_reader *line_open(const char *history_name)
{
    line_reader *r = calloc(1, sizeof *r);
    if (r && isatty(STDIN_FILENO) && !open_terminal(r, history_name)) {
        line_close(r);
        r = NULL;
    }
    if (!r)
        tool_failf("no memory for reading lines, or a terminal that cannot be used");
    return r;
}

bool line_interactive(const line_reader *r)
{
    return r->el != NULL;
}

void line_close(line_reader *r)
{
    if (!r)
        return;
    if (r->history && r->path)
        save_history(r);
    if (r->el)
        el_end(r->el);
    if (r->history)
        history_end(r->history);
    free(r->path);
    free(r->line);
    free(r);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int keep(line_reader *r, size_t at, const char *text, size_t n)
{
    if (at + n + 1 > r->capacity) {
        char *more = realloc(r->line, (at + n + 1) * 2);
        if (!more) {
            tool_failf("no memory for a line of %zu bytes", at + n);
            return LINE_FAILED;
        }
        r->line = more;
        r->capacity = (at + n + 1) * 2;
    }
    memcpy(r->line + at, text, n);
    r->line[at + n] = 0;
    return LINE_OK;
}

/* While a line is edited Ctrl-C is a key, otherwise a signal. libedit takes over what it finds set when it begins. */
static const char *edit(line_reader *r, int *count)
{
    struct termios before, now;
    const char *text;
    bool known = tcgetattr(STDIN_FILENO, &before) == 0;
    if (known) {
        now = before;
        now.c_cc[VINTR] = _POSIX_VDISABLE;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
    }
    text = el_gets(r->el, count);
    if (known)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return text;
}

static int read_terminal(line_reader *r, const char *prompt, char **out)
{
    HistEvent event;
    size_t size = 0;
    bool more = true;
    r->prompt = prompt;
    while (more) {
        int count = 0;
        const char *text = edit(r, &count);
        size_t n = text && count > 0 ? strlen(text) : 0;
        if (r->cancelled) {
            r->cancelled = false;
            fputs("^C\n", stderr);
            return LINE_INTERRUPTED;
        }
        if (n == 0) {
            fputc('\n', stderr);
            return LINE_END;
        }
        if (text[n - 1] == '\n')
            n--;
        more = n > 0 && text[n - 1] == '\\';
        if (keep(r, size, text, n) != LINE_OK)
            return LINE_FAILED;
        size += n;
        if (more)
            r->line[size - 1] = '\n';
        r->prompt = ". ";
    }
    if (size > 0)
        history(r->history, &event, H_ENTER, r->line);
    *out = r->line;
    return LINE_OK;
}

int line_read(line_reader *r, const char *prompt, char **out)
{
    ssize_t n;
    if (r->el)
        return read_terminal(r, prompt, out);
    n = getline(&r->line, &r->capacity, stdin);
    if (n < 0) {
        if (feof(stdin))
            return LINE_END;
        tool_failf("standard input: cannot read: %s", strerror(errno));
        return LINE_FAILED;
    }
    if (n > 0 && r->line[n - 1] == '\n')
        r->line[--n] = 0;
    if (n > 0 && r->line[n - 1] == '\r')
        r->line[--n] = 0;
    *out = r->line;
    return LINE_OK;
}

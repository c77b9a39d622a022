/* What the subcommands of the `pantheon` program share. One file per subcommand: tools/cmd_NAME.c holds
 * `int cmd_NAME(argc, argv)` (argv[0] is the subcommand's name) and its help text; tools/main.c has the table;
 * tools/common.c has the functions below, tools/stream.c the part on UTF-8.
 *
 * Exit status: 0 success, 1 failure, 2 usage, 130 stopped by Ctrl-C. Results go to stdout, all else to stderr. */
#ifndef PN_TOOL_H
#define PN_TOOL_H

#include <pantheon/pantheon.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct tool_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;        /* one line for `pantheon --help` */
} tool_command;

int cmd_run(int argc, char **argv);
int cmd_chat(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_tokenize(int argc, char **argv);
int cmd_detokenize(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_dequant(int argc, char **argv);
int cmd_plugins(int argc, char **argv);
int cmd_why_not(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_quantize(int argc, char **argv);
int cmd_importance(int argc, char **argv);
int cmd_perplexity(int argc, char **argv);

/* ---- messages --------------------------------------------------------------------------------------------------- */

/* Print "pantheon: MESSAGE" to stderr; returns 1. Control characters of names found in files are made visible. */
int tool_fail(const pn_error *err);
int tool_failf(const char *format, ...) PN_PRINTF(1, 2);
/* Print "pantheon: MESSAGE" to stderr and go on. */
void tool_say(const char *format, ...) PN_PRINTF(1, 2);
/* Which kernel each weight uses, to stderr. */
void tool_say_kernels(const pn_session *session);
/* Print "pantheon COMMAND: MESSAGE" and "see pantheon COMMAND --help" to stderr; returns 2. */
int tool_usage(const char *command, const char *format, ...) PN_PRINTF(2, 3);
/* The name nearest to `text`, or NULL when none is near. */
const char *tool_nearest(const char *text, const char *const *names, size_t n);

/* ---- setting up ------------------------------------------------------------------------------------------------- */

typedef struct tool_set {
    const char *name;           /* "section.key"; memory of the caller, or of `owned` */
    const char *value;
    const char *option;         /* as the user wrote it, for messages: "--temp", "--set" */
    char *owned;
} tool_set;

/* Options that most subcommands take; parse with tool_option in the subcommand's getopt_long loop. */
typedef struct tool_setup {
    pn_config *config;          /* made by tool_setup_begin */
    pn_runtime *runtime;        /* made by tool_setup_runtime */
    int verbose;                /* -v: once or more; the logger prints INFO from 1, DEBUG from 2; WARN always */
    const char *ini;            /* -c FILE, or NULL */
    tool_set *sets;             /* what the command line sets, in its order */
    size_t n_sets;
    bool configured;            /* tool_setup_config is done */
} tool_setup;

/* Short options "c:t:v" and these long ones belong to tool_option. Use: TOOL_OPTIONS in the option string,
 * TOOL_LONG_OPTIONS first in the long table. --set section.key=value may repeat. -c FILE loads an INI. -t N sets
 * runtime.threads. -h is left to the subcommand, which prints its help to stdout. */
#define TOOL_OPTIONS "c:t:vh"
#define TOOL_LONG_OPTIONS                                                                                              \
    { "config", required_argument, NULL, 'c' }, { "threads", required_argument, NULL, 't' },                           \
    { "verbose", no_argument, NULL, 'v' }, { "help", no_argument, NULL, 'h' },                                         \
    { "set", required_argument, NULL, TOOL_SET }
enum { TOOL_SET = 1000, TOOL_FIRST = 1001 /* first value free for a subcommand's own long options */ };

/* 0 = fine; else the exit status to return. */
int tool_setup_begin(tool_setup *s);
/* Handles one getopt result: returns -1 when handled, 0 when not one of ours (-h is not), 1 or 2 = exit status (message
 * printed). */
int tool_option(tool_setup *s, const char *command, int option, const char *argument);
/* Note a value that a subcommand's own option sets; applied after the INI. -1, or 1 = exit status (message printed). */
int tool_setup_set(tool_setup *s, const char *name, const char *value, const char *option);
/* Load the INI and then the values from the command line into s->config. 0, or the exit status. */
int tool_setup_config(tool_setup *s);
/* The same if it is not done yet, and create the runtime, with a logger to stderr. 0, or the exit status. */
int tool_setup_runtime(tool_setup *s);
void tool_setup_end(tool_setup *s);
/* Where the effective value of a key came from: PN_ORIGIN_*. */
uint32_t tool_origin(const pn_config *config, const char *section, const char *key);

/* A whole number between `least` and `most` from the text of an option. 0 and *out set, or 2 after printing why. */
int tool_integer(const char *command, const char *option, const char *text, int64_t least, int64_t most, int64_t *out);

/* ---- input and output ------------------------------------------------------------------------------------------- */

/* All of a stream into memory (malloc, terminated); NULL after printing why. */
char *tool_read_all(FILE *stream, const char *name, size_t *size);
/* The same for a file by its path, "-" being standard input. */
char *tool_read_file(const char *path, size_t *size);
/* Flush stdout; 0, or -1 when that, or a write before, failed: tool_finish will say why. */
int tool_flush(void);
/* Flush stdout; 0, or 1 after saying why not (full disk; a closed pipe is not worth words). Every subcommand returns
 * through this. */
int tool_finish(void);
/* A JSON string with quotes and escapes; invalid UTF-8 becomes U+FFFD. */
void tool_json_string(FILE *out, const char *text, size_t size);
/* Text for a terminal: control characters (escape sequences hidden in metadata) become visible escapes and invalid
 * UTF-8 U+FFFD; newline and tab are kept if `keep`. */
void tool_print_safe(FILE *out, const char *text, size_t size, bool keep);
/* The first character of s[0..n-1], n > 0: its length, or minus the length of an invalid part, or 0 when the bytes
 * begin a character that goes on after them. `code` may be NULL. */
int tool_utf8_next(const char *s, size_t n, uint32_t *code);

/* Seconds of a clock that only goes forward; the most memory this process has had, in bytes. */
double tool_clock(void);
uint64_t tool_peak_memory(void);

/* ---- Ctrl-C ----------------------------------------------------------------------------------------------------- */

enum { TOOL_INTERRUPTED = 130 };    /* exit status */
/* From now on the first Ctrl-C is only noted, and the next one kills. `on` = false: back to the usual effect. */
void tool_interrupt_catch(bool on);
/* The same for SIGTERM, for commands that must not leave a file behind. */
void tool_interrupt_on_term(void);
bool tool_interrupted(void);
/* The same as a pn_session_options.cancelled. */
int tool_cancelled(void *unused);

#endif

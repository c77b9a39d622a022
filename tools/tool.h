/* What the subcommands of the `pantheon` program share. One file per subcommand: tools/cmd_NAME.c holds `int cmd_NAME(argc, argv)` (argv[0] is the
 * subcommand's name) and its help text; tools/main.c has the table; tools/common.c has the functions below.
 *
 * Exit status: 0 success, 1 failure, 2 usage. Results go to stdout, everything else to stderr. */
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

/* Print "pantheon: MESSAGE" to stderr; returns 1. */
int tool_fail(const pn_error *err);
int tool_failf(const char *format, ...) PN_PRINTF(1, 2);
/* Print "pantheon COMMAND: MESSAGE" and "see pantheon COMMAND --help" to stderr; returns 2. */
int tool_usage(const char *command, const char *format, ...) PN_PRINTF(2, 3);

/* Options that most subcommands take; parse with tool_option in the subcommand's getopt_long loop. */
typedef struct tool_setup {
    pn_config *config;          /* made by tool_setup_begin */
    pn_runtime *runtime;        /* made by tool_setup_runtime */
    int verbose;                /* -v: once or more; the logger prints INFO from 1, DEBUG from 2; WARN always */
    const char *ini;            /* -c FILE, or NULL */
} tool_setup;

/* Short options "c:t:v" and these long ones belong to tool_option. Use: TOOL_OPTIONS in the option string, TOOL_LONG_OPTIONS first in the
 * long table. --set section.key=value may repeat. -c FILE loads an INI. -t N sets runtime.threads. */
#define TOOL_OPTIONS "c:t:vh"
#define TOOL_LONG_OPTIONS                                                                                                  \
    { "config", required_argument, NULL, 'c' }, { "threads", required_argument, NULL, 't' },                               \
    { "verbose", no_argument, NULL, 'v' }, { "help", no_argument, NULL, 'h' }, { "set", required_argument, NULL, TOOL_SET }
enum { TOOL_SET = 1000, TOOL_FIRST = 1001 /* first value free for a subcommand's own long options */ };

/* 0 = fine; else the exit status to return. */
int tool_setup_begin(tool_setup *s);
/* Handles one getopt result: returns -1 when handled, 0 when not one of ours, 1 or 2 = exit status (message printed). */
int tool_option(tool_setup *s, const char *command, int option, const char *argument);
/* Load the INI and the --set values (in precedence order) into s->config and create the runtime, with a logger that prints to stderr.
 * 0, or the exit status. */
int tool_setup_runtime(tool_setup *s);
void tool_setup_end(tool_setup *s);

/* All of a stream into memory (malloc, terminated); NULL after printing why. */
char *tool_read_all(FILE *stream, const char *name, size_t *size);
/* Flush stdout; 0, or 1 after saying why not (full disk, closed pipe). Every subcommand returns through this. */
int tool_finish(void);
/* A JSON string with quotes and escapes; invalid UTF-8 becomes U+FFFD. */
void tool_json_string(FILE *out, const char *text, size_t size);
/* Text for a terminal: control characters (escape sequences hidden in metadata) become visible escapes; newline and tab are kept if `keep`. */
void tool_print_safe(FILE *out, const char *text, size_t size, bool keep);

#endif

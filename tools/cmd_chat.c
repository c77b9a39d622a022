/* `pantheon chat`: a conversation that keeps what was evaluated between turns. */
#include "generate.h"
#include "line.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: pantheon chat [-c FILE.ini | MODEL] [OPTIONS]\n\n"
    "A conversation: each line is a message, each answer ends with a newline. On a terminal lines are edited and kept\n"
    "in a history, and one that ends with a backslash goes on in the next; else they are read as they come.\n"
    "Ctrl-C ends an answer, Ctrl-D the conversation.\n\n"
    "  --system TEXT        system message ([prompt] system)\n"
    "  --template NAME      chat template in place of the model's own ([prompt] template)\n";

static const char COMMANDS[] =
    "/help           this text\n"
    "/reset          forget the conversation (the system message stays)\n"
    "/system TEXT    another system message, and forget the conversation; without TEXT show it; '-': the first one\n"
    "/stats          how full the context is, and the speed of the last answer\n"
    "/quit           end (so does Ctrl-D)\n"
    "A message that begins with a slash is written with two: //like this.\n";

typedef struct chat {
    generator g;
    line_reader *lines;
    pn_message *messages;       /* contents are malloc'd; the first may be the one of /system */
    size_t n, capacity;
    size_t rendered;            /* messages[0 .. rendered-1] are in the session, but for `tail` */
    pn_ids tail;                /* evaluated before the next message: what ends the last answer's turn */
    pn_ids closing;             /* what the template writes after an answer; empty: just the end token */
    bool failed;                /* a message was not answered */
} chat;

/* ---- messages --------------------------------------------------------------------------------------------------- */

/* 0, or 1 after printing why. */
static int add_message(chat *c, const char *role, const char *text, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy && c->n == c->capacity) {
        size_t capacity = c->capacity * 2 + 8;
        pn_message *more = realloc(c->messages, capacity * sizeof *more);
        if (more) {
            c->messages = more;
            c->capacity = capacity;
        }
    }
    if (!copy || c->n == c->capacity) {
        free(copy);
        return tool_failf("no memory for a message of %zu bytes", size);
    }
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = 0;
    c->messages[c->n++] = (pn_message){ pn_str_from(role), { copy, size } };
    return 0;
}

static void drop_messages(chat *c, size_t n)
{
    while (c->n > n)
        free((char *)(uintptr_t)c->messages[--c->n].content.data);
}

static bool has_system(const chat *c)
{
    return c->n > 0 && pn_str_is(c->messages[0].role, "system");
}

/* Forget the conversation but for the system message. 0, or the exit status. */
static int reset(chat *c)
{
    pn_error err = { 0 };
    drop_messages(c, has_system(c));
    c->rendered = 0;
    c->tail.count = 0;
    if (pn_session_trim(c->g.session, 0, 0, &err) != PN_OK)
        return tool_fail(&err);
    return generate_sampler(&c->g);
}

static int set_system(chat *c, const char *text)
{
    drop_messages(c, 0);
    if (*text && add_message(c, "system", text, strlen(text)) != 0)
        return 1;
    return reset(c);
}

/* What the template writes after an answer, found by rendering an empty one and taking away its opening. */
static int find_closing(chat *c)
{
    pn_error err = { 0 };
    pn_message sample[2] = { { pn_str_from("user"), pn_str_from("a") }, { pn_str_from("assistant"), { "", 0 } } };
    pn_ids opening = { 0 }, whole = { 0 };
    int status = 0;
    if (pn_prompt_render(c->g.prompt, sample, 1, 1, 1, &opening, &err) != PN_OK ||
        pn_prompt_render(c->g.prompt, sample, 2, 1, 0, &whole, &err) != PN_OK)
        status = tool_fail(&err);
    else if (whole.count > opening.count &&
             (opening.count == 0 || memcmp(whole.data, opening.data, opening.count * sizeof *whole.data) == 0) &&
             pn_ids_push(&c->closing, whole.data + opening.count, whole.count - opening.count, &err) != PN_OK)
        status = tool_fail(&err);
    pn_ids_free(&opening);
    pn_ids_free(&whole);
    return status;
}

/* The end of the answer's turn, to be evaluated with the next message. The end token counts once, and another end token
 * than the template's is left out. */
static int make_tail(chat *c, int reason)
{
    pn_error err = { 0 };
    bool own_end = reason != GENERATE_ENDED || c->closing.count == 0;
    c->tail.count = 0;
    if ((own_end && c->g.pending >= 0 && pn_ids_push(&c->tail, &c->g.pending, 1, &err) != PN_OK) ||
        (c->closing.count > 0 && pn_ids_push(&c->tail, c->closing.data, c->closing.count, &err) != PN_OK))
        return tool_fail(&err);
    return 0;
}

/* ---- a turn ----------------------------------------------------------------------------------------------------- */

/* All that the next answer needs, or 1 after printing why. */
static int make_input(chat *c, pn_ids *ids)
{
    pn_error err = { 0 };
    size_t used = (size_t)pn_session_length(c->g.session, 0), context = (size_t)pn_session_context(c->g.session);
    if ((c->tail.count > 0 && pn_ids_push(ids, c->tail.data, c->tail.count, &err) != PN_OK) ||
        pn_prompt_render(c->g.prompt, c->messages, c->n, c->rendered, 1, ids, &err) != PN_OK)
        return tool_fail(&err);
    switch (generate_make_room(&c->g, ids->count + 1, &err)) {
    case 0: return 0;
    case GENERATE_FAILED: return tool_fail(&err);
    default: break;
    }
    return tool_failf("the message needs %zu tokens, and of the context of %zu only %zu are left: it was not sent. "
                      "/reset begins anew; --context N makes room for more", ids->count, context, context - used);
}

/* Say what ended the answer, where that is worth words. */
static void explain(chat *c, int reason, const pn_error *err)
{
    if (reason == GENERATE_FAILED)
        tool_fail(err);
    else if (reason == GENERATE_FULL)
        tool_say("the context of %d tokens is full, and the answer ends here: /reset begins anew",
                 (int)pn_session_context(c->g.session));
    else if (reason == GENERATE_CANCELLED && line_interactive(c->lines))
        tool_say("stopped");
    if (c->g.setup->verbose)
        generate_report(&c->g, false);
}

/* 0 to go on, or the exit status. */
static int answer(chat *c, const char *text)
{
    pn_error err = { 0 };
    pn_ids ids = { 0 };
    int reason;
    if (add_message(c, "user", text, strlen(text)) != 0)
        return 1;
    if (make_input(c, &ids) != 0) {
        pn_ids_free(&ids);
        drop_messages(c, c->n - 1);
        c->failed = true;
        return 0;
    }
    c->g.answer_size = 0;
    tool_interrupt_catch(true);
    reason = generate_text(&c->g, ids.data, ids.count, false, &err);
    tool_interrupt_catch(false);
    pn_ids_free(&ids);
    if (c->g.wrote || c->g.answer_size == 0)
        putchar('\n');
    if (tool_finish() != 0)
        return 1;
    explain(c, reason, &err);
    c->failed |= reason == GENERATE_FAILED;
    if (reason == GENERATE_UNWRITABLE)
        return tool_failf("no memory for the answer");
    if (c->g.made == 0 && (reason == GENERATE_CANCELLED || reason == GENERATE_FAILED)) {
        drop_messages(c, c->n - 1);     /* the session is as before */
    } else {
        if (add_message(c, "assistant", c->g.answer, c->g.answer_size) != 0 || make_tail(c, reason) != 0)
            return 1;
        c->rendered = c->n;
    }
    return reason == GENERATE_CANCELLED && !line_interactive(c->lines) ? TOOL_INTERRUPTED : 0;
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

enum { QUIT = -1 };

static void show_stats(const chat *c)
{
    tool_say("%zu messages; %d of %d tokens of the context are used; template: %s", c->n,
             (int)(pn_session_length(c->g.session, 0) + (int32_t)c->tail.count), (int)pn_session_context(c->g.session),
             pn_prompt_name(c->g.prompt));
    if (c->g.prompt_tokens > 0)
        generate_report(&c->g, true);
}

/* 0 to go on, QUIT, or the exit status. */
static int command(chat *c, char *line)
{
    static const char *const names[] = { "/help", "/reset", "/system", "/stats", "/quit", "/exit" };
    char *rest = line + strcspn(line, " \t");
    const char *near, *text;
    if (*rest) {
        *rest++ = 0;
        rest += strspn(rest, " \t");
    }
    if (strcmp(line, "/system") == 0) {
        if (*rest)
            return set_system(c, strcmp(rest, "-") == 0 ? "" : rest);
        text = has_system(c) ? c->messages[0].content.data
                             : pn_config_text(pn_runtime_config(c->g.setup->runtime), "prompt", "system");
        if (*text)
            tool_say("system message: %s", text);
        else
            tool_say("no system message is set; the template may have its own");
        return 0;
    }
    if (strcmp(line, "/help") == 0)
        fputs(COMMANDS, stderr);
    else if (strcmp(line, "/reset") == 0)
        return reset(c);
    else if (strcmp(line, "/stats") == 0)
        show_stats(c);
    else if (strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0)
        return QUIT;
    else {
        near = tool_nearest(line, names, sizeof names / sizeof *names);
        tool_failf("no command is called '%s'%s%s%s (/help lists them; a message that begins with a slash needs two)",
                   line, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        c->failed = true;
    }
    return 0;
}

static int converse(chat *c)
{
    char *line;
    int status = 0, got;
    if (line_interactive(c->lines))
        tool_say("%s, context %d. /help lists the commands, Ctrl-D ends.", pn_file_path(pn_model_file(c->g.model)),
                 (int)pn_session_context(c->g.session));
    while (!status) {
        got = line_read(c->lines, "> ", &line);
        if (got == LINE_INTERRUPTED)
            continue;
        if (got != LINE_OK)
            return got == LINE_FAILED ? 1 : 0;
        if (line[strspn(line, " \t")] == 0)
            continue;
        if (line[0] == '/' && line[1] != '/')
            status = command(c, line);
        else
            status = answer(c, line[0] == '/' ? line + 1 : line);
    }
    return status == QUIT ? 0 : status;
}

/* ---- the subcommand --------------------------------------------------------------------------------------------- */

static int parse(tool_setup *setup, const char **model, int argc, char **argv)
{
    static const struct option table[] = { GENERATE_LONG_OPTIONS, { 0 } };
    int c, status;
    while ((c = getopt_long(argc, argv, GENERATE_OPTIONS, table, NULL)) != -1) {
        status = generate_option(setup, "chat", c, optarg);
        if (status == -1)
            continue;
        if (status)
            return status;
        printf("%s%s\nDuring the conversation:\n%s", HELP, generate_help, COMMANDS);   /* -h is the only one left */
        return tool_finish() ? 1 : QUIT;
    }
    if (optind < argc)
        *model = argv[optind++];
    if (optind < argc)
        return tool_usage("chat", "one model is wanted, and '%s' is a second", argv[optind]);
    return 0;
}

static int start(chat *c, tool_setup *setup, const char *model)
{
    int status = generate_open(&c->g, setup, "chat", model);
    if (!status)
        status = generate_prompt(&c->g);
    if (!status)
        status = find_closing(c);
    if (!status && !(c->lines = line_open("history")))
        status = 1;
    c->g.keep_answer = true;
    return status;
}

int cmd_chat(int argc, char **argv)
{
    tool_setup setup;
    chat c = { 0 };
    const char *model = NULL;
    int status = tool_setup_begin(&setup);
    if (!status)
        status = parse(&setup, &model, argc, argv);
    if (!status) {
        status = start(&c, &setup, model);
        if (!status)
            status = converse(&c);
        if (!status && c.failed && !line_interactive(c.lines))
            status = 1;
        line_close(c.lines);
        drop_messages(&c, 0);
        free(c.messages);
        pn_ids_free(&c.tail);
        pn_ids_free(&c.closing);
        generate_close(&c.g);
    }
    tool_setup_end(&setup);
    return status == QUIT ? 0 : status;
}

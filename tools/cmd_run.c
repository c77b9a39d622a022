/* `pantheon run`: continues a text, or answers one message, and prints only what the model says. */
#include "generate.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: pantheon run [-c FILE.ini | MODEL] (-p TEXT | -f FILE) [OPTIONS]\n\n"
    "Continues TEXT and prints only the continuation, as it is made. It ends at the model's end token, at a stop\n"
    "string, after -n tokens, or when the context is full, which is said on standard error (the status is then still\n"
    "0). The text is valid UTF-8; a newline is added only when standard output is a terminal and the text has none at\n"
    "its end. Ctrl-C ends it, what was printed is whole, and the status is 130.\n\n"
    "  -p, --prompt TEXT    the text; '-' reads standard input\n"
    "  -f, --file FILE      the text is what the file holds\n"
    "  --chat               TEXT is a user's message, put into the model's chat template; prints the answer\n"
    "  --system TEXT        system message for --chat ([prompt] system)\n"
    "  --template NAME      chat template in place of the model's own ([prompt] template)\n"
    "  --special            markers such as <|im_end|> in TEXT are the tokens they name, not plain text\n";

enum { RUN_CHAT = GENERATE_NEXT, RUN_SPECIAL };

typedef struct run_options {
    const char *text, *file, *model;
    bool chat, special;
} run_options;

static int parse(tool_setup *setup, run_options *o, int argc, char **argv)
{
    static const struct option table[] = {
        GENERATE_LONG_OPTIONS,
        { "prompt", required_argument, NULL, 'p' }, { "file", required_argument, NULL, 'f' },
        { "chat", no_argument, NULL, RUN_CHAT }, { "special", no_argument, NULL, RUN_SPECIAL },
        { 0 }
    };
    int c, status;
    while ((c = getopt_long(argc, argv, GENERATE_OPTIONS "p:f:", table, NULL)) != -1) {
        status = generate_option(setup, "run", c, optarg);
        if (status == -1)
            continue;
        if (status)
            return status;
        switch (c) {
        case 'h':
            printf("%s%s", HELP, generate_help);
            return tool_finish() ? 1 : -1;
        case 'p': o->text = optarg; break;
        case 'f': o->file = optarg; break;
        case RUN_CHAT: o->chat = true; break;
        case RUN_SPECIAL: o->special = true; break;
        default: return tool_usage("run", "option not understood");
        }
    }
    if (optind < argc)
        o->model = argv[optind++];
    if (optind < argc)
        return tool_usage("run", "one model is wanted, and '%s' is a second; a text of several words needs quotes",
                          argv[optind]);
    if (!o->text == !o->file)
        return tool_usage("run", o->text ? "-p and -f are two texts; one is wanted"
                                         : "a text is wanted: -p TEXT, -p - for standard input, or -f FILE");
    if (o->chat && o->special)
        return tool_usage("run", "--special does not go with --chat: a message of a user is never a control token");
    return 0;
}

/* The tokens to begin with; 0, or the exit status. */
static int make_prompt(generator *g, const run_options *o, const char *text, size_t size, pn_ids *ids)
{
    pn_error err = { 0 };
    pn_message message = { pn_str_from("user"), { text, size } };
    const pn_tokenizer_info *info = pn_tokenizer_get_info(g->tokenizer);
    if (o->chat) {
        int status = generate_prompt(g);
        if (status)
            return status;
        return pn_prompt_render(g->prompt, &message, 1, 0, 1, ids, &err) != PN_OK ? tool_fail(&err) : 0;
    }
    if (generate_encode(g, text, size, PN_ENCODE_ADD_BOS | (o->special ? PN_ENCODE_SPECIAL : 0), ids) != 0)
        return 1;
    if (ids->count > 0)
        return 0;
    if (info->bos < 0)
        return tool_failf("the text is empty and this vocabulary has no start token: give at least one character");
    return pn_ids_push(ids, &info->bos, 1, &err) != PN_OK ? tool_fail(&err) : 0;
}

static int generate(generator *g, const pn_ids *ids, bool first)
{
    pn_error err = { 0 };
    int32_t context = pn_session_context(g->session);
    int reason;
    if (ids->count >= (size_t)context)
        return tool_failf("the prompt has %zu tokens and the context holds %d, so there is no room for an answer: "
                          "shorten it, or ask for more with --context (the model was trained for %d)", ids->count,
                          (int)context, (int)pn_model_context(g->model));
    tool_interrupt_catch(true);
    reason = generate_text(g, ids->data, ids->count, first, &err);
    tool_interrupt_catch(false);
    if (g->terminal && g->wrote && reason != GENERATE_UNWRITABLE)
        putchar('\n');
    if (tool_finish() != 0)
        return 1;
    if (reason == GENERATE_FAILED)
        return tool_fail(&err);
    if (reason == GENERATE_UNWRITABLE)      /* not for want of room: of memory */
        return tool_failf("no memory for the text");
    if (reason == GENERATE_FULL)
        tool_say("stopped: the context of %d tokens is full (%zu of the prompt, %zu made)", (int)context, ids->count,
                 g->made);
    if (g->setup->verbose)
        generate_report(g, true);
    return reason == GENERATE_CANCELLED ? TOOL_INTERRUPTED : 0;
}

static int run(tool_setup *setup, const run_options *o)
{
    generator g;
    pn_ids ids = { 0 };
    char *text = NULL;
    size_t size;
    int status;
    if (o->file || strcmp(o->text, "-") == 0) {
        text = tool_read_file(o->file ? o->file : "-", &size);
        if (!text)
            return 1;
    } else {
        size = strlen(o->text);
    }
    status = generate_open(&g, setup, "run", o->model);
    if (!status)
        status = make_prompt(&g, o, text ? text : o->text, size, &ids);
    if (!status)
        status = generate(&g, &ids, !o->chat && size == 0);
    pn_ids_free(&ids);
    generate_close(&g);
    free(text);
    return status;
}

int cmd_run(int argc, char **argv)
{
    tool_setup setup;
    run_options options = { 0 };
    int status = tool_setup_begin(&setup);
    if (!status)
        status = parse(&setup, &options, argc, argv);
    if (!status)
        status = run(&setup, &options);
    tool_setup_end(&setup);
    return status == -1 ? 0 : status;
}

/* pantheon tokenize, detokenize: text to token ids and back. A file that holds only a vocabulary is enough. */
#include "tool.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char tokenize_help[] =
    "usage: pantheon tokenize [options] MODEL < TEXT\n"
    "       pantheon tokenize [options] -c FILE.ini < TEXT\n"
    "Prints the token ids of standard input on one line.\n"
    "  --no-bos             without the start token that the vocabulary wants\n"
    "  --special            markers of control tokens in the text become those tokens; else they are plain text\n";

static const char detokenize_help[] =
    "usage: pantheon detokenize [options] MODEL < IDS\n"
    "       pantheon detokenize [options] -c FILE.ini < IDS\n"
    "Prints the bytes of the token ids on standard input; control tokens give none.\n"
    "  --special            control tokens give their text\n";

static const char common_help[] =
    "  -c, --config FILE    read settings from an INI file\n"
    "  --set SECTION.KEY=VALUE\n"
    "                       one setting, with precedence over the INI\n"
    "  -v, --verbose        say more\n"
    "  -h, --help           this text\n";

typedef struct job {
    tool_setup setup;
    int no_bos, special;
    const char *model;
    pn_file *file;
    pn_tokenizer *tokenizer;
} job;

/* Parses the arguments and opens the tokenizer. -1 = go on, else the exit status. */
static int job_begin(job *j, int argc, char **argv, const char *help)
{
    enum { NO_BOS = TOOL_FIRST, SPECIAL };
    static const struct option longs[] = { TOOL_LONG_OPTIONS,
                                           { "no-bos", no_argument, NULL, NO_BOS },
                                           { "special", no_argument, NULL, SPECIAL },
                                           { NULL, 0, NULL, 0 } };
    const char *command = argv[0];
    pn_error err = { 0 };
    int c, status = tool_setup_begin(&j->setup);
    if (status)
        return status;
    optind = 1;
    while ((c = getopt_long(argc, argv, TOOL_OPTIONS, longs, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            fputs(common_help, stdout);
            return tool_finish();
        }
        if (c == SPECIAL) {
            j->special = 1;
        } else if (c == NO_BOS && help == tokenize_help) {
            j->no_bos = 1;
        } else {
            status = tool_option(&j->setup, command, c, optarg);
            if (status != -1)
                return status ? status : tool_usage(command, "this option is not known here");
        }
    }
    if (optind < argc)
        j->model = argv[optind++];
    if (optind < argc)
        return tool_usage(command, "one model is wanted; what is \"%s\"?", argv[optind]);
    if (!j->model && !j->setup.ini)
        return tool_usage(command, "which model? Give its file, or an INI file with -c");
    status = tool_setup_runtime(&j->setup);
    if (status)
        return status;
    if (!j->model)
        j->model = pn_config_text(pn_runtime_config(j->setup.runtime), "model", "path");
    if (!j->model || !*j->model)
        return tool_failf("%s says no [model] path", j->setup.ini);
    if (pn_file_open(j->setup.runtime, j->model, &j->file, &err) ||
        pn_tokenizer_create(j->setup.runtime, j->file, &j->tokenizer, &err))
        return tool_fail(&err);
    return -1;
}

static void job_end(job *j)
{
    pn_tokenizer_destroy(j->tokenizer);
    pn_file_destroy(j->file);
    tool_setup_end(&j->setup);
}

static int print_ids(const job *j)
{
    uint32_t flags = (j->no_bos ? 0 : PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS) | (j->special ? PN_ENCODE_SPECIAL : 0);
    pn_error err = { 0 };
    size_t size, count = 0, i;
    char *text = tool_read_all(stdin, "standard input", &size);
    int32_t *ids;
    pn_status s;
    if (!text)
        return 1;
    s = pn_tokenizer_encode(j->tokenizer, text, size, flags, NULL, 0, &count, &err);
    ids = malloc((count + 1) * sizeof *ids);
    if (!ids)
        s = pn_fail(&err, PN_E_NOMEM, "no memory for %zu token ids", count);
    else if (s == PN_E_FULL)
        s = pn_tokenizer_encode(j->tokenizer, text, size, flags, ids, count, &count, &err);
    if (!s) {
        for (i = 0; i < count; i++)
            printf(i ? " %d" : "%d", (int)ids[i]);
        putchar('\n');
    }
    free(ids);
    free(text);
    return s ? tool_fail(&err) : tool_finish();
}

int cmd_tokenize(int argc, char **argv)
{
    job j = { 0 };
    int status = job_begin(&j, argc, argv, tokenize_help);
    if (status == -1)
        status = print_ids(&j);
    job_end(&j);
    return status;
}

/* The next number of the text at *at (NUL-terminated, ends at `end`). 1: *id is set, 0: no more, -1: no token id. */
static int next_id(const char **at, const char *end, int32_t *id)
{
    static const char blank[] = " \t\r\n\v\f,";
    char *after;
    long long value;
    *at += strspn(*at, blank);
    if (*at == end)
        return 0;
    value = strtoll(*at, &after, 10);
    if (after == *at || (after != end && (!*after || !strchr(blank, *after))) || value < 0 || value > INT32_MAX)
        return -1;
    *at = after;
    *id = (int32_t)value;
    return 1;
}

static pn_status print_token(const job *j, int32_t id, uint32_t flags, char **bytes, size_t *room, pn_error *err)
{
    size_t n = 0;
    pn_status s = pn_tokenizer_decode(j->tokenizer, id, flags, *bytes, *room, &n, err);
    if (s == PN_E_FULL) {
        char *more = realloc(*bytes, n);
        if (!more)
            return pn_fail(err, PN_E_NOMEM, "no memory for a token of %zu bytes", n);
        *bytes = more;
        *room = n;
        s = pn_tokenizer_decode(j->tokenizer, id, flags, *bytes, *room, &n, err);
    }
    if (!s)
        fwrite(*bytes, 1, n, stdout);
    return s;
}

static int print_text(const job *j)
{
    uint32_t flags = (j->special ? PN_DECODE_SPECIAL : 0) | PN_DECODE_FIRST;
    pn_error err = { 0 };
    size_t size, room = 64;
    char *text = tool_read_all(stdin, "standard input", &size), *bytes = malloc(room);
    const char *at = text;
    int32_t id;
    int found = 0;
    pn_status s = text && bytes ? PN_OK : pn_fail(&err, PN_E_NOMEM, "no memory");
    while (!s && (found = next_id(&at, text + size, &id)) > 0) {
        s = print_token(j, id, flags, &bytes, &room, &err);
        if (id != pn_tokenizer_get_info(j->tokenizer)->bos)
            flags &= ~(uint32_t)PN_DECODE_FIRST;
    }
    if (!s && found < 0)
        s = pn_fail(&err, PN_E_ARGUMENT,
                    "byte %zu of standard input: token ids are wanted, whole numbers with blanks between",
                    (size_t)(at - text));
    free(bytes);
    free(text);
    return s ? tool_fail(&err) : tool_finish();
}

int cmd_detokenize(int argc, char **argv)
{
    job j = { 0 };
    int status = job_begin(&j, argc, argv, detokenize_help);
    if (status == -1)
        status = print_text(&j);
    job_end(&j);
    return status;
}

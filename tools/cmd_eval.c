/* `pantheon eval`: the logits of every position of a list of tokens, to a file. */
#include "output.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: pantheon eval [-c FILE.ini | MODEL] --tokens FILE --logits OUT [OPTIONS]\n\n"
    "Evaluates the token ids in FILE (separated by white space) and writes the logits of every position to OUT as\n"
    "little-endian float32, one row of the vocabulary's size per token. OUT appears only when it is whole.\n\n"
    "      --tokens FILE      token ids; '-' reads standard input\n"
    "      --logits OUT       where to; '-' is standard output\n"
    "      --last             only the logits of the last position\n"
    "      --activations MODE exact (default) or fast ([runtime] activations)\n"
    "      --kv TYPE          f32 (default here) or f16: numbers of the cache\n"
    "      --batch N          tokens of the list in each evaluation; default: as many as fit\n"
    "      --context N        positions ([runtime] context); default: as the model, at least the list's length\n"
    "      --beside N         evaluate N other sequences of other tokens in the same batches\n"
    "  -t, --threads N        threads ([runtime] threads)\n"
    "  -c, --config FILE      an INI file\n"
    "      --set SECTION.KEY=V  any key of the INI; may repeat\n"
    "  -v, --verbose          say what was done; -vv: kernels too\n"
    "  -h, --help             this text\n"
    "The result is the same bits for any --batch, --beside and -t.\n";

enum {
    EVAL_TOKENS = TOOL_FIRST, EVAL_LOGITS, EVAL_LAST, EVAL_ACTIVATIONS, EVAL_KV, EVAL_BATCH, EVAL_CONTEXT, EVAL_BESIDE
};

typedef struct eval_options {
    const char *model, *tokens, *logits;
    int64_t batch, beside;      /* batch 0: as many as fit */
    bool last;
} eval_options;

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

/* 0, or 1 after printing why. */
static int read_tokens(const char *path, int32_t vocab, pn_ids *ids)
{
    pn_error err = { 0 };
    size_t size;
    char *text = tool_read_file(path, &size), *p = text;
    if (!text)
        return 1;
    for (;;) {
        char *end;
        long long v;
        int32_t id;
        while (isspace((unsigned char)*p))
            p++;
        if (p >= text + size)
            break;
        errno = 0;
        v = strtoll(p, &end, 10);
        if (end == p || (*end && !isspace((unsigned char)*end)) || *p == '+') {
            tool_failf("%s: byte %zu: a token id is wanted, found '%.20s'", path, (size_t)(p - text), p);
            free(text);
            return 1;
        }
        if (errno || v < 0 || v >= vocab) {
            tool_failf("%s: byte %zu: token %lld is not in the vocabulary, which has 0 .. %d", path,
                       (size_t)(p - text), v, (int)vocab - 1);
            free(text);
            return 1;
        }
        id = (int32_t)v;
        if (pn_ids_push(ids, &id, 1, &err) != PN_OK) {
            free(text);
            return tool_fail(&err);
        }
        p = end;
    }
    free(text);
    return ids->count > 0 ? 0 : tool_failf("%s: holds no token", path);
}

/* ---- evaluation ------------------------------------------------------------------------------------------------- */

/* Tokens of the sequences beside: any valid ones, other than the main sequence's, the same in each run. */
static int32_t other_token(size_t sequence, size_t i, int32_t vocab)
{
    uint64_t x = ((uint64_t)sequence << 32 | i) + 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (int32_t)((x ^ x >> 31) % (uint64_t)vocab);
}

/* Where the main sequence's i-th token lies in a batch of `group` sequences: its place in the group changes. */
static pn_token *fill(pn_token *batch, const pn_ids *ids, size_t first, size_t n, const eval_options *o, int32_t vocab)
{
    size_t group = (size_t)o->beside + 1;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < group; k++) {
            size_t sequence = (k + first + i) % group;     /* 0 is the main one */
            bool wanted = sequence == 0 && (!o->last || first + i + 1 == ids->count);
            batch[i * group + k] = (pn_token){
                sequence == 0 ? ids->data[first + i] : other_token(sequence, first + i, vocab),
                (int32_t)(first + i), (int32_t)sequence, wanted
            };
        }
    return batch;
}

static int evaluate(pn_session *session, const pn_ids *ids, const eval_options *o, int32_t vocab, const output *out)
{
    pn_error err = { 0 };
    size_t most = pn_session_max_logits(session), group = (size_t)o->beside + 1, step;
    pn_token *batch;
    int status = 0;
    step = o->batch > 0 ? (size_t)o->batch : ids->count;
    if (!o->last && step > most)
        step = most;
    if (step > ids->count)
        step = ids->count;
    batch = malloc(step * group * sizeof *batch);
    if (!batch)
        return tool_failf("no memory for %zu tokens", step * group);
    for (size_t first = 0; first < ids->count && !status; first += step) {
        size_t n = ids->count - first < step ? ids->count - first : step;
        const float *logits;
        if (pn_session_eval(session, fill(batch, ids, first, n, o, vocab), n * group, &err) != PN_OK)
            status = tool_fail(&err);
        for (size_t i = 0; !status && (logits = pn_session_logits(session, i)) != NULL; i++)
            if (output_write(out, logits, (size_t)vocab) != 0)
                status = tool_failf("%s: cannot be written: %s", o->logits, strerror(errno));
    }
    free(batch);
    return status;
}

static int open_session(const tool_setup *setup, pn_model *model, const eval_options *o, size_t n, pn_session **out)
{
    pn_error err = { 0 };
    const pn_config *config = pn_runtime_config(setup->runtime);
    pn_session_options options = PN_OPTIONS_INIT(pn_session_options);
    int64_t context = pn_config_int(config, "runtime", "context");
    options.sequences = (int32_t)o->beside + 1;
    if (o->batch > 0)   /* whole groups in one piece, as far as a batch can be that large */
        options.batch = (int32_t)(o->batch * (o->beside + 1) < 65536 ? o->batch * (o->beside + 1) : 65536);
    if (tool_origin(config, "runtime", "kv") < PN_ORIGIN_INI)
        options.kv = "f32";
    if (context == 0 && pn_model_context(model) == 0)
        options.context = (int32_t)n;
    if (context > 0 && n > (size_t)context)
        return tool_failf("%s holds %zu tokens and the context %lld: ask for more with --context %zu", o->tokens, n,
                          (long long)context, n);
    if (pn_session_create(model, &options, out, &err) != PN_OK)
        return tool_fail(&err);
    if (n > (size_t)pn_session_context(*out) && context == 0) {     /* longer than the built-in choice */
        pn_session_destroy(*out);
        *out = NULL;
        options.context = (int32_t)n;
        if (pn_session_create(model, &options, out, &err) != PN_OK)
            return tool_fail(&err);
    }
    return 0;
}

static int eval(tool_setup *setup, const eval_options *o)
{
    pn_error err = { 0 };
    pn_model *model = NULL;
    pn_session *session = NULL;
    pn_ids ids = { 0 };
    output out;
    double begin;
    int status = tool_setup_runtime(setup);
    if (status)
        return status;
    if (!o->model && !*pn_config_text(pn_runtime_config(setup->runtime), "model", "path"))
        return tool_usage("eval", "a model is wanted: a path, or -c FILE.ini with [model] path");
    if (pn_model_open(setup->runtime, o->model, &model, &err) != PN_OK)
        return tool_fail(&err);
    status = read_tokens(o->tokens, pn_model_vocab(model), &ids);
    if (!status)
        status = open_session(setup, model, o, ids.count, &session);
    if (!status && setup->verbose >= 2)
        tool_say_kernels(session);
    if (!status) {
        begin = tool_clock();
        status = output_open(&out, o->logits);
        if (!status)
            status = evaluate(session, &ids, o, pn_model_vocab(model), &out);
        status = output_close(&out, o->logits, status);
        if (!status && setup->verbose)
            tool_say("%zu tokens in %.3f s, %d threads, context %d", ids.count, tool_clock() - begin,
                     (int)pn_session_threads(session), (int)pn_session_context(session));
    }
    pn_ids_free(&ids);
    pn_session_destroy(session);
    pn_model_destroy(model);
    return status;
}

/* ---- the subcommand --------------------------------------------------------------------------------------------- */

static int own_option(tool_setup *setup, eval_options *o, int c, const char *argument)
{
    switch (c) {
    case EVAL_TOKENS: o->tokens = argument; return -1;
    case EVAL_LOGITS: o->logits = argument; return -1;
    case EVAL_LAST: o->last = true; return -1;
    case EVAL_ACTIVATIONS: return tool_setup_set(setup, "runtime.activations", argument, "--activations");
    case EVAL_KV: return tool_setup_set(setup, "runtime.kv", argument, "--kv");
    case EVAL_CONTEXT: return tool_setup_set(setup, "runtime.context", argument, "--context");
    case EVAL_BATCH: {
        bool whole = strcmp(argument, "whole") == 0;
        int status = whole ? 0 : tool_integer("eval", "--batch", argument, 1, 65536, &o->batch);
        return status ? status : -1;
    }
    case EVAL_BESIDE: {
        int status = tool_integer("eval", "--beside", argument, 0, 255, &o->beside);
        return status ? status : -1;
    }
    default:
        return tool_option(setup, "eval", c, argument);
    }
}

static int parse(tool_setup *setup, eval_options *o, int argc, char **argv)
{
    static const struct option table[] = {
        TOOL_LONG_OPTIONS,
        { "tokens", required_argument, NULL, EVAL_TOKENS }, { "logits", required_argument, NULL, EVAL_LOGITS },
        { "last", no_argument, NULL, EVAL_LAST }, { "activations", required_argument, NULL, EVAL_ACTIVATIONS },
        { "kv", required_argument, NULL, EVAL_KV }, { "batch", required_argument, NULL, EVAL_BATCH },
        { "context", required_argument, NULL, EVAL_CONTEXT }, { "beside", required_argument, NULL, EVAL_BESIDE }, { 0 }
    };
    int c, status;
    while ((c = getopt_long(argc, argv, TOOL_OPTIONS, table, NULL)) != -1) {
        status = own_option(setup, o, c, optarg);
        if (status == -1)
            continue;
        if (status)
            return status;
        fputs(HELP, stdout);    /* -h is the only one left */
        return tool_finish() ? 1 : -1;
    }
    if (optind < argc)
        o->model = argv[optind++];
    if (optind < argc)
        return tool_usage("eval", "one model is wanted, and '%s' is a second", argv[optind]);
    if (!o->tokens || !o->logits)
        return tool_usage("eval", "%s is wanted", !o->tokens ? "--tokens FILE" : "--logits OUT");
    return 0;
}

int cmd_eval(int argc, char **argv)
{
    tool_setup setup;
    eval_options options = { 0 };
    int status = tool_setup_begin(&setup);
    if (!status)
        status = parse(&setup, &options, argc, argv);
    if (!status)
        status = eval(&setup, &options);
    tool_setup_end(&setup);
    return status == -1 ? 0 : status;
}

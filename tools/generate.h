/* What `run` and `chat` share: a model made ready by the command line, and the loop from tokens to text. */
#ifndef PN_GENERATE_H
#define PN_GENERATE_H

#include "stream.h"
#include "tool.h"

/* Options that choose a model and how it is run: positional MODEL or [model] path of the INI, those of TOOL_OPTIONS,
 * and these. GENERATE_OPTIONS in the option string, GENERATE_LONG_OPTIONS first in the long table. */
#define GENERATE_OPTIONS TOOL_OPTIONS "n:"
#define GENERATE_LONG_OPTIONS                                                                                          \
    TOOL_LONG_OPTIONS, { "tokens", required_argument, NULL, 'n' },                                                     \
    { "temp", required_argument, NULL, GENERATE_TEMP }, { "temperature", required_argument, NULL, GENERATE_TEMP },     \
    { "top-k", required_argument, NULL, GENERATE_TOP_K }, { "top-p", required_argument, NULL, GENERATE_TOP_P },        \
    { "min-p", required_argument, NULL, GENERATE_MIN_P },                                                              \
    { "repeat-penalty", required_argument, NULL, GENERATE_REPEAT }, { "seed", required_argument, NULL, GENERATE_SEED },\
    { "stop", required_argument, NULL, GENERATE_STOP }, { "system", required_argument, NULL, GENERATE_SYSTEM },        \
    { "template", required_argument, NULL, GENERATE_TEMPLATE },                                                        \
    { "activations", required_argument, NULL, GENERATE_ACTIVATIONS },                                                  \
    { "context", required_argument, NULL, GENERATE_CONTEXT }, { "batch", required_argument, NULL, GENERATE_BATCH },    \
    { "kv", required_argument, NULL, GENERATE_KV }
enum {
    GENERATE_TEMP = TOOL_FIRST, GENERATE_TOP_K, GENERATE_TOP_P, GENERATE_MIN_P, GENERATE_REPEAT, GENERATE_SEED,
    GENERATE_STOP, GENERATE_SYSTEM, GENERATE_TEMPLATE, GENERATE_ACTIVATIONS, GENERATE_CONTEXT, GENERATE_BATCH,
    GENERATE_KV,
    GENERATE_NEXT       /* first value free for a subcommand's own long options */
};
/* The part of a help text that explains them. */
extern const char generate_help[];

/* Handles one getopt result, as tool_option, which it calls too. */
int generate_option(tool_setup *s, const char *command, int option, const char *argument);

/* Why a generation ended. */
enum {
    GENERATE_ENDED = 1,     /* the model's end token */
    GENERATE_STOPPED,       /* a stop string */
    GENERATE_COUNTED,       /* as many tokens as asked for */
    GENERATE_FULL,          /* the context is full */
    GENERATE_CANCELLED,     /* Ctrl-C */
    GENERATE_UNWRITABLE,    /* standard output failed; tool_finish says why */
    GENERATE_FAILED         /* see the error */
};

typedef struct generator {
    tool_setup *setup;
    pn_model *model;
    pn_tokenizer *tokenizer;
    pn_prompt *prompt;          /* NULL until generate_prompt made it */
    pn_session *session;
    pn_sampler *sampler;
    tool_stream stream;         /* to stdout; holds [prompt] stop */
    bool terminal;              /* stdout is one */
    bool wrote;                 /* something was shown, and its last character was no newline */
    char *bytes;                /* one decoded token */
    size_t bytes_capacity;
    int32_t pending;            /* the last token that was sampled and is not in the session; -1: none */
    char *answer;               /* what was shown since the caller set answer_size to 0, when `keep_answer` */
    size_t answer_size, answer_capacity;
    bool keep_answer;
    bool progress_shown;
    double progress_since;
    /* Of the last generation. */
    double prompt_seconds, decode_seconds;
    size_t prompt_tokens;       /* evaluated before the first sample */
    size_t made;                /* tokens sampled that are part of the text */
    size_t decoded;             /* evaluations of one token */
    size_t forgotten;           /* tokens dropped by shifting the context, since the program began */
    double load_seconds;
} generator;

/* Open the model (path NULL: what the configuration says) with everything that text needs. 0, or the exit status. */
int generate_open(generator *g, tool_setup *setup, const char *command, const char *path);
/* Make g->prompt. 0, or the exit status. */
int generate_prompt(generator *g);
/* Make g->sampler as [sampling] says, in place of one that is there. 0, or the exit status. */
int generate_sampler(generator *g);
void generate_close(generator *g);

/* See that `need` more tokens fit: where [runtime] context_end = shift, by forgetting the older half of what need not
 * be kept, or more. 0, GENERATE_FULL or GENERATE_FAILED. */
int generate_make_room(generator *g, size_t need, pn_error *err);

/* Text to tokens, appended to `out`. 0, or 1 after printing why. */
int generate_encode(generator *g, const char *text, size_t size, uint32_t flags, pn_ids *out);

/* Evaluate ids[0..n-1] after what sequence 0 holds, then sample, show and evaluate until something ends it, at most
 * as many tokens as [sampling] n says. `first`: the text begins with the first of them. Returns GENERATE_*. After
 * GENERATE_FAILED and GENERATE_CANCELLED with made == 0 the session is as before the call. */
int generate_text(generator *g, const int32_t *ids, size_t n, bool first, pn_error *err);

/* The line that -v asks for, on stderr. */
void generate_report(const generator *g, bool with_load);

#endif

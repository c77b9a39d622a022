/* A text in windows through a model, for `perplexity` and `importance`. */
#ifndef PN_PASSAGES_H
#define PN_PASSAGES_H

#include "tool.h"

/* Window w holds the tokens from w * context on, `context` of them (the last one maybe fewer). Where the vocabulary
 * wants a start token, the first token of each window is replaced by it. Each is evaluated from an empty context. */
typedef struct passages {
    pn_model *model;
    pn_tokenizer *tokenizer;
    pn_session *session;
    pn_ids ids;      /* the whole text */
    int32_t context; /* tokens of a window */
    int32_t start;   /* start token, or -1 */
    pn_token *batch; /* room for a piece of a window */
} passages;

/* Open the model and tokenize the text of a file ('-': standard input). 0, or 1 or 2 after printing why. */
int passages_open(passages *p, const tool_setup *setup, const char *command, const char *model, const char *text);
/* Tokens of a window when the user did not say: 512, or what the model was trained for if that is less. */
int32_t passages_default_context(const passages *p);
/* Make the session; `options` may hold an observer. 0, or 1 after printing why. */
int passages_begin(passages *p, int32_t context, const pn_session_options *options);
void passages_close(passages *p);
size_t passages_windows(const passages *p);
/* Tokens of window w. */
size_t passages_length(const passages *p, size_t w);
/* The i-th token of window w. */
int32_t passages_token(const passages *p, size_t w, size_t i);

/* Gets the logits behind token i of the window; non-zero stops. */
typedef int (*passages_visit)(void *arg, size_t i, const float *logits);
/* Evaluate window w; `visit` (may be NULL: but all logits are computed) sees those of tokens first .. length - 1. 0; 1
 * after printing why; TOOL_INTERRUPTED; or what visit returned. */
int passages_eval(passages *p, size_t w, size_t first, passages_visit visit, void *arg);

#endif

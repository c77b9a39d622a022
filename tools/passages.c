/* A text in windows through a model. */
#include "passages.h"

#include <stdlib.h>
#include <string.h>

static int tokenize(passages *p, const char *path)
{
    pn_error err = {0};
    size_t size, n = 0;
    char *text = tool_read_file(path, &size);
    if (!text) return 1;
    pn_status st = pn_tokenizer_encode(p->tokenizer, text, size, PN_ENCODE_ADD_BOS, NULL, 0, &n, &err);
    if (st == PN_E_FULL) {
        p->ids.data = malloc(n * sizeof *p->ids.data);
        p->ids.capacity = n;
        st = p->ids.data ? pn_tokenizer_encode(p->tokenizer, text, size, PN_ENCODE_ADD_BOS, p->ids.data, n, &n, &err)
                         : pn_fail(&err, PN_E_NOMEM, "no memory for %zu tokens", n);
    }
    free(text);
    if (st) return tool_fail(&err);
    p->ids.count = n;
    return n ? 0 : tool_failf("%s: the text is empty", path);
}

int passages_open(passages *p, const tool_setup *setup, const char *command, const char *model, const char *text)
{
    pn_error err = {0};
    *p = (passages){.start = -1};
    if (!model && !*pn_config_text(pn_runtime_config(setup->runtime), "model", "path"))
        return tool_usage(command, "a model is wanted: a path, or -c FILE.ini with [model] path");
    if (pn_model_open(setup->runtime, model, &p->model, &err) != PN_OK ||
        pn_tokenizer_create(setup->runtime, pn_model_file(p->model), &p->tokenizer, &err) != PN_OK)
        return tool_fail(&err);
    const pn_tokenizer_info *info = pn_tokenizer_get_info(p->tokenizer);
    if (info->add_bos > 0) p->start = info->bos;
    return tokenize(p, text);
}

int32_t passages_default_context(const passages *p)
{
    int32_t trained = pn_model_context(p->model);
    return trained > 0 && trained < 512 ? trained : 512;
}

int passages_begin(passages *p, int32_t context, const pn_session_options *options)
{
    pn_error err = {0};
    pn_session_options o = *options;
    o.context = p->context = context;
    o.sequences = 1;
    if (pn_session_create(p->model, &o, &p->session, &err) != PN_OK) return tool_fail(&err);
    p->batch = malloc((size_t)pn_session_batch(p->session) * sizeof *p->batch);
    return p->batch ? 0 : tool_failf("no memory for a batch");
}

void passages_close(passages *p)
{
    pn_session_destroy(p->session);
    pn_tokenizer_destroy(p->tokenizer);
    pn_model_destroy(p->model);
    free(p->ids.data);
    free(p->batch);
    *p = (passages){0};
}

size_t passages_windows(const passages *p)
{
    return (p->ids.count + (size_t)p->context - 1) / (size_t)p->context;
}

size_t passages_length(const passages *p, size_t w)
{
    size_t left = p->ids.count - w * (size_t)p->context;
    return left < (size_t)p->context ? left : (size_t)p->context;
}

int32_t passages_token(const passages *p, size_t w, size_t i)
{
    return i == 0 && p->start >= 0 ? p->start : p->ids.data[w * (size_t)p->context + i];
}

int passages_eval(passages *p, size_t w, size_t first, passages_visit visit, void *arg)
{
    pn_error err = {0};
    size_t n = passages_length(p, w), most = (size_t)pn_session_batch(p->session), length;
    int status = 0;
    if (pn_session_trim(p->session, 0, 0, &err) != PN_OK) return tool_fail(&err);
    for (size_t at = 0; at < n && !status; at += length) {
        size_t seen = 0;
        length = n - at < most ? n - at : most;
        for (size_t i = 0; i < length; i++)
            p->batch[i] =
                (pn_token){passages_token(p, w, at + i), (int32_t)(at + i), 0, visit == NULL || at + i >= first};
        if (pn_session_eval(p->session, p->batch, length, &err) != PN_OK)
            return err.status == PN_E_CANCELLED ? TOOL_INTERRUPTED : tool_fail(&err);
        for (size_t i = at < first ? first : at; visit && i < at + length && !status; i++)
            status = visit(arg, i, pn_session_logits(p->session, seen++));
    }
    return status;
}

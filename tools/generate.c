/* What `run` and `chat` share: a model made ready by the command line, and the loop from tokens to text. */
#include "generate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char generate_help[] =
    "  -n, --tokens N       at most N tokens ([sampling] n); -1 = until something else ends it\n"
    "Choosing tokens (each sets a key of [sampling]):\n"
    "  --temp X             temperature; 0 takes the likeliest token always\n"
    "  --top-k N            only the N likeliest; 0 = off\n"
    "  --top-p X            only the likeliest that together have probability X; 1 = off\n"
    "  --min-p X            only those with X times the probability of the likeliest; 0 = off\n"
    "  --repeat-penalty X   make tokens less likely that came lately; 1 = off\n"
    "  --seed N             the same seed gives the same text\n"
    "  --stop TEXT          end before this text ([prompt] stop); may repeat\n"
    "Running:\n"
    "  -t, --threads N      threads ([runtime] threads)\n"
    "  --activations MODE   exact or fast ([runtime] activations)\n"
    "  --context N          positions kept ([runtime] context)\n"
    "  --batch N            tokens of a prompt evaluated at a time ([runtime] batch)\n"
    "  --kv TYPE            f16 or f32: numbers of the cache ([runtime] kv)\n"
    "  -c, --config FILE    an INI file; what the command line says goes before it\n"
    "  --set SECTION.KEY=V  any key of the INI; may repeat\n"
    "  -v, --verbose        timing and memory to standard error; -vv: the choice of kernels too\n"
    "  -h, --help           this text\n";

int generate_option(tool_setup *s, const char *command, int option, const char *argument)
{
    static const struct {
        int option;
        const char *name, *key;
    } keys[] = {
        { 'n', "-n", "sampling.n" },
        { GENERATE_TEMP, "--temp", "sampling.temperature" },
        { GENERATE_TOP_K, "--top-k", "sampling.top_k" },
        { GENERATE_TOP_P, "--top-p", "sampling.top_p" },
        { GENERATE_MIN_P, "--min-p", "sampling.min_p" },
        { GENERATE_REPEAT, "--repeat-penalty", "sampling.repeat_penalty" },
        { GENERATE_SEED, "--seed", "sampling.seed" },
        { GENERATE_STOP, "--stop", "prompt.stop" },
        { GENERATE_SYSTEM, "--system", "prompt.system" },
        { GENERATE_TEMPLATE, "--template", "prompt.template" },
        { GENERATE_ACTIVATIONS, "--activations", "runtime.activations" },
        { GENERATE_CONTEXT, "--context", "runtime.context" },
        { GENERATE_BATCH, "--batch", "runtime.batch" },
        { GENERATE_KV, "--kv", "runtime.kv" },
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].option == option)
            return tool_setup_set(s, keys[i].key, argument, keys[i].name);
    return tool_option(s, command, option, argument);
}

/* ---- showing text ----------------------------------------------------------------------------------------------- */

static int show(void *arg, const char *text, size_t size)
{
    generator *g = arg;
    if (g->keep_answer) {
        if (size > g->answer_capacity - g->answer_size) {
            size_t capacity = (g->answer_size + size) * 2 + 256;
            char *more = realloc(g->answer, capacity);
            if (!more)
                return -1;
            g->answer = more;
            g->answer_capacity = capacity;
        }
        memcpy(g->answer + g->answer_size, text, size);
        g->answer_size += size;
    }
    if (g->terminal)
        tool_print_safe(stdout, text, size, true);
    else
        fwrite(text, 1, size, stdout);
    g->wrote = text[size - 1] != '\n';
    return tool_flush();
}

/* A line that says how far a long prompt is; only on a terminal, and only when it takes a while. */
static void show_progress(void *arg, size_t done, size_t total)
{
    generator *g = arg;
    if (done >= total || tool_clock() - g->progress_since < 0.5)
        return;
    fprintf(stderr, "\rreading the prompt: %zu of %zu tokens (%zu %%) ", done, total, done * 100 / total);
    fflush(stderr);
    g->progress_shown = true;
}

static void hide_progress(generator *g)
{
    if (g->progress_shown)
        fprintf(stderr, "\r\033[K");
    g->progress_shown = false;
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static pn_status open_session(generator *g, pn_error *err)
{
    const pn_config *config = pn_runtime_config(g->setup->runtime);
    pn_session_options options = PN_OPTIONS_INIT(pn_session_options);
    const char *stop;
    options.cancelled = tool_cancelled;
    if (isatty(STDERR_FILENO)) {
        options.progress = show_progress;
        options.progress_arg = g;
    }
    if (pn_session_create(g->model, &options, &g->session, err) != PN_OK)
        return err->status;
    for (size_t i = 0; (stop = pn_config_item(config, "prompt", "stop", i)) != NULL; i++)
        if (tool_stream_stop(&g->stream, stop) != 0)
            return pn_fail(err, PN_E_NOMEM, "no memory for the stop strings");
    return PN_OK;
}

int generate_open(generator *g, tool_setup *setup, const char *command, const char *path)
{
    pn_error err = { 0 };
    double begin = tool_clock();
    int status;
    *g = (generator){ .setup = setup, .pending = -1 };
    tool_stream_begin(&g->stream, show, g);
    g->terminal = isatty(STDOUT_FILENO);
    status = tool_setup_runtime(setup);
    if (status)
        return status;
    if (!path && !*pn_config_text(pn_runtime_config(setup->runtime), "model", "path"))
        return tool_usage(command, "a model is wanted: a path, or -c FILE.ini with [model] path%s%s%s",
                          setup->ini ? " ('" : "", setup->ini ? setup->ini : "", setup->ini ? "' has none)" : "");
    if (pn_model_open(setup->runtime, path, &g->model, &err) != PN_OK ||
        pn_tokenizer_create(setup->runtime, pn_model_file(g->model), &g->tokenizer, &err) != PN_OK ||
        open_session(g, &err) != PN_OK)
        return tool_fail(&err);
    status = generate_sampler(g);
    if (status)
        return status;
    g->load_seconds = tool_clock() - begin;
    if (setup->verbose >= 2)
        tool_say_kernels(g->session);
    return 0;
}

int generate_sampler(generator *g)
{
    pn_error err = { 0 };
    pn_sampler_options options = PN_OPTIONS_INIT(pn_sampler_options);
    pn_sampler_destroy(g->sampler);
    g->sampler = NULL;
    return pn_sampler_options_from(pn_runtime_config(g->setup->runtime), &options, &err) != PN_OK ||
           pn_sampler_create(pn_model_vocab(g->model), &options, &g->sampler, &err) != PN_OK ? tool_fail(&err) : 0;
}

int generate_prompt(generator *g)
{
    pn_error err = { 0 };
    return pn_prompt_create(g->setup->runtime, pn_model_file(g->model), g->tokenizer, &g->prompt, &err) != PN_OK
        ? tool_fail(&err) : 0;
}

void generate_close(generator *g)
{
    tool_stream_end(&g->stream);
    pn_sampler_destroy(g->sampler);
    pn_session_destroy(g->session);
    pn_prompt_destroy(g->prompt);
    pn_tokenizer_destroy(g->tokenizer);
    pn_model_destroy(g->model);
    free(g->bytes);
    free(g->answer);
    *g = (generator){ 0 };
}

int generate_encode(generator *g, const char *text, size_t size, uint32_t flags, pn_ids *out)
{
    pn_error err = { 0 };
    size_t n = 0, capacity = size + 16;     /* more is possible in principle: then a second call */
    int32_t *ids = NULL;
    pn_status status = PN_E_FULL;
    for (int round = 0; round < 2 && status == PN_E_FULL; round++) {
        int32_t *more = realloc(ids, capacity * sizeof *ids);
        if (!more) {
            free(ids);
            return tool_failf("no memory for a prompt of %zu bytes", size);
        }
        ids = more;
        status = pn_tokenizer_encode(g->tokenizer, text, size, flags, ids, capacity, &n, &err);
        capacity = n;
    }
    if (status == PN_OK)
        status = pn_ids_push(out, ids, n, &err);
    free(ids);
    return status != PN_OK ? tool_fail(&err) : 0;
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

static pn_status evaluate(generator *g, const int32_t *ids, size_t n, pn_error *err)
{
    pn_token one, *tokens = n == 1 ? &one : malloc(n * sizeof *tokens);
    int32_t position = pn_session_length(g->session, 0);
    pn_status status;
    if (!tokens)
        return pn_fail(err, PN_E_NOMEM, "no memory for a prompt of %zu tokens", n);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (pn_token){ ids[i], position + (int32_t)i, 0, i + 1 == n };
    status = pn_session_eval(g->session, tokens, n, err);
    if (tokens != &one)
        free(tokens);
    return status;
}

/* The token's bytes to the stream: as tool_stream_push, or -2 with *err set. */
static int show_token(generator *g, int32_t id, uint32_t flags, pn_error *err)
{
    size_t n = 0;
    pn_status status = pn_tokenizer_decode(g->tokenizer, id, flags, g->bytes, g->bytes_capacity, &n, err);
    if (status == PN_E_FULL) {
        char *more = realloc(g->bytes, n);
        if (!more) {
            pn_fail(err, PN_E_NOMEM, "no memory for a token of %zu bytes", n);
            return -2;
        }
        g->bytes = more;
        g->bytes_capacity = n;
        status = pn_tokenizer_decode(g->tokenizer, id, flags, g->bytes, g->bytes_capacity, &n, err);
    }
    return status != PN_OK ? -2 : tool_stream_push(&g->stream, g->bytes, n);
}

int generate_make_room(generator *g, size_t need, pn_error *err)
{
    const pn_config *config = pn_runtime_config(g->setup->runtime);
    int64_t length = pn_session_length(g->session, 0), keep = pn_config_int(config, "runtime", "keep");
    int64_t missing = length + (int64_t)need - pn_session_context(g->session), drop = (length - keep) / 2;
    if (missing <= 0)
        return 0;
    if (drop < missing)
        drop = missing;
    if (strcmp(pn_config_text(config, "runtime", "context_end"), "shift") != 0 || drop > length - keep)
        return GENERATE_FULL;
    if (pn_session_shift(g->session, 0, (int32_t)keep, (int32_t)drop, err) != PN_OK)
        return GENERATE_FAILED;
    g->forgotten += (size_t)drop;
    return 0;
}

/* One round: sample, show. 0 = go on with g->pending, else GENERATE_*. */
static int next_token(generator *g, int64_t limit, bool first, pn_error *err)
{
    int32_t id;
    int shown;
    if (limit >= 0 && (int64_t)g->made >= limit)
        return GENERATE_COUNTED;
    if (pn_sampler_sample(g->sampler, pn_session_logits(g->session, 0), &id, err) != PN_OK)
        return GENERATE_FAILED;
    g->pending = id;
    if (g->prompt ? pn_prompt_ends(g->prompt, id) : pn_tokenizer_ends(g->tokenizer, id))
        return GENERATE_ENDED;
    g->made++;
    shown = show_token(g, id, first && g->made == 1 ? PN_DECODE_FIRST : 0, err);
    if (shown)
        return shown == -2 ? GENERATE_FAILED : shown < 0 ? GENERATE_UNWRITABLE : GENERATE_STOPPED;
    if (limit >= 0 && (int64_t)g->made >= limit)
        return GENERATE_COUNTED;
    /* The token takes the next position; what it would give has no room any more. */
    int full = generate_make_room(g, 2, err);
    if (full)
        return full;
    return tool_interrupted() ? GENERATE_CANCELLED : 0;
}

int generate_text(generator *g, const int32_t *ids, size_t n, bool first, pn_error *err)
{
    int64_t limit = pn_config_int(pn_runtime_config(g->setup->runtime), "sampling", "n");
    double begin = tool_clock(), end;
    int32_t before = pn_session_length(g->session, 0);
    pn_status status;
    int reason;
    g->prompt_tokens = n;
    g->made = g->decoded = 0;
    g->prompt_seconds = g->decode_seconds = 0;
    g->wrote = false;
    g->progress_since = begin;
    status = evaluate(g, ids, n, err);
    hide_progress(g);
    end = tool_clock();
    g->prompt_seconds = end - begin;
    if (status != PN_OK)
        return status == PN_E_CANCELLED ? GENERATE_CANCELLED : GENERATE_FAILED;   /* g->pending is still to come */
    g->pending = -1;
    for (size_t i = 0; i < n; i++)
        pn_sampler_accept(g->sampler, ids[i]);
    begin = end;
    while ((reason = next_token(g, limit, first, err)) == 0) {
        int32_t id = g->pending;
        status = evaluate(g, &id, 1, err);
        if (status != PN_OK) {
            reason = status == PN_E_CANCELLED ? GENERATE_CANCELLED : GENERATE_FAILED;
            break;
        }
        g->pending = -1;
        g->decoded++;
    }
    g->decode_seconds = tool_clock() - begin;
    if (reason == GENERATE_FAILED && g->made == 0)
        pn_session_trim(g->session, 0, before, NULL);
    if (tool_stream_finish(&g->stream) != 0)
        reason = GENERATE_UNWRITABLE;
    return reason;
}

static double rate(size_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static double megabytes(uint64_t bytes)
{
    return (double)bytes * 1e-6;
}

void generate_report(const generator *g, bool with_load)
{
    if (with_load)
        tool_say("load    %8.3f s  %s, context %d, %d threads, %.1f MB of weights read per token", g->load_seconds,
                 pn_model_arch(g->model), (int)pn_session_context(g->session), (int)pn_session_threads(g->session),
                 megabytes(pn_model_weight_bytes(g->model)));
    tool_say("prompt  %8.3f s  %zu tokens, %.1f tokens/s", g->prompt_seconds, g->prompt_tokens,
             rate(g->prompt_tokens, g->prompt_seconds));
    if (g->decoded > 0)
        tool_say("decode  %8.3f s  %zu tokens made, %.1f tokens/s", g->decode_seconds, g->made,
                 rate(g->decoded, g->decode_seconds));
    else
        tool_say("decode  %8.3f s  %zu tokens made", g->decode_seconds, g->made);
    if (g->forgotten > 0)
        tool_say("context shifted: %zu tokens forgotten so far", g->forgotten);
    if (with_load)
        tool_say("memory  %8.1f MB peak; arena %.1f, cache %.1f, packed %.1f, scratch %.1f MB; seed %llu",
                 megabytes(tool_peak_memory()), megabytes(pn_session_bytes(g->session, "arena")),
                 megabytes(pn_session_bytes(g->session, "kv")), megabytes(pn_session_bytes(g->session, "packed")),
                 megabytes(pn_session_bytes(g->session, "scratch")), (unsigned long long)pn_sampler_seed(g->sampler));
}

/* `pantheon importance`: sums of squares of what the columns of each matrix are multiplied with, over a text. */
#include "importance.h"
#include "passages.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
    "usage: pantheon importance [-c FILE.ini | MODEL] TEXT [-o OUT] [OPTIONS]\n\n"
    "Runs the text of a file through the model and writes, for each matrix NAME, the sums of squares of the inputs of "
    "its\n"
    "columns (NAME.in_sum2) and how many vectors those were (NAME.counts): what 'pantheon quantize --importance' "
    "wants.\n"
    "OUT is a model file of the same format, as other programs write such statistics too. The text is cut into "
    "windows\n"
    "of N tokens, each evaluated from an empty context; some ten thousand tokens of mixed text are enough.\n\n"
    "  -o, --output OUT         where to; default: importance.FORMAT in the current folder\n"
    "      --context N          tokens of a window; default: 512, or what the model has if that is less\n"
    "  -t, --threads N          threads ([runtime] threads); the result does not depend on it\n"
    "  -c, --config FILE        an INI file\n"
    "      --set SECTION.KEY=V  any key of the INI; may repeat\n"
    "  -v, --verbose            say what was done; -vv: kernels too\n"
    "  -h, --help               this text\n";

enum { OPT_CONTEXT = TOOL_FIRST };

typedef struct importance_options {
    const char *model, *text, *out;
    int64_t context;
} importance_options;

/* What one matrix has seen. */
typedef struct seen {
    const pn_tensor *tensor;
    double *sums; /* [cols] */
    size_t cols;
    uint64_t count;
} seen;

typedef struct statistics {
    const pn_file *file;
    seen *all; /* [tensors of the file] */
    size_t n;
    bool failed; /* no memory */
} statistics;

/* ---- gathering -------------------------------------------------------------------------------------------------- */

/* On one of the evaluation's threads, while the others wait; tokens come in the same order whatever their number. */
static void observe(void *arg, const pn_tensor *weight, const float *input, size_t columns, size_t cols)
{
    statistics *s = arg;
    size_t i = 0;
    while (i < s->n && s->all[i].tensor != weight) i++;
    if (i == s->n || s->failed) return;
    seen *x = &s->all[i];
    if (!x->sums) {
        x->sums = calloc(cols, sizeof *x->sums);
        x->cols = cols;
        s->failed = !x->sums;
        if (s->failed) return;
    }
    for (size_t c = 0; c < columns; c++)
        for (size_t k = 0; k < cols; k++) x->sums[k] += (double)input[c * cols + k] * (double)input[c * cols + k];
    x->count += columns;
}

static int gather(passages *p, statistics *s, bool show)
{
    size_t n = passages_windows(p);
    int status = 0;
    for (size_t w = 0; w < n && !status; w++) {
        if (show) fprintf(stderr, "\rwindow %zu/%zu\033[K", w + 1, n);
        status = passages_eval(p, w, 0, NULL, NULL);
    }
    if (show) fputs("\r\033[K", stderr);
    if (!status && s->failed) return tool_failf("no memory for the statistics");
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static pn_status add_number(pn_writer *w, const char *key, uint64_t number, pn_error *err)
{
    pn_value v = {.type = PN_T_U32, .as.u = number};
    return pn_writer_add_value(w, pn_str_from(key), &v, err);
}

/* `source`: the name of what was read; it must live until pn_writer_begin. */
static pn_status add_metadata(pn_writer *w, const passages *p, const pn_str *source, pn_error *err)
{
    pn_value type = {.type = PN_T_STRING, .as.s = pn_str_from("imatrix")};
    pn_value sets = {.type = PN_T_ARRAY, .item_type = PN_T_STRING, .count = 1, .as.items = source};
    pn_status st = pn_writer_add_value(w, pn_str_from("general.type"), &type, err);
    if (!st) st = pn_writer_add_value(w, pn_str_from("imatrix.datasets"), &sets, err);
    if (!st) st = add_number(w, "imatrix.chunk_count", passages_windows(p), err);
    if (!st) st = add_number(w, "imatrix.chunk_size", (uint64_t)p->context, err);
    return st;
}

static pn_status add_tensor(pn_writer *w, const seen *x, const char *suffix, size_t cols, pn_error *err)
{
    char name[1200];
    pn_tensor t = {.struct_size = sizeof t, .n_dims = 2, .dims = {1, cols}, .type = "f32"};
    snprintf(name, sizeof name, "%.*s%s", x->tensor->name.size < 1000 ? (int)x->tensor->name.size : 1000,
             x->tensor->name.data, suffix);
    t.name = pn_str_from(name);
    return pn_writer_add_tensor(w, &t, err);
}

static pn_status put_floats(pn_writer *w, const seen *x, pn_error *err)
{
    float *sums = malloc(x->cols * sizeof *sums), count = (float)x->count;
    pn_status st = sums ? PN_OK : pn_fail(err, PN_E_NOMEM, "no memory for %zu sums", x->cols);
    for (size_t i = 0; !st && i < x->cols; i++) {
        sums[i] = (float)x->sums[i];
        if (!isfinite(sums[i]))
            st = pn_fail(err, PN_E_RANGE, "tensor '%.*s': column %zu has inputs that are no finite numbers",
                         (int)x->tensor->name.size, x->tensor->name.data, i);
    }
    if (!st) st = pn_writer_data(w, sums, x->cols * sizeof *sums, err);
    if (!st) st = pn_writer_data(w, &count, sizeof count, err);
    free(sums);
    return st;
}

static int write_file(pn_writer *w, const passages *p, const statistics *s, const char *text)
{
    pn_error err = {0};
    const char *slash = strrchr(text, '/');
    pn_str source = pn_str_from(slash ? slash + 1 : text);
    pn_status st = add_metadata(w, p, &source, &err);
    for (size_t i = 0; i < s->n && !st; i++) {
        if (!s->all[i].sums) continue;
        st = add_tensor(w, &s->all[i], IMPORTANCE_SUMS, s->all[i].cols, &err);
        if (!st) st = add_tensor(w, &s->all[i], IMPORTANCE_COUNTS, 1, &err);
    }
    if (!st) st = pn_writer_begin(w, &err);
    for (size_t i = 0; i < s->n && !st; i++)
        if (s->all[i].sums) st = put_floats(w, &s->all[i], &err);
    if (!st) st = pn_writer_finish(w, &err);
    return st ? tool_fail(&err) : 0;
}

/* ---- the subcommand --------------------------------------------------------------------------------------------- */

static int gather_and_write(const importance_options *o, passages *p, statistics *s, pn_runtime *runtime,
                            const char *out, bool loud)
{
    pn_error err = {0};
    pn_writer *w = NULL;
    pn_session_options options = PN_OPTIONS_INIT(pn_session_options);
    options.cancelled = tool_cancelled;
    options.observe = observe;
    options.observe_arg = s;
    int status = passages_begin(p, o->context ? (int32_t)o->context : passages_default_context(p), &options);
    if (status) return status;
    if (loud) tool_say_kernels(p->session);
    tool_interrupt_catch(true);
    tool_interrupt_on_term();
    /* Made before the work: whether it can be written is known at once. */
    if (pn_writer_create(runtime, pn_file_format(s->file), out, NULL, &w, &err) != PN_OK) return tool_fail(&err);
    status = gather(p, s, isatty(STDERR_FILENO) != 0);
    if (!status) status = write_file(w, p, s, o->text);
    if (status == TOOL_INTERRUPTED) tool_say("stopped; %s was not written", out);
    pn_writer_destroy(w);
    tool_interrupt_catch(false);
    return status;
}

static int make_importance(tool_setup *setup, const importance_options *o)
{
    passages p = {0};
    statistics s = {0};
    char out[256] = "";
    double begin = tool_clock();
    int status = tool_setup_runtime(setup);
    if (status) return status;
    status = passages_open(&p, setup, "importance", o->model, o->text);
    if (!status) {
        s.file = pn_model_file(p.model);
        s.n = pn_file_tensor_count(s.file);
        s.all = calloc(s.n ? s.n : 1, sizeof *s.all);
        for (size_t i = 0; s.all && i < s.n; i++) s.all[i].tensor = pn_file_tensor_at(s.file, i);
        snprintf(out, sizeof out, "importance.%s", pn_file_format(s.file));
        status = s.all ? gather_and_write(o, &p, &s, setup->runtime, o->out ? o->out : out, setup->verbose >= 2)
                       : tool_failf("no memory");
    }
    if (!status && setup->verbose)
        tool_say("%zu tokens in %.3f s, %d threads", p.ids.count, tool_clock() - begin,
                 (int)pn_session_threads(p.session));
    if (!status && !o->out) printf("%s\n", out);
    for (size_t i = 0; s.all && i < s.n; i++) free(s.all[i].sums);
    free(s.all);
    passages_close(&p);
    return status;
}

static int parse(tool_setup *setup, importance_options *o, int argc, char **argv)
{
    static const struct option table[] = {TOOL_LONG_OPTIONS,
                                          {"output", required_argument, NULL, 'o'},
                                          {"context", required_argument, NULL, OPT_CONTEXT},
                                          {0}};
    int c, status, n;
    while ((c = getopt_long(argc, argv, TOOL_OPTIONS "o:", table, NULL)) != -1) {
        if (c == 'o') {
            o->out = optarg;
            continue;
        }
        status = c == OPT_CONTEXT ? tool_integer("importance", "--context", optarg, 1, 1 << 24, &o->context)
                                  : tool_option(setup, "importance", c, optarg);
        if (status == -1 || (status == 0 && c == OPT_CONTEXT)) continue;
        if (status) return status;
        fputs(HELP, stdout); /* -h is the only one left */
        return tool_finish() ? 1 : -1;
    }
    n = argc - optind;
    if (n < 1 || n > 2 || (n == 1 && !setup->ini))
        return tool_usage("importance",
                          "a MODEL and a TEXT are wanted (the model may come from -c FILE.ini); got %d "
                          "words",
                          n);
    if (n == 2) o->model = argv[optind];
    o->text = argv[argc - 1];
    return 0;
}

int cmd_importance(int argc, char **argv)
{
    tool_setup setup;
    importance_options options = {0};
    int status = tool_setup_begin(&setup);
    if (!status) status = parse(&setup, &options, argc, argv);
    if (!status) status = make_importance(&setup, &options);
    tool_setup_end(&setup);
    if (status == -1) return 0;
    return status ? status : tool_finish();
}

/* `pantheon quantize`: a copy of a model file whose matrices have other types. */
#include "convert.h"
#include "importance.h"
#include "recipe.h"

#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char HELP[] =
    "usage: pantheon quantize IN OUT TYPE|RECIPE [OPTIONS]\n"
    "       pantheon quantize IN --dry-run TYPE|RECIPE [OPTIONS]\n"
    "       pantheon quantize --list\n\n"
    "Writes OUT, a copy of the model file IN whose matrices have other types. TYPE: all of them get this one (rows "
    "that\n"
    "do not divide into its blocks stay as they are; vectors, norms and routers always do). RECIPE: the name of an "
    "INI\n"
    "file among the recipes (q4_k_m), or its path: docs/quantize.md says how to write one.\n"
    "OUT appears when it is whole. IN may have any types that are loaded, quantized ones too.\n\n"
    "      --importance FILE  statistics of the columns (pantheon importance), to spend the bits where they matter\n"
    "      --dry-run          show what each tensor would become and how large OUT would be; write nothing\n"
    "      --list             types that can be made, and recipes\n"
    "  -q, --quiet            no line per tensor\n"
    "  -t, --threads N        threads ([runtime] threads); default: one per CPU\n"
    "  -c, --config FILE      an INI file: plugins, [quant] alias\n"
    "      --set SECTION.KEY=V  any key of the INI; may repeat\n"
    "  -v, --verbose          say which plugins are used, and which tensors have no importance\n"
    "  -h, --help             this text\n";

enum { QUANTIZE_IMPORTANCE = TOOL_FIRST, QUANTIZE_DRY, QUANTIZE_LIST };

typedef struct quantize_options {
    const char *in, *out, *what, *importance;
    bool dry, list, quiet;
} quantize_options;

typedef struct item {
    const pn_tensor *tensor;
    recipe_choice choice;
    uint64_t bytes; /* what it will take */
} item;

typedef struct plan {
    pn_file *file;
    item *items;
    size_t n;
    uint64_t elements; /* that will be converted */
    size_t changed;
} plan;

/* ---- the plan --------------------------------------------------------------------------------------------------- */

static int plan_item(const pn_file *file, const recipe *r, uint32_t layers, item *it)
{
    pn_error err = {0};
    const pn_tensor *t = it->tensor;
    float none;
    int status = recipe_choose(r, file, t, layers, &it->choice);
    if (status) return status;
    const pn_quant *q = it->choice.type;
    if (q && t->type && strcmp(q->name, t->type) == 0) it->choice.type = q = NULL; /* it is that already */
    if (q) {
        if (pn_file_tensor_f32(file, t, 0, 0, &none, &err) != PN_OK) return tool_fail(&err); /* can it be read? */
        uint64_t cols = t->dims[t->n_dims - 1];
        it->bytes = pn_tensor_elements(t) / cols * pn_quant_row_bytes(q, cols);
    } else {
        if (!t->type)
            return tool_failf("%s: tensor '%.*s' has the type number %llu, which has no name here, so that its size is "
                              "not known: say what it is with --set quant.alias.%llu=NAME",
                              pn_file_path(file), (int)t->name.size, t->name.data, (unsigned long long)t->type_id,
                              (unsigned long long)t->type_id);
        it->bytes = t->size;
    }
    return 0;
}

static int make_plan(plan *p, const recipe *r)
{
    uint32_t layers = recipe_layers(p->file);
    p->n = pn_file_tensor_count(p->file);
    p->items = calloc(p->n ? p->n : 1, sizeof *p->items);
    if (!p->items) return tool_failf("no memory for %zu tensors", p->n);
    for (size_t i = 0; i < p->n; i++) {
        p->items[i].tensor = pn_file_tensor_at(p->file, i);
        int status = plan_item(p->file, r, layers, &p->items[i]);
        if (status) return status;
        if (!p->items[i].choice.type) continue;
        p->elements += pn_tensor_elements(p->items[i].tensor);
        p->changed++;
    }
    return 0;
}

static int declare(const plan *p, pn_writer *w)
{
    pn_error err = {0};
    const pn_value *v;
    pn_str key;
    pn_status st = PN_OK;
    for (size_t i = 0; !st && pn_file_value_at(p->file, i, &key, &v, NULL) == PN_OK; i++)
        st = pn_writer_add_value(w, key, v, &err);
    for (size_t i = 0; !st && i < p->n; i++) {
        const item *it = &p->items[i];
        pn_tensor t = *it->tensor;
        t.struct_size = sizeof t;
        t.size = it->bytes;
        if (it->choice.type) {
            t.type = it->choice.type->name;
            t.type_id = 0;
        }
        st = pn_writer_add_tensor(w, &t, &err);
    }
    if (!st) st = pn_writer_begin(w, &err);
    return st ? tool_fail(&err) : 0;
}

/* ---- reporting -------------------------------------------------------------------------------------------------- */

static const char *in_bytes(uint64_t n, char *text, size_t capacity)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double x = (double)n / 1024;
    size_t u = 0;
    while (x >= 1023.95 && u < 3) {
        x /= 1024;
        u++;
    }
    if (n < 1024) snprintf(text, capacity, "%u B", (unsigned)n);
    else snprintf(text, capacity, "%.1f %s", x, units[u]);
    return text;
}

static void print_item(const item *it)
{
    char dims[200] = "", from[32], to[32];
    const pn_tensor *t = it->tensor;
    size_t at = 0, width = t->name.size < 32 ? 32 - t->name.size : 1;
    for (uint32_t i = 0; i < t->n_dims && at < sizeof dims; i++)
        at += (size_t)snprintf(dims + at, sizeof dims - at, "%s%llu", i ? " x " : "", (unsigned long long)t->dims[i]);
    tool_print_safe(stdout, t->name.data, t->name.size, false);
    printf("%*s%-16s %-7s -> %-7s %11s -> %11s", (int)width, "", dims, t->type ? t->type : "?",
           it->choice.type ? it->choice.type->name : "kept", in_bytes(t->size, from, sizeof from),
           in_bytes(it->bytes, to, sizeof to));
    if (it->choice.why[0]) printf("  (%s)", it->choice.why);
    putchar('\n');
}

static void print_total(const plan *p, uint64_t file_bytes)
{
    char from[32], to[32];
    uint64_t before = 0, after = 0, elements = 0;
    for (size_t i = 0; i < p->n; i++) {
        before += p->items[i].tensor->size;
        after += p->items[i].bytes;
        elements += pn_tensor_elements(p->items[i].tensor);
    }
    printf("%zu tensors, %zu of them converted: %s -> %s, %.2f bits per weight\n", p->n, p->changed,
           in_bytes(before, from, sizeof from), in_bytes(after, to, sizeof to),
           elements ? 8.0 * (double)after / (double)elements : 0.0);
    printf("file: %llu -> %llu bytes\n", (unsigned long long)pn_file_bytes(p->file), (unsigned long long)file_bytes);
}

typedef struct progress {
    bool shown; /* stderr is a terminal */
    size_t index, n;
    const pn_tensor *tensor;
    uint64_t done, total; /* elements */
    double begin, last;
} progress;

static void clear_progress(const progress *g)
{
    if (g->shown) fputs("\r\033[K", stderr);
}

static void show_progress(progress *g)
{
    double now = tool_clock(), share = g->total ? (double)g->done / (double)g->total : 1;
    if (!g->shown || now - g->last < 0.1) return;
    g->last = now;
    fprintf(stderr, "\r%zu/%zu ", g->index + 1, g->n);
    tool_print_safe(stderr, g->tensor->name.data, g->tensor->name.size < 40 ? g->tensor->name.size : 40, false);
    fprintf(stderr, "  %.0f %%", 100 * share);
    if (share > 0.01) {
        double left = (now - g->begin) * (1 - share) / share;
        fprintf(stderr, ", %d:%02d left", (int)(left / 60), (int)left % 60);
    }
    fputs("\033[K", stderr);
    fflush(stderr);
}

/* ---- converting ------------------------------------------------------------------------------------------------- */

typedef struct output {
    pn_writer *writer;
    progress *progress;
} output;

static int put(void *arg, const void *bytes, size_t size, uint64_t elements)
{
    const output *o = arg;
    pn_error err = {0};
    if (tool_interrupted()) return TOOL_INTERRUPTED;
    if (pn_writer_data(o->writer, bytes, size, &err) != PN_OK) {
        clear_progress(o->progress);
        return tool_fail(&err);
    }
    o->progress->done += elements;
    show_progress(o->progress);
    return 0;
}

static int copy(const item *it, output *o)
{
    enum { PIECE = 1 << 24 };
    const unsigned char *p = it->tensor->data;
    int status = 0;
    for (uint64_t at = 0; at < it->bytes && !status; at += PIECE)
        status = put(o, p + at, it->bytes - at < PIECE ? (size_t)(it->bytes - at) : PIECE, 0);
    return status;
}

static int convert_item(const plan *p, const item *it, const importance *imp, converter *c, output *o, size_t *without)
{
    float *weights = NULL;
    convert_job job = {.file = p->file, .tensor = it->tensor, .type = it->choice.type, .planes = 1};
    if (imp) {
        int status = importance_of(imp, it->tensor, &weights, &job.planes);
        if (status) return status;
        job.importance = weights;
        *without += !weights;
    }
    int status = convert_run(c, &job, put, o);
    free(weights);
    return status;
}

static int convert_all(const plan *p, const quantize_options *o, const importance *imp, converter *c, pn_writer *w,
                       bool verbose)
{
    progress g = {.shown = isatty(STDERR_FILENO) != 0, .n = p->n, .total = p->elements, .begin = tool_clock()};
    output out = {w, &g};
    pn_error err = {0};
    size_t without = 0;
    int status = 0;
    for (size_t i = 0; i < p->n && !status; i++) {
        const item *it = &p->items[i];
        size_t before = without;
        g.index = i;
        g.tensor = it->tensor;
        show_progress(&g);
        status = it->choice.type ? convert_item(p, it, imp, c, &out, &without) : copy(it, &out);
        clear_progress(&g);
        if (!status && verbose && without > before)
            tool_say("%.*s: no importance", (int)it->tensor->name.size, it->tensor->name.data);
        if (!status && !o->quiet) print_item(it);
        if (!status && !o->quiet && g.shown) fflush(stdout);
    }
    if (status == TOOL_INTERRUPTED) return status;
    if (!status && imp && p->changed && without == p->changed)
        return tool_failf("--importance: %s: it says nothing of any tensor that is converted: it is of another model",
                          o->importance);
    if (!status && without) tool_say("%zu of %zu tensors have no importance in %s", without, p->changed, o->importance);
    if (!status && pn_writer_finish(w, &err) != PN_OK) status = tool_fail(&err);
    return status;
}

/* ---- the subcommand --------------------------------------------------------------------------------------------- */

static int n_threads(const tool_setup *setup)
{
    int64_t n = pn_config_int(pn_runtime_config(setup->runtime), "runtime", "threads");
    cpu_set_t set;
    if (n <= 0) n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 256 ? 256 : (int)n;
}

/* OUT must not be a file that is being read. */
static int check_output(const char *out, const char *in, const char *what)
{
    struct stat a, b;
    if (!in || stat(out, &a) || stat(in, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino) return 0;
    return tool_failf("%s: it is the same file as %s; give another name", out, what);
}

static int write_model(const tool_setup *setup, const quantize_options *o, const plan *p, const importance *imp)
{
    pn_error err = {0};
    pn_writer *w = NULL;
    pn_writer_options options = PN_OPTIONS_INIT(pn_writer_options);
    options.flags = p->changed ? PN_WRITER_RETYPED : 0;
    tool_interrupt_catch(true); /* before there is a file to remove */
    tool_interrupt_on_term();
    if (pn_writer_create(setup->runtime, pn_file_format(p->file), o->dry ? NULL : o->out, &options, &w, &err) != PN_OK)
        return tool_fail(&err);
    int status = declare(p, w);
    if (!status && o->dry) {
        for (size_t i = 0; i < p->n && !o->quiet; i++) print_item(&p->items[i]);
        if (pn_writer_finish(w, &err) != PN_OK) status = tool_fail(&err);
    } else if (!status) {
        converter *c = convert_open(n_threads(setup));
        status = c ? convert_all(p, o, imp, c, w, setup->verbose > 0) : 1;
        convert_close(c);
    }
    if (!status) print_total(p, pn_writer_bytes(w));
    if (status == TOOL_INTERRUPTED) tool_say("stopped; %s was not written", o->out);
    pn_writer_destroy(w);
    tool_interrupt_catch(false);
    return status;
}

static int quantize(tool_setup *setup, const quantize_options *o)
{
    pn_error err = {0};
    plan p = {0};
    recipe *r = NULL;
    importance *imp = NULL;
    int status = tool_setup_runtime(setup);
    if (status) return status;
    if (o->list) {
        recipe_list(setup->runtime);
        return 0;
    }
    if (o->out && ((status = check_output(o->out, o->in, "IN")) ||
                   (status = check_output(o->out, o->importance, "that of --importance"))))
        return status;
    if (!(r = recipe_open(setup->runtime, o->what))) return 1;
    if (pn_file_open(setup->runtime, o->in, &p.file, &err) != PN_OK) status = tool_fail(&err);
    if (!status && o->importance && !(imp = importance_open(setup->runtime, o->importance))) status = 1;
    if (!status) status = make_plan(&p, r);
    if (!status) status = write_model(setup, o, &p, imp);
    importance_close(imp);
    pn_file_destroy(p.file);
    free(p.items);
    recipe_close(r);
    return status;
}

static int parse(tool_setup *setup, quantize_options *o, int argc, char **argv)
{
    static const struct option table[] = {TOOL_LONG_OPTIONS,
                                          {"importance", required_argument, NULL, QUANTIZE_IMPORTANCE},
                                          {"dry-run", no_argument, NULL, QUANTIZE_DRY},
                                          {"list", no_argument, NULL, QUANTIZE_LIST},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {0}};
    int c, status, n;
    while ((c = getopt_long(argc, argv, TOOL_OPTIONS "q", table, NULL)) != -1) {
        switch (c) {
        case QUANTIZE_IMPORTANCE: o->importance = optarg; continue;
        case QUANTIZE_DRY: o->dry = true; continue;
        case QUANTIZE_LIST: o->list = true; continue;
        case 'q': o->quiet = true; continue;
        }
        status = tool_option(setup, "quantize", c, optarg);
        if (status == -1) continue;
        if (status) return status;
        fputs(HELP, stdout); /* -h is the only one left */
        return tool_finish() ? 1 : -1;
    }
    n = argc - optind;
    if (o->list) return n ? tool_usage("quantize", "--list takes nothing else; got '%s'", argv[optind]) : 0;
    if (n != 3 && !(o->dry && n == 2))
        return tool_usage("quantize",
                          "IN, OUT (not needed with --dry-run) and a TYPE or RECIPE are wanted; got %d words", n);
    o->in = argv[optind];
    o->out = n == 3 ? argv[optind + 1] : NULL;
    o->what = argv[optind + n - 1];
    return 0;
}

int cmd_quantize(int argc, char **argv)
{
    tool_setup setup;
    quantize_options options = {0};
    int status = tool_setup_begin(&setup);
    if (!status) status = parse(&setup, &options, argc, argv);
    if (!status) status = quantize(&setup, &options);
    tool_setup_end(&setup);
    if (status == -1) return 0;
    return status ? status : tool_finish();
}

/* `pantheon perplexity`: how well a model foretells a text, and how far it is from a reference run on the same text. */
#include "passages.h"
#include "reference.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
    "usage: pantheon perplexity [-c FILE.ini | MODEL] TEXT [OPTIONS]\n\n"
    "Perplexity of the model on the text of a file, with its standard error. The text is cut into windows of N "
    "tokens,\n"
    "each evaluated from an empty context; in each, the tokens behind its first half are scored, so that every scored\n"
    "token is foretold from at least N/2 others.\n\n"
    "      --save REFERENCE     write the run to a file, for --kl\n"
    "      --kl REFERENCE       compare with such a run: divergence of the probabilities (mean with error, maximum),\n"
    "                           how often the best token is the same, RMS difference of the text's probabilities\n"
    "      --context N          tokens of a window; default: the reference's, else 512 or what the model has if less\n"
    "      --activations MODE   exact (default) or fast ([runtime] activations)\n"
    "      --kv TYPE            numbers of the cache ([runtime] kv)\n"
    "      --json               the results as JSON\n"
    "  -t, --threads N          threads ([runtime] threads)\n"
    "  -c, --config FILE        an INI file\n"
    "      --set SECTION.KEY=V  any key of the INI; may repeat\n"
    "  -v, --verbose            say what was done; -vv: kernels too\n"
    "  -h, --help               this text\n";

enum { OPT_SAVE = TOOL_FIRST, OPT_KL, OPT_CONTEXT, OPT_ACTIVATIONS, OPT_KV, OPT_JSON };

typedef struct perplexity_options {
    const char *model, *text, *save, *kl;
    int64_t context;
    bool json;
} perplexity_options;

/* Mean and standard error of what was added, by Welford's recurrence. */
typedef struct mean {
    uint64_t n;
    double mean, squares;
} mean;

static void add(mean *m, double x)
{
    double d = x - m->mean;
    m->n++;
    m->mean += d / (double)m->n;
    m->squares += d * (x - m->mean);
}

static double error_of(const mean *m)
{
    return m->n > 1 ? sqrt(m->squares / (double)(m->n - 1) / (double)m->n) : 0;
}

typedef struct run {
    passages *p;
    const perplexity_options *o;
    reference *reference; /* NULL without --kl */
    output *save;         /* NULL without --save */
    size_t window, vocab;
    mean nll, reference_nll, kl, difference, same; /* difference: of squares of probabilities; of nll: `ratio` */
    mean ratio;
    double kl_max;
} run;

/* ---- a row ------------------------------------------------------------------------------------------------------ */

typedef struct row {
    const float *logits;
    double most, log_sum; /* log of the sum of exponentials, the largest taken out */
    size_t best;
} row;

static row measure(const float *logits, size_t n)
{
    row r = {.logits = logits, .most = (double)logits[0]};
    double sum = 0;
    for (size_t i = 1; i < n; i++)
        if ((double)logits[i] > r.most) {
            r.most = (double)logits[i];
            r.best = i;
        }
    for (size_t i = 0; i < n; i++) sum += exp((double)logits[i] - r.most);
    r.log_sum = log(sum);
    return r;
}

static double log_probability(const row *r, size_t i)
{
    return (double)r->logits[i] - r->most - r->log_sum;
}

static void compare(run *g, const row *q, size_t next)
{
    row p = measure(g->reference->row, g->vocab);
    double kl = 0, a = log_probability(&p, next), b = log_probability(q, next);
    for (size_t i = 0; i < g->vocab; i++) {
        double lp = log_probability(&p, i);
        if (lp > -700) kl += exp(lp) * (lp - log_probability(q, i));
    }
    add(&g->kl, kl);
    if (kl > g->kl_max || g->kl.n == 1) g->kl_max = kl;
    add(&g->reference_nll, -a);
    add(&g->ratio, a - b);
    add(&g->difference, (exp(a) - exp(b)) * (exp(a) - exp(b)));
    add(&g->same, p.best == q->best);
}

/* The logits behind token i foretell token i + 1. */
static int visit(void *arg, size_t i, const float *logits)
{
    run *g = arg;
    if (i + 1 >= passages_length(g->p, g->window)) return 0;
    size_t next = (size_t)passages_token(g->p, g->window, i + 1);
    row q = measure(logits, g->vocab);
    if (!isfinite(q.log_sum) || !isfinite(q.most))
        return tool_failf("the model gives logits that are no numbers, at token %zu of window %zu", i, g->window);
    if (g->reference && reference_row(g->reference)) return 1;
    if (g->save && output_write(g->save, logits, g->vocab))
        return tool_failf("%s: cannot be written: %s", g->o->save, strerror(errno));
    add(&g->nll, -log_probability(&q, next));
    if (g->reference) compare(g, &q, next);
    return 0;
}

/* ---- all windows ------------------------------------------------------------------------------------------------ */

/* Scored tokens of a window. */
static size_t scored(const passages *p, size_t w)
{
    size_t n = passages_length(p, w), half = (size_t)p->context / 2;
    return n > half + 1 ? n - half - 1 : 0;
}

static int evaluate(run *g, bool show)
{
    size_t n = passages_windows(g->p);
    int status = 0;
    for (g->window = 0; g->window < n && !status; g->window++) {
        if (!scored(g->p, g->window)) continue;
        if (show) fprintf(stderr, "\rwindow %zu/%zu, perplexity %.4f\033[K", g->window + 1, n, exp(g->nll.mean));
        status = passages_eval(g->p, g->window, (size_t)g->p->context / 2, visit, g);
    }
    if (show) fputs("\r\033[K", stderr);
    return status;
}

static void print_text(const run *g)
{
    printf("tokens            %zu in %zu windows of %d, %llu scored\n", g->p->ids.count, passages_windows(g->p),
           (int)g->p->context, (unsigned long long)g->nll.n);
    printf("perplexity        %.4f +- %.4f\n", exp(g->nll.mean), exp(g->nll.mean) * error_of(&g->nll));
    if (!g->reference) return;
    printf("of the reference  %.4f +- %.4f\n", exp(g->reference_nll.mean),
           exp(g->reference_nll.mean) * error_of(&g->reference_nll));
    printf("their ratio       %.6f +- %.6f\n", exp(g->ratio.mean), exp(g->ratio.mean) * error_of(&g->ratio));
    printf("KL divergence     %.3e +- %.1e, maximum %.3e\n", g->kl.mean, error_of(&g->kl), g->kl_max);
    printf("same best token   %.3f %% +- %.3f %%\n", 100 * g->same.mean, 100 * error_of(&g->same));
    printf("RMS probability   %.4f %%\n", 100 * sqrt(g->difference.mean));
}

static void print_json(const run *g)
{
    printf("{\"tokens\": %zu, \"windows\": %zu, \"context\": %d, \"scored\": %llu,\n \"perplexity\": %.17g, "
           "\"perplexity_error\": %.17g",
           g->p->ids.count, passages_windows(g->p), (int)g->p->context, (unsigned long long)g->nll.n, exp(g->nll.mean),
           exp(g->nll.mean) * error_of(&g->nll));
    if (g->reference)
        printf(",\n \"reference_perplexity\": %.17g, \"ratio\": %.17g, \"ratio_error\": %.17g,\n \"kl\": %.17g, "
               "\"kl_error\": %.17g, \"kl_max\": %.17g,\n \"same_best\": %.17g, \"same_best_error\": %.17g, "
               "\"rms_probability\": %.17g",
               exp(g->reference_nll.mean), exp(g->ratio.mean), exp(g->ratio.mean) * error_of(&g->ratio), g->kl.mean,
               error_of(&g->kl), g->kl_max, g->same.mean, error_of(&g->same), sqrt(g->difference.mean));
    printf("}\n");
}

/* Choose the windows, check the reference against them, begin the file to save. */
static int prepare(run *g, const perplexity_options *o, reference *r, output *save)
{
    passages *p = g->p;
    pn_session_options options = PN_OPTIONS_INIT(pn_session_options);
    int32_t context = o->context ? (int32_t)o->context : passages_default_context(p);
    uint64_t rows = 0;
    if (o->kl) {
        if (reference_open(r, o->kl)) return 1;
        g->reference = r;
        if (!o->context) context = (int32_t)r->context;
    }
    p->context = context;
    for (size_t w = 0; w < passages_windows(p); w++) rows += scored(p, w);
    if (!rows)
        return tool_failf("%s: the text has %zu tokens, of which none is scored in windows of %d: give a longer text, "
                          "or --context %zu or less",
                          o->text, p->ids.count, (int)context, p->ids.count > 4 ? p->ids.count - 1 : 2);
    if (o->kl && reference_check(r, (uint32_t)g->vocab, (uint32_t)context, p->ids.data, p->ids.count, rows)) return 1;
    if (passages_begin(p, context, &options)) return 1;
    if (!o->save) return 0;
    g->save = save;
    if (output_open(save, o->save)) return 1;
    return reference_begin(save, o->save, (uint32_t)g->vocab, (uint32_t)context, p->ids.data, p->ids.count, rows);
}

static int perplexity(tool_setup *setup, const perplexity_options *o)
{
    passages p = {0};
    reference r = {0};
    output save = {0};
    run g = {.p = &p, .o = o};
    int status = tool_setup_runtime(setup);
    if (status) return status;
    status = passages_open(&p, setup, "perplexity", o->model, o->text);
    if (!status) {
        double begin = tool_clock();
        g.vocab = (size_t)pn_model_vocab(p.model);
        status = prepare(&g, o, &r, &save);
        if (!status && setup->verbose >= 2) tool_say_kernels(p.session);
        if (!status) status = evaluate(&g, isatty(STDERR_FILENO) != 0);
        if (g.save) status = output_close(&save, o->save, status);
        if (!status && setup->verbose)
            tool_say("%.3f s, %d threads", tool_clock() - begin, (int)pn_session_threads(p.session));
    }
    if (!status) {
        if (o->json) print_json(&g);
        else print_text(&g);
    }
    reference_close(&r);
    passages_close(&p);
    return status;
}

/* ---- the subcommand --------------------------------------------------------------------------------------------- */

static int own_option(tool_setup *setup, perplexity_options *o, int c, const char *argument)
{
    switch (c) {
    case OPT_SAVE: o->save = argument; return -1;
    case OPT_KL: o->kl = argument; return -1;
    case OPT_JSON: o->json = true; return -1;
    case OPT_ACTIVATIONS: return tool_setup_set(setup, "runtime.activations", argument, "--activations");
    case OPT_KV: return tool_setup_set(setup, "runtime.kv", argument, "--kv");
    case OPT_CONTEXT: {
        int status = tool_integer("perplexity", "--context", argument, 2, 1 << 24, &o->context);
        return status ? status : -1;
    }
    default: return tool_option(setup, "perplexity", c, argument);
    }
}

static int parse(tool_setup *setup, perplexity_options *o, int argc, char **argv)
{
    static const struct option table[] = {TOOL_LONG_OPTIONS,
                                          {"save", required_argument, NULL, OPT_SAVE},
                                          {"kl", required_argument, NULL, OPT_KL},
                                          {"context", required_argument, NULL, OPT_CONTEXT},
                                          {"activations", required_argument, NULL, OPT_ACTIVATIONS},
                                          {"kv", required_argument, NULL, OPT_KV},
                                          {"json", no_argument, NULL, OPT_JSON},
                                          {0}};
    int c, status, n;
    while ((c = getopt_long(argc, argv, TOOL_OPTIONS, table, NULL)) != -1) {
        status = own_option(setup, o, c, optarg);
        if (status == -1) continue;
        if (status) return status;
        fputs(HELP, stdout); /* -h is the only one left */
        return tool_finish() ? 1 : -1;
    }
    n = argc - optind;
    if (n < 1 || n > 2 || (n == 1 && !setup->ini))
        return tool_usage("perplexity",
                          "a MODEL and a TEXT are wanted (the model may come from -c FILE.ini); got %d "
                          "words",
                          n);
    if (n == 2) o->model = argv[optind];
    o->text = argv[argc - 1];
    if (o->save && (strcmp(o->save, "-") == 0 || (o->kl && strcmp(o->save, o->kl) == 0)))
        return tool_usage("perplexity", "--save wants the name of a file other than that of --kl");
    return 0;
}

int cmd_perplexity(int argc, char **argv)
{
    tool_setup setup;
    perplexity_options options = {0};
    int status = tool_setup_begin(&setup);
    if (!status) status = parse(&setup, &options, argc, argv);
    if (!status) status = perplexity(&setup, &options);
    tool_setup_end(&setup);
    if (status == -1) return 0;
    return status ? status : tool_finish();
}

/* `pantheon bench`: prompt and decode speed, and how near they come to what the machine can do. */
#include "tool.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char HELP[] =
    "usage: pantheon bench [-c FILE.ini | MODEL] [OPTIONS]\n\n"
    "Evaluates a prompt of N tokens at once (prompt), then N tokens one by one from an empty context (decode), after\n"
    "a warm-up that is not counted. Decode reads every weight once per token, so its bytes per second are compared\n"
    "with what the same threads read from the same file in memory in the same run. With --limits a prompt's\n"
    "multiply-adds with weights (attention is not counted) are compared with what the same threads do in registers.\n\n"
    "  -p, --prompt N         tokens of the prompt (512); 0 leaves it out\n"
    "  -n, --decode N         tokens decoded (64); 0 leaves it out\n"
    "  -r, --repeats N        how often (5)\n"
    "  -t, --threads N        threads ([runtime] threads)\n"
    "      --activations MODE exact or fast ([runtime] activations)\n"
    "      --kv TYPE          numbers of the cache ([runtime] kv)\n"
    "      --limits           what the machine can do: multiply-adds of 8 and 16 bits and of floats\n"
    "      --json             one JSON object\n"
    "  -c, --config FILE      an INI file\n"
    "      --set SECTION.KEY=V  any key of the INI; may repeat\n"
    "  -v, --verbose          each repeat; -vv: kernels too\n"
    "  -h, --help             this text\n";

enum { BENCH_ACTIVATIONS = TOOL_FIRST, BENCH_JSON, BENCH_KV, BENCH_LIMITS };

typedef struct bench_options {
    const char *model;
    int64_t prompt, decode, repeats;
    bool json, limits;
} bench_options;

typedef struct speed {
    size_t tokens;
    double mean, deviation;     /* tokens per second; deviation of the sample, 0 for one repeat */
} speed;

typedef struct bench {
    tool_setup *setup;
    const bench_options *o;
    pn_model *model;
    pn_session *session;
    speed prompt, decode;
    double machine_bandwidth;   /* bytes per second; 0 = could not be measured */
    uint64_t measured_bytes;
    double multiply[3];         /* multiply-adds per second by pn_arithmetic; 0 = not measured */
    char cpu[128], features[512];
} bench;

/* ---- the machine ------------------------------------------------------------------------------------------------ */

static void name_cpu(bench *b)
{
    char line[256];
    struct utsname u;
    FILE *f = fopen("/proc/cpuinfo", "r");
    b->cpu[0] = 0;
    while (f && !b->cpu[0] && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':'))
            snprintf(b->cpu, sizeof b->cpu, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"), strchr(line, ':') + 2);
    if (f)
        fclose(f);
    if (!b->cpu[0] && uname(&u) == 0)
        snprintf(b->cpu, sizeof b->cpu, "%s", u.machine);
    pn_cpu_names(pn_runtime_cpu(b->setup->runtime), b->features, sizeof b->features);
}

/* The bytes of the file that hold tensors: one range when they lie in one mapping, else the largest tensor. */
static const void *weight_range(pn_file *file, size_t *bytes)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    const pn_tensor *largest = NULL;
    for (size_t i = 0; i < pn_file_tensor_count(file); i++) {
        const pn_tensor *t = pn_file_tensor_at(file, i);
        if (!t->data || t->size == 0)
            continue;
        low = (uintptr_t)t->data < low ? (uintptr_t)t->data : low;
        high = (uintptr_t)t->data + t->size > high ? (uintptr_t)t->data + t->size : high;
        largest = !largest || t->size > largest->size ? t : largest;
    }
    *bytes = 0;
    if (!largest)
        return NULL;
    if (high - low <= pn_file_bytes(file)) {
        *bytes = high - low;
        return (const void *)low;
    }
    *bytes = largest->size;
    return largest->data;
}

static void measure_machine(bench *b)
{
    size_t bytes;
    const void *data = weight_range(pn_model_file(b->model), &bytes);
    for (int kind = 0; kind < 3 && b->o->limits; kind++)
        b->multiply[kind] = pn_measure_multiply((pn_arithmetic)kind, pn_runtime_cpu(b->setup->runtime),
                                                (int)pn_session_threads(b->session), 10);
    if (!data)
        return;
    b->machine_bandwidth = pn_measure_read(data, bytes, pn_session_threads(b->session), 5);
    b->measured_bytes = bytes;
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

static int32_t any_token(size_t i, int32_t vocab)
{
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15u;
    return (int32_t)((x ^ x >> 29) % (uint64_t)vocab);
}

/* Evaluate n tokens from an empty context, all at once or one by one. Seconds, or -1 after printing why. */
static double evaluate(bench *b, pn_token *tokens, size_t n, bool at_once)
{
    pn_error err = { 0 };
    double begin;
    pn_status status = pn_session_trim(b->session, 0, 0, &err);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (pn_token){ any_token(i, pn_model_vocab(b->model)), (int32_t)i, 0, !at_once || i + 1 == n };
    begin = tool_clock();
    if (at_once && status == PN_OK)
        status = pn_session_eval(b->session, tokens, n, &err);
    for (size_t i = 0; !at_once && i < n && status == PN_OK; i++)
        status = pn_session_eval(b->session, &tokens[i], 1, &err);
    if (status != PN_OK) {
        if (status != PN_E_CANCELLED)
            tool_fail(&err);
        return -1;
    }
    return tool_clock() - begin;
}

static int measure(bench *b, speed *s, size_t n, bool at_once)
{
    size_t repeats = (size_t)b->o->repeats, warm = at_once ? n : n < 8 ? n : 8;
    pn_token *tokens = malloc(n * sizeof *tokens);
    double *rates = malloc(repeats * sizeof *rates), sum = 0, squares = 0;
    int status = 0;
    if (!tokens || !rates)
        status = tool_failf("no memory for %zu tokens", n);
    if (!status && evaluate(b, tokens, warm, at_once) < 0)
        status = 1;
    for (size_t r = 0; r < repeats && !status; r++) {
        double seconds = evaluate(b, tokens, n, at_once);
        if (seconds < 0) {
            status = 1;
            break;
        }
        rates[r] = (double)n / (seconds > 0 ? seconds : 1e-9);
        sum += rates[r];
        if (b->setup->verbose)
            tool_say("%s %zu of %zu: %zu tokens in %.4f s, %.2f tokens/s", at_once ? "prompt" : "decode", r + 1,
                     repeats, n, seconds, rates[r]);
    }
    if (!status) {
        s->tokens = n;
        s->mean = sum / (double)repeats;
        for (size_t r = 0; r < repeats; r++)
            squares += (rates[r] - s->mean) * (rates[r] - s->mean);
        s->deviation = repeats > 1 ? sqrt(squares / (double)(repeats - 1)) : 0;
    }
    free(tokens);
    free(rates);
    return status;
}

/* ---- the report ------------------------------------------------------------------------------------------------- */

/* The type is one of the file's. */
static bool has_type(pn_file *file, const char *quant)
{
    for (size_t i = 0; i < pn_file_tensor_count(file); i++) {
        const char *type = pn_file_tensor_at(file, i)->type;
        if (type && strcmp(type, quant) == 0)
            return true;
    }
    return false;
}

static uint32_t precision(const bench *b)
{
    const char *mode = pn_config_text(pn_runtime_config(b->setup->runtime), "runtime", "activations");
    return strcmp(mode, "fast") == 0 ? PN_FAST : PN_EXACT;
}

/* Some kernel of this precision is chosen for the type. */
static bool has_kernel(const bench *b, const char *quant, uint32_t wanted)
{
    pn_registration k = PN_OPTIONS_INIT(pn_registration);
    for (size_t i = 0; pn_runtime_registration(b->setup->runtime, i, &k, NULL) == PN_OK; i++)
        if (k.kind == PN_KIND_KERNEL && k.chosen && k.usable && k.precision == wanted && strcmp(k.quant, quant) == 0)
            return true;
    return false;
}

/* The next kernel, from *index on, that this machine uses for a type of the file; 0 when there is no more. A type
 * without a fast kernel uses the exact one. */
static bool next_kernel(const bench *b, size_t *index, pn_registration *k)
{
    const uint32_t wanted = precision(b);
    *k = PN_OPTIONS_INIT(pn_registration);
    while (pn_runtime_registration(b->setup->runtime, (*index)++, k, NULL) == PN_OK)
        if (k->kind == PN_KIND_KERNEL && k->chosen && k->usable && has_type(pn_model_file(b->model), k->quant) &&
            (k->precision == wanted ||
             (wanted == PN_FAST && k->precision == PN_EXACT && !has_kernel(b, k->quant, PN_FAST))))
            return true;
    return false;
}

static double decode_bandwidth(const bench *b)
{
    return b->decode.mean * (double)pn_model_weight_bytes(b->model);
}

static double share(const bench *b)
{
    return b->machine_bandwidth > 0 ? decode_bandwidth(b) / b->machine_bandwidth : 0;
}

/* The arithmetic of the kernels that take most of the file's bytes, by the name of their packing. */
static pn_arithmetic arithmetic(const bench *b)
{
    uint64_t bytes[3] = { 0 };
    size_t index = 0;
    pn_registration k;
    pn_file *file = pn_model_file(b->model);
    while (next_kernel(b, &index, &k)) {
        pn_arithmetic kind = strncmp(k.packing, "i16", 3) == 0  ? PN_ARITHMETIC_I16
                             : strncmp(k.packing, "i8", 2) == 0 ? PN_ARITHMETIC_I8
                                                                : PN_ARITHMETIC_F32;
        for (size_t i = 0; i < pn_file_tensor_count(file); i++) {
            const pn_tensor *t = pn_file_tensor_at(file, i);
            if (t->type && strcmp(t->type, k.quant) == 0)
                bytes[kind] += t->size;
        }
    }
    return bytes[1] >= bytes[0] && bytes[1] >= bytes[2] ? PN_ARITHMETIC_I16
           : bytes[0] >= bytes[2]                       ? PN_ARITHMETIC_I8
                                                        : PN_ARITHMETIC_F32;
}

static const char *const ARITHMETIC[] = { "i8", "i16", "f32" };

/* Multiply-adds with weights per second, of the prompt. */
static double prompt_multiply(const bench *b)
{
    return pn_model_multiply_adds(b->model, b->prompt.tokens, 1) * b->prompt.mean / (double)b->prompt.tokens;
}

static double prompt_share(const bench *b)
{
    double limit = b->multiply[arithmetic(b)];
    return limit > 0 ? prompt_multiply(b) / limit : 0;
}

static void json_text(const char *name, const char *text)
{
    printf("\"%s\": ", name);
    tool_json_string(stdout, text, strlen(text));
}

static void json_speed(const char *name, const speed *s)
{
    printf("  \"%s\": {\"tokens\": %zu, \"tokens_per_second\": %.4f, \"stddev\": %.4f", name, s->tokens, s->mean,
           s->deviation);
}

static void print_json(const bench *b)
{
    pn_registration k;
    size_t index = 0;
    const char *comma = "";
    pn_file *file = pn_model_file(b->model);
    printf("{\n  ");
    json_text("version", pn_version());
    printf(",\n  \"model\": {");
    json_text("path", pn_file_path(file));
    printf(", ");
    json_text("architecture", pn_model_arch(b->model));
    printf(", \"file_bytes\": %llu, \"weight_bytes_per_token\": %llu},\n", (unsigned long long)pn_file_bytes(file),
           (unsigned long long)pn_model_weight_bytes(b->model));
    printf("  \"machine\": {");
    json_text("cpu", b->cpu);
    printf(", ");
    json_text("features", b->features);
    printf(", \"processors\": %ld, \"read_bytes_per_second\": %.0f, \"read_bytes\": %llu},\n",
           sysconf(_SC_NPROCESSORS_ONLN), b->machine_bandwidth, (unsigned long long)b->measured_bytes);
    if (b->o->limits)
        printf("  \"limits\": {\"read_bytes_per_second\": %.0f, \"i8_multiply_adds_per_second\": %.0f, "
               "\"i16_multiply_adds_per_second\": %.0f, \"f32_multiply_adds_per_second\": %.0f},\n",
               b->machine_bandwidth, b->multiply[0], b->multiply[1], b->multiply[2]);
    printf("  \"threads\": %d, \"repeats\": %lld, \"batch\": %d, ", (int)pn_session_threads(b->session),
           (long long)b->o->repeats, (int)pn_session_batch(b->session));
    json_text("activations", precision(b) == PN_FAST ? "fast" : "exact");
    printf(", ");
    json_text("kv", pn_config_text(pn_runtime_config(b->setup->runtime), "runtime", "kv"));
    printf(",\n  \"kernels\": [");
    while (next_kernel(b, &index, &k)) {
        printf("%s\n    {", comma);
        json_text("type", k.quant);
        printf(", ");
        json_text("name", k.name);
        printf(", ");
        json_text("packing", k.packing);
        printf("}");
        comma = ",";
    }
    printf("\n  ]");
    if (b->prompt.tokens > 0) {
        printf(",\n");
        json_speed("prompt", &b->prompt);
        if (b->o->limits)
            printf(", \"multiply_adds_per_second\": %.0f, \"arithmetic\": \"%s\", \"share_of_multiply_adds\": %.4f",
                   prompt_multiply(b), ARITHMETIC[arithmetic(b)], prompt_share(b));
        printf("}");
    }
    if (b->decode.tokens > 0) {
        printf(",\n");
        json_speed("decode", &b->decode);
        printf(", \"bytes_per_token\": %llu, \"bytes_per_second\": %.0f, \"share_of_read_bandwidth\": %.4f}",
               (unsigned long long)pn_model_weight_bytes(b->model), decode_bandwidth(b), share(b));
    }
    printf(",\n  \"peak_memory_bytes\": %llu\n}\n", (unsigned long long)tool_peak_memory());
}

static void print_limits(const bench *b)
{
    static const char *const words[] = { "8-bit", "16-bit", "float" };
    const double *m = b->multiply;
    pn_arithmetic kind = arithmetic(b);
    if (m[kind] <= 0) {
        printf("limits   multiply-adds are not known for these CPU features\n");
        return;
    }
    printf("limits   8-bit %.0f, 16-bit %.0f, float %.0f 10^9 multiply-adds/s (in registers, same threads)",
           m[0] * 1e-9, m[1] * 1e-9, m[2] * 1e-9);
    if (b->prompt.tokens > 0)
        printf("; prompt does %.0f, %.0f %% of the %s ones", prompt_multiply(b) * 1e-9, prompt_share(b) * 100,
               words[kind]);
    printf("\n");
}

static void print_text(const bench *b)
{
    pn_registration k;
    size_t index = 0;
    const char *path = pn_file_path(pn_model_file(b->model));
    printf("model    ");
    tool_print_safe(stdout, path, strlen(path), false);
    printf(" (");
    tool_print_safe(stdout, pn_model_arch(b->model), strlen(pn_model_arch(b->model)), false);
    printf(")\nmachine  %s, %d threads, %s\n", b->cpu, (int)pn_session_threads(b->session), b->features);
    printf("kernels ");
    while (next_kernel(b, &index, &k))
        printf(" %s=%s", k.quant, k.name);
    printf("\n");
    if (b->prompt.tokens > 0)
        printf("prompt   %zu tokens: %.2f +- %.2f tokens/s\n", b->prompt.tokens, b->prompt.mean, b->prompt.deviation);
    if (b->decode.tokens > 0)
        printf("decode   %zu tokens: %.2f +- %.2f tokens/s, %.1f MB read per token, %.2f GB/s\n", b->decode.tokens,
               b->decode.mean, b->decode.deviation, (double)pn_model_weight_bytes(b->model) * 1e-6,
               decode_bandwidth(b) * 1e-9);
    if (b->machine_bandwidth > 0)
        printf("memory   reads %.2f GB/s (%.0f MB of weights, same threads)", b->machine_bandwidth * 1e-9,
               (double)b->measured_bytes * 1e-6);
    if (b->machine_bandwidth > 0 && b->decode.tokens > 0)
        printf("; decode uses %.0f %% of that", share(b) * 100);
    if (b->machine_bandwidth > 0)
        printf("\n");
    if (b->o->limits)
        print_limits(b);
    printf("peak     %.1f MB\n", (double)tool_peak_memory() * 1e-6);
}

/* ---- the subcommand --------------------------------------------------------------------------------------------- */

static int parse(tool_setup *setup, bench_options *o, int argc, char **argv)
{
    static const struct option table[] = {
        TOOL_LONG_OPTIONS,
        { "prompt", required_argument, NULL, 'p' }, { "decode", required_argument, NULL, 'n' },
        { "repeats", required_argument, NULL, 'r' }, { "json", no_argument, NULL, BENCH_JSON },
        { "limits", no_argument, NULL, BENCH_LIMITS }, { "activations", required_argument, NULL, BENCH_ACTIVATIONS },
        { "kv", required_argument, NULL, BENCH_KV },
        { 0 }
    };
    int c, status;
    while ((c = getopt_long(argc, argv, TOOL_OPTIONS "p:n:r:", table, NULL)) != -1) {
        switch (c) {
        case 'p': status = tool_integer("bench", "-p", optarg, 0, 1 << 24, &o->prompt); break;
        case 'n': status = tool_integer("bench", "-n", optarg, 0, 1 << 24, &o->decode); break;
        case 'r': status = tool_integer("bench", "-r", optarg, 1, 1000, &o->repeats); break;
        case BENCH_JSON: o->json = true; status = 0; break;
        case BENCH_LIMITS: o->limits = true; status = 0; break;
        case BENCH_ACTIVATIONS:
            status = tool_setup_set(setup, "runtime.activations", optarg, "--activations");
            break;
        case BENCH_KV: status = tool_setup_set(setup, "runtime.kv", optarg, "--kv"); break;
        case 'h':
            fputs(HELP, stdout);
            return tool_finish() ? 1 : -1;
        default: status = tool_option(setup, "bench", c, optarg);
        }
        if (status > 0)
            return status;
    }
    if (optind < argc)
        o->model = argv[optind++];
    if (optind < argc)
        return tool_usage("bench", "one model is wanted, and '%s' is a second", argv[optind]);
    return o->prompt + o->decode == 0 ? tool_usage("bench", "-p 0 -n 0 leaves nothing to measure") : 0;
}

static int open_model(bench *b)
{
    pn_error err = { 0 };
    pn_session_options options = PN_OPTIONS_INIT(pn_session_options);
    int status = tool_setup_runtime(b->setup);
    if (status)
        return status;
    if (!b->o->model && !*pn_config_text(pn_runtime_config(b->setup->runtime), "model", "path"))
        return tool_usage("bench", "a model is wanted: a path, or -c FILE.ini with [model] path");
    options.context = (int32_t)(b->o->prompt > b->o->decode ? b->o->prompt : b->o->decode);
    options.cancelled = tool_cancelled;
    if (pn_model_open(b->setup->runtime, b->o->model, &b->model, &err) != PN_OK ||
        pn_session_create(b->model, &options, &b->session, &err) != PN_OK)
        return tool_fail(&err);
    return 0;
}

int cmd_bench(int argc, char **argv)
{
    tool_setup setup;
    bench_options options = { .prompt = 512, .decode = 64, .repeats = 5 };
    bench b = { .setup = &setup, .o = &options };
    int status = tool_setup_begin(&setup);
    if (!status)
        status = parse(&setup, &options, argc, argv);
    if (!status)
        status = open_model(&b);
    if (!status && setup.verbose >= 2)
        tool_say_kernels(b.session);
    if (!status) {
        tool_interrupt_catch(true);
        name_cpu(&b);
        if (options.prompt > 0)
            status = measure(&b, &b.prompt, (size_t)options.prompt, true);
        if (!status && options.decode > 0)
            status = measure(&b, &b.decode, (size_t)options.decode, false);
        if (!status)
            measure_machine(&b);
        if (tool_interrupted())
            status = TOOL_INTERRUPTED;
        tool_interrupt_catch(false);
    }
    if (!status) {
        if (options.json)
            print_json(&b);
        else
            print_text(&b);
        status = tool_finish();
    }
    pn_session_destroy(b.session);
    pn_model_destroy(b.model);
    tool_setup_end(&setup);
    return status == -1 ? 0 : status;
}

/* `pantheon why-not`: goes through what a model file needs and says what is there and what is missing. */
#include "tool.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: pantheon why-not FILE [OPTIONS]\n\n"
    "Says what is needed to run FILE and what of it is there: format, architecture, tokenizer, each type of its "
    "tensors\n"
    "with the kernel that would be used. The last line is 'can run', or 'cannot run' and why. Exit status 0 or 1.\n\n"
    "  -c, --config FILE    plugins and settings from an INI file\n"
    "      --set S.K=V      set a configuration value, e.g. plugins.load=./mine.so\n"
    "  -v, --verbose        say which plugins and files are used\n";

enum { TYPES_SHOWN = 64 };

/* What is missing so far; the first reason closes the report. */
typedef struct verdict {
    int missing;
    char first[2048];
} verdict;

static void row(const char *what, const char *name, size_t size)
{
    printf("%-13s ", what);
    tool_print_safe(stdout, name, size, false);
}

static void lacks(verdict *v, const char *reason)
{
    fputs(": missing: ", stdout);
    tool_print_safe(stdout, reason, strlen(reason), true);
    putchar('\n');
    if (!v->missing++)
        snprintf(v->first, sizeof v->first, "%s", reason);
}

/* Id of the plugin that registered the item. */
static const char *provider(const pn_runtime *rt, uint32_t kind, const void *item)
{
    pn_registration r = { .struct_size = sizeof r };
    static pn_plugin_report p;
    p.struct_size = sizeof p;
    for (size_t i = 0; pn_runtime_registration(rt, i, &r, NULL) == PN_OK; i++)
        if (r.kind == kind && r.item == item && pn_runtime_plugin(rt, r.plugin, &p, NULL) == PN_OK)
            return p.id;
    return "?";
}

/* Names of a kind that are loaded, separated by commas. */
static void loaded(const pn_runtime *rt, uint32_t kind, char *text, size_t capacity)
{
    pn_registration r = { .struct_size = sizeof r };
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; pn_runtime_registration(rt, i, &r, NULL) == PN_OK; i++) {
        uint32_t count = 1;
        const char *const *names = &r.name;
        if (r.kind != kind)
            continue;
        if (kind == PN_KIND_ARCH) {
            names = ((const pn_arch *)r.item)->names;
            count = ((const pn_arch *)r.item)->n_names;
        } else if (kind == PN_KIND_TOKENIZER) {
            names = ((const pn_tokenizer_type *)r.item)->names;
            count = ((const pn_tokenizer_type *)r.item)->n_names;
        }
        for (uint32_t k = 0; k < count && n < capacity; k++)
            n += (size_t)snprintf(text + n, capacity - n, "%s%s", n ? ", " : "", names[k]);
    }
    if (!n)
        snprintf(text, capacity, "none");
}

/* A role's string with a terminator; 0 when the file does not say. */
static int role_text(pn_file *file, const char *role, char *text, size_t capacity)
{
    pn_role_value v = { .struct_size = sizeof v };
    if (pn_file_role(file, role, &v, NULL) != PN_OK || !v.present || v.value.type != PN_T_STRING)
        return 0;
    snprintf(text, capacity, "%.*s", (int)(v.value.as.s.size < capacity ? v.value.as.s.size : capacity - 1),
             v.value.as.s.data);
    return 1;
}

static void check_arch(pn_runtime *rt, pn_file *file, verdict *v)
{
    char name[256], have[1024], reason[2048];
    if (!role_text(file, PN_ROLE_ARCHITECTURE, name, sizeof name)) {
        row("architecture", "", 0);
        lacks(v, "the file does not say what its architecture is");
        return;
    }
    const void *arch = pn_runtime_find(rt, PN_KIND_ARCH, name);
    row("architecture", name, strlen(name));
    if (arch) {
        printf(": %s\n", provider(rt, PN_KIND_ARCH, arch));
        return;
    }
    loaded(rt, PN_KIND_ARCH, have, sizeof have);
    snprintf(reason, sizeof reason,
             "no plugin for architecture '%s'; loaded: %s. If it is one of them under another name, say so:"
             " [arch] alias.%s = NAME",
             name, have, name);
    lacks(v, reason);
}

static void check_tokenizer(pn_runtime *rt, pn_file *file, verdict *v)
{
    char name[256];
    pn_error err = {0};
    pn_tokenizer *t;
    if (!role_text(file, PN_ROLE_TOKENIZER, name, sizeof name)) {
        row("tokenizer", "", 0);
        lacks(v, "the file does not say what its tokenizer is");
        return;
    }
    row("tokenizer", name, strlen(name));
    if (pn_tokenizer_create(rt, file, &t, &err) != PN_OK) {
        lacks(v, err.message);
        return;
    }
    printf(": %d tokens\n", (int)pn_tokenizer_get_info(t)->n_tokens);
    pn_tokenizer_destroy(t);
}

/* The kernel that the registry marked for a type, or NULL. */
static const char *kernel_for(const pn_runtime *rt, const char *type)
{
    static pn_registration r;
    r.struct_size = sizeof r;
    for (size_t i = 0; pn_runtime_registration(rt, i, &r, NULL) == PN_OK; i++)
        if (r.kind == PN_KIND_KERNEL && r.chosen && !strcmp(r.quant, type))
            return r.name;
    return NULL;
}

typedef struct type_use {
    const char *name;
    uint64_t id, tensors;
} type_use;

/* Distinct types of the file; returns how many, at most `most`. */
static size_t count_types(const pn_file *file, type_use *uses, size_t most, int *more)
{
    size_t n = 0;
    for (size_t i = 0; i < pn_file_tensor_count(file); i++) {
        const pn_tensor *t = pn_file_tensor_at(file, i);
        size_t k = 0;
        while (k < n &&
               !(uses[k].id == t->type_id && !uses[k].name == !t->type && (!t->type || !strcmp(uses[k].name, t->type))))
            k++;
        if (k == most) {
            *more = 1;
            continue;
        }
        if (k == n)
            uses[n++] = (type_use){ .name = t->type, .id = t->type_id };
        uses[k].tensors++;
    }
    return n;
}

static void check_types(const pn_runtime *rt, const pn_file *file, verdict *v)
{
    type_use uses[TYPES_SHOWN];
    char have[1024], name[64], reason[1600];
    int more = 0;
    size_t n = count_types(file, uses, TYPES_SHOWN, &more);
    loaded(rt, PN_KIND_QUANT, have, sizeof have);
    for (size_t i = 0; i < n; i++) {
        const type_use *u = &uses[i];
        if (u->name)
            snprintf(name, sizeof name, "%s", u->name);
        else
            snprintf(name, sizeof name, "number %llu", (unsigned long long)u->id);
        row("type", name, strlen(name));
        printf(" (%llu tensor%s)", (unsigned long long)u->tensors, u->tensors == 1 ? "" : "s");
        if (!u->name) {
            snprintf(reason, sizeof reason,
                     "the format knows no type of number %llu; if you know it: [quant] alias.%llu = NAME",
                     (unsigned long long)u->id, (unsigned long long)u->id);
            lacks(v, reason);
            continue;
        }
        const void *type = pn_runtime_find(rt, PN_KIND_QUANT, u->name);
        if (!type) {
            snprintf(reason, sizeof reason, "no plugin for type '%s'; loaded: %s", u->name, have);
            lacks(v, reason);
            continue;
        }
        const char *kernel = kernel_for(rt, u->name);
        printf(": %s, %s%s\n", provider(rt, PN_KIND_QUANT, type),
               kernel ? "kernel " : "no kernel: dequantized row by row, slowly", kernel ? kernel : "");
    }
    if (more)
        printf("type          ... more than %d types\n", TYPES_SHOWN);
    if (!n) {
        row("tensors", "none", 4);
        lacks(v, "the file holds no weights: it is good for tokenize and detokenize only");
    }
}

/* The rest shows when the plan is written: tensors that are absent or of another shape. */
static void check_plan(pn_runtime *rt, pn_file *file, verdict *v)
{
    pn_error err = {0};
    pn_model *m;
    if (v->missing)
        return;
    row("plan", "", 0);
    if (pn_model_from_file(rt, file, &m, &err) != PN_OK) {
        lacks(v, err.message);
        return;
    }
    printf("every tensor is there; %d logits, trained for %d tokens\n", (int)pn_model_vocab(m),
           (int)pn_model_context(m));
    pn_model_destroy(m);
}

static void report_refused(const pn_runtime *rt)
{
    pn_plugin_report p = { .struct_size = sizeof p };
    for (size_t i = 0; pn_runtime_plugin(rt, i, &p, NULL) == PN_OK; i++)
        if (p.state == PN_PLUGIN_REFUSED) {
            row("refused", p.reason, strlen(p.reason));
            putchar('\n');
        }
}

static int explain(pn_runtime *rt, const char *path)
{
    verdict v = {0};
    pn_error err = {0};
    pn_file *file;
    row("file", path, strlen(path));
    putchar('\n');
    if (pn_file_open(rt, path, &file, &err) == PN_OK) {
        row("format", pn_file_format(file), strlen(pn_file_format(file)));
        putchar('\n');
        check_arch(rt, file, &v);
        check_tokenizer(rt, file, &v);
        check_types(rt, file, &v);
        check_plan(rt, file, &v);
        pn_file_destroy(file);
    } else {
        row("format", "", 0);
        lacks(&v, err.message);
    }
    if (!v.missing) {
        printf("can run\n");
        return 0;
    }
    report_refused(rt);     /* what is missing may be in one of them */
    printf("cannot run: ");
    tool_print_safe(stdout, v.first, strlen(v.first), false);
    if (v.missing > 1)
        printf(" (and %d more, above)", v.missing - 1);
    putchar('\n');
    return 1;
}

int cmd_why_not(int argc, char **argv)
{
    static const struct option longs[] = { TOOL_LONG_OPTIONS, { 0 } };
    tool_setup s;
    int c, status = tool_setup_begin(&s);
    optind = 1;
    while (!status && (c = getopt_long(argc, argv, TOOL_OPTIONS, longs, NULL)) != -1) {
        if (c == 'h') {
            fputs(HELP, stdout);
            tool_setup_end(&s);
            return tool_finish();
        }
        int handled = tool_option(&s, "why-not", c, optarg);
        status = handled == -1 ? 0 : handled ? handled : 2;
    }
    if (!status && optind + 1 != argc)
        status =
            tool_usage("why-not", optind == argc ? "a model file is wanted" : "one model file is wanted, not several");
    if (!status)
        status = tool_setup_runtime(&s);
    if (!status)
        status = explain(s.runtime, argv[optind]);
    tool_setup_end(&s);
    int written = tool_finish();
    return status ? status : written;
}

/* `pantheon inspect`: what a model file holds - metadata, tensors, totals - as text or JSON. */
#include "near.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const char HELP[] =
    "usage: pantheon inspect FILE [--tensors] [--json] [--key KEY] [OPTIONS]\n\n"
    "Shows a model file's metadata (long arrays and texts cut), how many tensors and bytes there are of each type, "
    "the\n"
    "number of parameters and the bits per weight.\n\n"
    "      --tensors        list every tensor: name, type, shape (rows first), bytes, place in the file\n"
    "      --json           the same as JSON, tensors included\n"
    "      --key KEY        print the value of one key, whole: text as it is, arrays with one item per line\n"
    "  -c, --config FILE    plugins and settings from an INI file\n"
    "      --set S.K=V      set a configuration value\n"
    "  -v, --verbose        say which plugins and files are used\n";

enum { OPT_JSON = TOOL_FIRST, OPT_TENSORS, OPT_KEY };

enum { TEXT_SHOWN = 72, ITEMS_SHOWN = 6, JSON_ITEMS = 64, JSON_DEPTH = 16 };

typedef struct options {
    bool json, tensors;
    const char *key;
} options;

static const char *const type_names[] = {
    "none", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64", "bool", "string", "array",
};

static const char *type_name(uint32_t type)
{
    return type < sizeof type_names / sizeof *type_names ? type_names[type] : "?";
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static void print_float(const pn_value *v, bool json)
{
    if (json && !isfinite(v->as.f)) {
        fputs("null", stdout);
        return;
    }
    /* The fewest digits that mean this number. */
    char text[40];
    int digits = v->type == PN_T_F32 ? 6 : 15, most = v->type == PN_T_F32 ? 9 : 17;
    do
        snprintf(text, sizeof text, "%.*g", digits, v->as.f);
    while (digits++ < most && (v->type == PN_T_F32 ? (double)strtof(text, NULL) : strtod(text, NULL)) != v->as.f);
    fputs(text, stdout);
}

/* A number or bool. */
static void print_number(const pn_value *v, bool json)
{
    switch (v->type) {
    case PN_T_BOOL: fputs(v->as.u ? "true" : "false", stdout); break;
    case PN_T_F32: case PN_T_F64: print_float(v, json); break;
    case PN_T_I8: case PN_T_I16: case PN_T_I32: case PN_T_I64: printf("%" PRId64, v->as.i); break;
    case PN_T_U8: case PN_T_U16: case PN_T_U32: case PN_T_U64: printf("%" PRIu64, v->as.u); break;
    default: fputs(json ? "null" : "?", stdout); break;
    }
}

/* The first part of a text, not cut within a character. */
static size_t cut(pn_str s, size_t most)
{
    if (s.size <= most)
        return s.size;
    size_t n = most;
    while (n > 0 && n + 4 > most && ((unsigned char)s.data[n] & 0xc0) == 0x80)
        n--;
    return n;
}

/* One line, long texts and arrays cut. */
static void print_short(const pn_value *v, int depth)
{
    if (v->type == PN_T_STRING) {
        size_t n = cut(v->as.s, depth ? 24 : TEXT_SHOWN);
        if (depth)
            putchar('"');
        tool_print_safe(stdout, v->as.s.data, n, false);
        if (n < v->as.s.size)
            printf("... (%zu bytes)", v->as.s.size);
        if (depth)
            putchar('"');
    } else if (v->type == PN_T_ARRAY) {
        putchar('[');
        for (uint64_t i = 0; i < v->count && i < ITEMS_SHOWN; i++) {
            pn_value item = pn_value_at(v, i);
            if (i)
                fputs(", ", stdout);
            print_short(&item, depth + 1);
        }
        if (v->count > ITEMS_SHOWN)
            fputs(", ...", stdout);
        putchar(']');
    } else {
        print_number(v, false);
    }
}

/* Arrays longer than `most` are cut; the number of items says so. */
static void print_json(const pn_value *v, uint64_t most, int depth)
{
    if (v->type == PN_T_STRING) {
        tool_json_string(stdout, v->as.s.data, v->as.s.size);
    } else if (v->type == PN_T_ARRAY && depth < JSON_DEPTH) {
        putchar('[');
        for (uint64_t i = 0; i < v->count && i < most; i++) {
            pn_value item = pn_value_at(v, i);
            if (i)
                putchar(',');
            print_json(&item, most, depth + 1);
        }
        putchar(']');
    } else {
        print_number(v, true);
    }
}

/* `--key`: whole. On a terminal no byte of the file may steer it; a file or program gets the text as it is. */
static int print_key(const pn_file *file, const options *o)
{
    char near[400];
    const pn_value *v = pn_file_value(file, o->key);
    bool safe = isatty(STDOUT_FILENO) != 0;
    if (!v)
        return tool_failf("%s: it has no key '%s'%s", pn_file_path(file), o->key,
                          near_names(file, near_key, o->key, near, sizeof near));
    if (o->json) {
        print_json(v, UINT64_MAX, 0);
    } else if (v->type == PN_T_STRING) {
        if (safe)
            tool_print_safe(stdout, v->as.s.data, v->as.s.size, true);
        else
            fwrite(v->as.s.data, 1, v->as.s.size, stdout);
    } else if (v->type == PN_T_ARRAY) {
        for (uint64_t i = 0; i < v->count; i++) {
            pn_value item = pn_value_at(v, i);
            if (item.type == PN_T_STRING)
                tool_print_safe(stdout, item.as.s.data, item.as.s.size, false);
            else
                print_json(&item, UINT64_MAX, 0);
            putchar('\n');
        }
        return tool_finish();
    } else {
        print_number(v, false);
    }
    putchar('\n');
    return tool_finish();
}

/* ---- totals ----------------------------------------------------------------------------------------------------- */

typedef struct total {
    const char *type;           /* NULL: unknown to the format; then by number */
    uint64_t type_id;
    uint64_t tensors, elements, bytes;
} total;

typedef struct totals {
    total *types;
    size_t n;
    total all;                  /* of the tensors whose size is known */
    uint64_t unknown;           /* tensors whose size is not */
} totals;

static bool same_type(const total *a, const pn_tensor *t)
{
    return a->type && t->type ? strcmp(a->type, t->type) == 0 : !a->type && !t->type && a->type_id == t->type_id;
}

/* A file has few types; but a hostile one may have as many as tensors, so the list of unknown ones is bounded. */
enum { MOST_TYPES = 256 };

static bool count_totals(const pn_file *file, totals *sum)
{
    *sum = (totals){ .types = calloc(MOST_TYPES, sizeof *sum->types) };
    if (!sum->types)
        return false;
    for (size_t i = 0; i < pn_file_tensor_count(file); i++) {
        const pn_tensor *t = pn_file_tensor_at(file, i);
        size_t k = 0;
        while (k < sum->n && !same_type(&sum->types[k], t))
            k++;
        if (k == sum->n && k < MOST_TYPES) {
            sum->types[k] = (total){ .type = t->type, .type_id = t->type_id };
            sum->n++;
        }
        if (k < MOST_TYPES) {
            sum->types[k].tensors++;
            sum->types[k].elements += pn_tensor_elements(t);
            sum->types[k].bytes += t->size;
        }
        if (!t->type) {
            sum->unknown++;
            continue;
        }
        sum->all.tensors++;
        sum->all.elements += pn_tensor_elements(t);
        sum->all.bytes += t->size;
    }
    return true;
}

static double bits(const total *t)
{
    return t->elements ? 8.0 * (double)t->bytes / (double)t->elements : 0;
}

static const char *type_label(const char *type, uint64_t id, char *room, size_t capacity)
{
    if (type)
        return type;
    snprintf(room, capacity, "unknown type %" PRIu64, id);
    return room;
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void print_size(uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double x = (double)bytes;
    size_t u = 0;
    while (x >= 1024 && u < sizeof units / sizeof *units - 1) {
        x /= 1024;
        u++;
    }
    if (u)
        printf("%" PRIu64 " bytes (%.2f %s)", bytes, x, units[u]);
    else
        printf("%" PRIu64 " bytes", bytes);
}

static void print_shape(const pn_tensor *t, bool json)
{
    putchar('[');
    for (uint32_t i = 0; i < t->n_dims; i++)
        printf("%s%" PRIu64, i ? json ? "," : ", " : "", t->dims[i]);
    putchar(']');
}

static void print_metadata(const pn_file *file)
{
    pn_str key;
    const pn_value *v;
    size_t n = 0;
    while (pn_file_value_at(file, n, &key, &v, NULL) == PN_OK)
        n++;
    printf("metadata: %zu values\n", n);
    for (size_t i = 0; pn_file_value_at(file, i, &key, &v, NULL) == PN_OK; i++) {
        fputs("  ", stdout);
        tool_print_safe(stdout, key.data, cut(key, 200), false);
        if (v->type == PN_T_ARRAY)
            printf(" (%s[%" PRIu64 "]) = ", type_name(v->item_type), v->count);
        else
            printf(" (%s) = ", type_name(v->type));
        print_short(v, 0);
        putchar('\n');
    }
}

static void print_tensors(const pn_file *file)
{
    char room[64];
    for (size_t i = 0; i < pn_file_tensor_count(file); i++) {
        const pn_tensor *t = pn_file_tensor_at(file, i);
        fputs("  ", stdout);
        tool_print_safe(stdout, t->name.data, cut(t->name, 200), false);
        printf("  %s  ", type_label(t->type, t->type_id, room, sizeof room));
        print_shape(t, false);
        if (t->type)
            printf("  %" PRIu64 " bytes at %" PRIu64 "\n", t->size, t->offset);
        else
            printf("  at %" PRIu64 "\n", t->offset);
    }
}

static void print_text(const pn_file *file, const options *o, const totals *sum)
{
    char room[64];
    tool_print_safe(stdout, pn_file_path(file), strlen(pn_file_path(file)), false);
    printf(": %s, ", pn_file_format(file));
    print_size(pn_file_bytes(file));
    fputs(pn_file_mapped(file) ? "\n" : ", read into memory\n", stdout);
    print_metadata(file);
    printf("tensors: %zu\n", pn_file_tensor_count(file));
    if (o->tensors)
        print_tensors(file);
    if (sum->n)
        fputs("by type:\n", stdout);
    for (size_t i = 0; i < sum->n; i++) {
        const total *t = &sum->types[i];
        printf("  %-10s %6" PRIu64 " tensors  %15" PRIu64 " elements",
               type_label(t->type, t->type_id, room, sizeof room), t->tensors, t->elements);
        if (t->type)
            printf("  %15" PRIu64 " bytes  %6.3f bits each\n", t->bytes, bits(t));
        else
            fputs("  size unknown\n", stdout);
    }
    printf("parameters: %" PRIu64 "\n", sum->all.elements);
    fputs("tensor data: ", stdout);
    print_size(sum->all.bytes);
    printf("\nbits per weight: %.3f\n", bits(&sum->all));
    if (sum->unknown)
        printf("not counted: %" PRIu64 " tensors of unknown type\n", sum->unknown);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void json_metadata(const pn_file *file)
{
    pn_str key;
    const pn_value *v;
    fputs("  \"metadata\": {", stdout);
    for (size_t i = 0; pn_file_value_at(file, i, &key, &v, NULL) == PN_OK; i++) {
        fputs(i ? ",\n    " : "\n    ", stdout);
        tool_json_string(stdout, key.data, key.size);
        printf(": {\"type\": \"%s\"", type_name(v->type));
        if (v->type == PN_T_ARRAY)
            printf(", \"item_type\": \"%s\", \"count\": %" PRIu64, type_name(v->item_type), v->count);
        if (v->type == PN_T_ARRAY && v->count > JSON_ITEMS)
            fputs(", \"cut\": true", stdout);
        fputs(", \"value\": ", stdout);
        print_json(v, JSON_ITEMS, 0);
        putchar('}');
    }
    fputs("\n  },\n", stdout);
}

static void json_name(const char *type)
{
    if (type)
        tool_json_string(stdout, type, strlen(type));
    else
        fputs("null", stdout);
}

static void json_tensors(const pn_file *file)
{
    fputs("  \"tensors\": [", stdout);
    for (size_t i = 0; i < pn_file_tensor_count(file); i++) {
        const pn_tensor *t = pn_file_tensor_at(file, i);
        fputs(i ? ",\n    {\"name\": " : "\n    {\"name\": ", stdout);
        tool_json_string(stdout, t->name.data, t->name.size);
        fputs(", \"type\": ", stdout);
        json_name(t->type);
        printf(", \"type_id\": %" PRIu64 ", \"shape\": ", t->type_id);
        print_shape(t, true);
        printf(", \"elements\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"offset\": %" PRIu64 "}", pn_tensor_elements(t),
               t->size, t->offset);
    }
    fputs("\n  ],\n", stdout);
}

static void print_all_json(const pn_file *file, const totals *sum)
{
    fputs("{\n  \"file\": ", stdout);
    tool_json_string(stdout, pn_file_path(file), strlen(pn_file_path(file)));
    printf(",\n  \"format\": \"%s\",\n  \"bytes\": %" PRIu64 ",\n  \"mapped\": %s,\n", pn_file_format(file),
           pn_file_bytes(file), pn_file_mapped(file) ? "true" : "false");
    json_metadata(file);
    json_tensors(file);
    fputs("  \"types\": [", stdout);
    for (size_t i = 0; i < sum->n; i++) {
        const total *t = &sum->types[i];
        fputs(i ? ",\n    {\"type\": " : "\n    {\"type\": ", stdout);
        json_name(t->type);
        printf(", \"type_id\": %" PRIu64 ", \"tensors\": %" PRIu64 ", \"elements\": %" PRIu64 ", \"bytes\": %" PRIu64
               "}",
               t->type_id, t->tensors, t->elements, t->bytes);
    }
    printf("\n  ],\n  \"parameters\": %" PRIu64 ",\n  \"tensor_bytes\": %" PRIu64 ",\n  \"bits_per_weight\": %.6g,\n"
           "  \"unknown_tensors\": %" PRIu64 "\n}\n", sum->all.elements, sum->all.bytes, bits(&sum->all), sum->unknown);
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static int inspect(tool_setup *setup, const char *path, const options *o)
{
    pn_error err = { 0 };
    pn_file *file;
    totals sum;
    int status = tool_setup_runtime(setup);
    if (status)
        return status;
    if (pn_file_open(setup->runtime, path, &file, &err) != PN_OK)
        return tool_fail(&err);
    if (o->key) {
        status = print_key(file, o);
    } else if (!count_totals(file, &sum)) {
        status = tool_failf("no memory for the totals");
    } else {
        if (o->json)
            print_all_json(file, &sum);
        else
            print_text(file, o, &sum);
        free(sum.types);
        status = tool_finish();
    }
    pn_file_destroy(file);
    return status;
}

int cmd_inspect(int argc, char **argv)
{
    static const struct option table[] = {
        TOOL_LONG_OPTIONS,
        { "json", no_argument, NULL, OPT_JSON }, { "tensors", no_argument, NULL, OPT_TENSORS },
        { "key", required_argument, NULL, OPT_KEY },
        { 0 }
    };
    options o = { 0 };
    tool_setup setup;
    int c, status = tool_setup_begin(&setup);
    while (!status && (c = getopt_long(argc, argv, TOOL_OPTIONS, table, NULL)) != -1) {
        status = tool_option(&setup, "inspect", c, optarg);
        if (status == -1) {
            status = 0;
            continue;
        }
        if (status)
            break;
        switch (c) {
        case 'h':
            fputs(HELP, stdout);
            tool_setup_end(&setup);
            return tool_finish();
        case OPT_JSON: o.json = true; break;
        case OPT_TENSORS: o.tensors = true; break;
        case OPT_KEY: o.key = optarg; break;
        default: status = tool_usage("inspect", "option not understood"); break;
        }
    }
    if (!status && argc - optind != 1)
        status = tool_usage("inspect", argc > optind ? "one FILE is wanted, got %d words" : "a FILE is wanted",
                            argc - optind);
    if (!status)
        status = inspect(&setup, argv[optind], &o);
    tool_setup_end(&setup);
    return status;
}

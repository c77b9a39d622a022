/* `pantheon dequant`: a tensor as little-endian float32 on standard output, piece by piece. */
#include "near.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

static const char HELP[] =
    "usage: pantheon dequant FILE TENSOR [OPTIONS]\n\n"
    "Writes the tensor's elements, rows first, as little-endian float32 to standard output. Any number of dimensions; "
    "the\n"
    "tensor's type must be loaded (pantheon plugins lists them; pantheon inspect FILE --tensors lists the tensors).\n\n"
    "  -c, --config FILE    plugins and settings from an INI file\n"
    "      --set S.K=V      set a configuration value, for instance --set quant.alias.42=NAME\n"
    "  -v, --verbose        say which plugins and files are used\n";

enum { PIECE = 1 << 16 };

static void to_little_endian(float *x, size_t n)
{
    const uint16_t one = 1;
    if (*(const unsigned char *)&one)
        return;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], 4);
        u = u >> 24 | (u >> 8 & 0xff00) | (u << 8 & 0xff0000) | u << 24;
        memcpy(&x[i], &u, 4);
    }
}

static int write_tensor(const pn_runtime *runtime, const pn_file *file, const pn_tensor *t)
{
    const pn_quant *q = t->type ? pn_runtime_find(runtime, PN_KIND_QUANT, t->type) : NULL;
    uint64_t total = pn_tensor_elements(t), block = q ? q->block_elems : 1;
    uint64_t piece = block < PIECE ? PIECE / block * block : block;
    pn_error err = { 0 };
    if (piece > total)
        piece = total;
    float *x = piece <= SIZE_MAX / sizeof *x ? malloc((size_t)(piece ? piece : 1) * sizeof *x) : NULL;
    if (!x)
        return tool_failf("no memory for %llu numbers", (unsigned long long)piece);
    /* One call at least, so that a type that is missing is an error for an empty tensor too. */
    for (uint64_t first = 0; first < total || !first; first += piece) {
        uint64_t n = total - first < piece ? total - first : piece;
        if (pn_file_tensor_f32(file, t, first, n, x, &err) != PN_OK) {
            free(x);
            return tool_fail(&err);
        }
        to_little_endian(x, (size_t)n);
        if (fwrite(x, sizeof *x, (size_t)n, stdout) != n || !total)
            break;
    }
    free(x);
    return tool_finish();
}

static int dequant(tool_setup *setup, const char *path, const char *name)
{
    pn_error err = { 0 };
    pn_file *file;
    char near[400];
    int status = tool_setup_runtime(setup);
    if (status)
        return status;
    if (pn_file_open(setup->runtime, path, &file, &err) != PN_OK)
        return tool_fail(&err);
    const pn_tensor *t = pn_file_tensor(file, name);
    if (!t)
        status = tool_failf("%s: it has no tensor '%s'%s", path, name,
                            near_names(file, near_tensor, name, near, sizeof near));
    else if (isatty(STDOUT_FILENO))
        status = tool_failf("standard output is a terminal; send the numbers to a file or a program");
    else
        status = write_tensor(setup->runtime, file, t);
    pn_file_destroy(file);
    return status;
}

int cmd_dequant(int argc, char **argv)
{
    static const struct option table[] = { TOOL_LONG_OPTIONS, { 0 } };
    tool_setup setup;
    int c, status = tool_setup_begin(&setup);
    while (!status && (c = getopt_long(argc, argv, TOOL_OPTIONS, table, NULL)) != -1) {
        status = tool_option(&setup, "dequant", c, optarg);
        if (status == -1) {
            status = 0;
        } else if (status == 0 && c == 'h') {
            fputs(HELP, stdout);
            tool_setup_end(&setup);
            return tool_finish();
        }
    }
    if (!status && argc - optind != 2)
        status = tool_usage("dequant", "a FILE and the name of one TENSOR are wanted; got %d words", argc - optind);
    if (!status)
        status = dequant(&setup, argv[optind], argv[optind + 1]);
    tool_setup_end(&setup);
    return status;
}

/* Fuzz target: any bytes as a model file in memory; then every value, tensor and role of it is looked at.
 *
 * The runtime finds the plugins beside the program's folder (build/.../plugins), built with the same instrumentation.
 */
#include <pantheon/pantheon.h>

#include <stdlib.h>
#include <unistd.h>

static pn_runtime *runtime;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    pn_config *config = NULL;
    pn_error err = { 0 };
    char path[4096], folder[4200];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    (void)argc;
    (void)argv;
    path[n > 0 ? n : 0] = 0;
    /* BUILD/tests/fuzz_gguf -> BUILD/plugins */
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
    snprintf(folder, sizeof folder, "%s/plugins", path);
    if (pn_config_create(&config, &err) || pn_config_set(config, "plugins.path", folder, &err) ||
        pn_runtime_create(config, NULL, &runtime, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    pn_config_destroy(config);
    return 0;
}

static volatile uint64_t sink;

/* Touch every byte that the value claims to have. */
static void walk(const pn_value *v, int depth)
{
    if (v->type == PN_T_STRING) {
        for (size_t i = 0; i < v->as.s.size; i++)
            sink += (unsigned char)v->as.s.data[i];
    } else if (v->type == PN_T_ARRAY) {
        if (depth > 16)
            abort();
        for (uint64_t i = 0; i < v->count; i++) {
            pn_value item = pn_value_at(v, i);
            walk(&item, depth + 1);
        }
    } else {
        int64_t i = 0;
        double d = 0;
        sink += (uint64_t)pn_value_int(v, &i) + (uint64_t)pn_value_float(v, &d) + (uint64_t)i;
    }
}

static void walk_tensors(const pn_file *file, const uint8_t *data, size_t size)
{
    static float x[4096];
    for (size_t i = 0; i < pn_file_tensor_count(file); i++) {
        const pn_tensor *t = pn_file_tensor_at(file, i);
        const uint8_t *p = t->data;
        pn_error err;
        uint64_t n = pn_tensor_elements(t);
        if (t->size && (p < data || p > data + size || t->size > (uint64_t)(data + size - p)))
            abort();
        for (uint64_t k = 0; k < t->size; k++)
            sink += p[k];
        if (n <= sizeof x / sizeof *x)
            pn_file_tensor_f32(file, t, 0, n, x, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const roles[] = {
        PN_ROLE_ARCHITECTURE,
        PN_ROLE_NAME,
        PN_ROLE_CONTEXT_LENGTH,
        PN_ROLE_VOCAB_SIZE,
        PN_ROLE_BLOCK_COUNT,
        PN_ROLE_FEED_FORWARD,
        PN_ROLE_ROPE_PAIRING,
        PN_ROLE_ROPE_SCALING,
        PN_ROLE_ROPE_FACTOR,
        PN_ROLE_TOKENS,
        PN_ROLE_SEP,
        PN_ROLE_CHAT_TEMPLATE,
        "",
        "x",
    };
    pn_error err;
    pn_file *file = NULL;
    if (pn_file_open_buffer(runtime, "fuzz", data, size, &file, &err) != PN_OK) {
        if (!err.message[0] || file)
            abort();
        return 0;
    }
    pn_str key;
    const pn_value *v;
    for (size_t i = 0; pn_file_value_at(file, i, &key, &v, NULL) == PN_OK; i++)
        walk(v, 0);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        pn_role_value answer = { .struct_size = sizeof answer };
        if (pn_file_role(file, roles[i], &answer, &err) == PN_OK && answer.present)
            walk(&answer.value, 0);
    }
    walk_tensors(file, data, size);
    pn_file_destroy(file);
    return 0;
}

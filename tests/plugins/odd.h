/* For test plugins: a constructor that leaves a trace, and a descriptor and note whose every field can be wrong. */
#ifndef TESTS_PLUGINS_ODD_H
#define TESTS_PLUGINS_ODD_H

#include <pantheon/plugin.h>
#include <stdlib.h>

/* Any code of the plugin that runs adds a line to the file that PN_TEST_TRACE names. */
__attribute__((constructor)) static void odd_trace(void)
{
    const char *path = getenv("PN_TEST_TRACE");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (f) {
        fputs(__BASE_FILE__ "\n", f);
        fclose(f);
    }
}

/* The note alone; numbers and id as given. */
#define ODD_NOTE(major, minor, id)                                                                                     \
    __asm__(".pushsection " PN_NOTE_SECTION ",\"a\",%note\n"                                                           \
            ".balign 4\n.long 2f-1f\n.long 4f-3f\n.long " PN_STR(PN_NOTE_TYPE) "\n"                                    \
            "1:.asciz \"" PN_NOTE_NAME "\"\n2:.balign 4\n"                                                             \
            "3:.short " #major "\n.short " #minor "\n.asciz \"" id "\"\n.balign 4\n4:\n.popsection\n");

#define ODD_MAGIC { 'P', 'A', 'N', 'T', 'H', 'E', 'O', 'N' }

/* The descriptor alone: initializers in the order of pn_plugin. */
#define ODD_DESCRIPTOR(...)                                                                                            \
    PN_EXTERN_C PN_API const pn_plugin pantheon_plugin;                                                                \
    const pn_plugin pantheon_plugin = { __VA_ARGS__ };

PN_UNUSED static pn_status odd_start(const pn_host *host, pn_error *err)
{
    (void)host;
    (void)err;
    return PN_OK;
}

PN_UNUSED static void odd_dequantize(const void *row, float *out, size_t n)
{
    const signed char *b = (const signed char *)row;
    for (size_t i = 0; i < n; i++)
        out[i] = (float)b[i];
}

/* A minimal type of one signed byte per element. */
PN_UNUSED static pn_status odd_register_type(const pn_host *host, const char *name, pn_error *err)
{
    pn_quant q = { .struct_size = sizeof q, .name = name, .summary = "test", .block_elems = 1, .block_bytes = 1,
                   .dequantize = odd_dequantize };
    return pn_host_register_quant(host, &q, err);
}

#endif

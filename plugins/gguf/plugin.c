/* The GGUF format plugin: recognises the magic and registers reader and writer.
 *
 * GGUF, as published: a header, metadata as key/value pairs, a table of tensors, padding to `general.alignment`, then
 * the tensors' bytes. Versions 2 and 3 are read (they differ only in that 3 allows big-endian files), 3 is written.
 */
#include "gguf.h"

static int32_t probe(const pn_host *host, const pn_source *source)
{
    pn_source_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (pn_host_source_info(host, source, &info, NULL) || !info.data || info.size < 4)
        return 0;
    return memcmp(info.data, GGUF_MAGIC, 4) == 0 ? 100 : 0;
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const pn_format format = {
        .struct_size = sizeof format,
        .name = "gguf",
        .summary = "GGUF model files, versions 2 and 3",
        .probe = probe,
        .open = gguf_open,
        .role = gguf_role,
        .write_begin = gguf_write_begin,
        .write_tensor = gguf_write_tensor,
        .write_end = gguf_write_end,
        .write_close = gguf_write_close,
    };
    return pn_host_register_format(host, &format, err);
}

PN_PLUGIN("org.pantheon.gguf", "0.1.0", "MIT", "GGUF model files", 0, start)

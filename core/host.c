/* The table of functions that a plugin gets, one per plugin and runtime. */
#include "alloc.h"
#include "file.h"
#include "plan.h"
#include "runtime.h"
#include "writer.h"

#include <stdatomic.h>

/* What host->context points to. Tables given to a plugin file are never freed, since the plugin may have kept the
 * pointer: when their runtime is gone they wait for the next one that loads the same image. */
typedef struct host_slot {
    pn_host table;
    struct host_slot *next;     /* of the process-wide list; the core's own are not in it */
    const pn_plugin *descriptor;
    _Atomic(pn_runtime *) rt;   /* NULL: no runtime at present */
    uint64_t cpu;
    uint32_t plugin;
    atomic_int in_init;
} host_slot;

static host_slot *slots;
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

static host_slot *slot_of(const pn_host *host)
{
    return host->context;
}

pn_runtime *pn_host_runtime(const pn_host *host)
{
    return atomic_load(&slot_of(host)->rt);
}

pn_status pn_host_registering(const pn_host *host, pn_runtime **rt, uint32_t *plugin, pn_error *err)
{
    host_slot *s = slot_of(host);
    if (!atomic_load(&s->in_init))
        return pn_fail(err, PN_E_STATE, "registration works only inside init");
    *rt = pn_host_runtime(host);
    *plugin = s->plugin;
    return PN_OK;
}

/* ---- slots that are not another module's function ---------------------------------------------------------------- */

static pn_status host_alloc(const pn_host *host, size_t count, size_t size, void **out, pn_error *err)
{
    (void)host;
    void *memory = pn_calloc(count, size);
    if (!memory)
        return pn_fail(err, PN_E_NOMEM, "no memory for %zu * %zu bytes", count, size);
    *out = memory;
    return PN_OK;
}

static pn_status host_resize(const pn_host *host, size_t count, size_t size, void **inout, pn_error *err)
{
    (void)host;
    void *memory = pn_realloc(*inout, count, size);
    if (!memory)
        return pn_fail(err, PN_E_NOMEM, "no memory for %zu * %zu bytes", count, size);
    *inout = memory;
    return PN_OK;
}

static pn_status host_free(const pn_host *host, void *memory, pn_error *err)
{
    (void)host;
    (void)err;
    pn_free(memory);
    return PN_OK;
}

static pn_status host_log(const pn_host *host, uint32_t level, const char *message, pn_error *err)
{
    pn_runtime *rt = pn_host_runtime(host);
    if (level > PN_LOG_WARN)
        return pn_fail(err, PN_E_ARGUMENT, "log level %u; wanted: 0 to %d", (unsigned)level, PN_LOG_WARN);
    if (!message)
        return pn_fail(err, PN_E_ARGUMENT, "log message is NULL");
    if (rt)
        pn_runtime_log(rt, level, "%s", message);
    return PN_OK;
}

static pn_status host_cpu_features(const pn_host *host, uint64_t *out, pn_error *err)
{
    (void)err;
    *out = slot_of(host)->cpu;
    return PN_OK;
}

static pn_status host_source_info(const pn_host *host, const pn_source *source, pn_source_info *out, pn_error *err)
{
    (void)host;
    return pn_source_get_info(source, out, err);
}

static pn_status host_open_sibling(const pn_host *host, pn_source *source, const char *basename, pn_source **out,
                                   pn_error *err)
{
    (void)host;
    return pn_source_open_sibling(source, basename, out, err);
}

static pn_status host_file_alloc(const pn_host *host, pn_file *file, size_t count, size_t size, void **out,
                                 pn_error *err)
{
    (void)host;
    return pn_file_alloc(file, count, size, out, err);
}

static pn_status host_file_add_value(const pn_host *host, pn_file *file, pn_str key, const pn_value *value,
                                     pn_error *err)
{
    (void)host;
    return pn_file_add_value(file, key, value, err);
}

static pn_status host_file_add_tensor(const pn_host *host, pn_file *file, const pn_tensor *tensor, pn_error *err)
{
    (void)host;
    return pn_file_add_tensor(file, tensor, err);
}

static pn_status host_file_value(const pn_host *host, const pn_file *file, pn_str key, const pn_value **out,
                                 pn_error *err)
{
    (void)host;
    return pn_file_value_get(file, key, out, err);
}

static pn_status host_file_role(const pn_host *host, pn_file *file, const char *role, pn_role_value *out, pn_error *err)
{
    (void)host;
    return pn_file_role(file, role, out, err);
}

static pn_status host_file_tensor(const pn_host *host, pn_file *file, const char *neutral, const pn_tensor **out,
                                  pn_error *err)
{
    (void)host;
    return pn_file_tensor_neutral(file, neutral, out, err);
}

static pn_status host_quant_alias(const pn_host *host, uint64_t number, const char **name, uint32_t *elems,
                                  uint32_t *bytes, pn_error *err)
{
    pn_runtime *rt = pn_host_runtime(host);
    if (!rt)
        return pn_fail(err, PN_E_STATE, "the runtime of this host table is gone");
    return pn_registry_quant_alias(rt, number, name, elems, bytes, err);
}

static pn_status host_plan_weight(const pn_host *host, pn_plan *plan, const pn_weight_request *request, pn_wt *out,
                                  pn_error *err)
{
    (void)host;
    return pn_plan_add_weight(plan, request, out, err);
}

static pn_status host_plan_op(const pn_host *host, pn_plan *plan, const pn_op_call *call, pn_val *out, pn_error *err)
{
    (void)host;
    return pn_plan_add_op(plan, call, out, err);
}

static pn_status host_plan_output(const pn_host *host, pn_plan *plan, pn_val value, uint32_t kind, pn_error *err)
{
    (void)host;
    return pn_plan_set_output(plan, value, kind, err);
}

static pn_status host_writer_info(const pn_host *host, const pn_writer *writer, pn_writer_info *out, pn_error *err)
{
    (void)host;
    return pn_writer_get_info(writer, out, err);
}

static pn_status host_writer_value_at(const pn_host *host, const pn_writer *writer, size_t index, pn_str *key,
                                      const pn_value **value, pn_error *err)
{
    (void)host;
    return pn_writer_value_at(writer, index, key, value, err);
}

static pn_status host_writer_tensor_at(const pn_host *host, const pn_writer *writer, size_t index,
                                       const pn_tensor **out, pn_error *err)
{
    (void)host;
    return pn_writer_tensor_at(writer, index, out, err);
}

static pn_status host_writer_put(const pn_host *host, pn_writer *writer, const void *data, size_t size, pn_error *err)
{
    (void)host;
    return pn_writer_put(writer, data, size, err);
}

static pn_status host_quant_number(const pn_host *host, const char *name, uint64_t *number, pn_error *err)
{
    pn_runtime *rt = pn_host_runtime(host);
    if (!rt) return pn_fail(err, PN_E_STATE, "the runtime of this host table is gone");
    return pn_registry_quant_number(rt, name, number, err);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const pn_host template = {
    .struct_size = sizeof(pn_host),
    .abi_major = PN_ABI_MAJOR,
    .abi_minor = PN_ABI_MINOR,
    .alloc = host_alloc,
    .resize = host_resize,
    .free = host_free,
    .log = host_log,
    .cpu_features = host_cpu_features,
    .register_format = pn_register_format,
    .register_quant = pn_register_quant,
    .register_packing = pn_register_packing,
    .register_kernel = pn_register_kernel,
    .register_op = pn_register_op,
    .register_arch = pn_register_arch,
    .register_tokenizer = pn_register_tokenizer,
    .register_template = pn_register_template,
    .source_info = host_source_info,
    .open_sibling = host_open_sibling,
    .file_alloc = host_file_alloc,
    .file_add_value = host_file_add_value,
    .file_add_tensor = host_file_add_tensor,
    .file_value = host_file_value,
    .file_role = host_file_role,
    .file_tensor = host_file_tensor,
    .quant_alias = host_quant_alias,
    .plan_weight = host_plan_weight,
    .plan_op = host_plan_op,
    .plan_output = host_plan_output,
    .writer_info = host_writer_info,
    .writer_value_at = host_writer_value_at,
    .writer_tensor_at = host_writer_tensor_at,
    .writer_put = host_writer_put,
    .quant_number = host_quant_number,
};

/* A waiting table of this image, or a new one. */
static host_slot *take_slot(pn_runtime *rt, const pn_plugin *descriptor)
{
    host_slot *s;
    pthread_mutex_lock(&slots_lock);
    for (s = slots; s; s = s->next)
        if (s->descriptor == descriptor && !atomic_load(&s->rt))
            break;
    if (!s && (s = pn_calloc(1, sizeof *s))) {
        s->table = template;
        s->table.context = s;
        s->descriptor = descriptor;
        s->next = slots;
        slots = s;
    }
    if (s)
        atomic_store(&s->rt, rt);
    pthread_mutex_unlock(&slots_lock);
    return s;
}

pn_status pn_host_open(pn_runtime *rt, uint32_t plugin, const pn_plugin *descriptor, const pn_host **out, pn_error *err)
{
    host_slot *s;
    if (descriptor) {
        s = take_slot(rt, descriptor);
    } else if ((s = pn_calloc(1, sizeof *s))) {
        s->table = template;
        s->table.context = s;
        atomic_store(&s->rt, rt);
    }
    if (!s)
        return pn_fail(err, PN_E_NOMEM, "no memory for a host table");
    s->plugin = plugin;
    s->cpu = rt->cpu;
    atomic_store(&s->in_init, 0);
    *out = &s->table;
    return PN_OK;
}

void pn_host_begin_init(const pn_host *host)
{
    atomic_store(&slot_of(host)->in_init, 1);
}

void pn_host_end_init(const pn_host *host)
{
    atomic_store(&slot_of(host)->in_init, 0);
}

void pn_host_close(const pn_host *host)
{
    host_slot *s = host ? slot_of(host) : NULL;
    if (!s)
        return;
    if (!s->descriptor) {
        pn_free(s);
        return;
    }
    pthread_mutex_lock(&slots_lock);
    atomic_store(&s->rt, NULL);
    pthread_mutex_unlock(&slots_lock);
}

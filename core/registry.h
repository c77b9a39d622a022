/* What plugins registered, and who wins: the view of the registry that the rest of the core has. */
#ifndef PN_REGISTRY_H
#define PN_REGISTRY_H

#include <pantheon/pantheon.h>

/* One registered thing. `item` is the host's full-size copy of the plugin's struct (pn_quant, pn_kernel, ...). */
typedef struct pn_reg_entry {
    uint32_t kind;   /* PN_KIND_* */
    uint32_t plugin; /* index for pn_runtime_plugin */
    const char *name;
    const void *item;
    const pn_host *host; /* the table given to the plugin that registered it */
    int usable;          /* CPU features present */
} pn_reg_entry;

/* Entry number `index` of a kind (PN_KIND_*), in registration order; NULL past the end. */
const pn_reg_entry *pn_registry_at(const pn_runtime *rt, uint32_t kind, size_t index);
/* By identity name: quant, op, format, template, kernel, packing (best usable of that name). NULL: there is none. */
const pn_reg_entry *pn_registry_find(const pn_runtime *rt, uint32_t kind, const char *name);
/* By what it answers to (names[]), after [arch] alias. NULL when there is none. */
const pn_reg_entry *pn_registry_arch(const pn_runtime *rt, pn_str name, const char **effective_name);
const pn_reg_entry *pn_registry_tokenizer(const pn_runtime *rt, pn_str name);

/* The kernel and packing for a weight in a precision class: pins first ([kernels] TYPE = KERNEL), then the highest
 * score that runs here and accepts the weight, PN_EXACT kernels being the fallback in PN_FAST when the type has no
 * fast one. *kernel = NULL (and PN_OK) when there is none: the caller falls back to dequantize-and-dot. `why`
 * (capacity bytes, may be NULL) receives a short reason. */
pn_status pn_registry_pick_kernel(const pn_runtime *rt, const pn_qweight *weight, uint32_t precision,
                                  const pn_kernel **kernel, const pn_packing **packing, char *why, size_t capacity,
                                  pn_error *err);

/* "no plugin for NAME ...; searched: FOLDERS ...": the error for a thing that nothing registered. Always returns
 * PN_E_UNSUPPORTED. */
pn_status pn_registry_missing(const pn_runtime *rt, uint32_t kind, pn_str name, pn_error *err);

/* The core's own things (packings, operations) register through the same table as any plugin. Implemented in
 * builtin.c. */
pn_status pn_builtin_register(const pn_host *host, pn_error *err);

/* Log to the runtime's callback. */
void pn_runtime_log(const pn_runtime *rt, uint32_t level, const char *format, ...) PN_PRINTF(3, 4);
/* The runtime behind a host table. */
pn_runtime *pn_host_runtime(const pn_host *host);

#endif

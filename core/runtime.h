/* The runtime's insides, shared by loader, registry, host table and runtime.c. Immutable once pn_runtime_create
 * returned. */
#ifndef PN_RUNTIME_H
#define PN_RUNTIME_H

#include "elfnote.h"
#include "registry.h"

#include <pthread.h>
#include <sys/types.h>
#include <uthash.h>

/* A file that was found, or the core itself (index 0, path ""). Strings are owned, never NULL once reported. */
typedef struct pn_plugin_rec {
    uint32_t state;             /* PN_PLUGIN_*; 0 while undecided */
    pn_status status;           /* refused: why */
    int named;                  /* by [plugins] load: a refusal stops everything */
    char *path, *id, *version, *licence, *summary, *reason;
    dev_t dev;
    ino_t ino;
    const pn_plugin *descriptor;/* of the loaded image, or NULL */
    const pn_host *host;        /* the table given to init, or NULL */
} pn_plugin_rec;

/* A registered thing with its copied struct. */
typedef struct pn_reg {
    pn_reg_entry e;
    const char *const *names;   /* what it answers to: names[] of architectures and tokenizers, else &e.name */
    uint32_t n_names;
    uint32_t n_active;          /* names that it holds; 0 = passed over by pins */
    int32_t score;
    uint32_t precision;         /* kernels: of their packing, 0 when that is not loaded */
    uint64_t cpu_features;
    const char *quant, *packing;/* kernels; else "" */
    int chosen;
    char *note;                 /* owned, or NULL */
    union {
        pn_format format;
        pn_quant quant;
        pn_packing packing;
        pn_kernel kernel;
        pn_op op;
        pn_arch arch;
        pn_tokenizer_type tokenizer;
        pn_template_type tmpl;
    } item;
} pn_reg;

/* Who holds a name: key is the kind's digit and the name. */
typedef struct pn_claim {
    UT_hash_handle hh;
    pn_reg *reg;
    const char *name;           /* as registered; static */
    char key[];
} pn_claim;

typedef struct pn_folder {
    char *path;
    const char *why;            /* static: "[plugins] path", ... */
    int present;
    dev_t dev;
    ino_t ino;
} pn_folder;

struct pn_runtime {
    pn_config *config;
    pn_log_fn log;
    void *log_arg;
    uint64_t cpu;               /* usable PN_CPU_* */
    uint32_t precision;         /* of [runtime] activations */

    pn_plugin_rec **plugins;
    size_t n_plugins, cap_plugins;
    pn_folder *folders;
    size_t n_folders, cap_folders;
    pn_reg **regs;              /* in registration order */
    size_t n_regs, cap_regs;
    pn_claim *claims;
    char *conflict;             /* two plugins want one name and no pin decides: what init was told; stops the load */
};

/* ---- registry.c, register.c -------------------------------------------------------------------------------------- */

/* Once every plugin is in: settle pins, build the index of names, mark kernels, write notes. */
pn_status pn_registry_settle(pn_runtime *rt, pn_error *err);
/* Forget everything registered since there were `count` registrations. */
void pn_registry_truncate(pn_runtime *rt, size_t count);
void pn_registry_free(pn_runtime *rt);
/* The plugin id that the configuration pins a name to, or NULL. *key: "section.key" of that pin, for messages. */
const char *pn_registry_pin(const pn_runtime *rt, uint32_t kind, const char *name, char *key, size_t capacity);
const char *pn_kind_word(uint32_t kind);
/* The best usable packing of a name, before or after settling; NULL when there is none. */
const pn_reg *pn_registry_packing(const pn_runtime *rt, const char *name);
/* Set reg->note, adding to what is there. */
pn_status pn_reg_note(pn_reg *reg, pn_error *err, const char *format, ...) PN_PRINTF(3, 4);
/* choice.c: kernels and packings that this machine would use in the configured mode; ties. */
pn_status pn_choice_settle(pn_runtime *rt, pn_error *err);

/* ---- host.c ------------------------------------------------------------------------------------------------------ */

/* A host table for plugin number `plugin` of `rt`. Tables of loaded images outlive the runtime (a plugin may keep the
 * pointer) and serve the same image again; descriptor NULL = the core's own, freed with the runtime. */
pn_status pn_host_open(pn_runtime *rt, uint32_t plugin, const pn_plugin *descriptor, const pn_host **out,
                       pn_error *err);
/* Registration works between these. */
void pn_host_begin_init(const pn_host *host);
void pn_host_end_init(const pn_host *host);
/* The runtime goes away. */
void pn_host_close(const pn_host *host);
/* The runtime and plugin that may register now; PN_E_STATE outside init. */
pn_status pn_host_registering(const pn_host *host, pn_runtime **rt, uint32_t *plugin, pn_error *err);

/* register.c: bodies of the host slots. */
pn_status pn_register_format(const pn_host *host, const pn_format *format, pn_error *err);
pn_status pn_register_quant(const pn_host *host, const pn_quant *quant, pn_error *err);
pn_status pn_register_packing(const pn_host *host, const pn_packing *packing, pn_error *err);
pn_status pn_register_kernel(const pn_host *host, const pn_kernel *kernel, pn_error *err);
pn_status pn_register_op(const pn_host *host, const pn_op *op, pn_error *err);
pn_status pn_register_arch(const pn_host *host, const pn_arch *arch, pn_error *err);
pn_status pn_register_tokenizer(const pn_host *host, const pn_tokenizer_type *tokenizer, pn_error *err);
pn_status pn_register_template(const pn_host *host, const pn_template_type *type, pn_error *err);
/* registry.c: bodies of the host slots quant_alias and quant_number. */
pn_status pn_registry_quant_alias(const pn_runtime *rt, uint64_t number, const char **name, uint32_t *elems,
                                  uint32_t *bytes, pn_error *err);
pn_status pn_registry_quant_number(const pn_runtime *rt, const char *name, uint64_t *number, pn_error *err);

/* ---- loader.c, image.c ------------------------------------------------------------------------------------------- */

/* Fill rt->folders, find plugin files, load them, call init. */
pn_status pn_loader_run(pn_runtime *rt, pn_error *err);
/* Check the file at `path` as data, load it, compare the descriptor. *rec gets dev, ino, and as much as is known of id
 * and version. */
pn_status pn_image_load(const char *path, uint64_t cpu, pn_plugin_rec *rec, pn_error *err);
/* Dotted numbers compared number by number: < 0, 0, > 0. Both well formed. */
int pn_version_compare(const char *a, const char *b);
int pn_version_ok(const char *version);
/* 1 when the descriptor fits: fields checked one by one. `note` NULL: not compared with a note. */
pn_status pn_descriptor_check(const pn_plugin *d, const pn_elfnote *note, uint64_t cpu, const char *path,
                              pn_error *err);
/* Append ", FOLDER" to a message for every folder searched. */
void pn_runtime_folders_text(const pn_runtime *rt, char *text, size_t capacity);

#endif

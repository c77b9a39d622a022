/* The registry without plugin files: what is accepted, who holds a name, which kernel is chosen, what is said of what
 * is missing. */
#include "alloc.h"
#include "loader_help.h"

#include <pantheon/kit/pack.h>

/* ---- a runtime with plugins made up here ------------------------------------------------------------------------- */

static char last_log[4096];
static const pn_plugin descriptors[4];  /* only their addresses matter */

static void keep_log(void *arg, uint32_t level, const char *message)
{
    (void)arg;
    if (level == PN_LOG_WARN)
        snprintf(last_log, sizeof last_log, "%s", message);
}

/* `settings`: "section.key", "value", ..., NULL. */
static pn_runtime *new_runtime(uint64_t cpu, const char *const *settings)
{
    pn_error err = {0};
    pn_runtime *rt = pn_calloc(1, sizeof *rt);
    assert_int_equal(pn_config_create(&rt->config, &err), PN_OK);
    for (size_t i = 0; settings && settings[i]; i += 2)
        if (pn_config_set(rt->config, settings[i], settings[i + 1], &err) != PN_OK)
            fail_msg("%s", err.message);
    rt->precision = !strcmp(pn_config_text(rt->config, "runtime", "activations"), "fast") ? PN_FAST : PN_EXACT;
    rt->cpu = cpu;
    rt->log = keep_log;
    last_log[0] = 0;
    return rt;
}

/* A plugin under the id, inside its init. */
static const pn_host *plugin(pn_runtime *rt, const char *id)
{
    pn_error err = {0};
    pn_plugin_rec *rec = pn_calloc(1, sizeof *rec);
    assert_int_equal(pn_grow((void **)&rt->plugins, rt->n_plugins, &rt->cap_plugins, sizeof *rt->plugins, &err), PN_OK);
    rec->state = PN_PLUGIN_LOADED;
    rec->id = pn_strdup(id);
    rec->version = pn_strdup("1.0");
    rec->path = pn_strdup(id);
    rec->descriptor = &descriptors[rt->n_plugins % 4];
    rt->plugins[rt->n_plugins] = rec;
    assert_int_equal(pn_host_open(rt, (uint32_t)rt->n_plugins, rec->descriptor, &rec->host, &err), PN_OK);
    rt->n_plugins++;
    pn_host_begin_init(rec->host);
    return rec->host;
}

static void settled(pn_runtime *rt)
{
    pn_error err = {0};
    if (pn_registry_settle(rt, &err) != PN_OK)
        fail_msg("%s", err.message);
}

/* ---- things to register ------------------------------------------------------------------------------------------ */

static void dequantize(const void *row, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ((const signed char *)row)[i];
}

static size_t column(size_t cols)
{
    return cols > 1000000 ? 0 : (cols * 4 + 63) & ~(size_t)63;
}

static void pack(const float *x, size_t cols, void *out)
{
    memcpy(out, x, cols * sizeof *x);
}

static pn_status multiply(const pn_matmul_args *a)
{
    (void)a;
    return PN_OK;
}

static int32_t only_even(const pn_qweight *w)
{
    return w->cols % 2 == 0;
}

static pn_quant quant(const char *name)
{
    return (pn_quant){
        .struct_size = sizeof(pn_quant), .name = name, .block_elems = 1, .block_bytes = 1, .dequantize = dequantize};
}

static pn_packing packing(const char *name, uint32_t precision, int32_t score, uint64_t cpu)
{
    return (pn_packing){.struct_size = sizeof(pn_packing),
                        .precision = precision,
                        .name = name,
                        .cpu_features = cpu,
                        .score = score,
                        .column_bytes = column,
                        .pack = pack};
}

static pn_kernel kernel(const char *name, const char *type, const char *packed, int32_t score, uint64_t cpu)
{
    return (pn_kernel){.struct_size = sizeof(pn_kernel),
                       .score = score,
                       .name = name,
                       .quant = type,
                       .packing = packed,
                       .cpu_features = cpu,
                       .row_tile = 1,
                       .matmul = multiply};
}

static void add_quant(const pn_host *h, pn_quant q)
{
    pn_error err = {0};
    if (pn_host_register_quant(h, &q, &err) != PN_OK)
        fail_msg("%s", err.message);
}

static void add_packing(const pn_host *h, pn_packing p)
{
    pn_error err = {0};
    if (pn_host_register_packing(h, &p, &err) != PN_OK)
        fail_msg("%s", err.message);
}

static void add_kernel(const pn_host *h, pn_kernel k)
{
    pn_error err = {0};
    if (pn_host_register_kernel(h, &k, &err) != PN_OK)
        fail_msg("%s", err.message);
}

/* Name of the kernel chosen for `cols` columns of a type ("" = none); `why` gets the reason. */
static const char *picked(pn_runtime *rt, const char *type, uint64_t cols, uint32_t mode, char why[256])
{
    pn_error err = {0};
    const pn_quant *q = pn_runtime_find(rt, PN_KIND_QUANT, type);
    pn_qweight w = { .struct_size = sizeof w, .type = q, .rows = 4, .cols = cols, .row_stride = cols, .planes = 1 };
    const pn_kernel *k = (const pn_kernel *)&w;
    const pn_packing *p = (const pn_packing *)&w;
    char text[256];
    assert_non_null(q);
    if (pn_registry_pick_kernel(rt, &w, mode, &k, &p, why ? why : text, 256, &err) != PN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(k != NULL, p != NULL);
    if (k)
        assert_string_equal(p->name, k->packing);
    return k ? k->name : "";
}

static pn_registration registration(const pn_runtime *rt, const char *name)
{
    pn_registration r = { .struct_size = sizeof r };
    for (size_t i = 0; pn_runtime_registration(rt, i, &r, NULL) == PN_OK; i++)
        if (!strcmp(r.name, name))
            return r;
    fail_msg("nothing called %s", name);
    return r;
}

/* ---- choice of kernels ------------------------------------------------------------------------------------------- */

/* Types a (with everything) and b (no kernel); packings e (exact, two levels), q (fast), v (needs AVX-512). */
static pn_runtime *kernels(uint64_t cpu, const char *const *settings)
{
    pn_runtime *rt = new_runtime(cpu, settings);
    const pn_host *h = plugin(rt, "org.one");
    add_packing(h, packing("e", PN_EXACT, 10, 0));
    add_packing(h, packing("e", PN_EXACT, 20, PN_CPU_AVX2));
    add_packing(h, packing("q", PN_FAST, 10, 0));
    add_packing(h, packing("v", PN_EXACT, 10, PN_CPU_AVX512));
    add_quant(h, quant("a"));
    add_quant(h, quant("b"));
    add_quant(h, quant("d"));
    add_kernel(h, kernel("d.asked", "d", "e", 0, 0));
    add_kernel(h, kernel("a.e.c", "a", "e", 100, 0));
    add_kernel(h, kernel("a.e.avx2", "a", "e", 200, PN_CPU_AVX2));
    add_kernel(h, kernel("a.e.avx512", "a", "e", 300, PN_CPU_AVX512));
    add_kernel(h, kernel("a.q.c", "a", "q", 150, 0));
    add_kernel(h, kernel("a.v", "a", "v", 250, 0));
    add_kernel(h, kernel("a.asked", "a", "e", 0, 0));
    pn_kernel even = kernel("a.even", "a", "e", 400, PN_CPU_FMA);
    even.accepts = only_even;
    add_kernel(h, even);
    return rt;
}

static void highest_score_that_runs(void **state)
{
    (void)state;
    pn_runtime *rt = kernels(0, NULL);
    settled(rt);
    assert_string_equal(picked(rt, "a", 8, PN_EXACT, NULL), "a.e.c");
    assert_string_equal(picked(rt, "a", 8, PN_FAST, NULL), "a.q.c");
    assert_string_equal(picked(rt, "b", 8, PN_EXACT, NULL), "");
    assert_string_equal(picked(rt, "d", 8, PN_EXACT, NULL), "");    /* score 0 is no candidate, even alone */
    assert_int_equal(registration(rt, "a.e.c").chosen, 1);
    assert_int_equal(registration(rt, "a.e.avx2").usable, 0);
    assert_non_null(strstr(registration(rt, "a.v").note, "packing 'v'"));
    pn_runtime_destroy(rt);

    rt = kernels(PN_CPU_AVX2, NULL);
    settled(rt);
    assert_string_equal(picked(rt, "a", 8, PN_EXACT, NULL), "a.e.avx2");
    assert_int_equal(registration(rt, "a.e.avx2").chosen, 1);
    assert_int_equal(registration(rt, "a.e.c").chosen, 0);
    assert_true(pn_registry_find(rt, PN_KIND_PACKING, "e")->usable);
    assert_int_equal(((const pn_packing *)pn_registry_find(rt, PN_KIND_PACKING, "e")->item)->score, 20);
    assert_null(pn_registry_find(rt, PN_KIND_PACKING, "v"));
    pn_runtime_destroy(rt);

    rt = kernels(PN_LEVEL_AVX512, NULL);
    settled(rt);
    assert_string_equal(picked(rt, "a", 8, PN_EXACT, NULL), "a.even");
    assert_string_equal(picked(rt, "a", 9, PN_EXACT, NULL), "a.e.avx512");      /* a.even does not accept it */
    assert_string_equal(picked(rt, "a", 2000001, PN_EXACT, NULL), "");          /* no packing holds it */
    pn_runtime_destroy(rt);
}

static void fast_falls_back_to_exact(void **state)
{
    (void)state;
    static const char *const fast[] = { "runtime.activations", "fast", NULL };
    char why[256];
    pn_runtime *rt = kernels(0, fast);
    const pn_host *h = rt->plugins[0]->host;
    add_quant(h, quant("c"));
    add_kernel(h, kernel("c.e", "c", "e", 5, 0));
    pn_quant f = quant("float");
    f.flags = PN_QUANT_FLOAT;
    add_quant(h, f);
    add_packing(h, packing("f32", PN_EXACT, 1, 0));
    add_kernel(h, kernel("float.e", "float", "e", 50, 0));
    add_kernel(h, kernel("float.q", "float", "q", 60, 0));
    add_kernel(h, kernel("float.f32", "float", "f32", 5, 0));
    settled(rt);
    assert_string_equal(picked(rt, "a", 8, PN_FAST, NULL), "a.q.c");
    assert_int_equal(registration(rt, "a.q.c").chosen, 1);
    assert_int_equal(registration(rt, "a.e.c").chosen, 0);
    assert_string_equal(picked(rt, "c", 8, PN_FAST, why), "c.e");
    assert_non_null(strstr(why, "exact as there is no fast one"));
    /* A type of plain numbers keeps float activations in every mode. */
    assert_string_equal(picked(rt, "float", 8, PN_FAST, NULL), "float.f32");
    assert_string_equal(picked(rt, "float", 8, PN_EXACT, NULL), "float.f32");
    pn_runtime_destroy(rt);
}

static void pins_come_before_scores(void **state)
{
    (void)state;
    static const char *const asked[] = { "kernels.a", "a.asked", NULL };
    static const char *const fast[] = { "kernels.a", "a.q.c", NULL };
    static const char *const even[] = { "kernels.a", "a.even", NULL };
    char why[256];
    pn_runtime *rt = kernels(PN_LEVEL_AVX512, asked);
    settled(rt);
    assert_string_equal(picked(rt, "a", 8, PN_EXACT, why), "a.asked");      /* score 0: only so */
    assert_non_null(strstr(why, "pinned"));
    assert_string_equal(picked(rt, "a", 8, PN_FAST, NULL), "a.asked");
    assert_non_null(strstr(registration(rt, "a.asked").note, "pinned"));
    pn_runtime_destroy(rt);

    rt = kernels(PN_LEVEL_AVX512, fast);                                    /* the mode filters before the pin */
    settled(rt);
    assert_non_null(strstr(last_log, "a.q.c"));
    assert_string_equal(picked(rt, "a", 9, PN_EXACT, why), "a.e.avx512");
    assert_non_null(strstr(why, "passed over: it is for fast"));
    assert_string_equal(picked(rt, "a", 9, PN_FAST, NULL), "a.q.c");
    pn_runtime_destroy(rt);

    rt = kernels(PN_LEVEL_AVX512, even);
    settled(rt);
    assert_string_equal(picked(rt, "a", 8, PN_EXACT, NULL), "a.even");
    assert_string_equal(picked(rt, "a", 9, PN_EXACT, why), "a.e.avx512");
    assert_non_null(strstr(why, "does not accept"));
    pn_runtime_destroy(rt);
}

static void pins_that_cannot_be_obeyed(void **state)
{
    (void)state;
    static const struct { const char *setting[3], *words[2]; pn_status status; } cases[] = {
        { { "kernels.a", "a.nowhere", NULL }, { "a.nowhere", "no such kernel" }, PN_E_CONFIG },
        { { "kernels.b", "a.e.c", NULL }, { "a.e.c", "type a" }, PN_E_CONFIG },
        { { "kernels.a", "a.e.avx512", NULL }, { "a.e.avx512", "needs avx512" }, PN_E_CPU },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_error err = {0};
        const pn_kernel *k;
        const pn_packing *p;
        pn_runtime *rt = kernels(0, cases[i].setting);
        settled(rt);                /* an error only for who uses the type */
        assert_non_null(strstr(last_log, cases[i].words[0]));
        pn_qweight w = { .struct_size = sizeof w, .rows = 1, .cols = 4, .row_stride = 4, .planes = 1,
                         .type = pn_runtime_find(rt, PN_KIND_QUANT, cases[i].setting[0] + 8) };
        assert_int_equal(pn_registry_pick_kernel(rt, &w, PN_EXACT, &k, &p, NULL, 0, &err), cases[i].status);
        for (int n = 0; n < 2; n++)
            if (!strstr(err.message, cases[i].words[n]))
                fail_msg("'%s' is not in: %s", cases[i].words[n], err.message);
        pn_runtime_destroy(rt);
    }
}

static void ties_are_reported(void **state)
{
    (void)state;
    char why[256];
    pn_runtime *rt = kernels(0, NULL);
    const pn_host *h = plugin(rt, "org.two");
    add_kernel(h, kernel("two.a", "a", "e", 100, 0));       /* as a.e.c; for another plugin's type */
    add_kernel(h, kernel("two.x", "nowhere", "e", 100, 0));
    settled(rt);
    assert_string_equal(picked(rt, "a", 8, PN_EXACT, why), "a.e.c");
    assert_non_null(strstr(why, "two.a"));
    assert_non_null(strstr(registration(rt, "a.e.c").note, "two.a"));
    assert_non_null(strstr(registration(rt, "two.a").note, "a.e.c"));
    assert_non_null(strstr(registration(rt, "two.x").note, "type 'nowhere' is not loaded"));
    assert_non_null(strstr(registration(rt, "a.asked").note, "only when pinned"));
    pn_runtime_destroy(rt);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static pn_status configure(const pn_host *h, pn_file *f, const char *name, void **params, pn_error *err)
{
    (void)h; (void)f; (void)name; (void)params; (void)err;
    return PN_OK;
}

static pn_status build(const pn_host *h, pn_plan *plan, const void *params, pn_error *err)
{
    (void)h; (void)plan; (void)params; (void)err;
    return PN_OK;
}

static void release(const pn_host *h, void *params)
{
    (void)h; (void)params;
}

static const char *const first_names[] = { "oak", "elm" };
static const char *const second_names[] = { "elm", "ash tree" };

static pn_arch arch(const char *const *names, uint32_t n)
{
    return (pn_arch){.struct_size = sizeof(pn_arch),
                     .n_names = n,
                     .names = names,
                     .configure = configure,
                     .build = build,
                     .release = release};
}

static void architectures_by_any_name(void **state)
{
    (void)state;
    static const char *const settings[] = {"arch.alias.willow", "oak", "arch.alias.ash tree", "elm", "arch.pin.elm",
                                           "org.two",           NULL};
    pn_error err = {0};
    const char *name = NULL;
    pn_runtime *rt = new_runtime(0, settings);
    const pn_host *one = plugin(rt, "org.one"), *two = plugin(rt, "org.two");
    pn_arch a = arch(first_names, 2), b = arch(second_names, 2);
    assert_int_equal(pn_host_register_arch(one, &a, &err), PN_OK);
    assert_int_equal(pn_host_register_arch(two, &b, &err), PN_OK);
    settled(rt);
    const pn_reg_entry *oak = pn_registry_arch(rt, pn_str_from("oak"), &name);
    assert_non_null(oak);
    assert_ptr_equal(oak->host, one);
    assert_string_equal(name, "oak");
    assert_ptr_equal(pn_registry_arch(rt, pn_str_from("willow"), &name), oak);
    assert_string_equal(name, "oak");
    assert_ptr_equal(pn_registry_arch(rt, pn_str_from("elm"), &name)->host, two);      /* only this name is pinned */
    assert_string_equal(name, "elm");
    assert_ptr_equal(pn_registry_arch(rt, pn_str_from("ash tree"), &name)->host, two);
    assert_string_equal(name, "elm");
    assert_ptr_equal(pn_runtime_find(rt, PN_KIND_ARCH, "willow"), oak->item);
    /* Text of a file may be anything. */
    char big[5000];
    memset(big, 'x', sizeof big);
    assert_null(pn_registry_arch(rt, (pn_str){ big, sizeof big }, NULL));
    assert_null(pn_registry_arch(rt, (pn_str){ "oak\0x", 5 }, NULL));
    assert_null(pn_registry_arch(rt, (pn_str){ NULL, 0 }, NULL));
    assert_null(pn_registry_tokenizer(rt, pn_str_from("oak")));
    assert_null(pn_registry_find(rt, PN_KIND_QUANT, "oak"));
    pn_runtime_destroy(rt);
}

static void numbers_of_types(void **state)
{
    (void)state;
    static const char *const settings[] = {"quant.alias.42", "nib2",           "quant.alias.43",
                                           "org.two",        "quant.alias.44", "org.one",
                                           "quant.alias.45", "nowhere",        NULL};
    pn_error err = {0};
    pn_runtime *rt = new_runtime(0, settings);
    const pn_host *one = plugin(rt, "org.one"), *two = plugin(rt, "org.two");
    pn_quant q = quant("nib2");
    q.block_elems = 4;
    q.block_bytes = 3;
    add_quant(one, q);
    add_quant(one, quant("nib3"));
    add_quant(two, quant("nib5"));
    settled(rt);
    const char *name = "own";
    uint32_t elems = 7, bytes = 8;
    assert_int_equal(pn_host_quant_alias(one, 41, &name, &elems, &bytes, &err), PN_OK);
    assert_string_equal(name, "own");
    assert_true(elems == 7 && bytes == 8);
    assert_int_equal(pn_host_quant_alias(one, 42, &name, &elems, &bytes, &err), PN_OK);
    assert_string_equal(name, "nib2");
    assert_true(elems == 4 && bytes == 3);
    name = NULL;                /* the id of a plugin with one type says which */
    assert_int_equal(pn_host_quant_alias(one, 43, &name, &elems, &bytes, &err), PN_OK);
    assert_string_equal(name, "nib5");
    for (uint64_t n = 44; n <= 45; n++) {       /* an id with two types; nothing */
        assert_int_equal(pn_host_quant_alias(one, n, &name, &elems, &bytes, &err), PN_E_NOT_FOUND);
        assert_non_null(strstr(err.message, n == 44 ? "alias.44 = org.one" : "alias.45 = nowhere"));
    }
    pn_runtime_destroy(rt);
}

static void what_is_missing_is_said(void **state)
{
    (void)state;
    pn_error err = {0};
    pn_runtime *rt = new_runtime(0, NULL);
    const pn_host *one = plugin(rt, "org.one");
    add_quant(one, quant("nib2"));
    rt->folders = pn_calloc(1, sizeof *rt->folders);
    rt->folders[0].path = pn_strdup("/some/folder");
    rt->n_folders = rt->cap_folders = 1;
    settled(rt);
    assert_int_equal(pn_registry_missing(rt, PN_KIND_QUANT, pn_str_from("nib9"), &err), PN_E_UNSUPPORTED);
    assert_int_equal(err.status, PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "nib9"));
    assert_non_null(strstr(err.message, "nib2"));
    assert_non_null(strstr(err.message, "/some/folder"));
    assert_int_equal(pn_registry_missing(rt, PN_KIND_ARCH, pn_str_from("oak"), &err), PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "loaded: none"));
    assert_int_equal(pn_registry_missing(rt, PN_KIND_ARCH, pn_str_from("oak"), NULL), PN_E_UNSUPPORTED);
    pn_runtime_destroy(rt);
}

/* ---- what is accepted -------------------------------------------------------------------------------------------- */

static void expect_bad(pn_status s, const pn_error *err, const char *field)
{
    if (s != PN_E_ARGUMENT && s != PN_E_ABI)
        fail_msg("%s: status %d", field, (int)s);
    if (!strstr(err->message, field))
        fail_msg("'%s' is not in: %s", field, err->message);
}

#define BAD_QUANT(change, field)                                                \
    do {                                                                        \
        pn_quant q = quant("fine");                                             \
        change;                                                                 \
        expect_bad(pn_host_register_quant(h, &q, &err), &err, field);           \
    } while (0)
#define BAD_KERNEL(change, field)                                               \
    do {                                                                        \
        pn_kernel k = kernel("fine", "nib2", "e", 1, 0);                        \
        change;                                                                 \
        expect_bad(pn_host_register_kernel(h, &k, &err), &err, field);          \
    } while (0)
#define BAD_PACKING(change, field)                                              \
    do {                                                                        \
        pn_packing p = packing("fine", PN_EXACT, 1, 0);                         \
        change;                                                                 \
        expect_bad(pn_host_register_packing(h, &p, &err), &err, field);         \
    } while (0)
#define BAD_ARCH(change, field)                                                 \
    do {                                                                        \
        pn_arch a = arch(first_names, 2);                                       \
        change;                                                                 \
        expect_bad(pn_host_register_arch(h, &a, &err), &err, field);            \
    } while (0)

static void malformed_registrations(void **state)
{
    (void)state;
    static const char *const twice[] = {"oak", "oak"}, *const empty[] = {"oak", ""}, *const hole[] = {"oak", NULL};
    static const char *const side[] = { "scale", NULL };
    char big[400];
    pn_error err = {0};
    pn_runtime *rt = new_runtime(0, NULL);
    const pn_host *h = plugin(rt, "org.one");
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    BAD_QUANT(q.struct_size = 0, "struct_size");
    BAD_QUANT(q.struct_size = offsetof(pn_quant, dequantize), "struct_size");
    BAD_QUANT(q.name = NULL, "name");
    BAD_QUANT(q.name = "", "name");
    BAD_QUANT(q.name = "two words", "name");
    BAD_QUANT(q.name = "a=b", "name");
    BAD_QUANT(q.name = "Upper", "name");
    BAD_QUANT(q.name = big, "name");
    BAD_QUANT(q.block_elems = 0, "block_elems");
    BAD_QUANT(q.block_bytes = 0, "block_bytes");
    BAD_QUANT(q.dequantize = NULL, "dequantize");
    BAD_QUANT(q.n_side = 1, "side_suffixes");
    BAD_QUANT((q.n_side = 2, q.side_suffixes = side), "side_suffixes");
    BAD_KERNEL(k.quant = NULL, "quant");
    BAD_KERNEL(k.packing = "", "packing");
    BAD_KERNEL(k.row_tile = 0, "row_tile");
    BAD_KERNEL(k.matmul = NULL, "matmul");
    BAD_KERNEL(k.score = -1, "score");
    BAD_PACKING(p.precision = 0, "precision");
    BAD_PACKING(p.precision = 3, "precision");
    BAD_PACKING(p.column_bytes = NULL, "column_bytes");
    BAD_PACKING(p.pack = NULL, "pack");
    BAD_ARCH(a.n_names = 0, "names");
    BAD_ARCH(a.names = NULL, "names");
    BAD_ARCH(a.names = twice, "twice");
    BAD_ARCH(a.names = empty, "names");
    BAD_ARCH(a.names = hole, "names");
    BAD_ARCH(a.configure = NULL, "configure");
    BAD_ARCH(a.build = NULL, "build");
    BAD_ARCH(a.release = NULL, "release");
    pn_format f = { .struct_size = sizeof f, .name = "fine" };
    expect_bad(pn_host_register_format(h, &f, &err), &err, "probe");
    pn_op o = { .struct_size = sizeof o, .name = "fine", .axis = 3 };
    expect_bad(pn_host_register_op(h, &o, &err), &err, "axis");
    o.axis = PN_AXIS_UNITS;
    expect_bad(pn_host_register_op(h, &o, &err), &err, "shape");
    pn_tokenizer_type t = { .struct_size = sizeof t, .n_names = 2, .names = first_names };
    expect_bad(pn_host_register_tokenizer(h, &t, &err), &err, "open");
    pn_template_type m = { .struct_size = sizeof m, .name = "fine" };
    expect_bad(pn_host_register_template(h, &m, &err), &err, "recognise");
    expect_bad(pn_host_register_quant(h, NULL, &err), &err, "NULL");
    assert_int_equal(rt->n_regs, 0);
    /* The same name twice by one plugin; packings may, once per level. */
    add_quant(h, quant("nib2"));
    pn_quant again = quant("nib2");
    assert_int_equal(pn_host_register_quant(h, &again, &err), PN_E_ARGUMENT);
    assert_null(rt->conflict);
    add_packing(h, packing("e", PN_EXACT, 1, 0));
    add_packing(h, packing("e", PN_EXACT, 2, 0));
    pn_runtime_destroy(rt);
}

static void only_inside_init(void **state)
{
    (void)state;
    pn_error err = {0};
    pn_runtime *rt = new_runtime(0, NULL);
    const pn_host *h = plugin(rt, "org.one");
    pn_quant q = quant("nib2");
    pn_host_end_init(h);
    assert_int_equal(pn_host_register_quant(h, &q, &err), PN_E_STATE);
    assert_non_null(strstr(err.message, "inside init"));
    assert_int_equal(rt->n_regs, 0);
    pn_runtime_destroy(rt);
    assert_int_equal(pn_host_register_quant(h, &q, NULL), PN_E_STATE);
}

static void what_was_registered_can_be_undone(void **state)
{
    (void)state;
    pn_runtime *rt = new_runtime(0, NULL);
    const pn_host *h = plugin(rt, "org.one");
    add_quant(h, quant("kept"));
    size_t before = rt->n_regs;
    add_quant(h, quant("gone"));
    add_kernel(h, kernel("gone.k", "gone", "e", 1, 0));
    pn_registry_truncate(rt, before);
    add_quant(h, quant("after"));
    settled(rt);
    assert_non_null(pn_runtime_find(rt, PN_KIND_QUANT, "kept"));
    assert_null(pn_runtime_find(rt, PN_KIND_QUANT, "gone"));
    assert_non_null(pn_runtime_find(rt, PN_KIND_QUANT, "after"));
    assert_string_equal(pn_registry_at(rt, PN_KIND_QUANT, 1)->name, "after");
    assert_null(pn_registry_at(rt, PN_KIND_QUANT, 2));
    pn_runtime_destroy(rt);
}

/* Rivals of every kind but types and architectures are told apart by [plugins] pin. */
static void a_conflict_says_what_to_write(void **state)
{
    (void)state;
    pn_error err = {0};
    pn_runtime *rt = new_runtime(0, NULL);
    const pn_host *one = plugin(rt, "org.one"), *two = plugin(rt, "org.two");
    pn_packing p = packing("e", PN_EXACT, 1, 0);
    add_packing(one, p);
    assert_int_equal(pn_host_register_packing(two, &p, &err), PN_E_CONFLICT);
    assert_non_null(strstr(err.message, "org.one"));
    assert_non_null(strstr(err.message, "org.two"));
    assert_non_null(strstr(err.message, "pin.e = org.one"));
    assert_non_null(strstr(err.message, "[plugins] pin.e = org.one"));
    assert_string_equal(rt->conflict, err.message);
    pn_runtime_destroy(rt);
    static const char *const settings[] = { "plugins.pin.e", "org.two", NULL };
    rt = new_runtime(0, settings);
    one = plugin(rt, "org.one");
    two = plugin(rt, "org.two");
    add_packing(one, packing("e", PN_EXACT, 9, 0));
    add_packing(two, packing("e", PN_EXACT, 1, 0));
    add_packing(two, packing("e", PN_EXACT, 2, 0));
    settled(rt);
    const pn_reg_entry *e = pn_registry_find(rt, PN_KIND_PACKING, "e");
    assert_ptr_equal(e->host, two);
    assert_int_equal(((const pn_packing *)e->item)->score, 2);
    pn_runtime_destroy(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(highest_score_that_runs),
        cmocka_unit_test(fast_falls_back_to_exact),
        cmocka_unit_test(pins_come_before_scores),
        cmocka_unit_test(pins_that_cannot_be_obeyed),
        cmocka_unit_test(ties_are_reported),
        cmocka_unit_test(architectures_by_any_name),
        cmocka_unit_test(numbers_of_types),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(malformed_registrations),
        cmocka_unit_test(only_inside_init),
        cmocka_unit_test(what_was_registered_can_be_undone),
        cmocka_unit_test(a_conflict_says_what_to_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

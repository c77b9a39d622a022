/* checkasm: compares everything that computes with its definition, at every level this CPU has: the kernels, types and
 * packings that the plugins registered, and the core's operations. It fails when something is registered that has no
 * test.
 *
 *   checkasm [--seed N] [--filter TEXT] [--bench]
 */
#include "checkasm.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int check_ops(uint64_t seed, int bench);

ca_set ca;

static struct {
    char name[256], doing[512];
    int failures;          /* of this check */
    size_t passed, failed; /* checks */
} now;

/* ---- reporting
 * -------------------------------------------------------------------------------------------------------- */

void ca_begin(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(now.name, sizeof now.name, format, ap);
    va_end(ap);
    now.failures = 0;
    now.doing[0] = 0;
}

void ca_end(void)
{
    now.failures ? now.failed++ : now.passed++;
    printf("%sok - %s\n", now.failures ? "not " : "", now.name);
    fflush(stdout);
}

void ca_doing(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(now.doing, sizeof now.doing, format, ap);
    va_end(ap);
}

bool ca_fail(const char *format, ...)
{
    va_list ap;
    if (now.failures++ < 4) {
        printf("# %s: ", now.doing[0] ? now.doing : now.name);
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        printf("; --seed %llu\n", (unsigned long long)ca.seed);
    }
    return false;
}

bool ca_failed(void)
{
    return now.failures > 0;
}

/* A read or write outside what it was given ends here: say who did it. Only calls that are safe in a handler. */
static void on_fault(int number)
{
    static const char *const parts[] = {"not ok - ", now.name, "\n# ", now.doing,
                                        ": a fault (memory outside its inputs, or an illegal instruction)\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (write(1, parts[i], strlen(parts[i])) < 0) break;
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- the registry
 * ------------------------------------------------------------------------------------------------------ */

/* Registered thing `index`; false past the end. */
static bool registration(size_t index, pn_registration *g)
{
    *g = (pn_registration){.struct_size = sizeof *g};
    return pn_runtime_registration(ca.runtime, index, g, NULL) == PN_OK;
}

const pn_packing *ca_packing(const char *name)
{
    const pn_packing *best = NULL;
    pn_registration g;
    for (size_t i = 0; registration(i, &g); i++) {
        const pn_packing *p = g.item;
        if (g.kind == PN_KIND_PACKING && g.usable && !strcmp(p->name, name) && (!best || p->score > best->score))
            best = p;
    }
    return best;
}

const pn_kernel *ca_c_kernel(const pn_kernel *k)
{
    pn_registration g;
    for (size_t i = 0; registration(i, &g); i++) {
        const pn_kernel *c = g.item;
        if (g.kind == PN_KIND_KERNEL && !c->cpu_features && !strcmp(c->quant, k->quant) &&
            !strcmp(c->packing, k->packing))
            return c;
    }
    return NULL;
}

static void check_all(void)
{
    pn_registration g;
    for (size_t i = 0; registration(i, &g); i++) {
        char need[256];
        if (g.kind != PN_KIND_KERNEL && g.kind != PN_KIND_QUANT && g.kind != PN_KIND_PACKING) continue;
        if (*ca.filter && !strstr(g.name, ca.filter)) continue;
        if (!g.usable)
            printf("skip - %s: needs %s, which this CPU (or PANTHEON_CPU) lacks\n", g.name,
                   pn_cpu_names(g.cpu_features, need, sizeof need));
        else if (g.kind == PN_KIND_KERNEL) ca_check_kernel(g.item);
        else if (g.kind == PN_KIND_QUANT) ca_check_quant(g.item);
        else ca_check_packing(g.item);
    }
}

/* Plugins are those of the build that this program belongs to, and what PANTHEON_PLUGIN_PATH adds. A refused one is a
 * failure. */
static bool load(void)
{
    char path[PATH_MAX] = "";
    const char *build = getenv("PN_BUILD");
    pn_error err = {0};
    pn_config *config = NULL;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    if (build) snprintf(path, sizeof path, "%s/plugins", build);
    else if (n > 0) {
        path[n] = 0;
        *strrchr(path, '/') = 0;
        strcat(path, "/../plugins");
    }
    if (pn_config_create(&config, &err) != PN_OK || pn_config_set(config, "plugins.path", path, &err) != PN_OK ||
        pn_runtime_create(config, NULL, &ca.runtime, &err) != PN_OK) {
        printf("not ok - load plugins: %s\n", err.message);
        pn_config_destroy(config);
        return false;
    }
    pn_config_destroy(config);
    ca_begin("load plugins");
    pn_plugin_report p = {.struct_size = sizeof p};
    for (size_t i = 0; pn_runtime_plugin(ca.runtime, i, &p, NULL) == PN_OK; i++)
        if (p.state == PN_PLUGIN_REFUSED) ca_fail("%s was refused: %s", p.path, p.reason);
    ca_end();
    return true;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"filter", required_argument, NULL, 'f'},
                                            {"bench", no_argument, NULL, 'b'},
                                            {NULL, 0, NULL, 0}};
    bool bench = false;
    int option, ops = 0;
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    ca.seed = ((uint64_t)t.tv_sec * 1000000007u + (uint64_t)t.tv_nsec) % 1000000u;
    ca.filter = "";
    while ((option = getopt_long(argc, argv, "s:f:b", options, NULL)) != -1) switch (option) {
        case 's': ca.seed = strtoull(optarg, NULL, 10); break;
        case 'f': ca.filter = optarg; break;
        case 'b': bench = true; break;
        default: fprintf(stderr, "usage: checkasm [--seed N] [--filter TEXT] [--bench]\n"); return 2;
        }
    printf("# seed %llu\n", (unsigned long long)ca.seed);
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    signal(SIGILL, on_fault);
    if (!load()) return 1;
    check_all();
    if (!*ca.filter || strstr("ops", ca.filter)) {
        snprintf(now.name, sizeof now.name, "core operations");
        now.doing[0] = 0;
        ops = check_ops(ca.seed, bench);
    }
    if (bench) ca_bench_kernels();
    pn_runtime_destroy(ca.runtime);
    printf("%zu passed, %zu failed\n", now.passed, now.failed + (size_t)ops);
    return now.failed || ops ? 1 : 0;
}

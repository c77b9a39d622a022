/* Private folders, copies of test plugins, runtimes made from them. */
#include "loader_help.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>

static char base[PATH_MAX - 64];
static int folders;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

int loader_setup(void **state)
{
    char trace[PATH_MAX];
    (void)state;
    snprintf(base, sizeof base, "%s/pantheon-test.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(base))
        return -1;
    snprintf(trace, sizeof trace, "%s/trace", base);
    setenv("PN_TEST_TRACE", trace, 1);
    setenv("HOME", "/nonexistent", 1);
    unsetenv("PANTHEON_PLUGIN_PATH");
    unsetenv("PANTHEON_CPU");
    return 0;
}

int loader_teardown(void **state)
{
    (void)state;
    return nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void fresh_folder(char folder[PATH_MAX])
{
    snprintf(folder, PATH_MAX, "%s/f%d", base, folders++);
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(chmod(folder, 0755), 0);
}

void make_folders(const char *path)
{
    char text[PATH_MAX];
    snprintf(text, sizeof text, "%s", path);
    for (char *p = text + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(text, 0755);
            *p = '/';
        }
    mkdir(text, 0755);
}

/* Where the test plugins were built: beside this program. */
static void built(const char *name, char path[PATH_MAX])
{
    const char *build = getenv("PN_BUILD");
    if (build) {
        snprintf(path, PATH_MAX, "%s/tests/test-plugins/%s.so", build, name);
        return;
    }
    char program[PATH_MAX - 128];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(n > 0);
    program[n] = 0;
    *strrchr(program, '/') = 0;
    snprintf(path, PATH_MAX, "%s/test-plugins/%s.so", program, name);
}

char *read_file(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        fail_msg("%s: cannot be opened", path);
    assert_int_equal(fstat(fd, &st), 0);
    char *bytes = malloc((size_t)st.st_size + 1);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    *size = (size_t)st.st_size;
    return bytes;
}

/* A new file each time: an image in use must never change under it. */
void write_file(const char *path, const void *bytes, size_t size)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(fchmod(fd, 0644), 0);
    close(fd);
}

void copy_plugin(const char *name, const char *folder, char *path)
{
    char from[PATH_MAX], to[PATH_MAX];
    size_t size;
    built(name, from);
    char *bytes = read_file(from, &size);
    snprintf(to, sizeof to, "%.*s/%s.so", PATH_MAX - 64, folder, name);
    write_file(to, bytes, size);
    free(bytes);
    if (path)
        memcpy(path, to, sizeof to);
    unlink(getenv("PN_TEST_TRACE"));
}

int memory_file(const void *bytes, size_t size)
{
    int fd = memfd_create("pantheon-test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    return fd;
}

int traced(const char *name)
{
    char want[128], line[PATH_MAX];
    int found = 0;
    size_t n = strlen(name);
    FILE *f = fopen(getenv("PN_TEST_TRACE"), "r");
    if (!f)
        return 0;
    if (n > 3 && !strcmp(name + n - 3, ".so"))
        n -= 3;
    snprintf(want, sizeof want, "/%.*s.c\n", (int)n, name);
    while (fgets(line, sizeof line, f)) {
        size_t k = strlen(line);
        found |= k >= strlen(want) && !strcmp(line + k - strlen(want), want);
    }
    fclose(f);
    return found;
}

pn_runtime *runtime_try(const char *key, const char *folder, const char *file, pn_error *err)
{
    pn_config *cfg;
    pn_runtime *rt = NULL;
    char name[64];
    memset(err, 0, sizeof *err);
    assert_int_equal(pn_config_create(&cfg, err), PN_OK);
    snprintf(name, sizeof name, "plugins.%s", key);
    if (folder)
        assert_int_equal(pn_config_set(cfg, name, folder, err), PN_OK);
    if (file)
        assert_int_equal(pn_config_set(cfg, "plugins.load", file, err), PN_OK);
    pn_status s = pn_runtime_create(cfg, NULL, &rt, err);
    pn_config_destroy(cfg);
    assert_int_equal(s, err->status);
    assert_int_equal(s == PN_OK, rt != NULL);
    return rt;
}

pn_runtime *runtime_of(const char *key, const char *folder, const char *file)
{
    pn_error err = {0};
    pn_runtime *rt = runtime_try(key, folder, file, &err);
    if (!rt)
        fail_msg("%s", err.message);
    return rt;
}

int report_of(const pn_runtime *rt, const char *part, pn_plugin_report *out)
{
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    for (size_t i = 1; pn_runtime_plugin(rt, i, out, NULL) == PN_OK; i++)
        if (strstr(out->path, part))
            return 1;
    return 0;
}

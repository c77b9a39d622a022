/* Files of numbers: written beside their final name and moved there. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Ctrl-C must not leave half a file behind. */
static char leftover[4096];

static void remove_leftover(int number)
{
    unlink(leftover);
    signal(number, SIG_DFL);
    raise(number);
}

int output_open(output *o, const char *path)
{
    struct stat st;
    mode_t mask;
    int fd;
    size_t n;
    *o = (output){0};
    if (strcmp(path, "-") == 0) {
        o->f = stdout;
        return 0;
    }
    o->path = realpath(path, NULL); /* a link stays a link */
    if (!o->path) o->path = strdup(path);
    if (!o->path) return tool_failf("no memory");
    if (stat(o->path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device or a pipe cannot be replaced */
        o->f = fopen(o->path, "wb");
        return o->f ? 0 : tool_failf("%s: cannot open: %s", path, strerror(errno));
    }
    n = strlen(o->path) + 8;
    o->temporary = malloc(n);
    if (!o->temporary) return tool_failf("no memory");
    snprintf(o->temporary, n, "%s.XXXXXX", o->path);
    fd = mkstemp(o->temporary);
    if (fd < 0) {
        free(o->temporary);
        o->temporary = NULL;
        return tool_failf("%s: cannot be written: %s", path, strerror(errno));
    }
    if (strlen(o->temporary) < sizeof leftover) {
        strcpy(leftover, o->temporary);
        signal(SIGINT, remove_leftover);
        signal(SIGTERM, remove_leftover);
    }
    mask = umask(0);
    umask(mask);
    (void)fchmod(fd, stat(o->path, &st) == 0 ? st.st_mode & 0777 : 0666 & ~mask);
    o->f = fdopen(fd, "wb");
    return o->f ? 0 : tool_failf("%s: cannot be written: %s", path, strerror(errno));
}

int output_write(const output *o, const float *x, size_t n)
{
    const uint32_t one = 1;
    unsigned char bytes[4096];
    if (*(const unsigned char *)&one == 1) return fwrite(x, sizeof *x, n, o->f) == n ? 0 : -1;
    for (size_t i = 0; i < n;) {
        size_t k = 0;
        for (; k < sizeof bytes && i < n; i++, k += 4) {
            uint32_t u;
            memcpy(&u, &x[i], 4);
            for (size_t b = 0; b < 4; b++) bytes[k + b] = (unsigned char)(u >> (8 * b));
        }
        if (fwrite(bytes, 1, k, o->f) != k) return -1;
    }
    return 0;
}

int output_close(output *o, const char *path, int status)
{
    int why = 0;
    if (o->f == stdout) {
        if (!status) status = tool_finish();
        return status;
    }
    if (o->f) {
        bool failed = fflush(o->f) != 0;
        why = failed ? errno : 0;
        failed |= ferror(o->f) != 0;
        if (fclose(o->f) != 0 && !failed) {
            failed = true;
            why = errno;
        }
        if (failed && !status)
            status = tool_failf("%s: cannot be written: %s", path, why ? strerror(why) : "a write failed");
    }
    if (o->temporary && !status && rename(o->temporary, o->path) != 0)
        status = tool_failf("%s: cannot be put in place: %s", path, strerror(errno));
    if (o->temporary && status) unlink(o->temporary);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    free(o->temporary);
    free(o->path);
    return status;
}

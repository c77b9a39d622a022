/* For tests of loader and registry: private folders, copies of test plugins, runtimes made from them. */
#ifndef TESTS_UNIT_LOADER_HELP_H
#define TESTS_UNIT_LOADER_HELP_H

#include "runtime.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

int loader_setup(void **state);         /* a folder of its own for this program */
int loader_teardown(void **state);

/* A new empty folder that only we can write. */
void fresh_folder(char folder[PATH_MAX]);
void make_folders(const char *path);    /* mkdir -p */
/* Copy test plugin NAME.so into the folder; `path` (PATH_MAX, may be NULL) gets where. Forgets earlier traces. */
void copy_plugin(const char *name, const char *folder, char *path);
void write_file(const char *path, const void *bytes, size_t size);
char *read_file(const char *path, size_t *size);
int memory_file(const void *bytes, size_t size);
/* Did any code of the test plugin run since the last copy_plugin? NAME or NAME.so. */
int traced(const char *name);

/* A runtime with [plugins] path = folder and [plugins] load = file (each may be NULL); NULL and `err` on failure. */
pn_runtime *runtime_try(const char *key, const char *folder, const char *file, pn_error *err);
/* The same; a failure fails the test. */
pn_runtime *runtime_of(const char *key, const char *folder, const char *file);
/* The report of the first plugin whose path contains the text. */
int report_of(const pn_runtime *rt, const char *part, pn_plugin_report *out);

#endif

/* What tests on a whole model share: a runtime with the plugins just built, a tiny golden model. */
#ifndef PN_FIXTURE_H
#define PN_FIXTURE_H

#include <pantheon/pantheon.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define FIXTURE_MODEL "tests/data/graph/llama/model.gguf"

/* Fails the test with the error's words. */
#define assert_ok(call)                                                                  \
    do {                                                                                 \
        pn_error error_ = {0};                                                           \
        pn_error *err = &error_;                                                         \
        pn_status status_ = (call);                                                      \
        if (status_) fail_msg("%s: status %d: %s", #call, (int)status_, error_.message); \
    } while (0)

/* The test plugin with operations, architectures and a type of its own. */
static inline const char *fixture_words(void)
{
    static char path[4096];
    const char *build = getenv("PN_BUILD");
    snprintf(path, sizeof path, "%s/tests/test-plugins/own_words.so", build ? build : "build");
    return path;
}

/* A runtime with the plugins in $PN_BUILD/plugins; `set` is a list of "section.key", "value" pairs ended by NULL, or
 * NULL. */
static inline pn_runtime *fixture_runtime(const char *const *set)
{
    const char *build = getenv("PN_BUILD");
    char folder[4096];
    pn_config *config = NULL;
    pn_runtime *rt = NULL;
    snprintf(folder, sizeof folder, "%s/plugins", build ? build : "build");
    assert_ok(pn_config_create(&config, err));
    assert_ok(pn_config_set(config, "plugins.path", folder, err));
    for (; set && *set; set += 2) assert_ok(pn_config_set(config, set[0], set[1], err));
    assert_ok(pn_runtime_create(config, NULL, &rt, err));
    pn_config_destroy(config);
    return rt;
}

#endif

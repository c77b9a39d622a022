#!/usr/bin/env python3
"""A type whose plugin is not there: what is said, and that a plugin from elsewhere can take its place."""
import os
import shutil
import tempfile

import gguffile as g

DATA = os.path.join(g.ROOT, "tests", "data", "quantized", "llama-Q4_K_M")
BUILD = os.environ["PN_BUILD"]


def evaluate(program, out, *more):
    g.PANTHEON = program
    return g.run("eval", os.path.join(DATA, "model.gguf"), "--tokens", os.path.join(DATA, "tokens.txt"), "--logits", out,
                 *more, env={"PANTHEON_PLUGIN_PATH": ""})


def main():
    with tempfile.TemporaryDirectory() as folder:
        # Plugins are searched beside the program: a tree of its own that lacks one type.
        program = os.path.join(folder, "pantheon")
        for name in ("pantheon", "libpantheon.so.0"):
            shutil.copy(os.path.join(BUILD, name), os.path.join(folder, name))
        shutil.copytree(os.path.join(BUILD, "plugins"), os.path.join(folder, "plugins"))
        first, second = os.path.join(folder, "a.f32"), os.path.join(folder, "b.f32")
        status, _, err = evaluate(program, first)
        g.check("with every plugin it runs", status == 0, err)
        elsewhere = os.path.join(folder, "elsewhere")
        os.mkdir(elsewhere)
        os.rename(os.path.join(folder, "plugins", "q4_k.so"), os.path.join(elsewhere, "theirs.so"))
        status, _, err = evaluate(program, second)
        g.check("without, the error names the type", status == 1 and "q4_k" in err, err)
        g.check("and the folders searched", os.path.join(folder, "plugins") in err and "searched" in err, err)
        status, out, err = g.run("why-not", os.path.join(DATA, "model.gguf"), env={"PANTHEON_PLUGIN_PATH": ""})
        g.check("why-not says so too", status == 1 and b"q4_k" in out, out.decode() + err)
        status, _, err = evaluate(program, second, "--set", "plugins.load=" + os.path.join(elsewhere, "theirs.so"))
        with open(first, "rb") as a, open(second, "rb") as b:
            g.check("a plugin named by [plugins] load takes its place", status == 0 and a.read() == b.read(), err)
    g.done()


main()

#!/usr/bin/env python3
"""`pantheon plugins` and `why-not`: what is listed, what is refused and why, where plugins are found, exit statuses."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.environ.get("PN_ROOT", os.getcwd())
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import gguffile as g  # noqa: E402
from gguffile import PANTHEON, check  # noqa: E402

BUILD = os.environ["PN_BUILD"]
ODD = os.path.join(BUILD, "tests", "test-plugins")
LLAMA = os.path.join(ROOT, "tests", "data", "graph", "llama", "model.gguf")


def run(*args, program=PANTHEON, cwd=None, **env):
    e = {k: v for k, v in dict(os.environ, **env).items() if v is not None}
    r = subprocess.run([program, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, env=e, cwd=cwd)
    return r.returncode, r.stdout.decode(), r.stderr.decode()


def listed(*args, **more):
    status, out, err = run("plugins", "--json", *args, **more)
    if status != 0:
        check("plugins --json " + " ".join(args), False, err)
        return {"plugins": [], "folders": []}
    return json.loads(out)


def things(report, kind):
    return {r["name"]: r for p in report["plugins"] for r in p["registrations"] if r["kind"] == kind}


def put(folder, *names):
    for n in names:
        new = os.path.join(folder, n + ".new")
        shutil.copyfile(os.path.join(ODD, n + ".so"), new)
        os.chmod(new, 0o644)
        os.rename(new, os.path.join(folder, n + ".so"))


def test_list():
    report = listed()
    loaded = {p["id"]: p for p in report["plugins"] if p["state"] == "loaded"}
    built = sorted(f for f in os.listdir(os.path.join(BUILD, "plugins")) if f.endswith(".so"))
    got = sorted(os.path.basename(p["path"]) for p in report["plugins"] if p["path"])
    check("every built plugin is found", set(built) <= set(got), (built, got))
    check("every built plugin is loaded", not [p for p in report["plugins"] if p["state"] != "loaded"], report)
    check("the core's own things are listed first", report["plugins"][0]["id"] == "org.pantheon.core")
    check("plugins say id, version, licence and summary",
          all(p[k] for p in loaded.values() for k in ("id", "version", "licence", "summary")))
    kernels = things(report, "kernel")
    types = things(report, "type")
    check("there are types and kernels", len(types) >= 5 and len(kernels) >= 5)
    for t in types:
        mine = [k for k in kernels.values() if k["type"] == t]
        if not mine:        # plain numbers, read as data
            continue
        chosen = [k for k in mine if k["chosen"]]
        best = max((k["score"] for k in mine if k["usable"] and k["activations"] == "exact"), default=None)
        check("type %s: one kernel is chosen, the highest that runs here" % t,
              len(chosen) == 1 and chosen[0]["score"] == best, mine)
    status, text, err = run("plugins")
    check("the text has every id, kernel and folder", status == 0 and
          all(w in text for w in [*loaded, *kernels, *(f["path"] for f in report["folders"])]), text)
    check("the text marks the chosen kernels",
          all(("  * kernel       %s:" % k["name"] in text) == k["chosen"] for k in kernels.values()), text)


def test_levels():
    for level, bits in (("c", ""), ("avx2", "avx2 fma f16c")):
        report = listed(PANTHEON_CPU=level)
        if level == "avx2" and report["cpu"] != bits:
            print("skip - level avx2: this CPU lacks it")
            continue
        check("PANTHEON_CPU=%s: %s" % (level, bits or "no feature"), report["cpu"] == bits, report["cpu"])
        chosen = [k for k in things(report, "kernel").values() if k["chosen"]]
        check("PANTHEON_CPU=%s: only kernels that it permits are chosen" % level, chosen and
              all(set(k["cpu"].split()) <= set(bits.split()) for k in chosen), chosen)
    status, out, err = run("plugins", PANTHEON_CPU="fastest")
    check("PANTHEON_CPU with an unknown level is an error that names the known ones",
          status == 1 and "fastest" in err and "c, " in err and out == "", err)


def test_refused(tmp):
    d = os.path.join(tmp, "refused")
    os.mkdir(d)
    put(d, "good", "no_note", "init_fails", "version_1_9", "version_1_10")
    with open(os.path.join(d, "text.so"), "w") as f:
        f.write("no plugin\n")
    report = listed(PANTHEON_PLUGIN_PATH=d)
    state = {os.path.basename(p["path"]): p for p in report["plugins"] if p["path"].startswith(d)}
    check("refused, replaced and loaded are told apart", {k: v["state"] for k, v in state.items()} ==
          {"good.so": "loaded", "no_note.so": "refused", "init_fails.so": "refused", "text.so": "refused",
           "version_1_9.so": "replaced", "version_1_10.so": "loaded"}, state)
    for name, word in (("no_note.so", ".note.pantheon"), ("init_fails.so", "moon"), ("text.so", "not an ELF file"),
                       ("version_1_9.so", "1.10")):
        check("%s: the reason names the file and says '%s'" % (name, word),
              name in state[name]["reason"] and word in state[name]["reason"], state[name]["reason"])
    status, text, err = run("plugins", PANTHEON_PLUGIN_PATH=d)
    check("the text has the reasons", status == 0 and "refused:" in text and "moon" in text and "replaced:" in text, text)
    status, text, err = run("plugins", "--set", "plugins.load=" + os.path.join(d, "no_note.so"))
    check("a file named by plugins.load must load", status == 1 and text == "" and "no_note.so" in err and
          "[plugins] load" in err, err)
    os.chmod(d, 0o777)
    report = listed(PANTHEON_PLUGIN_PATH=d)
    check("a folder that others may write: nothing of it is loaded",
          [p["state"] for p in report["plugins"] if p["path"].startswith(d)] == ["refused"] * 6)


def test_conflict(tmp):
    d = os.path.join(tmp, "conflict")
    os.mkdir(d)
    put(d, "taken_a", "taken_b")
    status, text, err = run("plugins", PANTHEON_PLUGIN_PATH=d)
    check("a name claimed twice stops the load and says what to write", status == 1 and text == "" and
          "[quant] pin.test.taken = org.pantheon.test.taken_a" in err and "taken_b" in err, err)
    report = listed("--set", "quant.pin.test.taken=org.pantheon.test.taken_b", PANTHEON_PLUGIN_PATH=d)
    rivals = {p["id"]: p["registrations"][0] for p in report["plugins"] if p["path"].startswith(d)}
    check("what was written decides", rivals and rivals["org.pantheon.test.taken_b"]["chosen"] and
          not rivals["org.pantheon.test.taken_a"]["chosen"] and
          "pin" in rivals["org.pantheon.test.taken_a"]["note"], rivals)


def test_search(tmp):
    """From another folder, through a link, through PATH; never the current folder."""
    n = len(listed()["plugins"])
    d = os.path.join(tmp, "elsewhere")
    os.makedirs(os.path.join(d, "plugins"))
    put(d, "good")
    put(os.path.join(d, "plugins"), "good")
    check("from another folder", len(listed(cwd=d)["plugins"]) == n)
    link = os.path.join(d, "pan")
    os.symlink(PANTHEON, link)
    check("through a link", len(listed(program=link, cwd="/")["plugins"]) == n)
    check("through PATH", len(listed(program="pan", cwd=d, PATH=d + ":" + os.environ["PATH"])["plugins"]) == n)
    for path in ("", ":", "::", ".", "./."):
        found = [p["path"] for p in listed(cwd=d, PANTHEON_PLUGIN_PATH=path)["plugins"]]
        check("the current folder is not searched with PANTHEON_PLUGIN_PATH='%s'" % path,
              not [p for p in found if "good.so" in p], found)
    home = os.path.join(tmp, "home")
    os.makedirs(os.path.join(home, ".local/lib/pantheon"))
    put(os.path.join(home, ".local/lib/pantheon"), "good")
    check("~/.local/lib/pantheon is searched", len(listed(HOME=home)["plugins"]) == n + 1)


def test_alone(tmp):
    """The program without any plugin says at once where it looked."""
    d = os.path.join(tmp, "alone")
    os.makedirs(os.path.join(d, "plugins"))
    for f in ("pantheon", "libpantheon.so.0"):
        shutil.copy(os.path.join(BUILD, f), os.path.join(d, f))
    status, out, err = run("plugins", program=os.path.join(d, "pantheon"), HOME="/nonexistent")
    if status == 0:
        print("skip - no plugin at all: there are some installed on this machine")
        return
    check("no plugin at all: the folders are named", status == 1 and os.path.join(d, "plugins") in err and
          "PANTHEON_PLUGIN_PATH" in err, err)
    status, out, err = run("run", LLAMA, "-p", "x", program=os.path.join(d, "pantheon"), HOME="/nonexistent")
    check("also for run, before the model is opened", status == 1 and os.path.join(d, "plugins") in err, err)


def test_why_not(tmp):
    model = os.environ.get("PN_MODEL")
    if model:
        status, out, err = run("why-not", model)
        check("why-not: a model that can run", status == 0 and out.endswith("\ncan run\n") and "kernel" in out, out + err)
        status, out, err = run("why-not", model, PANTHEON_CPU="c")
        check("why-not: names the kernels of this CPU level", status == 0 and ".c\n" in out and "avx" not in out, out)
    else:
        print("skip - why-not of a real model: download of the model failed")
    pairs = [("general.architecture", g.STR, "oak"), ("tokenizer.ggml.model", g.STR, "acorn")]
    path = g.write(os.path.join(tmp, "oak.gguf"),
                   g.header(pairs, [("a", [4], 0, 0), ("b", [4], 0, 32), ("c", [32], 200, 64)]), b"\0" * 4096)
    status, out, err = run("why-not", path)
    last = out.splitlines()[-1] if out else ""
    check("why-not: exit status 1 and a last line that says so", status == 1 and last.startswith("cannot run: ") and
          "oak" in last and "2 more" in last, out + err)
    check("why-not: the architecture, what is loaded and the alias to write", "no plugin for architecture 'oak'" in out and
          "llama" in out and "[arch] alias.oak" in out, out)
    check("why-not: the tokenizer", "no plugin for tokenizer 'acorn'" in out, out)
    check("why-not: a type that is there, with its kernel", "f32 (2 tensors): org.pantheon.f32, kernel f32." in out, out)
    check("why-not: a number that means nothing, and what to write", "number 200 (1 tensor)" in out and
          "[quant] alias.200" in out, out)
    lone = os.path.join(tmp, "lone")
    os.mkdir(lone)
    put(lone, "good", "no_note")
    status, out, err = run("why-not", path, "--set", "quant.alias.200=test.good", PANTHEON_PLUGIN_PATH=lone)
    check("why-not: the alias decides; a type without a kernel is said to be slow",
          "test.good (1 tensor): org.pantheon.test.good, no kernel" in out, out)
    check("why-not: refused plugins are shown, as what is missing may be there", "no_note.so" in out, out)
    status, out, err = run("why-not", path, "--set", "arch.alias.oak=llama")
    check("why-not: an alias is followed", "oak: org.pantheon.llama" in out, out)
    text = os.path.join(tmp, "text.bin")
    with open(text, "w") as f:
        f.write("no model\n")
    status, out, err = run("why-not", text)
    check("why-not: no format", status == 1 and "format knows this file" in out and "cannot run" in out, out)
    cut = os.path.join(tmp, "cut.gguf")
    with open(LLAMA, "rb") as f, open(cut, "wb") as out_file:
        out_file.write(f.read(1000))
    status, out, err = run("why-not", cut)
    check("why-not: a damaged file", status == 1 and "cannot run: " in out and "cut.gguf" in out, out)
    status, out, err = run("why-not", os.path.join(tmp, "absent.gguf"))
    check("why-not: no such file", status == 1 and "absent.gguf" in out + err, out + err)
    evil = g.write(os.path.join(tmp, "evil.gguf"),
                   g.header([("general.architecture", g.STR, "oak\x1b[31m\x07")], [("a", [4], 0, 0)]), b"\0" * 64)
    status, out, err = run("why-not", evil)
    check("why-not: control characters of a file do not reach the terminal", status == 1 and "\x1b" not in out and
          "\x07" not in out, repr(out))


def test_usage():
    for command, extra in (("plugins", ["x"]), ("why-not", []), ("why-not", ["a", "b"])):
        status, out, err = run(command, *extra)
        check("%s %s: usage" % (command, " ".join(extra)), status == 2 and out == "" and "--help" in err, err)
    for command in ("plugins", "why-not"):
        status, out, err = run(command, "--help")
        check(command + " --help", status == 0 and out.startswith("usage: pantheon " + command) and err == "", err)
        status, out, err = run(command, "--nonsense")
        check(command + " --nonsense", status == 2 and out == "", err)
    with open("/dev/full", "w") as full:
        r = subprocess.run([PANTHEON, "plugins"], stdout=full, stderr=subprocess.PIPE)
        check("a full disk is a failure", r.returncode == 1 and r.stderr, r.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chmod(folder, 0o755)
    test_list()
    test_levels()
    test_refused(folder)
    test_conflict(folder)
    test_search(folder)
    test_alone(folder)
    test_why_not(folder)
    test_usage()
g.done()

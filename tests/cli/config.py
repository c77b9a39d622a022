#!/usr/bin/env python3
"""`pantheon config`: what it shows, where values come from, that --ini gives back the same, and what it refuses."""
import json
import os
import struct
import subprocess
import sys
import tempfile

PANTHEON = os.environ["PANTHEON"]
ROOT = os.environ.get("PN_ROOT", os.getcwd())
failed = 0


def check(name, good, more=""):
    global failed
    print(("ok - " if good else "not ok - ") + name)
    if not good:
        failed += 1
        if more:
            print("# " + str(more).replace("\n", "\n# "))


def pantheon(*args, cwd=None, env=None):
    r = subprocess.run([PANTHEON, "config", *args], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    return r.returncode, r.stdout.decode("utf-8"), r.stderr.decode("utf-8")


def values(*args, cwd=None):
    status, out, err = pantheon("show", "--json", *args, cwd=cwd)
    if status != 0:
        check("show --json " + " ".join(args), False, err)
        return []
    return json.loads(out)["values"]


def find(vs, section, key):
    return [(v["value"], v["source"]) for v in vs if v["section"] == section and v["key"] == key]


def gguf(path, pairs):
    """A model file that holds metadata alone."""
    def text(s):
        b = s.encode()
        return struct.pack("<Q", len(b)) + b
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs))
    for key, value in pairs:
        data += text(key)
        data += struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<II", 4, value)
    with open(path, "wb") as f:
        f.write(data + b"\0" * 64)


def write(path, text):
    with open(path, "wb") as f:
        f.write(text.encode("utf-8") if isinstance(text, str) else text)


def test_cases(tmp):
    """Every crafted file: refused with file and line, or read whole."""
    folder = os.path.join(ROOT, "tests", "data", "ini")
    outcomes = {
        "bom": None, "crlf": None,
        "colon": ":1: unknown section [m]", "contkey": ":3: neither", "cr": ":1: a carriage return",
        "empty": ":3: a value without a key", "indent": ":1: unknown section [m]", "long": ":1: unknown section [m]",
        "long198": ":1: unknown section [m]", "longdir": ":3: unknown key 'k' in [plugins]",
        "longkey": ":1: unknown section [m]", "longsec": ":1: unknown section [" + "s" * 80 + "]",
        "noeol": ":1: unknown section [m]", "nul": ":2: the line holds a zero byte",
        "sec2": ":1: unknown section [" + "s" * 49 + "A]", "uni": ":1: unknown section [m]",
        "utf16": ":1: the file is UTF-16",
    }
    names = sorted(n for n in os.listdir(folder) if not n.startswith("."))
    check("every crafted file has an outcome", names == sorted(outcomes), names)
    for name in names:
        path = os.path.join(folder, name)
        status, out, err = pantheon("check", "-c", path)
        wanted = outcomes.get(name)
        if wanted is None:
            check(f"case {name} is read", status == 0 and out == path + ": OK\n", (status, out, err))
            check(f"case {name} has its value", find(values("-c", path, "--no-model"), "model", "path") ==
                  [("/m/a.gguf", path + ":2")])
        else:
            check(f"case {name} is refused", status == 1 and out == "" and path + wanted in err, (status, out, err))
    # The same lines where they belong are kept whole.
    for name in ("long", "long198", "longdir"):
        line = open(os.path.join(folder, name), encoding="utf-8").read().split("\n")[1]
        ini = os.path.join(tmp, name + ".ini")
        write(ini, "[model]\n" + line + "\n")
        got = find(values("-c", ini, "--no-model"), "model", "path")
        value = line.split("=", 1)[1]
        value = value if value.startswith("/") else os.path.join(tmp, value)
        check(f"case {name} keeps its whole value in a known key", got == [(value, ini + ":2")], got)


ODD = ["plain", "a b", " blanks ", "hi ; there", "a # b", "it's", '"quoted"', "'single'", "back\\slash", "tab\there",
       "line\nfeed", "cr\rx", "é €", "\U0001f600", "x=y:z", "\u202eright to left", "bell\x07", "\x7f", "[x]", ";x", "#",
       "'", '"', "\\", "\\'",
       "a'b\"c\\d\n", "\u0085next", "\ufeff"]


def test_round_trip(tmp):
    """What `show --ini` prints is an INI file that says the same."""
    args = []
    for i, odd in enumerate(ODD):
        args += ["--set", f"prompt.stop={odd}", "--set", f"arch.alias.n{i}={odd}"]
    args += ["--set", "prompt.system=" + ODD[10], "--set", "tokenizer.pattern=\\p{L}+|'s",
             "--set", "sampling.bias.7=-inf", "--set", "quant.alias.42=x", "--set", "kernels.T A=k",
             "--set", "plugins.load=/a b/c.so",
             "--set", "runtime.threads=3", "--set", "sampling.seed=12"]
    before = values(*args)
    stops = find(before, "prompt", "stop")
    check("show keeps odd values", [v for v, s in stops] == ODD, stops)
    check("the command line is named", all(s == "command line" for v, s in stops))
    status, out, err = pantheon("show", "--ini", *args)
    ini = os.path.join(tmp, "again.ini")
    write(ini, out)
    check("show --ini prints no raw control characters",
          not any(ord(c) < 32 and c != "\n" or c in "\x7f\u202e" for c in out))
    after = values("-c", ini)
    strip = [(v["section"], v["key"], v["value"]) for v in before]
    check("show --ini gives the same back", strip == [(v["section"], v["key"], v["value"]) for v in after],
          [x for x in zip(strip, [(v["section"], v["key"], v["value"]) for v in after]) if x[0] != x[1]])
    status, plain, err = pantheon("show", *args)
    line = [l for l in plain.split("\n") if l.split()[:1] == ["threads"]]
    check("show has value and origin in one line",
          len(line) == 1 and line[0].split() == ["threads", "=", "3", "command", "line"], line)


def test_precedence(tmp):
    base, ini = os.path.join(tmp, "base.ini"), os.path.join(tmp, "top.ini")
    write(base, "[runtime]\nthreads = 1\nbatch = 1\ncontext = 1\n")
    write(ini, "include = base.ini\n[runtime]\nbatch = 2\ncontext = 2\n")
    vs = values("-c", ini, "--set", "runtime.context=3")
    check("built-in value", find(vs, "runtime", "kv") == [("f16", "default")])
    check("included file", find(vs, "runtime", "threads") == [("1", base + ":2")], find(vs, "runtime", "threads"))
    check("including file goes before it", find(vs, "runtime", "batch") == [("2", ini + ":3")])
    check("command line goes before both", find(vs, "runtime", "context") == [("3", "command line")])
    vs = values("-c", ini, "-t", "7")
    check("-t is the command line", find(vs, "runtime", "threads") == [("7", "command line")])


def test_model(tmp):
    """Values of the model file, and a model whose path is of many scripts, relative to the INI file."""
    folder = os.path.join(tmp, "модели 模型")
    os.mkdir(folder)
    model = os.path.join(folder, "e\u0301 a.gguf")
    gguf(model, [("general.architecture", "llama"), ("general.name", "Tiny"), ("llama.context_length", 2048),
                 ("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", "smollm")])
    ini = os.path.join(folder, "m.ini")
    write(ini, "[model]\npath = ./e\u0301 a.gguf\n")
    for cwd, name in ((tmp, os.path.join("модели 模型", "m.ini")), ("/", ini), (folder, "m.ini")):
        vs = values("-c", name, cwd=cwd)
        got = find(vs, "model", "path")
        check(f"relative to the INI file from {cwd!r}".replace(tmp, "TMP"), got == [(model, name + ":2")], got)
    vs = values("-c", ini)
    check("the model's name", find(vs, "model", "name") == [("Tiny", "model")], find(vs, "model", "name"))
    check("the model's context", find(vs, "runtime", "context") == [("2048", "model")], find(vs, "runtime", "context"))
    got = find(vs, "tokenizer", "pre")
    check("the model's pre-tokenizer", got == [("smollm", "model")], got)
    vs = values("-c", ini, "--set", "runtime.context=5", "--set", "model.name=Mine")
    check("the command line goes before the model", find(vs, "runtime", "context") == [("5", "command line")] and
          find(vs, "model", "name") == [("Mine", "command line")])
    vs = values("-c", ini, "--no-model")
    check("--no-model", find(vs, "model", "name") == [("", "default")])
    os.rename(model, model + "2")
    status, out, err = pantheon("show", "-c", ini)
    check("a model that is not there is said, by its path", status == 0 and model in err, err)
    status, out, err = pantheon("check", "-c", ini)
    check("check notes it and is OK", status == 0 and model in err and out.endswith(": OK\n"), (status, out, err))


def test_errors(tmp):
    ini = os.path.join(tmp, "bad.ini")
    for text, words in (
            ("[runtime]\nthread = 4\n", (":2: ", "'thread'", "'threads'")),
            ("[sampling]\ntop_p = 2\n", (":2: ", "0 to 1", "2")),
            ("[smapling]\n", (":1: ", "[sampling]")),
            ("[server]\nport = 1\n", (":2: ", "reserved")),
            ("[*]\npath = x\n", (":1: ", "[*]")),
            ("include = bad.ini\n", ("includes itself", "bad.ini:1")),
            ("[prompt]\nuser_prefix = <|x|>\\n\n", (":2: ", "quotes"))):
        write(ini, text)
        for action in ("check", "show"):
            status, out, err = pantheon(action, "-c", ini)
            good = status == 1 and out == "" and ini in err and all(w in err for w in words)
            check(f"{action} refuses {text!r}", good, (status, out, err))
    status, out, err = pantheon("check", "-c", os.path.join(tmp, "absent.ini"))
    check("a file that is not there", status == 1 and "absent.ini" in err)
    for args in ([], ["shw"], ["show", "x"], ["check"], ["show", "--nope"], ["show", "--json", "--ini"],
                 ["show", "--set", "threads"], ["show", "--set", "runtime.threads=x"], ["show", "-c", "a", "-c", "b"]):
        status, out, err = pantheon(*args)
        check("usage: config " + " ".join(args), status == 2 and out == "" and err, (status, out, err))
    status, out, err = pantheon("--help")
    check("--help", status == 0 and out.startswith("usage: ") and err == "")
    status, out, err = pantheon("keys")
    check("keys", status == 0 and "alias.NAME" in out and "0 to 1024" in out)
    with open("/dev/full", "w") as full:
        r = subprocess.run([PANTHEON, "config", "keys"], stdout=full, stderr=subprocess.PIPE)
    check("a full disk is an error", r.returncode == 1 and b"standard output" in r.stderr)


def test_examples():
    for name in ("example.ini", "smollm2.ini"):
        path = os.path.join(ROOT, "conf", name)
        status, out, err = pantheon("check", "-c", path)
        check(f"conf/{name} is OK", status == 0 and out == path + ": OK\n", err)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = os.path.realpath(tmp)
        test_cases(tmp)
        test_round_trip(tmp)
        test_precedence(tmp)
        test_model(tmp)
        test_errors(tmp)
    test_examples()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

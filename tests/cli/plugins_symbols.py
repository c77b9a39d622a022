#!/usr/bin/env python3
"""Exported symbols: exactly one per plugin, and of libpantheon the recorded list (tests/data/exports.txt)."""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.environ.get("PN_ROOT", os.getcwd())
BUILD = os.environ["PN_BUILD"]
LIST = os.path.join(ROOT, "tests", "data", "exports.txt")
failed = 0


def check(name, good, more=""):
    global failed
    print(("ok - " if good else "not ok - ") + name)
    if not good:
        failed += 1
        print("# " + str(more).replace("\n", "\n# "))


def exported(path):
    """Sanitizers add symbols of their own; those begin with two underscores, or belong to their runtime."""
    r = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    names = [line.split()[-1].split("@")[0] for line in r.stdout.splitlines() if line.strip()]
    own = [n for n in names if not re.match(r"__|_init$|_fini$|_edata$|_end$", n)]
    return sorted(own if os.environ.get("PN_SAN") else names)


def needed(path):
    r = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", r.stdout)


if not shutil.which("nm"):
    print("not ok - nm is missing: install binutils")
    sys.exit(1)

plugins = sorted(f for f in os.listdir(os.path.join(BUILD, "plugins")) if f.endswith(".so"))
check("there are plugins", len(plugins) >= 8, plugins)
for f in plugins:
    path = os.path.join(BUILD, "plugins", f)
    check("%s exports pantheon_plugin alone" % f, exported(path) == ["pantheon_plugin"], exported(path))
    check("%s links against nothing of ours" % f, not [n for n in needed(path) if "pantheon" in n], needed(path))

got = exported(os.path.join(BUILD, "libpantheon.so"))
with open(LIST) as f:
    want = [line.strip() for line in f if line.strip() and not line.startswith("#")]
new, gone = sorted(set(got) - set(want)), sorted(set(want) - set(got))
check("libpantheon.so exports what tests/data/exports.txt lists", not new and not gone,
      "new (add them to the list if they are meant): %s\ngone (an embedder's program would not start): %s" % (new, gone))
check("the list is sorted", want == sorted(want))

# What pantheon.h declares is what is exported, and nothing else.
with open(os.path.join(ROOT, "core", "include", "pantheon", "pantheon.h")) as f:
    header = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
declared = sorted(set(re.findall(r"PN_API\s[^;]*?\b(pn_\w+)\(", header)))
check("every declared function is exported, and only those", declared == got,
      "only declared: %s\nonly exported: %s" % (sorted(set(declared) - set(got)), sorted(set(got) - set(declared))))
sys.exit(1 if failed else 0)

"""checkasm finds planted faults: a plugin with a wrong kernel is built in several ways and loaded beside the others."""
import os
import subprocess
import sys
import tempfile

ROOT = os.environ.get("PN_ROOT", os.getcwd())
BUILD = os.environ.get("PN_BUILD", os.path.join(ROOT, "build"))
CHECKASM = os.path.join(BUILD, "tests", "checkasm")
SAN = os.environ.get("PN_SAN", "")
FLAGS = {"address": ["-fsanitize=address"], "undefined": ["-fsanitize=undefined"], "thread": ["-fsanitize=thread"]}

# What is planted, and words of the report that must come of it (None: it must pass).
FAULTS = {
    0: ("a right kernel passes", None),
    1: ("an element that is a little off", "wanted|in a part"),
    2: ("many columns that are not as one", "with the others"),
    3: ("a row too many is written", "not asked for|beside the output|fault"),
    4: ("weights are read behind their end", "fault|AddressSanitizer"),
    5: ("scratch is written behind its end", "beside the scratch|fault|AddressSanitizer"),
    6: ("a result that depends on the range of rows", "in a part"),
    7: ("a packing without a test", "no test knows the packing"),
}
failed = 0


def report(good, name, text=""):
    global failed
    print(("ok - " if good else "not ok - ") + name)
    if not good:
        failed = 1
        print("\n".join("# " + line for line in text.splitlines()[-25:]))


def plant(folder, fault):
    os.makedirs(folder, mode=0o755)
    command = [os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
               "-DWRONG=%d" % fault, "-I" + os.path.join(ROOT, "core", "include"), *FLAGS.get(SAN, []),
               os.path.join(ROOT, "tests", "plugins", "wrong_kernel.c"), "-o", os.path.join(folder, "wrong_kernel.so")]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        for fault, (name, words) in FAULTS.items():
            folder = os.path.join(work, str(fault))
            built = plant(folder, fault)
            if built.returncode:
                report(False, name, built.stdout)
                continue
            run = subprocess.run([CHECKASM, "--seed", "1", "--filter", "p7" if fault == 7 else "planted"],
                                 env=dict(os.environ, PANTHEON_PLUGIN_PATH=folder, PN_BUILD=BUILD),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            if words is None:
                good = run.returncode == 0 and "ok - f32.f32.planted" in run.stdout
            else:
                good = run.returncode != 0 and any(word in run.stdout for word in words.split("|"))
            report(good, name, run.stdout)
    return failed


sys.exit(main())

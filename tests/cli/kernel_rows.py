"""Types with nothing but an unpacker in C (tests/plugins/rows_types.c): checkasm tests the vector kernels that kit/tile_rows.h
makes of it, for each instruction set that this machine has."""
import os
import platform
import subprocess
import sys
import tempfile

ROOT = os.environ.get("PN_ROOT", os.getcwd())
BUILD = os.environ.get("PN_BUILD", os.path.join(ROOT, "build"))
SAN = os.environ.get("PN_SAN", "")
SAN_FLAGS = {"address": ["-fsanitize=address"], "undefined": ["-fsanitize=undefined"], "thread": ["-fsanitize=thread"]}
AVX2 = ["avx2", "fma", "f16c"]
AVX512 = AVX2 + ["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"]
SIZES = (32, 64, 128, 256)


def cpu_flags():
    try:
        with open("/proc/cpuinfo") as f:
            return set(next(line for line in f if line.startswith("flags")).replace("avx512_vnni", "avx512vnni").split())
    except (OSError, StopIteration):
        return set()


def build(folder, features):
    os.mkdir(folder, mode=0o755)
    return subprocess.run(
        [os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-fPIC",
         "-shared", "-fvisibility=hidden", "-I" + os.path.join(ROOT, "core", "include"), *("-m" + f for f in features),
         *SAN_FLAGS.get(SAN, []), os.path.join(ROOT, "tests", "plugins", "rows_types.c"),
         "-o", os.path.join(folder, "rows_types.so")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    failed = 0
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        for name, features in (("C", []), ("AVX2", AVX2), ("AVX-512", AVX512)):
            if features and (os.environ.get("EMULATOR") or platform.machine() != "x86_64" or
                             not set(features) <= cpu_flags()):
                print(f"skip - kernels of kit/tile_rows.h, {name}: not this machine's")
                continue
            folder = os.path.join(work, name)
            run = build(folder, features)
            want = [f"test.rows{n}.i16.{level}" for n in SIZES for level in (["c"] + (["vectors"] if features else []))]
            if run.returncode == 0:
                run = subprocess.run([os.path.join(BUILD, "tests", "checkasm"), "--filter", "test.rows"],
                                     env=dict(os.environ, PANTHEON_PLUGIN_PATH=folder, PN_BUILD=BUILD),
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            good = run.returncode == 0 and all(f"ok - {w}\n" in run.stdout for w in want)
            print(("ok - " if good else "not ok - ") + f"kernels of kit/tile_rows.h, {name}")
            if not good:
                failed = 1
                print("\n".join("# " + line for line in run.stdout.splitlines()[-25:]))
    return failed


sys.exit(main())

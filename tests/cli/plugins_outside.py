#!/usr/bin/env python3
"""A stranger's plugin: built outside the tree against the installed headers alone, named by [plugins] load, and used."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.environ.get("PN_ROOT", os.getcwd())
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import gguffile as g  # noqa: E402
from gguffile import check  # noqa: E402

CC = os.environ.get("CC", "gcc")
LLAMA = os.path.join(ROOT, "tests", "data", "graph", "llama")

# Thirds: two elements per byte, (nibble - 8) / 3. And a kernel for someone else's type, sure to be chosen.
PLUGIN = r"""
#include <pantheon/plugin.h>

static void dequantize(const void *row, float *out, size_t n)
{
    const unsigned char *b = row;
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((int)(b[i / 2] >> (i % 2 ? 4 : 0) & 15) - 8) / 3.0f;
}

static pn_status matmul(const pn_matmul_args *a)
{
    for (size_t c = 0; c < a->columns; c++) {
        const float *x = (const float *)((const char *)a->packed + c * a->packed_stride);
        for (uint64_t r = a->row_begin; r < a->row_end; r++) {
            const char *row = (const char *)a->weight->data + r * a->weight->row_stride;
            double sum = 0;
            for (uint64_t k = 0; k < a->weight->cols; k++) {
                float w;
                memcpy(&w, row + 4 * k, 4);
                sum += (double)w * x[k];
            }
            a->out[c * a->out_stride + r] = (float)sum;
        }
    }
    return PN_OK;
}

static pn_status start(const pn_host *host, pn_error *err)
{
    static const pn_quant thirds = { .struct_size = sizeof thirds, .name = "example.thirds", .summary = "thirds", .block_elems = 2,
                                     .block_bytes = 1, .dequantize = dequantize };
    static const pn_kernel kernel = { .struct_size = sizeof kernel, .score = 100000, .name = "example.f32.double", .quant = "f32",
                                      .packing = "f32", .row_tile = 1, .matmul = matmul };
    pn_status s = pn_host_register_quant(host, &thirds, err);
    return s == PN_OK ? pn_host_register_kernel(host, &kernel, err) : s;
}

PN_PLUGIN("org.example.outside", "0.3.1", "MIT", "built by a stranger", 0, start)
"""


def run(*command, **more):
    r = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, **more)
    return r.returncode, r.stdout, r.stderr.decode("utf-8", "backslashreplace")


def main(tmp):
    dest = os.path.join(tmp, "dest")
    status, out, err = run("make", "install", "DESTDIR=" + dest, cwd=ROOT)
    if status != 0:
        check("make install", False, out.decode() + err)
        return
    at = os.path.join(dest, "usr", "local")
    program = os.path.join(at, "bin", "pantheon")
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(at, "lib", "pkgconfig"))
    # Only what is installed, in a folder that has nothing to do with the tree.
    work = os.path.join(tmp, "stranger")
    os.mkdir(work)
    with open(os.path.join(work, "outside.c"), "w") as f:
        f.write(PLUGIN)
    status, flags, err = run("pkg-config", "--cflags", "pantheon", env=env)
    check("pkg-config --cflags pantheon", status == 0, err)
    so = os.path.join(work, "outside.so")
    status, out, err = run(CC, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden",
                           *flags.decode().split(), "outside.c", "-o", so, cwd=work, env=env)
    check("it compiles with these flags alone", status == 0, err)

    ini = os.path.join(work, "outside.ini")
    with open(ini, "w") as f:
        f.write("[plugins]\nload = ./outside.so\n[quant]\nalias.200 = example.thirds\n")
    status, out, err = run(program, "plugins", "--json", "-c", ini, cwd="/")
    check("the installed program loads it, beside the installed plugins", status == 0, err)
    if status != 0:
        return
    report = json.loads(out)
    mine = [p for p in report["plugins"] if p["id"] == "org.example.outside"]
    check("it is listed with its version and what it brings", len(mine) == 1 and mine[0]["version"] == "0.3.1" and
          [r["name"] for r in mine[0]["registrations"]] == ["example.thirds", "example.f32.double"], mine)
    check("its kernel is the one chosen for another plugin's type", mine[0]["registrations"][1]["chosen"], mine)

    # The type: a tensor of it, whose number only the configuration knows.
    codes = bytes((37 * i + 11) % 256 for i in range(32))
    path = g.write(os.path.join(work, "thirds.gguf"),
                   g.header([("general.architecture", g.STR, "none")], [("t", [32, 2], 200, 0)]), codes)
    status, out, err = run(program, "dequant", path, "t", "-c", ini)
    want = [(n - 8) / 3 for b in codes for n in (b & 15, b >> 4)]
    got = list(struct.unpack("<%df" % (len(out) // 4), out))
    check("its type is used to read a tensor", status == 0 and len(got) == 64 and
          all(abs(a - b) < 1e-6 for a, b in zip(got, want)), err or got[:4])
    status, out, err = run(program, "dequant", path, "t")
    check("without it, the error names what is missing", status == 1 and "200" in err and out == b"", err)

    # The kernel: logits of a model through it.
    logits = os.path.join(work, "logits.f32")
    status, out, err = run(program, "eval", os.path.join(LLAMA, "model.gguf"), "--tokens", os.path.join(LLAMA, "tokens.txt"),
                           "--logits", logits, "-vv", "-c", ini)
    check("eval runs and says that its kernel is used", status == 0 and "example.f32.double" in err, err)
    with open(os.path.join(LLAMA, "logits.f32"), "rb") as f:
        want = f.read()
    with open(logits, "rb") as f:
        got = f.read()
    n = len(want) // 4
    want = struct.unpack("<%df" % n, want)
    got = struct.unpack("<%df" % (len(got) // 4), got)
    mean = sum(want) / n
    sd = (sum((w - mean) ** 2 for w in want) / n) ** 0.5
    check("logits through its kernel are right", len(got) == n and max(abs(a - b) for a, b in zip(got, want)) <= 1e-3 * sd)


if os.environ.get("PN_SAN"):
    print("skip - a stranger's plugin: sanitizers are not a stranger's")
elif not shutil.which("pkg-config"):
    print("not ok - pkg-config is missing")
    sys.exit(1)
else:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.umask(0o022)
        main(folder)
    g.done()

#!/usr/bin/env python3
"""Every public header compiles alone, as C11 and C++11, without a warning, in any order (vectors and tile loops: as C);
a plugin written in C++ loads, and so does an embedder's program."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.environ.get("PN_ROOT", os.getcwd())
INCLUDE = os.path.join(ROOT, "core", "include")
PANTHEON = os.environ["PANTHEON"]
WARN = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-pedantic-errors"]
failed = 0

CPP_PLUGIN = r"""
#include <pantheon/plugin.h>
namespace {
void dequantize(const void *row, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = static_cast<float>(static_cast<const signed char *>(row)[i]);
}
pn_status start(const pn_host *host, pn_error *err)
{
    static pn_quant q{};
    q.struct_size = static_cast<uint32_t>(sizeof q);
    q.name = "test.cpp";
    q.block_elems = q.block_bytes = 1;
    q.dequantize = dequantize;
    return pn_host_register_quant(host, &q, err);
}
}
PN_PLUGIN("org.pantheon.test.cpp", "1.0", "MIT", "a plugin in C++", 0, start)
"""

CPP_EMBEDDER = r"""
#include <cstdio>
#include <pantheon/pantheon.h>
int main()
{
    pn_error err{};
    pn_runtime_options o = PN_OPTIONS_INIT(pn_runtime_options);
    pn_runtime *rt = nullptr;
    if (pn_runtime_create(nullptr, &o, &rt, &err) != PN_OK) {
        std::fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    pn_runtime_destroy(rt);
    return 0;
}
"""


def check(name, good, more=""):
    global failed
    print(("ok - " if good else "not ok - ") + name)
    if not good:
        failed += 1
        print("# " + str(more).replace("\n", "\n# "))


def compile_text(command, text, suffix, tmp, extra=()):
    source = os.path.join(tmp, "x" + suffix)
    with open(source, "w") as f:
        f.write(text)
    r = subprocess.run([*command, *WARN, "-I", INCLUDE, *extra, source], capture_output=True, text=True)
    return r.returncode == 0, r.stderr


def compilers():
    found = []
    for cc, cxx in (("gcc", "g++"), ("clang", "clang++"), ("clang-14", "clang++-14")):
        if shutil.which(cc):
            found.append(([cc, "-std=c11"], ".c"))
        if shutil.which(cxx):
            found.append(([cxx, "-std=c++11"], ".cc"))
    return found


def headers():
    for folder, _, files in os.walk(INCLUDE):
        for f in files:
            if f.endswith(".h"):
                yield os.path.relpath(os.path.join(folder, f), INCLUDE)


# A header for one instruction set says so by its name and is included by files that are compiled for it.
X86 = os.uname().machine in ("x86_64", "amd64")
ISA = {"_avx2.h": ["-mavx2", "-mfma", "-mf16c"],
       "_avx512.h": ["-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni"]}
ISA["_amx.h"] = ISA["_avx512.h"] + ["-mamx-tile", "-mamx-int8"]

# Tile loops are written over the vectors of whichever of these is included before them.
VECTORS = ["pantheon/kit/simd_avx2.h", "pantheon/kit/simd_avx512.h", "pantheon/kit/tile_amx.h"]
TILES = ["pantheon/kit/%s.h" % name for name in ("tile_f32", "tile_i16", "tile_i8", "tile_rows", "unpack", "words")]


def isa_flags(header):
    return [f for end, fs in ISA.items() if header.endswith(end) for f in fs]


def syntax(name, command, suffix, tmp, included, flags=()):
    text = "".join("#include <%s>\n" % h for h in included)
    # Something after it, as a file of declarations alone is not C.
    text += "int main(void);\nint main(void) { return 0; }\n" if suffix == ".c" else "int main() { return 0; }\n"
    good, err = compile_text(command, text, suffix, tmp, ["-fsyntax-only", *flags])
    check("%s with %s" % (name, " ".join(command)), good, err[:3000])


with tempfile.TemporaryDirectory() as tmp:
    all_headers = sorted(headers())
    check("there are public headers", len(all_headers) >= 5, all_headers)
    plain = [h for h in all_headers if h not in VECTORS + TILES]
    for command, suffix in compilers():
        for h in plain:
            syntax(h + " alone", command, suffix, tmp, [h, h])      # twice: the guard
        syntax("all of them", command, suffix, tmp, plain)          # names of one must not clash with another's
        syntax("all of them backwards", command, suffix, tmp, plain[::-1])
        for v in [v for v in VECTORS if X86 and v in all_headers and suffix == ".c"]:
            syntax(v + " alone", command, suffix, tmp, [v, v], isa_flags(v))
            for t in [t for t in TILES if t in all_headers]:
                syntax("%s after %s" % (t, v), command, suffix, tmp, [v, t, t], isa_flags(v))

    if shutil.which("g++") and not os.environ.get("PN_SAN"):
        os.chmod(tmp, 0o755)
        os.umask(0o022)
        so = os.path.join(tmp, "cpp.so")
        good, err = compile_text(["g++", "-std=c++11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-o", so],
                                 CPP_PLUGIN, ".cc", tmp)
        check("a plugin in C++ compiles", good, err)
        r = subprocess.run([PANTHEON, "plugins", "--set", "plugins.load=" + so], capture_output=True, text=True)
        check("a plugin in C++ loads", r.returncode == 0 and "org.pantheon.test.cpp 1.0" in r.stdout, r.stderr)
        program = os.path.join(tmp, "embedder")
        library = os.path.join(os.environ["PN_BUILD"], "libpantheon.so")
        source = os.path.join(tmp, "embedder.cc")
        with open(source, "w") as f:
            f.write(CPP_EMBEDDER)
        r = subprocess.run(["g++", "-std=c++11", *WARN, "-I", INCLUDE, "-o", program, source, library,
                            "-Wl,-rpath," + os.path.dirname(library)], capture_output=True, text=True)
        good, err = r.returncode == 0, r.stderr
        check("a program in C++ links with the library", good, err)
        if good:    # it is not beside the plugins itself
            r = subprocess.run([program], capture_output=True, text=True, cwd="/")
            check("an embedder elsewhere finds the plugins beside the library", r.returncode == 0, r.stderr)
    else:
        print("skip - C++ plugin and embedder: g++ is missing, or this is a sanitizer build")
sys.exit(1 if failed else 0)

#!/usr/bin/env python3
"""`pantheon quantize`: files come out as they went in but for what was to change; types, recipes, importance, and errors
that leave nothing behind."""
import array
import math
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile

import gguffile as g
from gguffile import ARR, BOOL, F32, F64, I8, I16, I32, I64, PANTHEON, STR, U8, U16, U32, U64, check, done, model, run

ARCH = ("general.architecture", STR, "llama")
NUMBERS = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q8_1": 9, "q2_k": 10, "q3_k": 11, "q4_k": 12,
           "q5_k": 13, "q6_k": 14, "q8_k": 15, "iq4_nl": 20, "iq4_xs": 23, "bf16": 30, "tq1_0": 34, "tq2_0": 35, "mxfp4": 39,
           "nvfp4": 40}
FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 21, "q3_k": 11, "q4_k": 14,
              "q5_k": 16, "q6_k": 18, "iq4_nl": 25, "iq4_xs": 30, "bf16": 32, "tq1_0": 36, "tq2_0": 37, "mxfp4": 38}
rng = random.Random(7)


def floats(n, spread=1.0):
    return array.array("f", (rng.gauss(0, spread) for _ in range(n)))


def data(path):
    with open(path, "rb") as f:
        return f.read()


def only(folder, *names):
    """What is in the folder, to see that no temporary file stays."""
    return sorted(os.listdir(folder)) == sorted(names)


# ---- nothing to change: the same bytes ----

def every_value(align):
    nested = (ARR, [(ARR, [(STR, [b"", b"\xff\0x"]), (U8, [])]), (I16, [-32768, 32767])])
    return [ARCH, ("general.alignment", U32, align), ("u8", U8, 255), ("i8", I8, -128), ("u16", U16, 65535), ("i16", I16, -32768),
            ("u32", U32, 0xffffffff), ("i32", I32, -2 ** 31), ("f32", F32, struct.unpack("<f", struct.pack("<f", 0.1))[0]),
            ("f32.nan", F32, math.nan), ("f32.inf", F32, -math.inf), ("f32.tiny", F32, 2.0 ** -149), ("bool", BOOL, 1),
            ("bool0", BOOL, 0), ("str", STR, b"a\0b\xff\xfe"), ("str.empty", STR, b""), ("u64", U64, 2 ** 64 - 1),
            ("i64", I64, -2 ** 63), ("f64", F64, 0.1), ("f64.big", F64, 1.7e308),
            ("a.u8", ARR, (U8, [0, 255])), ("a.i8", ARR, (I8, [-1, 1])), ("a.u16", ARR, (U16, [1, 65535])),
            ("a.i16", ARR, (I16, [-3])), ("a.u32", ARR, (U32, [7, 8, 9])), ("a.i32", ARR, (I32, [-1] * 1000)),
            ("a.f32", ARR, (F32, [1.5, math.inf])), ("a.bool", ARR, (BOOL, [1, 0, 1])),
            ("a.str", ARR, (STR, [b"one", b"", b"\xc3\x28"])), ("a.u64", ARR, (U64, [2 ** 64 - 1])), ("a.i64", ARR, (I64, [-5])),
            ("a.f64", ARR, (F64, [0.25])), ("a.empty", ARR, (STR, [])), ("a.nested", ARR, nested), ("k" * 300, U8, 1),
            (b"key \xff\0 of any bytes", STR, "x")]


def same_bytes(tmp):
    for align in (1, 8, 32, 64, 4096):
        tensors = [("norm.weight", [3], 0, struct.pack("<3f", 1, 2, 3)), ("scalar", [], 0, struct.pack("<f", 4)),
                   ("none", [0, 2], 0, b""), ("ints", [5], 24, bytes(5)), ("ints.weight", [3, 2], 26, bytes(24)),
                   ("blk.0.attn_norm.weight", [4, 2], 0, bytes(floats(8))), ("w.weight", [8, 3], 0, bytes(floats(24))),
                   ("\u00fcml\u00e4ut " * 20, [1, 1, 1, 2], 0, bytes(8))]
        path, out = os.path.join(tmp, "in"), os.path.join(tmp, "out")
        g.write(path, model(every_value(align), tensors, align))
        status, text, err = run("quantize", path, out, "f32")
        check(f"alignment {align}: every kind of value and tensor comes out the same",
              status == 0 and data(out) == data(path) and b"0 of them converted" in text, f"{status} {text} {err}")
        status, text, err = run("quantize", "--dry-run", path, "f32")
        check(f"alignment {align}: --dry-run says its size", status == 0 and f"-> {len(data(path))} bytes".encode() in text, text)
        os.unlink(out)
    g.write(path, model([ARCH], []))
    status, text, err = run("quantize", path, out, "q8_0")
    check("a file without tensors", status == 0 and len(g.read(out)[1]) == 0, err)
    os.unlink(out)
    old = g.header([ARCH], [("a", [2], 0, 0)], version=2) + struct.pack("<2f", 1, 2) + bytes(24)
    g.write(path, old)
    status, text, err = run("quantize", path, out, "q8_0")
    check("version 2 is written as 3", status == 0 and data(out)[4:8] == b"\3\0\0\0" and data(out)[40:] != b"", err)
    check("nothing else is left", only(tmp, "in", "out"), os.listdir(tmp))
    os.unlink(out)


# ---- types ----

def half(b):
    return struct.unpack("<e", b)[0]


def unpack_q8_0(b):
    return [x * half(b[i:i + 2]) for i in range(0, len(b), 34) for x in struct.unpack("32b", b[i + 2:i + 34])]


def unpack_q4_0(b):
    out = []
    for i in range(0, len(b), 18):
        d, q = half(b[i:i + 2]), b[i + 2:i + 18]
        out += [d * ((x & 15) - 8) for x in q] + [d * ((x >> 4) - 8) for x in q]
    return out


def small(tmp, cols=256, rows=40):
    """A model file of one matrix of each kind; the matrix's numbers."""
    x = floats(cols * rows)
    path = os.path.join(tmp, "in")
    g.write(path, model([ARCH, ("llama.block_count", U32, 1), ("general.file_type", U32, 0), ("other", STR, "stays")],
                        [("output_norm.weight", [cols], 0, bytes(floats(cols))), ("blk.0.ffn_up.weight", [cols, rows], 0, bytes(x)),
                         ("blk.0.attn_q_norm.weight", [cols, 2], 0, bytes(floats(2 * cols)))]))
    return path, x


def dequant(path, name):
    status, out, err = run("dequant", path, name)
    return array.array("f", out) if status == 0 else None


def each_type(tmp):
    path, x = small(tmp)
    out = os.path.join(tmp, "out")
    status, text, err = run("quantize", "--list")
    types = text.decode().split("\n")[0].split()[1:]
    check("--list: types and recipes", status == 0 and "q8_0" in types and b"q4_k_m" in text, text)
    power = sum(v * v for v in x)
    for name in types:
        status, text, err = run("quantize", path, out, name)
        if not check_ok(f"{name}: made", status, err):
            continue
        pairs, tensors = g.read(out)
        _, number, packed = tensors["blk.0.ffn_up.weight"]
        check(f"{name}: its number", number == NUMBERS.get(name, number), number)
        check(f"{name}: vectors and norms stay", all(tensors[n] == g.read(path)[1][n] for n in tensors if "norm" in n))
        want = FILE_TYPES.get(name)
        check(f"{name}: file type", want is None or pairs.get("general.file_type") == (U32, want), pairs.get("general.file_type"))
        check(f"{name}: quantization version", ("general.quantization_version" in pairs) == (name not in ("f32", "f16", "bf16")), pairs)
        check(f"{name}: other values stay", pairs["other"] == (STR, b"stays") and list(pairs)[0] == "general.architecture")
        y = dequant(out, "blk.0.ffn_up.weight")
        bits = 8 * len(packed) / len(x)
        error = math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y)) / power)
        limit = 0.015 if bits >= 8 else 0.15 if bits >= 4 else 0.7
        check(f"{name}: near what it was", len(y) == len(x) and error < limit, f"{bits} bits, error {error}")
        if name in ("q8_0", "q4_0"):
            mine = array.array("f", {"q8_0": unpack_q8_0, "q4_0": unpack_q4_0}[name](packed))
            check(f"{name}: read back by other means it is the same", mine == y)
    os.unlink(out)


def check_ok(name, status, err):
    check(name, status == 0, f"{status}: {err}")
    return status == 0


def threads(tmp):
    path, _ = small(tmp, 256, 3000)
    outs = []
    for n in ("1", "2", "5"):
        out = os.path.join(tmp, "out" + n)
        status, _, err = run("quantize", path, out, "q4_0", "-t", n, "-q")
        outs.append(data(out) if status == 0 else err)
        os.unlink(out)
    check("any number of threads: the same bytes", outs[0] == outs[1] == outs[2] and isinstance(outs[0], bytes))


def from_quantized(tmp):
    path, _ = small(tmp)
    a, b, c = (os.path.join(tmp, n) for n in "abc")
    run("quantize", path, a, "q8_0")
    status, _, err = run("quantize", a, b, "q4_0")
    want = dequant(a, "blk.0.ffn_up.weight")
    g.write(c, model([ARCH], [("blk.0.ffn_up.weight", [256, 40], 0, bytes(want))]))
    run("quantize", c, path, "q4_0")
    check("from a quantized file: as from its numbers",
          status == 0 and g.read(b)[1]["blk.0.ffn_up.weight"] == g.read(path)[1]["blk.0.ffn_up.weight"], err)
    status, text, err = run("quantize", a, c, "q8_0")
    check("what has the type already is copied", status == 0 and data(a) == data(c) and b"0 of them" in text, text)
    for p in (a, b, c):
        os.unlink(p)


# ---- recipes ----

def layered(tmp, layers, tied, cols=256):
    names = ["token_embd.weight"] + ([] if tied else ["output.weight"])
    for i in range(layers):
        names += [f"blk.{i}.{n}.weight" for n in ("attn_q", "attn_v", "attn_output", "ffn_down", "attn_norm")]
    path = os.path.join(tmp, "in")
    g.write(path, model([ARCH, ("llama.block_count", U32, layers)], [(n, [cols, 1], 0, bytes(4 * cols)) for n in names]))
    return path


def plan(path, recipe):
    status, text, err = run("quantize", "--dry-run", path, recipe)
    found = re.findall(r"^(\S+) +.*-> (\S+) ", text.decode(), re.M)
    return {name: kind for name, kind in found if name != "file:"} if status == 0 else err


def more_bits(i, n):
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def mixes(tmp):
    for layers in (1, 8, 22, 30, 32, 33, 80):
        for tied in (False, True):
            path = layered(tmp, layers, tied)
            for recipe, low, high in (("q4_k_m", "q4_k", "q6_k"), ("q5_k_m", "q5_k", "q6_k")):
                p = plan(path, recipe)
                good = isinstance(p, dict) and p["token_embd.weight"] == ("q6_k" if tied else low)
                good = good and (tied or p["output.weight"] == "q6_k")
                for i in range(layers):
                    b = f"blk.{i}."
                    want = high if more_bits(i, layers) else low
                    good = good and p[b + "attn_v.weight"] == p[b + "ffn_down.weight"] == want
                    good = good and p[b + "attn_q.weight"] == low and p[b + "attn_norm.weight"] == "kept"
                check(f"{recipe}: {layers} layers, {'tied' if tied else 'untied'}", good, p)
    p = plan(layered(tmp, 32, False), "q3_k_m")
    kinds = [p[f"blk.{i}.attn_v.weight"] + " " + p[f"blk.{i}.ffn_down.weight"] for i in range(32)]
    check("q3_k_m: the first layers get more", kinds == ["q5_k q5_k"] * 2 + ["q4_k q4_k"] * 30, kinds)
    p = plan(layered(tmp, 32, False), "q4_k_s")
    kinds = [p[f"blk.{i}.attn_v.weight"] + " " + p[f"blk.{i}.ffn_down.weight"] for i in range(32)]
    check("q4_k_s: likewise", kinds == ["q5_k q5_k"] * 4 + ["q4_k q4_k"] * 28, kinds)
    for cols, v, q in ((96, "q8_0", "q5_0"), (80, "f16", "f16")):
        p = plan(layered(tmp, 1, False, cols), "q4_k_m")
        check(f"rows of {cols}: the fallbacks", p["output.weight"] == v and p["blk.0.attn_q.weight"] == q, p)
    p = plan(layered(tmp, 1, False, 80), "q8_0")
    check("a type alone: rows that do not divide stay", p["blk.0.attn_q.weight"] == "kept", p)
    folder = os.path.join(g.ROOT, "conf", "quantize")
    for name in sorted(os.listdir(folder)):
        p = plan(layered(tmp, 4, True), os.path.join(folder, name))
        check(f"conf/quantize/{name} is well formed", isinstance(p, dict), p)


def own_recipes(tmp):
    path = layered(tmp, 16, False)
    ini = os.path.join(tmp, "r.ini")

    def kinds(rules, tensor="attn_q"):
        g.write(ini, ("[tensors]\n" + rules).encode())
        p = plan(path, ini)
        if not isinstance(p, dict):
            return p
        return [i for i in range(16) if p[f"blk.{i}.{tensor}.weight"] == "q8_0"]

    for condition, want in (("first 1/4", [0, 1, 2, 3]), ("first 3", [0, 1, 2]), ("last 1/8", [14, 15]), ("last 2", [14, 15]),
                            ("last 16", list(range(16))), ("first 0", []), ("every 5", [4, 9, 14]), ("every 1 after 14", [14, 15]),
                            ("every 3 after 1/2", [10, 13]), ("first 1 or last 1 or every 8", [0, 7, 15]),
                            ("absent output.weight", []), ("present output.weight", list(range(16))),
                            ("first 1 or present token_embd.weight", list(range(16)))):
        got = kinds(f"*.attn_q.weight = q8_0 if {condition}\n* = q4_0\n")
        check(f"if {condition}", got == want, got)
    check("the first match wins", kinds("blk.[0-2].* = q8_0\nblk.1.* = q4_0\n") == [0, 1, 2], kinds("blk.[0-2].* = q8_0\n"))
    check("keep", kinds("blk.?.* = keep\n* = q8_0\n") == list(range(10, 16)))
    g.write(ini, b"\xef\xbb\xbf; c\r\n[recipe]\r\nsummary = x\r\nfallback = f16\r\n[tensors]\r\n*.weight = q4_0\r\n")
    check("byte order mark and CR LF", isinstance(plan(path, ini), dict), plan(path, ini))
    for text, line, words in ((b"[tensors]\n* = q8_1x\n", 2, ["q8_1x", "did you mean 'q8_1'", "types that can be made"]),
                              (b"[tensrs]\n* = q8_0\n", 1, ["[tensrs]", "[tensors]"]),
                              (b"[recipe]\nfallbak = f16\n", 2, ["'fallbak'", "'fallback'"]),
                              (b"* = q8_0\n", 1, ["no section []"]), (b"[tensors]\n* = q8_0 when\n", 2, ["'when'", "if CONDITION"]),
                              (b"[tensors]\n* = q8_0 if\n", 2, ["no condition"]), (b"[tensors]\n* =\n", 2, ["a type"]),
                              (b"[tensors]\n* = q8_0 if middle 3\n", 2, ["'middle'", "first N"]),
                              (b"[tensors]\n* = q8_0 if first x\n", 2, ["'x'"]), (b"[tensors]\n* = q8_0 if first 3/2\n", 2, ["'3/2'"]),
                              (b"[tensors]\n* = q8_0 if first 1/0\n", 2, ["'1/0'"]), (b"[tensors]\n* = q8_0 if every 0\n", 2, ["'0'"]),
                              (b"[tensors]\n* = q8_0 if every 2 after\n", 2, []), (b"[tensors]\n* = q8_0 if first 1 and last 1\n", 2, ["'and'"]),
                              (b"[tensors]\n* = q8_0 if first 1 or\n", 2, []), (b"[tensors]\n* = q8_0 if absent\n", 2, []),
                              (b"[tensors]\n* = q8_0 if first 99999999999999999999\n", 2, []),
                              (b"[tensors]\nnonsense\n", 2, ["neither"]), (b"[recipe]\nsummary = x\n", None, ["no rule"]),
                              (b"[recipe]\nfallback =\n[tensors]\n* = q8_0\n", 2, ["a type"])):
        g.write(ini, text)
        err = plan(path, ini)
        where = ini if line is None else f"{ini}:{line}:"
        check(f"refused: {text!r}", isinstance(err, str) and where in err and all(w in err for w in words), err)
    g.write(ini, b"[recipe]\nfallback = q9\n[tensors]\n* = q4_k\n")
    err = plan(layered(tmp, 1, False, 80), ini)
    check("a fallback that is not loaded, when it is needed", isinstance(err, str) and "'q9'" in err and "fallback" in err, err)
    g.write(ini, b"[recipe]\nfallback.q4_k = q6_k\nfallback.q6_k = q4_k\n[tensors]\n* = q4_k\n")
    p = plan(layered(tmp, 1, False, 80), ini)
    check("fallbacks in a circle end", isinstance(p, dict) and p["output.weight"] == "kept", p)
    os.unlink(ini)


# ---- importance ----

def importance(tmp):
    path, x = small(tmp)
    out, plain, imp = (os.path.join(tmp, n) for n in ("out", "plain", "imp"))
    weights = array.array("f", (100.0 if i % 8 == 0 else 0.01 for i in range(256)))

    def write(sums, counts, name="blk.0.ffn_up.weight", dims=None):
        tensors = [(name + ".in_sum2", dims or [len(sums), 1], 0, bytes(sums))]
        if counts is not None:
            tensors.append((name + ".counts", [1, len(counts)], 0, bytes(counts)))
        g.write(imp, model([("general.type", STR, "imatrix")], tensors))

    def weighted(p):
        y = dequant(p, "blk.0.ffn_up.weight")
        return sum(weights[i % 256] * (a - b) ** 2 for i, (a, b) in enumerate(zip(x, y)))

    one = array.array("f", [4.0])
    run("quantize", path, plain, "q4_k")
    write(array.array("f", (4 * w for w in weights)), one)
    status, _, err = run("quantize", path, out, "q4_k", "--importance", imp)
    check("importance: the error where it matters falls", status == 0 and weighted(out) < 0.7 * weighted(plain), f"{status} {err}")
    first = data(out)
    write(array.array("f", (8 * w for w in weights)), array.array("f", [8.0]))
    run("quantize", path, out, "q4_k", "--importance", imp)
    check("sums are divided by counts", data(out) == first)
    write(array.array("f", [1.0] * 256), array.array("f", [0.0]))
    status, _, err = run("quantize", path, out, "q4_k", "--importance", imp)
    check("a count of 0 is no division by 0", status == 0, err)
    # Two planes with weights and counts of their own come out as two matrices do.
    cube, halves = os.path.join(tmp, "cube"), []
    g.write(cube, model([ARCH], [("e.weight", [256, 20, 2], 0, bytes(x))]))
    back = array.array("f", reversed(weights))
    both = array.array("f", [2 * w for w in weights] + [5 * w for w in back])
    write(both, array.array("f", [2.0, 5.0]), "e.weight", [256, 2])
    status, _, err = run("quantize", cube, out, "q4_k", "--importance", imp)
    packed = g.read(out)[1]["e.weight"][2] if status == 0 else b""
    for part, own in ((x[:5120], weights), (x[5120:], back)):
        g.write(cube, model([ARCH], [("e.weight", [256, 20], 0, bytes(part))]))
        write(own, array.array("f", [1.0]), "e.weight")
        run("quantize", cube, out, "q4_k", "--importance", imp)
        halves.append(g.read(out)[1]["e.weight"][2][:20 * 144])
    check("planes have importance of their own", packed and packed[:40 * 144] == halves[0] + halves[1], err)
    os.unlink(out)
    for label, sums, counts, words in (
            ("of another width", array.array("f", [1.0] * 128), one, ["128 sums", "another model"]),
            ("counts missing", weights, None, ["blk.0.ffn_up.weight.counts"]),
            ("too many counts", weights, array.array("f", [1.0] * 3), ["another model"]),
            ("negative", array.array("f", [-1.0] * 256), one, ["-1"]), ("no number", array.array("f", [math.nan] * 256), one, ["nan"])):
        write(sums, counts)
        status, _, err = run("quantize", path, out, "q4_k", "--importance", imp)
        check(f"importance {label}: refused, nothing is left", status == 1 and all(w in err for w in words) and
              only(tmp, "in", "plain", "imp", "cube"), f"{status} {err} {os.listdir(tmp)}")
    write(weights, one, "some.other.weight")
    status, _, err = run("quantize", path, out, "q4_k", "--importance", imp)
    check("importance of nothing that is there", status == 1 and "of another model" in err, err)
    status, _, err = run("quantize", path, out, "q4_k", "--importance", path)
    check("a file without importance", status == 1 and ".in_sum2" in err, err)
    status, _, err = run("quantize", path, out, "q4_k", "--importance", path + "x")
    check("importance not there", status == 1 and "--importance" in err, err)
    for p in (plain, imp, cube):
        os.unlink(p)


# ---- errors ----

def errors(tmp):
    path, _ = small(tmp)
    out = os.path.join(tmp, "out")
    for args, status, words in (
            ([path, out], 2, "IN, OUT"), ([], 2, "IN, OUT"), ([path, out, "q8_0", "x"], 2, "4 words"), (["--list", "x"], 2, "'x'"),
            ([path, path, "q8_0"], 1, "same file as IN"), ([path + "x", out, "q8_0"], 1, path + "x"),
            ([path, out, "q4_00"], 1, "did you mean 'q4_0'"), ([path, out, "q4_k_n"], 1, "did you mean 'q4_k_"),
            ([path, out, "./q4_k"], 1, "./q4_k"), ([path, out, "iq2_s"], 1, "iq2_s"), ([path, tmp, "q8_0"], 1, tmp),
            ([path, os.path.join(tmp, "no", "out"), "q8_0"], 1, "no/out"), ([path, out, "q8_0", "-t", "x"], 2, "-t")):
        s, text, err = run("quantize", *args)
        check(f"status {status}, {words!r}", s == status and words in err and not text, f"{s} {err}")
    check("nothing is left of them", only(tmp, "in"), os.listdir(tmp))
    os.link(path, out)
    s, _, err = run("quantize", path, out, "q8_0")
    check("another name of the same file", s == 1 and "same file" in err, err)
    os.unlink(out)
    if os.path.exists("/dev/full"):
        s, _, err = run("quantize", path, "/dev/full", "q8_0")
        check("a full disk", s == 1 and "/dev/full" in err and "No space left" in err, err)
        s, _, err = run("quantize", path, "/dev/null", "q8_0")
        check("a device is written", s == 0, err)
    g.write(out, b"old")

    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    r = subprocess.run([PANTHEON, "quantize", path, out, "q8_0"], capture_output=True, preexec_fn=small_disk, restore_signals=False)
    check("no room in the middle: the old file stays, nothing else", r.returncode == 1 and b"cannot" in r.stderr and
          data(out) == b"old" and only(tmp, "in", "out"), f"{r.returncode} {r.stderr}")
    os.chmod(out, 0o640)
    link = os.path.join(tmp, "link")
    os.symlink("out", link)
    s, _, err = run("quantize", path, link, "q8_0")
    check("a link stays one, the mode stays", s == 0 and os.path.islink(link) and os.stat(out).st_mode & 0o777 == 0o640, err)
    os.unlink(link)
    os.unlink(out)
    # What cannot be read or is no number names its tensor and leaves nothing.
    x = floats(512)
    x[300] = math.nan
    for label, kind, words in (("not a number", 0, ["'bad.weight'", "row 1 column 44", "nan"]),
                               ("an unknown type", 200, ["'bad.weight'", "200", "alias.200"])):
        g.write(path, model([ARCH], [("good.weight", [256, 2], 0, bytes(floats(512))), ("bad.weight", [256, 2], kind, bytes(x))]))
        s, _, err = run("quantize", path, out, "q8_0")
        check(f"{label}: refused", s == 1 and all(w in err for w in words) and only(tmp, "in"), f"{s} {err} {os.listdir(tmp)}")
    s, _, err = run("quantize", "--set", "quant.alias.200=f32", path, out, "f16")
    check("an alias makes it readable", s == 1 and "bad.weight" in err and "nan" in err, err)
    third_party(tmp, path, out)
    interrupted(tmp, path, out)


def third_party(tmp, path, out):
    """A type that the format has no number for gets one from [quant] alias."""
    own = os.path.join(os.environ["PN_BUILD"], "tests", "test-plugins", "whole_rows.so")
    g.write(path, model([ARCH], [("good.weight", [6, 2], 0, struct.pack("<12f", *range(-4, 8)))]))
    s, _, err = run("quantize", "--set", "plugins.load=" + own, path, out, "whole_rows")
    check("a type without a number is refused", s == 1 and "alias.N = whole_rows" in err and only(tmp, "in"), err)
    s, _, err = run("quantize", "--set", "plugins.load=" + own, "--set", "quant.alias.99=whole_rows", path, out, "whole_rows")
    number = g.read(out)[1]["good.weight"][1] if s == 0 else err
    check("an alias gives it one", number == 99, number)
    s, _, err = run("quantize", "--set", "plugins.load=" + own, "--set", "quant.alias.99=whole_rows", out, path, "f32")
    back = dequant(path, "good.weight") if s == 0 else []
    check("and it is read by it", len(back) == 12 and max(abs(a - b) for a, b in zip(back, range(-4, 8))) < 0.1, err)
    os.unlink(out)


def interrupted(tmp, path, out):
    """Ctrl-C and SIGTERM in the middle: status 130, nothing left."""
    block = bytes(floats(1 << 16))
    for name, number in (("Ctrl-C", signal.SIGINT), ("SIGTERM", signal.SIGTERM)):
        g.write(path, model([ARCH], [("a.weight", [4096, 2048], 0, block * 128)]))
        p = subprocess.Popen([PANTHEON, "quantize", path, out, "q3_k", "-t", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while p.poll() is None and only(tmp, "in"):
            pass
        p.send_signal(number)
        _, err = p.communicate()
        check(f"{name} in the middle", p.returncode == 130 and b"stopped" in err and only(tmp, "in"),
              f"{p.returncode} {err} {os.listdir(tmp)}")


def main():
    for part in (same_bytes, each_type, threads, from_quantized, mixes, own_recipes, importance, errors):
        with tempfile.TemporaryDirectory() as tmp:
            part(tmp)
    done()


sys.dont_write_bytecode = True
main()

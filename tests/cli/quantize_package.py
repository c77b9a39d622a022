#!/usr/bin/env python3
"""What `pantheon quantize` writes, read by the gguf Python package: types, metadata, and the same numbers out of every type
that the package can unpack. The package and numpy are installed by pip into build/peers, once."""
import os
import sys

# Libraries import `tokenize` of the standard library, which the test of that name beside this one must not stand for.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import array
import random
import tempfile

import gguffile as g
import peerenv
from gguffile import ARR, STR, U32, check, done, model, run

VERSION = "0.19.0"


def fetch():
    """The folder with the package, or None after saying why not."""
    folder, why = peerenv.folder("gguf==" + VERSION, "numpy")
    if not folder:
        print("skip - the gguf package: " + why)
    return folder


def main(tmp):
    import gguf
    import numpy
    rng = random.Random(3)
    cols, rows = 512, 24
    x = array.array("f", (rng.gauss(0, 1) * (20 if rng.random() < 0.01 else 1) for _ in range(cols * rows)))
    path, out = os.path.join(tmp, "in.gguf"), os.path.join(tmp, "out.gguf")
    g.write(path, model([("general.architecture", STR, "llama"), ("tokens", ARR, (STR, [b"a", b"", b"\xc3\xa9"])), ("n", U32, 5)],
                        [("blk.0.ffn_up.weight", [cols, rows], 0, bytes(x)), ("output_norm.weight", [3], 0, bytes(12)),
                         ("blk.0.ffn_down_exps.weight", [256, 3, 4], 0, bytes(x[:3072]))]))
    _, listed, _ = run("quantize", "--list")
    for name in listed.decode().split("\n")[0].split()[1:]:
        status, _, err = run("quantize", path, out, name)
        check(f"{name}: made", status == 0, err)
        if status:
            continue
        kind = gguf.GGMLQuantizationType[name.upper()]
        if name == "q8_1" and gguf.GGML_QUANT_SIZES[kind] == (32, 40):
            print("skip - q8_1: the package holds to its old blocks of 40 bytes")
            continue
        reader = gguf.GGUFReader(out)
        tensors = {t.name: t for t in reader.tensors}
        check(f"{name}: the package sees its types", [tensors[n].tensor_type for n in tensors] ==
              [kind, gguf.GGMLQuantizationType.F32, kind], tensors)
        check(f"{name}: and the metadata", reader.fields["tokens"].contents() == ["a", "", "\u00e9"] and
              reader.fields["n"].contents() == 5 and
              (name in ("f32", "f16", "bf16") or reader.fields["general.quantization_version"].contents() == 2))
        for tensor in ("blk.0.ffn_up.weight", "blk.0.ffn_down_exps.weight"):
            try:
                theirs = gguf.quants.dequantize(tensors[tensor].data, kind).astype(numpy.float32).reshape(-1)
            except NotImplementedError:
                print(f"skip - {name}: the package cannot unpack it")
                break
            status, mine, err = run("dequant", out, tensor)
            mine = numpy.frombuffer(mine, numpy.float32)
            differ = numpy.flatnonzero(mine != theirs) if mine.shape == theirs.shape else "shapes"
            check(f"{name}: {tensor}: the same numbers", mine.shape == theirs.shape and len(differ) == 0, differ)


sys.dont_write_bytecode = True
folder = fetch()
if folder:
    sys.path.insert(0, folder)
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
done()

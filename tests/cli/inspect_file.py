#!/usr/bin/env python3
"""`pantheon inspect`: text, JSON, one key whole, totals, and that no byte of a file can steer the terminal."""
import json
import os
import pty
import struct
import subprocess
import tempfile

from gguffile import ARR, BOOL, F32, F64, I8, PANTHEON, STR, U32, U64, U8, check, done, header, run, write


def on_terminal(*args):
    """What the program writes to a terminal."""
    main, side = pty.openpty()
    p = subprocess.Popen([PANTHEON, *args], stdin=subprocess.DEVNULL, stdout=side, stderr=subprocess.PIPE)
    os.close(side)
    out = b""
    while True:
        try:
            more = os.read(main, 65536)
        except OSError:
            break
        if not more:
            break
        out += more
    os.close(main)
    p.stderr.read()
    return p.wait(), out


PAIRS = [
    ("general.architecture", STR, "llama"),
    ("evil", STR, b"a\x1b[31mred\x07\r\nb\xff\xc3"),
    ("e\x1b[2Jvil.key", U8, 7),
    ("quote\"and\\back", STR, "\"\\\t\u00fc\U0001f999"),
    ("many.numbers", ARR, (U32, list(range(1000)))),
    ("many.texts", ARR, (STR, [f"t{i}" for i in range(500)])),
    ("nested", ARR, (ARR, [(U8, [1, 2]), (STR, ["x"])])),
    ("none", ARR, (U32, [])),
    ("long", STR, "w" * 5000),
    ("small", F32, 1e-5),
    ("third", F64, 1 / 3),
    ("not.a.number", F32, float("nan")),
    ("infinite", F64, float("-inf")),
    ("negative", I8, -128),
    ("largest", U64, 2**64 - 1),
    ("yes", BOOL, 1),
]
TENSORS = [
    ("token_embd.weight", [64, 10], 8, 0),      # q8_0: 2 blocks of 34 bytes by 10 rows = 680
    ("blk.0.attn_q.weight", [64, 4], 2, 704),   # q4_0: 2 * 18 * 4 = 144
    ("blk.0.attn_norm.weight", [16], 0, 864),   # f32: 64
    ("cube", [4, 3, 2], 1, 928),                # f16: 48
    ("mystery", [32], 77, 992),
]
ELEMENTS, BYTES = 640 + 256 + 16 + 24, 680 + 144 + 64 + 48


def main(tmp):
    path = write(os.path.join(tmp, "m.gguf"), header(PAIRS, TENSORS), b"\0" * 1024)

    status, out, err = run("inspect", path)
    text = out.decode()
    check("text: succeeds, says nothing else", status == 0 and err == "", err)
    check("text: no control character", not any(c < 32 and c != 10 or c == 127 for c in out), out[:400])
    check("text: long arrays are cut", "many.numbers (u32[1000]) = [0, 1, 2, 3, 4, 5, ...]" in text, text)
    check("text: long text is cut", "(5000 bytes)" in text and "w" * 100 not in text)
    check("text: values", all(s in text for s in ("small (f32) = 1e-05\n", "negative (i8) = -128\n", "yes (bool) = true\n",
          "largest (u64) = 18446744073709551615\n", "nested (array[2]) = [[1, 2], [\"x\"]]\n", "none (u32[0]) = []\n")), text)
    check("text: totals", f"parameters: {ELEMENTS}\n" in text and f"tensor data: {BYTES} bytes" in text
          and f"bits per weight: {8 * BYTES / ELEMENTS:.3f}\n" in text, text)
    check("text: the unknown type is named", "unknown type 77" in text and "not counted: 1" in text, text)
    check("text: tensors only when asked", "attn_norm" not in text)
    status, out, _ = run("inspect", "--tensors", path)
    check("--tensors: name, type, shape rows first, bytes", b"token_embd.weight  q8_0  [10, 64]  680 bytes" in out
          and b"cube  f16  [2, 3, 4]  48 bytes" in out and b"mystery  unknown type 77  [32]" in out, out)

    status, out, err = run("inspect", "--json", path)
    j = json.loads(out, parse_constant=lambda c: 1 / 0)     # no NaN or Infinity
    meta = j["metadata"]
    check("JSON: values", meta["quote\"and\\back"]["value"] == "\"\\\t\u00fc\U0001f999" and meta["negative"]["value"] == -128
          and meta["largest"]["value"] == 2**64 - 1 and meta["third"]["value"] == 1 / 3 and meta["yes"]["value"] is True
          and struct.pack("f", meta["small"]["value"]) == struct.pack("f", 1e-5), meta)
    check("JSON: NaN and infinity are null", meta["not.a.number"]["value"] is None and meta["infinite"]["value"] is None)
    check("JSON: arrays", meta["nested"]["value"] == [[1, 2], ["x"]] and meta["many.numbers"]["count"] == 1000
          and meta["many.numbers"]["cut"] and meta["many.numbers"]["value"] == list(range(64)) and meta["none"]["value"] == [])
    check("JSON: bytes that are no text", meta["evil"]["value"].startswith("a\x1b[31mred\x07\r\nb\ufffd"), meta["evil"])
    check("JSON: types of values", meta["small"]["type"] == "f32" and meta["many.texts"]["item_type"] == "string")
    t = {x["name"]: x for x in j["tensors"]}
    check("JSON: tensors", t["cube"]["shape"] == [2, 3, 4] and t["cube"]["bytes"] == 48 and t["mystery"]["type"] is None
          and t["mystery"]["type_id"] == 77 and t["blk.0.attn_q.weight"]["elements"] == 256, t)
    check("JSON: totals", j["parameters"] == ELEMENTS and j["tensor_bytes"] == BYTES and j["unknown_tensors"] == 1
          and abs(j["bits_per_weight"] - 8 * BYTES / ELEMENTS) < 1e-3 and j["format"] == "gguf", j["types"])
    check("JSON: sums by type", sum(x["bytes"] for x in j["types"]) == BYTES and len(j["types"]) == 5, j["types"])

    status, out, _ = run("inspect", "--key", "long", path)
    check("--key: whole text", status == 0 and out == b"w" * 5000 + b"\n")
    status, out, _ = run("inspect", "--key", "evil", path)
    check("--key: to a file, the bytes as they are", out == b"a\x1b[31mred\x07\r\nb\xff\xc3\n", out)
    status, out = on_terminal("inspect", "--key", "evil", path)
    check("--key: to a terminal, nothing that steers it", status == 0 and b"\x1b" not in out and b"\x07" not in out and b"red" in out, out)
    status, out = on_terminal("inspect", path)
    check("text: to a terminal, nothing that steers it", status == 0 and b"\x1b" not in out and b"evil" in out)
    status, out, _ = run("inspect", "--key", "many.numbers", path)
    check("--key: whole array", out.split() == [str(i).encode() for i in range(1000)])
    status, out, _ = run("inspect", "--key", "many.texts", "--json", path)
    check("--key --json: whole array", json.loads(out) == [f"t{i}" for i in range(500)])
    status, out, err = run("inspect", "--key", "general.architectur", path)
    check("--key: unknown, with near ones", status == 1 and "general.architecture" in err and out == b"", err)

    for args, want in ((["inspect"], 2), (["inspect", path, path], 2), (["inspect", "--no-such", path], 2),
                       (["inspect", os.path.join(tmp, "missing")], 1), (["inspect", tmp], 1)):
        status, out, err = run(*args)
        check(f"status {want}: {' '.join(args[1:])[:20] or 'no file'}", status == want and err and out == b"", f"{status}: {err}")
    status, out, err = run("inspect", "--help")
    check("--help", status == 0 and b"usage: pantheon inspect" in out and err == "")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            status, _, err = run("inspect", path, stdout=full)
        check("full disk is a failure", status == 1 and "write" in err, f"{status}: {err}")

    big = write(os.path.join(tmp, "types.gguf"), header([], [(f"t{i}", [1], 1000 + i, 0) for i in range(400)]), b"\0" * 64)
    status, out, err = run("inspect", big)
    check("more unknown types than anyone counts", status == 0 and b"not counted: 400" in out, err)

    model = os.environ.get("PN_MODEL")
    if not model:
        print("skip - the real model: download of the model is missing")
        return
    status, out, err = run("inspect", "--json", model)
    j = json.loads(out)
    check("the real model: totals", j["parameters"] == 134515008 and len(j["tensors"]) == 272 and j["unknown_tensors"] == 0
          and {x["type"]: x["tensors"] for x in j["types"]} == {"q8_0": 1, "f32": 61, "q4_1": 210}, j["types"])
    status, out, err = run("inspect", "--key", "tokenizer.ggml.tokens", model)
    check("the real model: its vocabulary", out.count(b"\n") == 49152 and out.startswith(b"<|endoftext|>\n<|im_start|>\n"))


with tempfile.TemporaryDirectory() as folder:
    main(folder)
done()

#!/usr/bin/env python3
"""Every crafted file of tests/data/gguf comes to what OUTCOMES says, through `inspect`, `dequant` and the other commands: a clean
result or a clean error that names the file, never a crash, in bounded memory."""
import json
import os
import struct
import tempfile

from gguffile import ROOT, check, done, run

FOLDER = os.path.join(ROOT, "tests/data/gguf")

# What an error must say, beside the file's name.
WORDS = {
    "align_2147483648.gguf": "2147483648", "align_3.gguf": "general.alignment", "arr_nested_deep.gguf": "nested",
    "arr_str_huge.gguf": "1152921504606846976", "arr_u8_past.gguf": "1000000", "be_v3.gguf": "other byte order", "dim_neg.gguf": "'a'",
    "dup_tensor.gguf": "'a'", "empty.gguf": "empty", "hdr_trunc.gguf": "byte 8", "key_empty.gguf": "empty key",
    "key_len_big.gguf": "cut short", "key_len_max.gguf": "18446744073709551615", "kv_type_bad.gguf": "value type 13",
    "kv_type_neg.gguf": "value type 4294967295", "magic_fugg.gguf": "46 55 47 47", "magic_only.gguf": "version",
    "nkv_huge.gguf": "18446744073709551615", "nkv_wrap.gguf": "384307168202282326", "nodata_nopad.gguf": "'a'",
    "off_past.gguf": "1099511627776", "off_unaligned.gguf": "alignment 32", "off_wrap.gguf": "'a'", "pad_wrap.gguf": "'a'",
    "row_not_mult.gguf": "blocks of 32", "str_len_m1.gguf": "18446744073709551615", "ver0.gguf": "version 0", "ver1.gguf": "version 1",
    "ver4.gguf": "version 4",
}
# Tensors of files that load: name -> number of elements, or None where using it must fail and name its type.
TENSORS = {
    "dim0.gguf": {"a": 0}, "gap.gguf": {"a": 8, "b": 8}, "out_of_order.gguf": {"a": 8, "b": 8}, "name_empty.gguf": {"": 8},
    "ndims0.gguf": {"a": 1}, "nopad_eof.gguf": {"a": 5}, "type_4_removed.gguf": {"a": None}, "type_neg.gguf": {"a": None},
    "type_unk.gguf": {"a": None},
}
OTHERS = [["run", "-n", "1", "-p", "x"], ["tokenize"], ["why-not"]]


def clean(status, error):
    return status in (0, 1) and "Sanitizer" not in error and "runtime error" not in error


def one(path, wanted):
    name = os.path.basename(path)
    status, out, err = run("inspect", path, limited=True)
    if wanted.startswith("either"):
        good = status == 0 or (status == 1 and "general.alignment" in err)
    elif wanted.startswith("load"):
        good = status == 0 and err == ""
    else:
        good = status == 1 and name in err and WORDS[name] in err and err.count("\n") == 1 and out == b""
    check(f"{name}: inspect", good, f"status {status}, wanted {wanted}: {err}")

    status2, out, err = run("inspect", "--json", path, limited=True)
    loaded = json.loads(out) if status2 == 0 else None
    check(f"{name}: inspect --json", status2 == status and clean(status2, err), err)

    want = TENSORS.get(name, {t["name"]: t["elements"] for t in loaded["tensors"]} if loaded else {"a": None})
    for tensor, n in want.items():
        status3, out, err = run("dequant", path, tensor, limited=True)
        if n is None:
            number = {"type_4_removed.gguf": "4", "type_neg.gguf": "4294967295"}.get(name, "")
            good = status3 == 1 and out == b"" and (not loaded or (f"'{tensor}'" in err and number in err))
        else:
            good = status3 == 0 and len(out) == 4 * n
        check(f"{name}: dequant '{tensor}'", good, f"status {status3}, {len(out)} bytes: {err}")
    if loaded and name in TENSORS:
        check(f"{name}: lists its tensors", {t["name"] for t in loaded["tensors"]} == set(TENSORS[name]), loaded)

    bad = []
    for command in OTHERS:
        status4, out, err = run(command[0], path, *command[1:], limited=True)
        said = err + out.decode("utf-8", "replace")     # why-not's answer is its result
        if not clean(status4, err) or (status != 0 and (status4 != 1 or name not in said)):
            bad.append(f"{command[0]}: status {status4}: {said}")
    check(f"{name}: other commands", not bad, "\n".join(bad))


def values_of(path, tensor):
    out = run("dequant", path, tensor)[1]
    return struct.unpack(f"<{len(out) // 4}f", out)


def main():
    with open(os.path.join(FOLDER, "OUTCOMES")) as f:
        outcomes = dict(line.rstrip("\n").split("\t", 1) for line in f if line.strip())
    present = {f for f in os.listdir(FOLDER) if f != "OUTCOMES"}
    check("OUTCOMES and the folder agree", present | {"arr_nested_deep.gguf"} == set(outcomes), present ^ set(outcomes))
    with tempfile.TemporaryDirectory() as tmp:
        deep = os.path.join(tmp, "arr_nested_deep.gguf")
        with open(deep, "wb") as f:
            f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9))
            f.write(struct.pack("<IQ", 9, 1) * 100000 + struct.pack("<IQ", 0, 0))
        for name in sorted(outcomes):
            one(deep if name == "arr_nested_deep.gguf" else os.path.join(FOLDER, name), outcomes[name])
    # Each name gets its own bytes, wherever the file lists and keeps them.
    for name in ("out_of_order.gguf", "gap.gguf"):
        with open(os.path.join(FOLDER, name), "rb") as f:
            data = f.read()
        _, out, _ = run("inspect", "--json", os.path.join(FOLDER, name))
        for t in json.loads(out)["tensors"]:
            raw = data[t["offset"]:t["offset"] + t["bytes"]]
            got = values_of(os.path.join(FOLDER, name), t["name"])
            check(f"{name}: bytes of '{t['name']}'", struct.pack("<8f", *got) == raw)
    done()


main()

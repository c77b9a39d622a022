#!/usr/bin/env python3
"""`pantheon dequant`: any rank, streamed, beyond 4 GiB, aliases of type numbers, and errors that help."""
import os
import pty
import struct
import subprocess
import sys
import tempfile

from gguffile import PANTHEON, check, done, header, run, write

BIG = 700001    # several pieces, and a rest


def main(tmp):
    raw = struct.pack(f"<{BIG}f", *(i * 0.5 for i in range(BIG)))
    rows = [("blk.0.attn_q.weight", [7], 0, 0), ("blk.0.attn_k.weight", [], 0, 32), ("four", [1, 2, 3, 1], 0, 64), ("none", [4, 0], 0, 96),
            ("ints", [8], 27, 96), ("strange", [4], 200, 160), ("big", [BIG], 0, 192)]
    first = b"".join(struct.pack("<8f", *(k * 10 + i for i in range(8))) for k in range(6))
    path = write(os.path.join(tmp, "m.gguf"), header([], rows), first, raw)

    for name, want in (("blk.0.attn_q.weight", [0, 1, 2, 3, 4, 5, 6]), ("blk.0.attn_k.weight", [10]), ("four", [20, 21, 22, 23, 24, 25]),
                       ("none", [])):
        status, out, err = run("dequant", path, name)
        check(f"'{name}'", status == 0 and out == struct.pack(f"<{len(want)}f", *want) and err == "", f"{status}: {err} {out}")
    status, out, err = run("dequant", path, "big")
    check("in pieces", status == 0 and out == raw, f"{status}: {len(out)} bytes: {err}")

    status, out, err = run("dequant", path, "blk.0.attn_w.weight")
    check("unknown name: near ones", status == 1 and out == b"" and "'blk.0.attn_w.weight'" in err and "blk.0.attn_q.weight" in err
          and "blk.0.attn_k.weight" in err and "strange" not in err, err)
    status, out, err = run("dequant", path, "zzzzzzzz")
    check("unknown name: nothing near", status == 1 and "'zzzzzzzz'" in err and "near" not in err, err)
    status, out, err = run("dequant", path, "strange")
    check("unknown number: tensor, number, what to do", status == 1 and "'strange'" in err and "alias.200" in err, err)
    status, out, err = run("dequant", "--set", "quant.alias.200=f32", path, "strange")
    check("an alias says what the number is", status == 0 and out == struct.pack("<4f", 50, 51, 52, 53), err)
    status, out, err = run("dequant", path, "ints")
    check("integers are read as data", status == 0 and out == struct.pack("<8f", *struct.unpack("<8q", first[96:160])), err)
    status, out, err = run("dequant", "--set", "quant.alias.27=absent", path, "ints")
    check("a type without plugin: tensor, type, folders",
          status == 1 and "'ints'" in err and "absent" in err and "plugins" in err, err)

    for args, want in (([], 2), ([path], 2), ([path, "a", "b"], 2), (["--bogus", path, "four"], 2), ([path + "x", "four"], 1)):
        status, out, err = run("dequant", *args)
        check(f"status {want} for {len(args)} words", status == want and err and out == b"", f"{status}: {err}")
    status, out, err = run("dequant", "--help")
    check("--help", status == 0 and b"usage: pantheon dequant" in out)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            status, _, err = run("dequant", path, "big", stdout=full)
        check("full disk is a failure", status == 1 and "write" in err, f"{status}: {err}")
    p = subprocess.Popen([PANTHEON, "dequant", path, "big"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(4)
    p.stdout.close()
    p.stderr.read()
    check("a closed pipe ends it", p.wait() == 1)
    main_end, side = pty.openpty()
    p = subprocess.run([PANTHEON, "dequant", path, "four"], stdout=side, stderr=subprocess.PIPE)
    os.close(side)
    os.close(main_end)
    check("no numbers to a terminal", p.returncode == 1 and b"terminal" in p.stderr, p.stderr)

    # In a file of holes: nothing of 4 GiB is written.
    far = (4 << 30) + 32
    head = header([], [("far", [2], 0, far)])
    sparse = os.path.join(tmp, "sparse.gguf")
    with open(sparse, "wb") as f:
        f.write(head)
        f.seek(far, 1)
        f.write(struct.pack("<2f", 1, 2))
    status, out, err = run("dequant", sparse, "far")
    check("beyond 4 GiB", status == 0 and out == struct.pack("<2f", 1, 2), f"{status}: {err}")
    os.unlink(sparse)

    if os.path.exists("/proc/self/fd/0"):
        with open(path, "rb") as f:
            p = subprocess.Popen([PANTHEON, "dequant", "/dev/stdin", "four"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            out, err = p.communicate(f.read())
        check("from a pipe, which is announced", p.returncode == 0 and out == struct.pack("<6f", *range(20, 26)) and b"read into memory" in err, err)


sys.dont_write_bytecode = True
with tempfile.TemporaryDirectory() as folder:
    main(folder)
done()

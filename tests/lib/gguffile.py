"""Writes GGUF files for tests, and runs the program on them."""
import os
import resource
import struct
import subprocess
import sys

PANTHEON = os.environ["PANTHEON"]
ROOT = os.environ.get("PN_ROOT", os.getcwd())
SAN = os.environ.get("PN_SAN", "")
U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}
failed = 0


def check(name, good, more=""):
    global failed
    print(("ok - " if good else "not ok - ") + name)
    if not good:
        failed += 1
        if more:
            print("# " + str(more).replace("\n", "\n# "))


def done():
    sys.exit(1 if failed else 0)


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def value(kind, v):
    if kind == STR:
        return text(v)
    if kind == ARR:
        item, items = v
        return struct.pack("<IQ", item, len(items)) + b"".join(value(item, i) for i in items)
    return struct.pack("<" + CODES[kind], v)


def header(pairs, tensors, version=3, align=32):
    """pairs: (key, kind, value); tensors: (name, dims innermost first, type, offset). Padded to `align`."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    for key, kind, v in pairs:
        out += text(key) + struct.pack("<I", kind) + value(kind, v)
    for name, dims, kind, offset in tensors:
        out += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
        out += struct.pack("<IQ", kind, offset)
    return out + b"\0" * (-len(out) % align)


def write(path, *parts):
    with open(path, "wb") as f:
        for p in parts:
            f.write(p)
    return path


def limit():
    """No hostile file may make the program ask for much. Sanitizers reserve terabytes, so not under them."""
    if not SAN:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def run(*args, env=None, limited=False, stdout=subprocess.PIPE):
    r = subprocess.run([PANTHEON, *args], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=120,
                       env=dict(os.environ, **env) if env else None, preexec_fn=limit if limited else None)
    return r.returncode, r.stdout, r.stderr.decode("utf-8", "backslashreplace")


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        v = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return v

    def text(self):
        n = self.take("Q")
        self.at += n
        return bytes(self.data[self.at - n:self.at])

    def value(self, kind):
        if kind == STR:
            return self.text()
        if kind == ARR:
            item, n = self.take("I"), self.take("Q")
            return item, [self.value(item) for _ in range(n)]
        return self.take(CODES[kind])


def read(path):
    """A well-formed file: {key: (kind, value)} and {name: (dims innermost first, type number, bytes up to the next)}."""
    with open(path, "rb") as f:
        data = f.read()
    r = Reader(data)
    assert data[:4] == b"GGUF"
    r.at = 4
    r.take("I")
    n_tensors, n_pairs = r.take("Q"), r.take("Q")
    pairs, tensors = {}, []
    for _ in range(n_pairs):
        key = r.text().decode()
        kind = r.take("I")
        pairs[key] = (kind, r.value(kind))
    for _ in range(n_tensors):
        name = r.text().decode()
        dims = [r.take("Q") for _ in range(r.take("I"))]
        tensors.append((name, dims, r.take("I"), r.take("Q")))
    align = pairs.get("general.alignment", (0, 32))[1]
    start = -(-r.at // align) * align
    ends = [t[3] for t in tensors[1:]] + [len(data) - start]
    return pairs, {name: (dims, kind, data[start + at:start + end]) for (name, dims, kind, at), end in zip(tensors, ends)}


def model(pairs, tensors, align=32):
    """A whole file: tensors are (name, dims innermost first, type, bytes)."""
    at, table, body = 0, [], b""
    for name, dims, kind, data in tensors:
        table.append((name, dims, kind, at))
        body += data + b"\0" * (-len(data) % align)
        at = len(body)
    return header(pairs, table, align=align) + body

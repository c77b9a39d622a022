#!/usr/bin/env python3
"""Writes a GGUF file with the shape of a real model and random F16 weights, for measuring speed. Python 3 alone.

The vocabulary is that of another GGUF file, whose tokenizer entries are copied as they are. The same arguments make the
same file. Quantize it with any tool; its texts mean nothing.
"""
import argparse
import os
import random
import struct
import sys

U32, F32, STRING, ARRAY = 4, 6, 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TYPE_F32, TYPE_F16 = 0, 1
ALIGN = 32
# Weights come from a ring of this many random numbers, each tensor from a place of its own. Odd, so that rows differ.
RING = (1 << 20) + 7


class Vocabulary:
    """The tokenizer entries of a GGUF file, as bytes, and how many tokens there are."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        magic, version, _, pairs = struct.unpack_from("<4sIQQ", self.data)
        if magic != b"GGUF" or version not in (2, 3):
            sys.exit(f"{path}: not a GGUF file of version 2 or 3")
        self.at, self.entries, self.tokens = 24, [], 0
        for _ in range(pairs):
            begin = self.at
            key = self.string()
            kind = self.number("<I", 4)
            count = self.skip(kind)
            if key.startswith(b"tokenizer."):
                self.entries.append(self.data[begin:self.at])
            if key == b"tokenizer.ggml.tokens":
                self.tokens = count
        if not self.tokens:
            sys.exit(f"{path}: no tokenizer.ggml.tokens in it")

    def number(self, form, size):
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += size
        return value

    def string(self):
        size = self.number("<Q", 8)
        self.at += size
        return self.data[self.at - size:self.at]

    def skip(self, kind):
        """Passes over a value; the number of items of an array, else 1."""
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            item, count = self.number("<I", 4), self.number("<Q", 8)
            if item in (STRING, ARRAY):
                for _ in range(count):
                    self.skip(item)
            else:
                self.at += SIZES[item] * count
            return count
        else:
            self.at += SIZES[kind]
        return 1


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def entry(key, kind, value):
    head = text(key) + struct.pack("<I", kind)
    return head + (text(value) if kind == STRING else struct.pack("<I" if kind == U32 else "<f", value))


def metadata(o, tokens):
    a = o.arch + "."
    return [
        entry("general.architecture", STRING, o.arch),
        entry("general.name", STRING, f"random {o.arch} {o.embd}x{o.layers}"),
        entry("general.file_type", U32, 1),
        entry(a + "block_count", U32, o.layers),
        entry(a + "context_length", U32, 8192),
        entry(a + "embedding_length", U32, o.embd),
        entry(a + "feed_forward_length", U32, o.ff),
        entry(a + "attention.head_count", U32, o.heads),
        entry(a + "attention.head_count_kv", U32, o.kv),
        entry(a + "attention.layer_norm_rms_epsilon", F32, 1e-5),
        entry(a + "rope.freq_base", F32, 500000.0),
        entry(a + "rope.dimension_count", U32, o.head_dim),
        entry(a + "vocab_size", U32, tokens),
    ]


def tensors(o, tokens):
    """(name, shape innermost first, type) in file order."""
    yield "token_embd.weight", (o.embd, tokens), TYPE_F16
    yield "output_norm.weight", (o.embd,), TYPE_F32
    if not o.tied:
        yield "output.weight", (o.embd, tokens), TYPE_F16
    q, kv = o.heads * o.head_dim, o.kv * o.head_dim
    for i in range(o.layers):
        b = f"blk.{i}."
        yield b + "attn_norm.weight", (o.embd,), TYPE_F32
        yield b + "attn_q.weight", (o.embd, q), TYPE_F16
        yield b + "attn_k.weight", (o.embd, kv), TYPE_F16
        yield b + "attn_v.weight", (o.embd, kv), TYPE_F16
        if o.arch == "qwen2":
            yield b + "attn_q.bias", (q,), TYPE_F32
            yield b + "attn_k.bias", (kv,), TYPE_F32
            yield b + "attn_v.bias", (kv,), TYPE_F32
        yield b + "attn_output.weight", (q, o.embd), TYPE_F16
        yield b + "ffn_norm.weight", (o.embd,), TYPE_F32
        yield b + "ffn_gate.weight", (o.embd, o.ff), TYPE_F16
        yield b + "ffn_up.weight", (o.embd, o.ff), TYPE_F16
        yield b + "ffn_down.weight", (o.ff, o.embd), TYPE_F16


def elements(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def size_of(shape, kind):
    return elements(shape) * (2 if kind == TYPE_F16 else 4)


def write_random(f, ring, begin, size):
    """`size` bytes of the ring from `begin` on."""
    while size > 0:
        part = ring[begin:begin + size]
        f.write(part)
        size -= len(part)
        begin = 0


def write_model(f, o, vocabulary):
    entries = metadata(o, vocabulary.tokens) + vocabulary.entries
    listed = list(tensors(o, vocabulary.tokens))
    f.write(struct.pack("<4sIQQ", b"GGUF", 3, len(listed), len(entries)) + b"".join(entries))
    offset = 0
    for name, shape, kind in listed:
        f.write(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape))
        f.write(struct.pack("<IQ", kind, offset))
        offset += -(-size_of(shape, kind) // ALIGN) * ALIGN
    f.write(b"\0" * (-f.tell() % ALIGN))
    rng = random.Random(7)
    ring = memoryview(struct.pack(f"<{RING}e", *(rng.gauss(0, 0.02) for _ in range(RING))))
    for name, shape, kind in listed:
        if kind == TYPE_F16:
            write_random(f, ring, 2 * rng.randrange(RING), size_of(shape, kind))
        else:
            f.write(struct.pack("<f", 0.0 if name.endswith("bias") else 1.0) * elements(shape))
        f.write(b"\0" * (-f.tell() % ALIGN))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("out")
    p.add_argument("vocabulary", help="GGUF file whose vocabulary to take")
    p.add_argument("--arch", choices=("llama", "qwen2"), default="llama")
    for name, value in (("embd", 2048), ("ff", 8192), ("layers", 16), ("heads", 32), ("kv", 8), ("head-dim", 64)):
        p.add_argument("--" + name, type=int, default=value, help=f"({value})")
    p.add_argument("--untied", dest="tied", action="store_false", help="an output matrix of its own")
    o = p.parse_args()
    vocabulary = Vocabulary(o.vocabulary)
    part = o.out + ".part"
    try:
        with open(part, "wb") as f:
            write_model(f, o, vocabulary)
        os.replace(part, o.out)
    finally:
        if os.path.exists(part):
            os.remove(part)


main()

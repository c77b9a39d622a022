#!/usr/bin/env python3
"""Tiny random models against a forward pass written here in plain Python: explicit head sizes, biases, windows, scores beyond
half precision, metadata and tensors that are missing or wrong."""
import array
import math
import os
import random
import tempfile

import gguffile as g

VOCAB, WIDTH, HIDDEN, HEADS, KV, LAYERS = 23, 12, 20, 4, 2, 2
TOKENS = [3, 7, 7, 1, 22, 0, 9, 14, 3, 5, 11]


class Model:
    def __init__(self, seed, arch="llama", head=6, rope=4, window=0, bias=False, boost=1.0, extra=(), drop=(), tied=False,
                 boosted=("attn_q",)):
        self.rng = random.Random(seed)
        self.arch, self.head, self.rope, self.window, self.boost = arch, head, rope, window, boost
        self.tensors = {}
        q, k = HEADS * head, KV * head
        self.matrix("token_embd.weight", VOCAB, WIDTH)
        for i in range(LAYERS):
            b = f"blk.{i}."
            for name, rows, cols in (("attn_q", q, WIDTH), ("attn_k", k, WIDTH), ("attn_v", k, WIDTH), ("attn_output", WIDTH, q),
                                     ("ffn_gate", HIDDEN, WIDTH), ("ffn_up", HIDDEN, WIDTH), ("ffn_down", WIDTH, HIDDEN)):
                self.matrix(b + name + ".weight", rows, cols)
                if bias and name in ("attn_q", "attn_k", "attn_v"):
                    self.vector(b + name + ".bias", rows, 0.0, boost if name in boosted else 1.0)
            self.vector(b + "attn_norm.weight", WIDTH, 1.0)
            self.vector(b + "ffn_norm.weight", WIDTH, 1.0)
        self.vector("output_norm.weight", WIDTH, 1.0)
        if not tied:
            self.matrix("output.weight", VOCAB, WIDTH)
        pairs = {"block_count": (g.U32, LAYERS), "context_length": (g.U32, 64), "embedding_length": (g.U32, WIDTH),
                 "feed_forward_length": (g.U32, HIDDEN), "attention.head_count": (g.U32, HEADS),
                 "attention.head_count_kv": (g.U32, KV), "attention.key_length": (g.U32, head),
                 "attention.value_length": (g.U32, head), "rope.dimension_count": (g.U32, rope),
                 "rope.freq_base": (g.F32, 10000.0), "attention.layer_norm_rms_epsilon": (g.F32, 1e-5)}
        if window:
            pairs["attention.sliding_window"] = (g.U32, window)
        pairs.update(extra)
        self.pairs = [("general.architecture", g.STR, arch)] + [(f"{arch}.{k}", t, v) for k, (t, v) in pairs.items() if k not in drop]
        for name in drop:
            self.tensors.pop(name, None)

    def numbers(self, n, mean, spread):
        return array.array("f", [mean + spread * self.rng.uniform(-1, 1) for _ in range(n)])

    def matrix(self, name, rows, cols):
        self.tensors[name] = ([cols, rows], self.numbers(rows * cols, 0, 0.8))

    def vector(self, name, n, mean, spread=0.3):
        self.tensors[name] = ([n], self.numbers(n, mean, spread))

    def write(self, path):
        at, infos, data = 0, [], b""
        for name, (dims, values) in self.tensors.items():
            infos.append((name, dims, 0, at))
            data += values.tobytes() + b"\0" * (-len(values.tobytes()) % 32)
            at = len(data)
        return g.write(path, g.header(self.pairs, infos), data)

    # ---- the forward pass ----
    def multiply(self, name, x):
        dims, w = self.tensors[name + ".weight"]
        out = [sum(w[r * dims[0] + c] * x[c] for c in range(dims[0])) for r in range(dims[1])]
        bias = self.tensors.get(name + ".bias")
        return [a + b for a, b in zip(out, bias[1])] if bias else out

    def norm(self, name, x):
        scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + 1e-5)
        return [v * scale * w for v, w in zip(x, self.tensors[name + ".weight"][1])]

    def turn(self, x, position):
        x = list(x)
        for h in range(0, len(x), self.head):
            for i in range(self.rope // 2):
                a, b = (2 * i, 2 * i + 1) if self.arch in ("llama", "mistral") else (i, i + self.rope // 2)
                angle = position * 10000.0 ** (-2 * i / self.rope)
                p, q = x[h + a], x[h + b]
                x[h + a], x[h + b] = p * math.cos(angle) - q * math.sin(angle), p * math.sin(angle) + q * math.cos(angle)
        return x

    def logits(self):
        states = [list(self.tensors["token_embd.weight"][1][t * WIDTH:(t + 1) * WIDTH]) for t in TOKENS]
        for i in range(LAYERS):
            b = f"blk.{i}."
            normed = [self.norm(b + "attn_norm", x) for x in states]
            q = [self.turn(self.multiply(b + "attn_q", n), p) for p, n in enumerate(normed)]
            k = [self.turn(self.multiply(b + "attn_k", n), p) for p, n in enumerate(normed)]
            v = [self.multiply(b + "attn_v", n) for n in normed]
            for p in range(len(states)):
                first = max(0, p - self.window + 1) if self.window else 0
                out = []
                for h in range(HEADS):
                    qh, base = q[p][h * self.head:(h + 1) * self.head], h // (HEADS // KV) * self.head
                    scores = [sum(a * c for a, c in zip(qh, k[j][base:base + self.head])) / math.sqrt(self.head)
                              for j in range(first, p + 1)]
                    top = max(scores)
                    e = [math.exp(s - top) for s in scores]
                    out += [sum(w * v[first + j][base + d] for j, w in enumerate(e)) / sum(e) for d in range(self.head)]
                states[p] = [a + c for a, c in zip(states[p], self.multiply(b + "attn_output", out))]
                n = self.norm(b + "ffn_norm", states[p])
                gate, up = self.multiply(b + "ffn_gate", n), self.multiply(b + "ffn_up", n)
                h = [a / (1 + math.exp(-a)) * c for a, c in zip(gate, up)]
                states[p] = [a + c for a, c in zip(states[p], self.multiply(b + "ffn_down", h))]
        head = "output" if "output.weight" in self.tensors else "token_embd"
        return [v for x in states for v in self.multiply(head, self.norm("output_norm", x))]


def evaluate(folder, model, *more):
    path, out = model.write(os.path.join(folder, "m.gguf")), os.path.join(folder, "o.f32")
    tokens = os.path.join(folder, "t.txt")
    with open(tokens, "w") as f:
        f.write(" ".join(map(str, TOKENS)))
    status, _, err = g.run("eval", path, "--tokens", tokens, "--logits", out, *more)
    if status:
        return None, err
    a = array.array("f")
    with open(out, "rb") as f:
        a.frombytes(f.read())
    os.unlink(out)
    return a, err


def right(folder, name, model, bound=2e-5):
    want = model.logits()
    mean = sum(want) / len(want)
    sd = math.sqrt(sum((x - mean) ** 2 for x in want) / len(want))
    for more in ([], ["--batch", "1"]):
        got, err = evaluate(folder, model, *more)
        worst = max(abs(a - b) for a, b in zip(got, want)) / sd if got and len(got) == len(want) else math.nan
        g.check(f"{name}{' in steps' if more else ''}", worst <= bound, f"{worst:.3g} sd {err}")


def wrong(folder, name, model, *words):
    got, err = evaluate(folder, model)
    g.check(f"refused: {name}", got is None and all(w in err for w in words), err)


def main():
    with tempfile.TemporaryDirectory() as folder:
        right(folder, "llama with heads wider than width / heads", Model(1))
        right(folder, "llama with heads of odd size, partly rotated", Model(2, head=7, rope=2))
        right(folder, "llama with biases", Model(3, bias=True))
        right(folder, "llama with a window", Model(4, window=3))
        right(folder, "llama, tied", Model(5, tied=True))
        right(folder, "qwen2, pairs in halves", Model(6, arch="qwen2", bias=True))
        right(folder, "mistral with a window of one", Model(7, arch="mistral", window=1))
        right(folder, "scores beyond half precision", Model(8, bias=True, boost=3e5), 1e-3)
        for name in ("attn_k", "attn_v"):
            got, err = evaluate(folder, Model(8, bias=True, boost=3e5, boosted=(name,)), "--kv", "f16")
            g.check(f"{name} beyond half precision in an f16 cache", got is not None and all(map(math.isfinite, got)), err)
        plain, _ = evaluate(folder, Model(9, arch="qwen2", bias=True))
        other, _ = evaluate(folder, Model(9, arch="qwen2", bias=True, boost=2.0))
        g.check("biases change the logits", plain is not None and other is not None and plain != other)
        same, _ = evaluate(folder, Model(10, extra={"feed_forward_length": (g.ARR, (g.U32, [HIDDEN] * LAYERS)),
                                                    "attention.head_count_kv": (g.ARR, (g.U32, [KV] * LAYERS))}))
        scalar, _ = evaluate(folder, Model(10))
        g.check("per-layer arrays of equal values are as the scalar", same is not None and same == scalar)
        wrong(folder, "per-layer heads that differ",
              Model(10, extra={"attention.head_count_kv": (g.ARR, (g.U32, [KV, 1]))}), "head_count_kv")
        wrong(folder, "qwen2 without biases", Model(11, arch="qwen2"), "blk.0.attn_q.bias")
        for key in ("block_count", "embedding_length", "feed_forward_length", "attention.head_count",
                    "attention.layer_norm_rms_epsilon"):
            wrong(folder, f"no {key}", Model(12, drop=(key,)), "llama." + key)
        wrong(folder, "a tensor missing", Model(13, drop=("blk.1.ffn_up.weight",)), "blk.1.ffn_up.weight")
        for key, value in (("attention.head_count", 0), ("block_count", 0), ("block_count", 1 << 30), ("rope.dimension_count", 5),
                           ("attention.head_count_kv", 3), ("embedding_length", 13)):
            wrong(folder, f"{key} = {value}", Model(14, extra={key: (g.U32, value)}))
        wrong(folder, "a base of NaN", Model(15, extra={"rope.freq_base": (g.F32, math.nan)}), "rope.freq_base")
        wrong(folder, "an unknown scaling", Model(15, extra={"rope.scaling.type": (g.STR, "spiral")}), "spiral")
        shape = Model(16)
        shape.tensors["blk.0.attn_k.weight"] = ([WIDTH, 2 * KV * 6], shape.numbers(WIDTH * 2 * KV * 6, 0, 1))
        wrong(folder, "a wrong shape", shape, "blk.0.attn_k.weight", "[24, 12]", "[12, 12]")
    g.done()


main()

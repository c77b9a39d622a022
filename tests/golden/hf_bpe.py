#!/usr/bin/env python3
"""Byte-level BPE against the Hugging Face `tokenizers` library: a vocabulary trained on the spot, 1,000 random strings."""
import json
import os
import random
import subprocess
import sys
import tempfile

import gguffile as g
import peerenv

PACKAGE = "tokenizers==0.21.4"
# Published patterns, as the models' tokenizer.json files have them; None: the library's own, that of GPT-2.
PATTERNS = {
    "gpt-2": None,
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
# Runs with the library: trains, prints vocabulary, merges and the ids of the strings on its standard input.
PEER = r'''
import json, sys
from tokenizers import Tokenizer, Regex, models, pre_tokenizers, trainers
job = json.load(sys.stdin)
t = Tokenizer(models.BPE())
if job["pattern"] is None:
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
else:
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(job["pattern"]), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
t.train_from_iterator(job["corpus"], trainers.BpeTrainer(vocab_size=2000, show_progress=False,
                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
model = json.loads(t.to_str())["model"]
json.dump({"vocab": model["vocab"], "merges": model["merges"], "ids": [t.encode(s).ids for s in job["texts"]]}, sys.stdout)
'''
ALPHABETS = ["abcdefghijklmnop ETAOIN", "0123456789 .,", " \t\n\r", "'sdmtreLVl ", "äöüßéñçÅ", "привет мир", "日本語 中文", "👍🏽👩‍👧 ✓½²",
             "!?;:()[]{}<>@#$%^&*-_=+/\\|~`\"", "नमस्ते العربية"]


def corpus():
    out = []
    for name in ("README.md", "CONTRIBUTING.md", "docs/ini.md", "core/include/pantheon/plugin.h", "tests/README.md"):
        with open(os.path.join(g.ROOT, name), encoding="utf-8") as f:
            out += f.read().split("\n")
    return out + ["привет мир, как дела", "日本語と中文", "ein schöner Tag", "¿cuántos años tienes?"] * 20


def texts(rng, lines):
    out = []
    for _ in range(1000):
        parts = []
        for _ in range(rng.randrange(1, 12)):
            if rng.random() < 0.3:
                words = rng.choice(lines).split(" ")
                parts.append(" ".join(words[:rng.randrange(1, 6)]))
            else:
                parts.append("".join(rng.choice(rng.choice(ALPHABETS)) for _ in range(rng.randrange(1, 9))))
        out.append(rng.choice(["", " "]).join(parts))
    return out


def vocabulary(path, pre, model):
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    pairs = [("general.architecture", g.STR, "llama"), ("tokenizer.ggml.model", g.STR, "gpt2"), ("tokenizer.ggml.pre", g.STR, pre),
             ("tokenizer.ggml.tokens", g.ARR, (g.STR, tokens)), ("tokenizer.ggml.token_type", g.ARR, (g.I32, [1] * len(tokens))),
             ("tokenizer.ggml.merges", g.ARR, (g.STR, merges)), ("tokenizer.ggml.add_bos_token", g.BOOL, 0)]
    g.write(path, g.header(pairs, []))


def main():
    folder, why = peerenv.folder(PACKAGE)
    if not folder:
        print(f"skip - ids of the tokenizers library: {why}")
        return
    rng = random.Random(20240501)
    lines = corpus()
    for pre, pattern in PATTERNS.items():
        job = {"pattern": pattern, "corpus": lines, "texts": texts(rng, lines)}
        peer = subprocess.run([sys.executable, "-c", PEER], input=json.dumps(job), capture_output=True, text=True,
                              timeout=250, env=dict(os.environ, PYTHONPATH=folder))
        if not g.check(f"{pre}: the library trains and encodes", peer.returncode == 0, peer.stderr[-500:]) and peer.returncode:
            continue
        model = json.loads(peer.stdout)
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "vocab.gguf")
            vocabulary(path, pre, model)
            wrong = []
            for text, want in zip(job["texts"], model["ids"]):
                r = subprocess.run([g.PANTHEON, "tokenize", path], input=text.encode(), capture_output=True, timeout=60)
                got = [int(x) for x in r.stdout.split()]
                if r.returncode or got != want:
                    wrong.append(f"{text!r}: {got}, expected {want} {r.stderr.decode(errors='replace')}")
            g.check(f"{pre}: {len(job['texts'])} random strings have the library's ids", not wrong, "\n".join(wrong[:3]))
    g.done()


main()

#!/usr/bin/env python3
"""`dequant` of each quantization type equals, bit for bit, the floats that an independent implementation made of the same blocks
(tests/data/quant, and the larger collection when it lies beside the repository), at every kernel level."""
import os

from gguffile import ROOT, check, done, run

HERE = os.path.join(ROOT, "tests/data/quant")
PLUGINS = os.path.join(os.environ["PN_BUILD"], "plugins")


def files():
    found = {}
    shared = os.environ.get("PN_SHARED")
    for folder in ([os.path.join(shared, "golden/quant")] if shared else []) + [HERE]:
        if os.path.isdir(folder):
            for f in sorted(os.listdir(folder)):
                base = os.path.join(folder, f[:-5])
                if f.endswith(".gguf") and os.path.exists(base + ".f32"):
                    found[f[:-5].lower()] = base
    return found


def main():
    found, missing = files(), []
    check("there is something to compare", len(found) >= 5)
    for name, base in sorted(found.items()):
        if not os.path.exists(os.path.join(PLUGINS, name + ".so")) and not base.startswith(HERE):
            missing.append(name)
            continue
        with open(base + ".f32", "rb") as f:
            want = f.read()
        for level in ("c", "avx2", "avx512"):
            status, out, err = run("dequant", base + ".gguf", "w", env={"PANTHEON_CPU": level})
            same = status == 0 and out == want
            where = next((i for i in range(0, len(want), 4) if out[i:i + 4] != want[i:i + 4]), -1) // 4
            check(f"{name}, {level}", same, err or f"first difference at element {where}")
    if missing:
        print(f"skip - {len(missing)} more types: no plugin yet for {' '.join(missing)}")
    done()


main()

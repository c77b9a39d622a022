#!/usr/bin/env python3
"""sampler.py: prints what the sampler must choose in test_same_everywhere (tests/unit/test_sampler.c).

Written from the published algorithms (splitmix64, xoshiro256**) and the order in pantheon.h, with exact arithmetic where
the C code rounds, so that the two have only their results in common. sampler.inc keeps its output.
"""
import struct
from decimal import Decimal, getcontext

getcontext().prec = 40
MASK = (1 << 64) - 1


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class Rng:
    def __init__(self, seed):
        self.s = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = seed
            z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
            self.s.append(z ^ z >> 31)

    def unit(self):
        s = self.s
        rotate = lambda x, k: (x << k | x >> 64 - k) & MASK
        result = rotate(s[1] * 5 & MASK, 7) * 9 & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
        return Decimal(result >> 11) / 2**53


def logits(n, seed):
    out = []
    for _ in range(n):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(f32(f32((seed >> 8) * 2.0**-20) - 8))
    return out


def main():
    n, k, top_p, min_p, penalty, last, temperature = 1000, 50, f32(0.9), f32(0.02), f32(1.3), 16, f32(0.8)
    rng, recent, chosen = Rng(20240229), [], []
    for i in range(40):
        x = logits(n, i % 4)
        for t in set(recent):
            x[t] = f32(x[t] / penalty) if x[t] > 0 else f32(x[t] * penalty)
        order = sorted(range(n), key=lambda t: (-x[t], t))[:k]
        best = Decimal(x[order[0]])
        weight = {t: (Decimal(x[t]) - best).exp() for t in order}
        total, seen, kept = sum(weight.values()), Decimal(0), []
        for t in order:
            if kept and (seen >= Decimal(top_p) * total or weight[t] < Decimal(min_p)):
                break
            seen += weight[t]
            kept.append(t)
        tempered = {t: ((Decimal(x[t]) - best) / Decimal(temperature)).exp() for t in kept}
        # Least likely first, as the C code walks.
        at, seen = rng.unit() * sum(tempered.values()), Decimal(0)
        for t in reversed(kept):
            seen += tempered[t]
            if seen > at:
                break
        chosen.append(t)
        recent = (recent + [t])[-last:]
    for i in range(0, len(chosen), 10):
        print(" ".join(f"{t}," for t in chosen[i:i + 10]))


main()

#!/usr/bin/env python3
"""`eval` against logits of independent programs, at every kernel level, exact and fast; and the same bits however a
prompt is cut."""
import os

import _golden as g

# Every way of evaluating the same tokens: all must give the same bits as the first.
WAYS = [
    [], ['-t', '1'], ['-t', '2'], ['-t', '3'],
    ['--batch', '1'], ['--batch', '7'], ['--batch', '64'], ['--batch', 'whole'],
    ['--beside', '3'], ['--beside', '3', '--batch', '1', '-t', '2'], ['--beside', '1', '--batch', '7', '-t', '3'],
    ['--beside', '3', '--batch', '5', '--set', 'runtime.batch=3'],
]

# The most that a quantized model may be off, mean KL divergence, by [runtime] activations.
KL_MOST = {'exact': 1e-5, 'fast': 2e-3}


def main():
    cases = [('graph', n) for n in sorted(os.listdir(os.path.join(g.DATA, 'graph')))]
    cases += [('quantized', n) for n in sorted(os.listdir(os.path.join(g.DATA, 'quantized')))]
    for level in g.levels():
        for kind, name in cases:
            exact = compare(kind, name, level, 'exact')
            fast = compare(kind, name, level, 'fast') if kind == 'quantized' else None
            if exact and fast:
                g.check(f'{name} at level {level}: fast is not exact', exact != fast)
    g.finish()


def compare(kind, name, level, mode):
    """Returns the bytes of the logits."""
    folder = os.path.join(g.DATA, kind, name)
    model, tokens = os.path.join(folder, 'model.gguf'), os.path.join(folder, 'tokens.txt')
    own = []
    if os.path.exists(os.path.join(folder, 'args')):
        with open(os.path.join(folder, 'args')) as f:
            own = f.read().split()
    want = g.load(os.path.join(folder, 'logits.f32'))
    with open(tokens) as f:
        n = len(f.read().split())
    own += ['--activations', mode]
    label = f'{name} at level {level}, {mode}'
    first, why = g.evaluate(model, tokens, own, level)
    if not g.check(f'{label}: evaluates', first is not None, why):
        return None
    got = g.floats(first)
    if not g.check(f'{label}: {len(want)} logits', len(got) == len(want), f'{len(got)}'):
        return None
    if kind == 'graph':
        d = g.worst(want, got)
        g.check(f'{label}: within 1e-3 sd', d <= 1e-3, f'{d:.3g} sd')      # NaN is not within
    else:
        v = len(want) // n
        d = sum(g.kl(want[i * v:(i + 1) * v], got[i * v:(i + 1) * v]) for i in range(n)) / n
        g.check(f'{label}: mean KL divergence within {KL_MOST[mode]:g}', d <= KL_MOST[mode], f'{d:.3g}')
    different = []
    for way in WAYS[1:]:
        data, why = g.evaluate(model, tokens, own + way, level)
        if data != first:
            different.append(' '.join(way) + (f' ({why})' if data is None else ''))
    g.check(f'{label}: the same bits for any threads, batches and neighbours', not different, '; '.join(different))
    data, why = g.evaluate(model, tokens, own + ['--last'], level)
    g.check(f'{label}: --last is the last row', data == first[-len(first) // n:], why)
    data, why = g.evaluate(model, tokens, own + ['--kv', 'f16'], level)
    close = data is not None and g.worst(want, g.floats(data)) < (0.05 if mode == 'exact' else 0.5)
    g.check(f'{label}: an f16 cache is used and is near', close and data != first, why or 'equal to f32, or far')
    return first


if __name__ == '__main__':
    main()

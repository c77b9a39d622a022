#!/usr/bin/env python3
"""`pantheon bench`: the shape of what it reports. No time is judged."""
import json
import os

import _tiny as t

MODEL = os.path.join(t.ROOT, 'tests', 'data', 'graph', 'llama', 'model.gguf')


def bench(*args):
    return t.run('bench', MODEL, '-t', 2, '-r', 2, *args)


def as_json(name, r):
    try:
        return json.loads(r.stdout)
    except ValueError as e:
        t.check(name, False, f'{e}: {t.why(r)}')
        return {}


def main():
    r = bench('-p', 40, '-n', 5, '--json')
    t.check('--json', r.returncode == 0 and r.stderr == b'', t.why(r))
    j = as_json('--json is JSON', r)
    for part, n in (('prompt', 40), ('decode', 5)):
        p = j.get(part, {})
        good = p.get('tokens') == n and p.get('tokens_per_second', 0) > 0 and p.get('stddev', -1) >= 0
        t.check(f'{part}: tokens, tokens_per_second, stddev', good, p)
    d = j.get('decode', {})
    size = os.path.getsize(MODEL)
    t.check('bytes read per token', 0 < d.get('bytes_per_token', 0) < size, d)
    t.check('bytes per second is their product', abs(d.get('bytes_per_second', 0) - d.get('bytes_per_token', 1) *
            d.get('tokens_per_second', 1)) <= 1e-3 * d.get('bytes_per_second', 0), d)
    m = j.get('machine', {})
    good = m.get('cpu') and m.get('processors', 0) > 0 and m.get('read_bytes_per_second', 0) > 0
    t.check('the machine', good and 0 < m.get('read_bytes', 0) <= size, m)
    t.check('share of what the memory gives', d.get('share_of_read_bandwidth', 0) > 0, d)
    t.check('threads and repeats', j.get('threads') == 2 and j.get('repeats') == 2, j)
    kernels = j.get('kernels', [])
    t.check('kernels in use', any(k.get('type') == 'f32' and k.get('name') for k in kernels), kernels)
    j = as_json('--activations fast', bench('-p', 8, '-n', 0, '--json', '--activations', 'fast'))
    t.check('floats have no fast kernels', j.get('activations') == 'fast' and j.get('kernels') == kernels, j)
    t.check('limits only when asked for', 'limits' not in j and 'arithmetic' not in j.get('prompt', {}), j)
    j = as_json('--limits', bench('-p', 40, '-n', 0, '--json', '--limits'))
    limits, p = j.get('limits', {}), j.get('prompt', {})
    c = 'PANTHEON_CPU' in os.environ or 'avx2' not in j.get('machine', {}).get('features', '')
    known = limits.get('f32_multiply_adds_per_second', 0) > 0 and limits.get('read_bytes_per_second', 0) > 0
    t.check('limits of the machine', known or c, limits)
    want = p.get('multiply_adds_per_second', 0) / max(limits.get('f32_multiply_adds_per_second', 1), 1)
    good = p.get('arithmetic') == 'f32' and abs(p.get('share_of_multiply_adds', -1) - want) <= 1e-3 * want + 1e-4
    t.check('share of the multiply-adds', good and p.get('multiply_adds_per_second', 0) > 0 or c, p)
    # A layer: 64x64 for queries, 32x64 for keys and for values; 64x64 and 160x64 three times after attention, where
    # the last layer, like the output, has the one token left whose logits are wanted.
    attention, rest = 64 * (64 + 2 * 32), 64 * (64 + 3 * 160)
    adds = 40 * (2 * attention + rest) + rest + 320 * 64
    got = p.get('multiply_adds_per_second', 0) / max(p.get('tokens_per_second', 1), 1e-9) * 40
    t.check('multiply-adds of the prompt', abs(got - adds) < 1e-4 * adds, f'{got}, not {adds}')
    text = bench('-p', 8, '-n', 0, '--limits', '-r', 1).stdout.decode()
    t.check('--limits as text', 'limits   ' in text and 'multiply-adds' in text, text)
    j = as_json('-n 0', bench('-p', 8, '-n', 0, '--json'))
    t.check('-n 0 leaves decode out', 'prompt' in j and 'decode' not in j, j)
    j = as_json('-p 0', bench('-p', 0, '-n', 3, '--json', '-r', 1))
    t.check('-p 0 leaves the prompt out', 'decode' in j and 'prompt' not in j, j)
    t.check('one repeat has no deviation', j.get('decode', {}).get('stddev') == 0, j)
    r = bench('-p', 8, '-n', 3)
    text = r.stdout.decode()
    t.check('as text', r.returncode == 0 and all(w in text for w in ('prompt', 'decode', 'GB/s', 'tokens/s', 'f32=')),
            t.why(r))
    t.check('-v says each repeat', bench('-p', 8, '-n', 3, '-v').stderr.count(b' of 2: ') == 4)
    t.expect('nothing to measure', bench('-p', 0, '-n', 0), 2, b'', 'nothing to measure')
    t.expect('-r 0', bench('-r', 0), 2, b'', '-r')
    t.expect('longer than the model was trained for', bench('-p', 300, '-n', 0), 0)
    t.finish()


main()

#!/usr/bin/env python3
"""`pantheon importance`: the sums of the first layer against a computation in Python, the shape of the file, and that
`pantheon quantize` takes it."""
import array
import math
import os
import signal
import subprocess

import _tiny as t
import gguffile as g

TEXT = 'Now is the winter of our discontent made glorious summer by this sun of York. ' * 3


def floats(tensor):
    return array.array('f', tensor[2][:4 * math.prod(tensor[0])])


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-4 * abs(y) for x, y in zip(a, b))


def first_inputs(model, ids):
    """Sum over the tokens of the squares of rms_norm(embedding) * weight, by its definition."""
    pairs, tensors = g.read(model)
    width = pairs['llama.embedding_length'][1]
    eps = pairs['llama.attention.layer_norm_rms_epsilon'][1]
    embedding, weight = floats(tensors['token_embd.weight']), floats(tensors['blk.0.attn_norm.weight'])
    sums = [0.0] * width
    for i in ids:
        x = embedding[i * width:(i + 1) * width]
        scale = 1 / math.sqrt(math.fsum(v * v for v in x) / width + eps)
        for k in range(width):
            sums[k] += (x[k] * scale * weight[k]) ** 2
    return sums


def contents(model, text, out, folder):
    ids = t.tokens_of(TEXT)
    t.expect('a text', t.run('importance', model, text, '-o', out, '--context', 64), 0, b'')
    pairs, tensors = g.read(out)
    _, weights = g.read(model)
    t.check('metadata', pairs['general.type'] == (g.STR, b'imatrix') and pairs['imatrix.datasets'] == (g.ARR, (g.STR, [b'text'])) and
            pairs['imatrix.chunk_size'] == (g.U32, 64) and pairs['imatrix.chunk_count'] == (g.U32, -(-len(ids) // 64)), pairs)
    want = first_inputs(model, ids)
    for name in ('attn_q', 'attn_k', 'attn_v'):
        got = floats(tensors[f'blk.0.{name}.weight.in_sum2'])
        t.check(f'blk.0.{name}: sums of squares', close(got, want), f'{got[:4]} {want[:4]}')
    matrices = [n for n, (dims, _, _) in weights.items() if len(dims) > 1 and n != 'token_embd.weight']
    t.check('every matrix, in the order of the model',
            list(tensors) == [n + s for n in matrices for s in ('.in_sum2', '.counts')], list(tensors))
    for n in matrices:
        dims, kind, _ = tensors[n + '.in_sum2']
        t.check(f'{n}: columns and count', dims == [weights[n][0][0], 1] and kind == 0 and tensors[n + '.counts'][0] == [1, 1] and
                floats(tensors[n + '.counts'])[0] == len(ids) and min(floats(tensors[n + '.in_sum2'])) >= 0, tensors[n + '.counts'])
    with open(out, 'rb') as f:
        whole = f.read()
    for more in (['-t', 1], ['-t', 3], ['--set', 'runtime.batch=7']):
        again = os.path.join(folder, 'again')
        t.run('importance', model, text, '-o', again, '--context', 64, *more)
        with open(again, 'rb') as f:
            t.check(f'{" ".join(map(str, more))}: the same bytes', f.read() == whole)
        os.unlink(again)
    r = t.run('quantize', model, os.path.join(folder, 'small.gguf'), 'q4_0', '--importance', out, '-v')
    t.check('quantize takes it', r.returncode == 0 and b'token_embd.weight: no importance' in r.stderr and
            b'1 of 16 tensors' in r.stderr, t.why(r))


def others(model, text, out, folder):
    r = t.run('importance', model, text, cwd=folder)
    t.expect('the default name', r, 0, b'importance.gguf\n')
    t.check('is in the current folder', os.path.exists(os.path.join(folder, 'importance.gguf')))
    t.expect('no text', t.run('importance', model), 2, b'', 'a TEXT')
    t.expect('three words', t.run('importance', model, text, 'x'), 2, b'', '3 words')
    t.expect('--context 0', t.run('importance', model, text, '--context', 0), 2, b'', '--context')
    t.expect('an empty text', t.run('importance', model, '-', '-o', out + '2', input=b''), 1, b'', 'empty')
    t.expect('no such folder', t.run('importance', model, text, '-o', folder + '/no/x'), 1, b'', 'no/x')
    t.expect('a full disk', t.run('importance', model, text, '-o', '/dev/full'), 1, b'', 'No space left')
    before = sorted(os.listdir(folder))
    long = os.path.join(folder, 'text2')
    with open(long, 'w') as f:
        f.write(TEXT * 400)
    p = subprocess.Popen([t.PANTHEON, 'importance', model, long, '-o', out + '2', '-t', '1', '--context', '64'], stderr=subprocess.PIPE)
    while p.poll() is None and sorted(os.listdir(folder)) == sorted(before + ['text2']):
        pass
    p.send_signal(signal.SIGINT)
    _, err = p.communicate()
    os.unlink(long)
    t.check('Ctrl-C leaves nothing', p.returncode == 130 and b'stopped' in err and sorted(os.listdir(folder)) == before,
            f'{p.returncode} {err} {os.listdir(folder)}')


def main():
    with t.folder() as folder:
        model = t.tiny(os.path.join(folder, 'tiny.gguf'))
        text, out = os.path.join(folder, 'text'), os.path.join(folder, 'imp')
        with open(text, 'w') as f:
            f.write(TEXT)
        contents(model, text, out, folder)
        others(model, text, out, folder)
    t.finish()


main()

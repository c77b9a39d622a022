#!/usr/bin/env python3
"""`pantheon perplexity`: against a computation in Python from the logits of `pantheon eval`; reference runs, hostile ones
too."""
import array
import json
import math
import os
import random
import struct

import _tiny as t

VOCAB = 320
TEXT = ('The quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. How vexingly quick daft '
        'zebras jump! Sphinx of black quartz, judge my vow. ' * 2)


def write(path, data):
    with open(path, 'wb') as f:
        f.write(data)
    return path


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def want_start(path):
    """The vocabulary wants its start token."""
    key = b'tokenizer.ggml.add_bos_token' + struct.pack('<I', 7)
    data = read(path)
    at = data.index(key) + len(key)
    write(path, data[:at] + b'\1' + data[at + 1:])
    return path


def logits_of(model, tokens):
    r = t.run('eval', model, '--tokens', '-', '--logits', '-', '--kv', 'f16', input=' '.join(map(str, tokens)).encode())
    assert r.returncode == 0, r.stderr
    x = array.array('f', r.stdout)
    return [x[i * VOCAB:(i + 1) * VOCAB] for i in range(len(tokens))]


def log_softmax(row):
    most = max(row)
    total = math.log(math.fsum(math.exp(v - most) for v in row))
    return [v - most - total for v in row]


def windows(ids, context, start):
    for at in range(0, len(ids), context):
        w = ids[at:at + context]
        yield [start] + w[1:] if start is not None else w


def rows_of(model, ids, context, start=None):
    """(log probabilities, the token that came) of every scored token."""
    out = []
    for w in windows(ids, context, start):
        if len(w) > context // 2 + 1:
            logits = logits_of(model, w)
            out += [(log_softmax(logits[i]), w[i + 1]) for i in range(context // 2, len(w) - 1)]
    return out


def mean(values):
    m = math.fsum(values) / len(values)
    return m, math.sqrt(math.fsum((v - m) ** 2 for v in values) / (len(values) - 1) / len(values))


def perplexity(*args, **more):
    r = t.run('perplexity', *args, '--json', **more)
    return json.loads(r.stdout) if r.returncode == 0 else t.why(r)


def close(got, want, tolerance=1e-9):
    return isinstance(got, float) and abs(got - want) <= tolerance * max(1, abs(want))


def values(model, text):
    ids = t.tokens_of(TEXT)
    for context in (64, 33, 100, len(ids), 400):
        rows = rows_of(model, ids, context)
        m, e = mean([-p[i] for p, i in rows])
        got = perplexity(model, text, '--context', context)
        good = isinstance(got, dict) and got['tokens'] == len(ids) and got['scored'] == len(rows)
        t.check(f'windows of {context}', good and close(got['perplexity'], math.exp(m)) and
                close(got['perplexity_error'], math.exp(m) * e), f'{got}, wanted {math.exp(m)} {len(rows)}')
    default = perplexity(model, text)
    t.check('the default is what the model has', default == perplexity(model, text, '--context', 256), default)
    one = perplexity(model, text, '--context', 64, '-t', 1)
    for more in (['-t', 3], ['--set', 'runtime.batch=7']):
        t.check(f'{" ".join(map(str, more))}: the same', perplexity(model, text, '--context', 64, *more) == one)
    r = t.run('perplexity', model, text, '--context', 64)
    t.expect('as text', r, 0, None)
    t.check('it says the value', f'{one["perplexity"]:.4f} +- {one["perplexity_error"]:.4f}'.encode() in r.stdout, r.stdout)
    t.check('from standard input', perplexity(model, '-', '--context', 64, input=TEXT.encode()) == one)


def start_token(folder, text):
    model = want_start(t.tiny(os.path.join(folder, 'start.gguf')))
    rows = rows_of(model, [t.START] + t.tokens_of(TEXT), 64, t.START)
    m, _ = mean([-p[i] for p, i in rows])
    got = perplexity(model, text, '--context', 64)
    t.check('each window begins with the start token', isinstance(got, dict) and close(got['perplexity'], math.exp(m)),
            f'{got}, wanted {math.exp(m)}')


def references(folder, model, text):
    ref, other, again = (os.path.join(folder, n) for n in ('ref', 'other.gguf', 'again'))
    plain = perplexity(model, text, '--context', 64)
    t.check('--save changes no result', perplexity(model, text, '--context', 64, '--save', ref) == plain)
    got = perplexity(model, text, '--kl', ref, '--save', again)
    t.check('with itself: no difference at all', isinstance(got, dict) and got['kl'] == 0 and got['kl_max'] == 0 and
            got['same_best'] == 1 and got['rms_probability'] == 0 and got['ratio'] == 1 and
            got['perplexity'] == plain['perplexity'] == got['reference_perplexity'], got)
    t.check('and the same run', read(ref) == read(again))
    r = t.run('quantize', model, other, 'q4_0')
    t.expect('another model', r, 0)
    ids = t.tokens_of(TEXT)
    p, q = rows_of(model, ids, 64), rows_of(other, ids, 64)
    kl = [math.fsum(math.exp(a) * (a - b) for a, b in zip(x, y)) for (x, _), (y, _) in zip(p, q)]
    m, e = mean(kl)
    best, _ = mean([max(range(VOCAB), key=lambda i: x[i]) == max(range(VOCAB), key=lambda i: y[i]) for (x, _), (y, _) in zip(p, q)])
    rms = math.sqrt(mean([(math.exp(x[i]) - math.exp(y[i])) ** 2 for (x, i), (y, _) in zip(p, q)])[0])
    ratio = math.exp(mean([x[i] - y[i] for (x, i), (y, _) in zip(p, q)])[0])
    got = perplexity(other, text, '--kl', ref)
    good = isinstance(got, dict) and m > 1e-6
    for key, want in (('kl', m), ('kl_error', e), ('kl_max', max(kl)), ('same_best', best), ('rms_probability', rms),
                      ('ratio', ratio), ('reference_perplexity', plain['perplexity'])):
        t.check(f'compared: {key}', good and close(got[key], want, 1e-9), f'{got}, wanted {want}')
    text_out = t.run('perplexity', other, text, '--kl', ref).stdout.decode()
    t.check('as text it says them', good and f'{m:.3e}' in text_out and f'{100 * best:.3f} %' in text_out, text_out)
    hostile(folder, model, text, read(ref))


def hostile(folder, model, text, good):
    bad = os.path.join(folder, 'bad')

    def put(at, code, value):
        b = bytearray(good)
        struct.pack_into('<' + code, b, at, value)
        return bytes(b)

    n = struct.unpack_from('<Q', good, 24)[0]
    rows = 40 + 4 * n
    for label, data, words in (
            ('empty', b'', 'ends inside its header'), ('a cut header', good[:39], 'ends inside its header'),
            ('another magic', b'PNTLOGIX' + good[8:], 'no reference run'), ('a model file', read(model), 'no reference run'),
            ('a newer version', put(8, 'I', 2), 'version 2'), ('reserved', put(20, 'I', 1), 'version'),
            ('no vocabulary', put(12, 'I', 0), 'damaged'), ('a huge vocabulary', put(12, 'I', 0xffffffff), 'damaged'),
            ('another vocabulary', put(12, 'I', VOCAB // 2), 'damaged'), ('no window', put(16, 'I', 0), 'damaged'),
            ('another window', put(16, 'I', 32), 'damaged'), ('a huge window', put(16, 'I', 0xffffffff), 'damaged'),
            ('fewer tokens', put(24, 'Q', n - 1), 'damaged'), ('a huge number of tokens', put(24, 'Q', 2 ** 63), 'damaged'),
            ('tokens that wrap', put(24, 'Q', 2 ** 62 + n), 'damaged'), ('no rows', put(32, 'Q', 0), 'damaged'),
            ('a huge number of rows', put(32, 'Q', 2 ** 64 - 1), 'damaged'), ('cut', good[:-1], 'damaged'),
            ('cut by a row', good[:-4 * VOCAB], 'damaged'), ('more at the end', good + b'\0' * 4 * VOCAB, 'damaged'),
            ('another token', put(40 + 4 * 5, 'i', 7), 'token 5 of the reference is 7'),
            ('not a number', put(rows + 4 * 3, 'f', math.nan), 'logit 3 of scored token 0'),
            ('infinite', put(rows + 4 * VOCAB, 'f', math.inf), 'logit 0 of scored token 1')):
        write(bad, data)
        t.expect(f'a reference with {label}', t.run('perplexity', model, text, '--kl', bad), 1, b'', words)
    write(bad, put(rows, 'f', -math.inf))
    got = perplexity(model, text, '--kl', bad)
    t.check('a logit of minus infinity is one', isinstance(got, dict) and math.isfinite(got['kl']), got)
    write(bad, good[:rows] + struct.pack('<f', -math.inf) * VOCAB + good[rows + 4 * VOCAB:])
    t.expect('but not all of them', t.run('perplexity', model, text, '--kl', bad), 1, b'', 'no finite logit')
    for seed in range(40):      # whatever is in it, it ends, and well
        rng = random.Random(seed)
        b = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            b[rng.randrange(rows if seed % 2 else len(b))] = rng.randrange(256)
        write(bad, bytes(b[:rng.randrange(len(b))] if seed % 5 == 0 else b))
        r = t.run('perplexity', model, text, '--kl', bad)
        if r.returncode not in (0, 1):
            t.check(f'a damaged reference, seed {seed}', False, t.why(r))
    t.expect('not there', t.run('perplexity', model, text, '--kl', bad + 'x'), 1, b'', 'bad' + 'x')
    t.expect('a folder', t.run('perplexity', model, text, '--kl', folder), 1, b'', folder)
    write(bad, good)
    t.expect('other windows', t.run('perplexity', model, text, '--kl', bad, '--context', 32), 1, b'', 'windows of 64')
    t.expect('another text', t.run('perplexity', model, '-', '--kl', bad, input=TEXT[1:].encode()), 1, b'', 'another text')
    t.expect('a text changed', t.run('perplexity', model, '-', '--kl', bad, input=TEXT.replace('dog', 'cat').encode()), 1, b'',
             'token ')
    t.check('nothing else is left', not [f for f in os.listdir(folder) if '.' in f and not f.endswith('.gguf')], os.listdir(folder))


def usage(folder, model, text):
    t.expect('no text', t.run('perplexity', model), 2, b'', 'a TEXT')
    t.expect('too many words', t.run('perplexity', model, text, 'x'), 2, b'', '3 words')
    t.expect('a short text', t.run('perplexity', model, '-', '--context', 64, input=b'short'), 1, b'', ['5 tokens', '--context'])
    t.expect('no text at all', t.run('perplexity', model, '-', input=b''), 1, b'', 'empty')
    t.expect('--context 1', t.run('perplexity', model, text, '--context', 1), 2, b'', '--context')
    t.expect('save to standard output', t.run('perplexity', model, text, '--save', '-'), 2, b'', '--save')
    t.expect('save where there is no folder', t.run('perplexity', model, text, '--save', folder + '/no/x'), 1, b'', 'no/x')
    t.expect('save to a full disk', t.run('perplexity', model, text, '--save', '/dev/full'), 1, b'', 'No space left')
    t.expect('text not there', t.run('perplexity', model, text + 'x'), 1, b'', text + 'x')
    ini = write(os.path.join(folder, 'a_ini'), f'[model]\npath = {model}\n'.encode())
    t.check('the model of an INI file', perplexity('-c', ini, text) == perplexity(model, text))


def main():
    with t.folder() as folder:
        model = t.tiny(os.path.join(folder, 'tiny.gguf'))
        text = write(os.path.join(folder, 'text'), TEXT.encode())
        values(model, text)
        start_token(folder, text)
        usage(folder, model, text)
        references(folder, model, text)
    t.finish()


main()

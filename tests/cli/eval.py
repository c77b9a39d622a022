#!/usr/bin/env python3
"""`pantheon eval`: its files. That the logits are right is golden/logits.py's matter."""
import os
import signal
import stat
import struct
import subprocess

import _tiny as t

MODEL = os.path.join(t.ROOT, 'tests', 'data', 'graph', 'llama', 'model.gguf')
VOCAB = 320


def main():
    with t.folder() as folder:
        tokens, out = os.path.join(folder, 'tokens'), os.path.join(folder, 'out')
        files(folder, tokens, out)
        bad_tokens(folder, tokens, out)
        contexts(tokens, out)
        outputs(folder, tokens, out)
    t.finish()


def write(path, data):
    with open(path, 'wb') as f:
        f.write(data)


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def evaluate(tokens, out, *more, **kw):
    return t.run('eval', MODEL, '-t', 1, '--tokens', tokens, '--logits', out, *more, **kw)


def files(folder, tokens, out):
    write(tokens, b'1 5 9')
    t.expect('three tokens', evaluate(tokens, out), 0, b'')
    want = read(out)
    t.check('a row for each, of the vocabulary', len(want) == 3 * VOCAB * 4, len(want))
    t.check('they are numbers', all(abs(x) < 1e4 for x in struct.unpack(f'<{3 * VOCAB}f', want)))
    write(tokens, b'\n1\n\t5\r\n  9\n\n')
    t.expect('any white space', evaluate(tokens, out), 0, b'')
    t.check('gives the same', read(out) == want)
    t.expect('from standard input, to standard output', evaluate('-', '-', input=b'1 5 9'), 0, want)
    t.expect('--last to standard output', evaluate('-', '-', '--last', input=b'1 5 9'), 0, want[-VOCAB * 4:])
    t.expect('-v says what was done', evaluate(tokens, out, '-v'), 0, b'', ['3 tokens', '1 threads'])
    t.check('nothing else is left', sorted(os.listdir(folder)) == ['out', 'tokens'], os.listdir(folder))
    ini = os.path.join(folder, 'a.ini')
    write(ini, f'[model]\npath = {MODEL}\n[runtime]\nkv = f16\n'.encode())
    r = t.run('eval', '-c', ini, '--tokens', tokens, '--logits', '-')
    half = evaluate(tokens, '-', '--kv', 'f16')
    t.check('what the INI says of the cache holds', r.returncode == 0 and r.stdout == half.stdout != want, t.why(r))
    os.unlink(ini)


def bad_tokens(folder, tokens, out):
    if os.path.exists(out):
        os.unlink(out)
    for label, data, words in (('an empty file', b'', 'holds no token'), ('only white space', b' \n', 'holds no token'),
                               ('a word', b'1 two 3', "byte 2: a token id is wanted, found 'two"),
                               ('a number and more', b'1 2x', "byte 2"), ('a fraction', b'1.5', 'byte 0'),
                               ('a sign', b'+5', 'byte 0'), ('negative', b'1 -1', 'token -1 is not in the vocabulary'),
                               ('too large', b'320', 'token 320 is not in the vocabulary, which has 0 .. 319'),
                               ('beyond all numbers', b'99999999999999999999999', 'is not in the vocabulary'),
                               ('a zero byte', b'1\x002', 'byte 1')):
        write(tokens, data)
        t.expect(f'{label} is refused', evaluate(tokens, out), 1, b'', words)
    t.expect('tokens not there', evaluate(tokens + 'x', out), 1, b'', 'x: cannot open')
    t.expect('no --logits', t.run('eval', MODEL, '--tokens', tokens), 2, b'', '--logits OUT is wanted')
    t.expect('no --tokens', t.run('eval', MODEL, '--logits', out), 2, b'', '--tokens FILE is wanted')
    t.expect('--batch 0', evaluate(tokens, out, '--batch', 0), 2, b'', ['--batch', '1 .. '])
    t.expect('--beside x', evaluate(tokens, out, '--beside', 'x'), 2, b'', '--beside')
    t.check('no output was begun', sorted(os.listdir(folder)) == ['tokens'], os.listdir(folder))
    write(tokens, b'1 5 9')


def contexts(tokens, out):
    write(tokens, b' '.join(b'%d' % (i % VOCAB) for i in range(300)))     # the model was trained for 256
    r = evaluate(tokens, out)
    t.check('longer than the model was trained for', r.returncode == 0 and len(read(out)) == 300 * VOCAB * 4, t.why(r))
    t.expect('longer than --context', evaluate(tokens, out, '--context', 256), 1, b'', ['300', '256', '--context 300'])
    r = evaluate(tokens, out, '--context', 300)
    t.check('just as long', r.returncode == 0, t.why(r))
    write(tokens, b'1 5 9')


def outputs(folder, tokens, out):
    write(out, b'old')
    os.chmod(out, 0o640)
    t.expect('an old file is replaced', evaluate(tokens, out), 0, b'')
    t.check('and its mode kept', stat.S_IMODE(os.stat(out).st_mode) == 0o640 and len(read(out)) > 3)
    link = os.path.join(folder, 'link')
    os.symlink('out', link)
    write(out, b'old')
    t.expect('through a link', evaluate(tokens, link), 0, b'')
    t.check('the link stays one', os.path.islink(link) and len(read(out)) > 3)
    t.expect('into no folder', evaluate(tokens, os.path.join(folder, 'no', 'out')), 1, b'', 'no/out')
    t.expect('a folder', evaluate(tokens, folder), 1, b'', folder)
    t.expect('a full disk', evaluate(tokens, '/dev/full'), 1, b'', ['/dev/full', 'No space left'])
    t.check('a device stays one', stat.S_ISCHR(os.stat('/dev/full').st_mode))
    # A model that fails in the middle, here for a cache of no type, leaves what was there.
    write(out, b'old')
    t.expect('a failure', evaluate(tokens, out, '--kv', 'x7'), 1, b'', 'x7')
    t.check('leaves the old file', read(out) == b'old')
    # Ctrl-C in the middle: the old file stays, and nothing else.
    write(tokens, b' '.join(b'%d' % (i % VOCAB) for i in range(20000)))
    p = subprocess.Popen([t.PANTHEON, 'eval', MODEL, '-t', '1', '--tokens', tokens, '--logits', out,
                          '--context', '20000', '--batch', '1'], stderr=subprocess.PIPE)
    while p.poll() is None and len(os.listdir(folder)) < 4:
        pass
    p.send_signal(signal.SIGINT)
    p.wait()
    p.stderr.close()
    t.check('Ctrl-C leaves the old file alone', p.returncode != 0 and read(out) == b'old', p.returncode)
    t.check('and nothing beside it', sorted(os.listdir(folder)) == ['link', 'out', 'tokens'], os.listdir(folder))


main()

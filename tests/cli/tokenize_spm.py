#!/usr/bin/env python3
"""Every SentencePiece vocabulary of tests/data/vocab, most of them damaged, comes to the right ids or to a clean error
that says what is wrong."""
import os
import subprocess

PANTHEON = os.environ['PANTHEON']
FOLDER = os.path.join(os.environ.get('PN_ROOT', '.'), 'tests', 'data', 'vocab')
failed = 0

# Text " z ab": its ids; what a warning must say besides, or what the error must say.
OUTCOMES = {
    'ok': ('1 259 259 125 264', ''),
    'bos_oob': ('1 259 259 125 264', '1000000'),
    'eos_max': ('1 259 259 125 264', '4294967295'),
    'no_types': ('1 259 259 125 264', 'kinds'),
    'no_bytes': ('1 3 3 0 3 4 0', ''),
    'no_scores': (None, 'tokenizer.ggml.scores'),
    'no_tokens': (None, 'tokenizer.ggml.tokens'),
    'scores_nan': (None, 'item 0'),
    'scores_short': (None, '3 entries'),
    'tiny_vocab': (None, 'no piece'),
    'types_short': (None, '3 entries'),
}


def check(name, good, why=''):
    global failed
    failed += not good
    print(f'ok - {name}' if good else f'not ok - {name}: {why}')


for name in sorted(n[4:-5] for n in os.listdir(FOLDER) if n.startswith('spm_')):
    ids, words = OUTCOMES[name]
    path = os.path.join(FOLDER, f'spm_{name}.gguf')
    r = subprocess.run([PANTHEON, 'tokenize', path], input=b' z ab', capture_output=True, timeout=60)
    err = r.stderr.decode(errors='replace')
    if ids is None:
        check(name, r.returncode == 1 and not r.stdout and words in err and 'Sanitizer' not in err, (r.returncode, err))
        continue
    check(name, r.returncode == 0 and r.stdout.decode() == ids + '\n' and words in err and bool(err) == bool(words),
          (r.returncode, r.stdout, err))
    back = subprocess.run([PANTHEON, 'detokenize', path], input=r.stdout, capture_output=True, timeout=60)
    want = b'  a' if name == 'no_bytes' else b' z ab'       # what became the unknown token is lost
    check(f'{name}: there and back', back.returncode == 0 and back.stdout == want, (back.stdout, back.stderr))
check('all are there', set(OUTCOMES) == {n[4:-5] for n in os.listdir(FOLDER) if n.startswith('spm_')})
raise SystemExit(1 if failed else 0)

#!/usr/bin/env python3
"""Token ids of the demo's model through the program: prompts of the golden files, right values, there and back."""
import os
import re
import subprocess
import sys

ROOT = os.environ.get('PN_ROOT') or os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.environ.get('PN_BUILD') or os.path.join(ROOT, 'build')
PANTHEON = os.environ.get('PANTHEON') or os.path.join(BUILD, 'pantheon')
MODEL = os.environ.get('PN_MODEL')
DATA = os.path.join(ROOT, 'tests', 'data', 'tokens')
failed = 0


def check(name, good, why=''):
    global failed
    failed += not good
    print(f'ok - {name}' if good else f'not ok - {name}: {why}')


def run(command, data, *args):
    r = subprocess.run([PANTHEON, command, MODEL, *args], input=data, capture_output=True, timeout=120)
    return r.stdout if r.returncode == 0 else f'status {r.returncode}: {r.stderr.decode(errors="replace")}'.encode()


def read(name):
    with open(os.path.join(DATA, name), 'rb') as f:
        return f.read()


if not MODEL:
    print('skip - tokens: download of the model failed')
    sys.exit(0)

for name in sorted(n[:-7] for n in os.listdir(DATA) if n.endswith('.prompt')):
    prompt, want = read(name + '.prompt'), read(name + '.ids').split()
    got = run('tokenize', prompt, '--special')
    check(f'{name}: ids', got.split() == want, f'{got} is not {want}')
    back = run('detokenize', b' '.join(want), '--special')
    check(f'{name}: text', back == prompt, f'{back} is not {prompt}')

for line in read('table.txt').decode().splitlines():
    if not line.startswith('smollm\t'):
        continue
    _, text, ids = line.split('\t')
    text = re.sub(r'\\x(..)', lambda m: chr(int(m[1], 16)), text).encode('latin-1')
    got = run('tokenize', text)
    check(f'{text}', got == ids.encode() + b'\n', f'{got} is not {ids}')

# The vocabulary does not want its start token, and markers in plain text are text.
plain = run('tokenize', b'<|im_start|>user')
check('markers stay text', b'1' not in plain.split() and len(plain.split()) > 3, plain)
check('no start token', run('tokenize', b'Hello') == run('tokenize', b'Hello', '--no-bos') == b'19556\n')
sys.exit(1 if failed else 0)

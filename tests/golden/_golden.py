"""What the golden tests share: reporting, running `eval`, and measuring the distance of two sets of logits."""
import array
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.environ.get('PN_ROOT') or os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.environ.get('PN_BUILD') or os.path.join(ROOT, 'build')
PANTHEON = os.environ.get('PANTHEON') or os.path.join(BUILD, 'pantheon')
DATA = os.path.join(ROOT, 'tests', 'data')

failed = 0


def check(name, good, why=''):
    global failed
    if good:
        print(f'ok - {name}')
    else:
        failed += 1
        print(f'not ok - {name}{": " if why else ""}{why}')
    return good


def skip(name, why):
    print(f'skip - {name}: {why}')


def finish():
    sys.exit(1 if failed else 0)


def levels():
    """The kernel levels of this machine, lowest first; says which are missing. PANTHEON_CPU lowers them further."""
    limit = os.environ.get('PANTHEON_CPU')
    names = ['c', 'avx2', 'avx512', 'amx']
    if os.uname().machine not in ('x86_64', 'amd64'):
        return ['c']
    if limit in names:
        names = names[:names.index(limit) + 1]
    flags = set()
    with open('/proc/cpuinfo') as f:
        for line in f:
            if line.startswith('flags'):
                flags |= set(line.split())
    needs = {'c': set(), 'avx2': {'avx2', 'fma', 'f16c'},
             'avx512': {'avx512f', 'avx512bw', 'avx512dq', 'avx512vl', 'avx512_vnni'},
             'amx': {'avx512_vnni', 'amx_tile', 'amx_int8'}}
    for n in names:
        if not needs[n] <= flags:
            skip(f'level {n}', 'this processor lacks ' + ' '.join(sorted(needs[n] - flags)))
    return [n for n in names if needs[n] <= flags]


def run(args, level=None, **more):
    env = dict(os.environ)
    if level:
        env['PANTHEON_CPU'] = level
    return subprocess.run([PANTHEON] + args, capture_output=True, env=env, **more)


def evaluate(model, tokens, args=(), level=None):
    """The bytes that `eval` writes, or (None, why). `tokens`: a path, or a list of ids."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'logits')
        path = tokens
        if not isinstance(tokens, str):
            path = os.path.join(folder, 'tokens')
            with open(path, 'w') as f:
                f.write(' '.join(map(str, tokens)))
        r = run(['eval', model, '--tokens', path, '--logits', out, *args], level)
        if r.returncode:
            return None, f'exit {r.returncode}: {r.stderr.decode(errors="replace").strip()[:600]}'
        left = [n for n in os.listdir(folder) if n not in ('logits', 'tokens')]
        if left:
            return None, f'eval left {left} behind'
        with open(out, 'rb') as f:
            return f.read(), ''


def floats(data):
    a = array.array('f')
    a.frombytes(data)
    if sys.byteorder == 'big':
        a.byteswap()
    return a


def load(path):
    with open(path, 'rb') as f:
        return floats(f.read())


def log_softmax(x):
    top = max(x)
    total = math.log(math.fsum(math.exp(v - top) for v in x)) + top
    return [v - total for v in x]


def kl(want, got):
    """KL divergence of one distribution of logits from another."""
    return math.fsum(math.exp(a) * (a - b) for a, b in zip(log_softmax(want), log_softmax(got)))


def worst(want, got):
    """The largest difference, in units of the standard deviation of what was wanted."""
    mean = math.fsum(want) / len(want)
    sd = math.sqrt(math.fsum((v - mean) ** 2 for v in want) / len(want))
    return max(abs(a - b) for a, b in zip(want, got)) / sd

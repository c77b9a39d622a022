#!/usr/bin/env python3
"""What tools/bench/ makes of measurements and of a vocabulary: compare.py with programs whose speeds are known, and
random_model.py. No time is judged."""
import json
import os
import subprocess
import sys
import tempfile

import _tiny as t

BENCH = os.path.join(t.ROOT, 'tools', 'bench')
VOCABULARY = os.path.join(t.ROOT, 'tests', 'data', 'graph', 'llama', 'model.gguf')

# Both count their runs in a file beside them, and note what they were told.
PEER = '''#!{python}
import json, os, sys
n = {name!r} + '.n'
i = int(open(n).read()) if os.path.exists(n) else 0
open(n, 'w').write(str(i + 1))
open({log!r}, 'a').write('peer ' + ' '.join(sys.argv[1:]) + chr(10))
print(json.dumps([dict(n_prompt=p, n_gen=g, samples_ts=[s], flash_attn='-1', type_k='f16', build_number=1)
                  for p, g, s in ((32, 0, [100, 200, 50][i]), (0, 8, 10))]))
'''
OURS = '''#!{python}
import json, os, sys
mode = sys.argv[sys.argv.index('--activations') + 1]
n = {name!r} + '.' + mode
i = int(open(n).read()) if os.path.exists(n) else 0
open(n, 'w').write(str(i + 1))
open({log!r}, 'a').write(mode + ' ' + ' '.join(sys.argv[1:]) + chr(10))
times = 2 if mode == 'fast' else 1
limits = dict(read_bytes_per_second=5e9, i8_multiply_adds_per_second=4e9, i16_multiply_adds_per_second=2e9,
              f32_multiply_adds_per_second=1e9)
print(json.dumps(dict(version='9', machine=dict(features='x'), kv='f16', batch=512, kernels=[dict(name='k')],
    limits=limits,
    prompt=dict(tokens_per_second=times * [110, 240, 65][i], share_of_multiply_adds=0.5, arithmetic='i16'),
    decode=dict(tokens_per_second=[12, 11, 13][i], share_of_read_bandwidth=[0.6, 0.7, 0.8][i]))))
'''


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w') as f:
        f.write(text.format(python=sys.executable, name=path, log=os.path.join(folder, 'log')))
    os.chmod(path, 0o755)
    return path


def compare(folder, *args, peer=PEER, ours=OURS, file=VOCABULARY):
    for old in os.listdir(folder):
        os.unlink(os.path.join(folder, old))
    command = [sys.executable, os.path.join(BENCH, 'compare.py'), file, '--rounds', '3',
               '--pantheon', script(folder, 'ours', ours), '--peer', script(folder, 'peer', peer), *args]
    return subprocess.run(command, capture_output=True, timeout=120)


def check_compare(folder):
    r = compare(folder, '--json', '-t', '1', '-p', '32', '-n', '8', '--peer-args', '-fa on')
    if not t.check('compare.py --json', r.returncode == 0, t.why(r)):
        return
    f = json.loads(r.stdout)['files'][0]
    prompt, decode = f['parts']['prompt'], f['parts']['decode']
    t.check('medians of the rounds', prompt['llama.cpp']['median'] == 100 and prompt['exact']['median'] == 110 and
            decode['fast']['median'] == 12, f['parts'])
    t.check('ratios are taken within a round', [round(x, 6) for x in prompt['exact']['ratios']] == [1.1, 1.2, 1.3] and
            round(prompt['exact']['ratio'], 6) == 1.2 and round(prompt['fast']['ratio'], 6) == 2.4, prompt)
    t.check('shares of the limits', decode['exact']['share_of_limit'] == 0.7 and decode['exact']['limit'] == 'reads' and
            prompt['exact']['limit'] == '16-bit', f['parts'])
    with open(os.path.join(folder, 'log')) as log:
        lines = log.read().splitlines()
    t.check('the order turns round', [x.split()[0] for x in lines] == ['peer', 'exact', 'fast', 'fast', 'exact', 'peer'] +
            ['peer', 'exact', 'fast'], lines)
    both = all(' -t 1 -p 32 -n 8 -r 1 ' in x and VOCABULARY in x for x in lines)
    t.check('both are told the same', both and lines[0].endswith('-fa on') and '-fa' not in lines[1], lines)
    r = compare(folder, '--activations', 'exact')
    rows = [x for x in r.stdout.decode().splitlines() if x.startswith('|')]
    t.check('a Markdown table', r.returncode == 0 and len(rows) == 4 and len({x.count('|') for x in rows}) == 1 and
            '**1.20** (1.10 to 1.30)' in rows[2] and '70 % of reads' in rows[3] and 'fast' not in rows[0], t.why(r))
    r = compare(folder, peer='#!{python}\nimport sys\nsys.exit("no such model")\n')
    t.check('a program that fails', r.returncode == 1 and b'no such model' in r.stderr and r.stdout == b'', t.why(r))
    r = compare(folder, ours='#!{python}\nprint("fast!")\n')
    t.check('a program that prints no JSON', r.returncode == 1 and b'no JSON' in r.stderr, t.why(r))
    r = compare(folder, '--activations', 'slow')
    t.check('an unknown mode', r.returncode == 2 and b"'slow'" in r.stderr, t.why(r))
    r = compare(folder, file=os.path.join(folder, 'none.gguf'))
    t.check('a file that is missing', r.returncode == 2 and b'none.gguf is missing' in r.stderr, t.why(r))


def random_model(out, *args):
    return subprocess.run([sys.executable, os.path.join(BENCH, 'random_model.py'), out, *args], capture_output=True,
                          timeout=120)


def check_random_model(folder):
    shape = ('--embd', '64', '--ff', '96', '--layers', '2', '--heads', '4', '--kv', '2', '--head-dim', '16')
    files = []
    for name, more in (('a', ()), ('b', ()), ('q', ('--arch', 'qwen2', '--untied'))):
        out = os.path.join(folder, name + '.gguf')
        r = random_model(out, VOCABULARY, *shape, *more)
        t.check(f'random_model.py {" ".join(more)}', r.returncode == 0 and r.stderr == b'', t.why(r))
        r = t.run('bench', out, '-p', 4, '-n', 2, '-r', 1, '-t', 1, '--json')
        t.check('it runs', r.returncode == 0, t.why(r))
        with open(out, 'rb') as f:
            files.append(f.read())
    t.check('the same arguments make the same file', files[0] == files[1] and files[0] != files[2])
    a, v = (json.loads(t.run('inspect', f, '--json').stdout)
            for f in (os.path.join(folder, 'a.gguf'), VOCABULARY))
    same = {k: x for k, x in v['metadata'].items() if k.startswith('tokenizer.')}
    t.check('the vocabulary is copied', same and {k: a['metadata'].get(k) for k in same} == same, a['metadata'])
    r = random_model(os.path.join(folder, 'x.gguf'), os.path.join(BENCH, 'compare.py'))
    left = [x for x in os.listdir(folder) if x.startswith('x')]
    t.check('a vocabulary that is no GGUF file', r.returncode == 1 and b'not a GGUF' in r.stderr and not left, t.why(r))


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_compare(folder)
    with tempfile.TemporaryDirectory() as folder:
        check_random_model(folder)
    t.finish()


main()

#!/usr/bin/env python3
"""The program itself: help of every command, version, wrong usage, and an output that cannot be written."""
import os
import re
import subprocess

import _tiny as t

COMMANDS = ['run', 'chat', 'inspect', 'why-not', 'plugins', 'config', 'tokenize', 'detokenize', 'dequant', 'eval',
            'bench', 'quantize', 'importance', 'perplexity']


def help_texts():
    r = t.run('--help')
    t.expect('--help', r)
    listed = re.findall(r'^  ([a-z-]+) ', r.stdout.decode(), re.M)
    t.check('--help lists every command', sorted(listed) == sorted(COMMANDS), listed)
    t.check('--help on standard output only', not r.stderr, r.stderr)
    for command in COMMANDS:
        for flag in ('--help', '-h'):
            r = t.run(command, flag)
            good = r.returncode == 0 and not r.stderr and r.stdout.startswith(b'usage: pantheon ' + command.encode())
            t.check(f'{command} {flag}', good, t.why(r))
        wide = [line for line in t.run(command, '--help').stdout.decode().split('\n') if len(line) > 120]
        t.check(f'{command} --help fits 120 columns', not wide, wide)
    t.check('help COMMAND is COMMAND --help', t.run('help', 'run').stdout == t.run('run', '--help').stdout)
    with open(os.path.join(t.ROOT, 'core', 'include', 'pantheon', 'pantheon.h')) as f:
        version = re.search(r'#define PN_VERSION "(.*)"', f.read()).group(1)
    t.expect('--version', t.run('--version'), 0, f'pantheon {version}\n'.encode())


def usage():
    t.expect('no command', t.run(), 2, b'', 'a command is wanted')
    t.expect('unknown command', t.run('inspekt', 'x'), 2, b'', ["'inspekt'", "did you mean 'inspect'?"])
    t.expect('unknown command near none', t.run('xyzzy'), 2, b'', ["no command is called 'xyzzy'", '--help'])
    t.expect('empty command', t.run(''), 2, b'')
    t.expect('unknown option', t.run('--verzion'), 2, b'', "no option is called '--verzion'")
    t.expect('escape sequences are not passed on', t.run('\x1b[31mred'), 2, b'', '\\x1b[31mred')
    for command in COMMANDS:
        t.expect(f'{command}: unknown option', t.run(command, '--no-such-option'), 2, b'', f'pantheon {command} --help')
    for command in ('run', 'chat', 'eval', 'bench'):
        more = {'run': ['-p', 'x'], 'eval': ['--tokens', 'a', '--logits', 'b']}.get(command, [])
        t.expect(f'{command}: no model', t.run(command, *more), 2, b'', 'a model is wanted')
        t.expect(f'{command}: two models', t.run(command, 'a', 'b', *more), 2, b'', "'b' is a second")
        t.expect(f'{command}: model not there', t.run(command, '/no/such/file', *more), 1, b'', '/no/such/file')
        t.expect(f'{command}: --set without a value', t.run(command, 'a', '--set', 'threads', *more), 2, b'',
                 'section.key=value')
        t.expect(f'{command}: --set of an unknown key', t.run(command, 'a', '--set', 'runtime.treads=2', *more), 2, b'',
                 ['--set', 'treads', 'threads'])
        t.expect(f'{command}: -t out of range', t.run(command, 'a', '-t', '-1', *more), 2, b'', '-t')
        t.expect(f'{command}: -c twice', t.run(command, '-c', 'a', '-c', 'b', *more), 2, b'', 'twice')
        t.expect(f'{command}: INI not there', t.run(command, '-c', '/no/such.ini', *more), 1, b'', '/no/such.ini')


def unwritable():
    with open('/dev/full', 'wb') as full:
        for args in (['--help'], ['--version'], ['run', '--help']):
            r = subprocess.run([t.PANTHEON, *args], stdout=full, stderr=subprocess.PIPE)
            t.check(f'{" ".join(args)}: full disk', r.returncode == 1 and b'No space left' in r.stderr, r.stderr)
    for args in (['--help'], ['plugins']):
        w = t.closed_pipe()
        r = subprocess.run([t.PANTHEON, *args], stdout=w, stderr=subprocess.PIPE)
        os.close(w)
        t.check(f'{" ".join(args)}: closed pipe ends quietly with failure', r.returncode == 1 and r.stderr == b'',
                f'{r.returncode} {r.stderr!r}')


help_texts()
usage()
unwritable()
t.finish()

#!/usr/bin/env python3
"""`pantheon run`: what is printed, where it ends, and how it is stopped."""
import os
import pty
import select
import signal
import subprocess
import time

import _tiny as t


def utf8(data):
    try:
        data.decode()
        return True
    except UnicodeDecodeError:
        return False


def where_it_ends(m):
    base = ['run', m, '-t', 1, '-p', 'hello']
    r = t.run(*base, '-n', 12, *t.ENDLESS)
    t.check('-n 12 makes twelve bytes', r.returncode == 0 and r.stderr == b'' and utf8(r.stdout), t.why(r))
    t.expect('-n 0 makes nothing', t.run(*base, '-n', 0), 0, b'')
    t.expect('-n that is no number', t.run(*base, '-n', 'many'), 2, b'', ['-n', 'many'])
    # 60 of 64 positions are the prompt's: four are left.
    r = t.run('run', m, '-t', 1, '-p', 'x' * 60, '-n', 100, '--context', 64, *t.ENDLESS)
    t.expect('the end of the context is said', r, 0, None, 'context of 64 tokens is full (60 of the prompt, 4 made)')
    r = t.run('run', m, '-t', 1, '-p', 'x' * 63, '-n', 100, '--context', 64, *t.ENDLESS)
    t.expect('one position left: one token', r, 0, None, '(63 of the prompt, 1 made)')
    for n in (64, 500):
        r = t.run('run', m, '-t', 1, '-p', 'x' * n, '--context', 64)
        t.expect(f'prompt of {n} in a context of 64', r, 1, b'', [f'has {n} tokens', 'holds 64', '--context', '256'])
    r = t.run('run', m, '-t', 1, '-p', 'x', *t.ENDLESS)
    t.expect('without -n: until the context is full', r, 0, None, 'the context of 256 tokens is full')
    # Ends at the end token, which gives no text: the model is made to choose it.
    r = t.run(*base, '--set', f'sampling.bias.{t.STOP}=1000', '-v')
    t.expect('the end token ends it', r, 0, b'', '0 tokens made')


def prompts(m, no_bos, folder):
    want = t.run('run', m, '-t', 1, '-p', 'Größe\n', '-n', 8, *t.ENDLESS)
    file = os.path.join(folder, 'prompt')
    with open(file, 'wb') as f:
        f.write('Größe\n'.encode())
    args = ['-t', 1, '-n', 8, *t.ENDLESS]
    t.expect('-f FILE', t.run('run', m, '-f', file, *args), 0, want.stdout)
    t.expect('-p - reads standard input', t.run('run', m, '-p', '-', *args, input='Größe\n'.encode()), 0, want.stdout)
    t.expect('-f that is not there', t.run('run', m, '-f', file + 'x', *args), 1, b'', file + 'x')
    t.expect('-f that is a folder', t.run('run', m, '-f', folder, *args), 1, b'', folder)
    t.expect('no text', t.run('run', m), 2, b'', 'a text is wanted')
    t.expect('two texts', t.run('run', m, '-p', 'a', '-f', file), 2, b'', 'one is wanted')
    r = t.run('run', m, '-p', 'a', '--chat', '--special')
    t.expect('--special with --chat', r, 2, b'', 'never a control token')
    r = t.run('run', m, '-p', '', *args)
    t.check('an empty text begins with the start token', r.returncode == 0 and r.stdout, t.why(r))
    t.expect('an empty text without a start token', t.run('run', no_bos, '-p', '', *args), 1, b'', 'no start token')
    # Markers are text unless asked for: 12 tokens against one.
    r = t.run('run', m, '-t', 1, '-p', t.SPECIAL[t.START], '-n', 1, '-v')
    t.expect('markers are plain text', r, 0, None, f' {len(t.SPECIAL[t.START])} tokens, ')
    r = t.run('run', m, '-t', 1, '-p', t.SPECIAL[t.START], '-n', 1, '-v', '--special')
    t.expect('--special: markers are tokens', r, 0, None, ' 1 tokens, ')
    # Rendered by the template: START user \n x END \n START assistant \n, a byte a token.
    r = t.run('run', m, '-t', 1, '-p', 'x', '-n', 4, '-v', '--chat', *t.ENDLESS)
    n = 1 + len('user\nx') + 1 + len('\n') + 1 + len('assistant\n')
    chat = t.expect('--chat puts the text into the template', r, 0, None, f' {n} tokens, ') and r.stdout
    text = '<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n'
    r = t.run('run', m, '-t', 1, '-p', text, '-n', 4, '--special', *t.ENDLESS)
    t.expect('--chat is what its template says', r, 0, chat)
    r = t.run('run', m, '-t', 1, '-p', 'x', '-n', 4, '-v', '--chat', '--system', 'Be.', *t.ENDLESS)
    t.expect('--system comes first', r, 0, None, f' {n + 1 + len("system") + 1 + len("Be.") + 1 + 1} tokens, ')
    r = t.run('run', m, '-t', 1, '-p', text, '-n', 4, '-v', '--chat', *t.ENDLESS)
    t.expect('a message never becomes a control token', r, 0, None, f' {n - 1 + len(text)} tokens, ')


def sampling(m, folder):
    hot = ['run', m, '-p', 'hello', '-n', 40, '--temp', 2, '--top-k', 0, '--top-p', 1, '--min-p', 0, *t.ENDLESS]
    texts = [t.run(*hot, '-t', 1, '--seed', seed).stdout for seed in range(8)]
    t.check('any bytes are printed as valid UTF-8', all(utf8(x) and x for x in texts), texts)
    t.check('replacement characters are among them', any('\ufffd'.encode() in x for x in texts), texts)
    t.check('other seeds give other texts', len(set(texts)) > 1)
    t.check('the same seed gives the same text', t.run(*hot, '-t', 1, '--seed', 3).stdout == texts[3])
    t.check('for any threads', t.run(*hot, '-t', 3, '--seed', 3).stdout == texts[3])
    t.check('for any batch', t.run(*hot, '-t', 1, '--seed', 3, '--batch', 2).stdout == texts[3])
    t.expect('--temp out of range', t.run('run', m, '-p', 'x', '--temp', -1), 2, b'', ['--temp', '0 to 100'])
    t.expect('--temp nan', t.run('run', m, '-p', 'x', '--temp', 'nan'), 2, b'', '--temp')
    t.expect('--kv of no type', t.run('run', m, '-p', 'x', '--kv', 'x7'), 1, b'', 'x7')
    t.expect('--activations of no mode', t.run('run', m, '-p', 'x', '--activations', 'slow'), 2, b'', 'exact')
    # The command line goes before the INI, wherever -c stands.
    ini = os.path.join(folder, 'a.ini')
    with open(ini, 'w') as f:
        f.write(f'[model]\npath = {m}\n[sampling]\nn = 3\n[runtime]\nthreads = 1\n')
    letters = t.letters_only(os.path.join(folder, 'letters.ini'))
    with open(ini, 'a') as f:
        f.write(f'[plugins]\ninclude = {letters}\n')
    r = t.run('run', '-c', ini, '-p', 'x')
    good = r.returncode == 0 and len(r.stdout) == 3 and r.stdout.islower()
    t.check('the INI gives model and settings', good, t.why(r))
    for args in (['-n', 5, '-c', ini], ['-c', ini, '-n', 5], ['-c', ini, '--set', 'sampling.n=5']):
        r = t.run('run', *args, '-p', 'x')
        good = r.returncode == 0 and len(r.stdout) == 5
        t.check(f'the command line goes first: {args[0]}, {args[2]}', good, t.why(r))


def stop_strings(m, folder):
    ini = t.letters_only(os.path.join(folder, 'letters.ini'))
    base = ['run', m, '-t', 1, '-c', ini, '-p', 'hello', '-n', 40, '--temp', 1, '--seed', 5]
    text = t.run(*base).stdout.decode()
    t.check('forty letters', len(text) == 40, text)
    for stop in (text[10:12], text[20:24], text[0], text[-3:]):     # each spans tokens: a letter is one
        r = t.run(*base, '--stop', stop)
        t.expect(f'stop string of {len(stop)} letters', r, 0, text[:text.index(stop)].encode())
    r = t.run(*base, '--stop', text[10:13] + 'QQ')
    t.expect('only the beginning of a stop string', r, 0, text.encode())
    r = t.run(*base, '--stop', 'QQ', '--stop', text[12:15])
    t.expect('a second stop string', r, 0, text[:text.index(text[12:15])].encode())


def broken_outputs(m):
    endless = ['run', m, '-t', 1, '-p', 'x', '--context', 1000000, *t.ENDLESS]
    w = t.closed_pipe()
    r = subprocess.run([t.PANTHEON, *map(str, endless)], stdout=w, stderr=subprocess.PIPE, timeout=120)
    os.close(w)
    good = r.returncode == 1 and r.stderr == b''
    t.check('closed pipe: ends quietly with failure', good, f'{r.returncode} {r.stderr}')
    with open('/dev/full', 'wb') as full:
        r = subprocess.run([t.PANTHEON, *map(str, endless)], stdout=full, stderr=subprocess.PIPE, timeout=120)
    t.check('full disk is said', r.returncode == 1 and b'No space left' in r.stderr, f'{r.returncode} {r.stderr}')
    # Ctrl-C: what was printed is whole, and the status tells.
    p = subprocess.Popen([t.PANTHEON, *map(str, endless)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = os.read(p.stdout.fileno(), 1)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    t.check('Ctrl-C ends it cleanly', p.returncode == 130 and utf8(first + out) and err == b'', f'{p.returncode} {err}')
    # Without its reader nothing more happens than a second Ctrl-C.
    p = subprocess.Popen([t.PANTHEON, *map(str, endless)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.read(p.stdout.fileno(), 1)
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    t.check('a second Ctrl-C ends it in any case', p.returncode in (130, -signal.SIGINT), f'{p.returncode} {err}')


def read_until(fd, text, seconds=100):
    """What comes until `text` has come, or the other side is closed."""
    got, end = b'', time.time() + seconds
    while time.time() < end and (text is None or text not in got):
        if select.select([fd], [], [], 0.2)[0]:
            try:
                piece = os.read(fd, 4096)
            except OSError:     # Linux says so in place of an end
                break
            if not piece:
                break
            got += piece
    return got


def on_terminal(args):
    """Status and what a terminal got, with CR LF as LF."""
    master, slave = pty.openpty()
    p = subprocess.Popen([t.PANTHEON, *map(str, args)], stdout=slave, stderr=slave, stdin=slave)
    os.close(slave)
    got = read_until(master, None)
    os.close(master)
    return p.wait(), got.replace(b'\r\n', b'\n')


def terminal(m, folder):
    ini = t.letters_only(os.path.join(folder, 'letters.ini'))
    base = ['run', m, '-t', 1, '-c', ini, '-p', 'hello', '-n', 10]
    text = t.run(*base).stdout
    status, got = on_terminal(base)
    t.check('a terminal gets a newline at the end', status == 0 and got == text + b'\n', f'{status} {got!r} {text!r}')
    status, got = on_terminal(base + ['--set', 'sampling.n=0'])
    t.check('and none after nothing', status == 0 and got == b'', f'{status} {got!r}')
    escape = t.FIRST_BYTE + 27
    status, got = on_terminal(['run', m, '-t', 1, '-p', 'x', '-n', 2, '--set', f'sampling.bias.{escape}=1000'])
    t.check('a model cannot command a terminal', status == 0 and got == b'\\x1b\\x1b\n', f'{status} {got!r}')
    r = t.run('run', m, '-t', 1, '-p', 'x', '-n', 2, '--set', f'sampling.bias.{escape}=1000')
    t.expect('a file gets its bytes as they are', r, 0, b'\x1b\x1b')


def progress():
    model = os.environ.get('PN_MODEL')
    if not model:
        t.skip('progress of a long prompt', 'download of the model is missing')
        return
    master, slave = pty.openpty()
    args = ['run', model, '-p', 'word ' * 2000, '-n', '1', '--batch', '4', '-t', '1']
    p = subprocess.Popen([t.PANTHEON, *args], stdout=subprocess.PIPE, stderr=slave, stdin=slave,
                         env=dict(os.environ, PANTHEON_CPU='c'))
    os.close(slave)
    got = read_until(master, b'reading the prompt: ')
    p.send_signal(signal.SIGINT)
    out = p.stdout.read()
    got += read_until(master, None)
    os.close(master)
    p.stdout.close()
    t.check('a terminal sees how far a long prompt is', b'reading the prompt: ' in got, got[:300])
    t.check('Ctrl-C ends the reading and wipes the line', p.wait() == 130 and out == b'' and got.endswith(b'\r\x1b[K'),
            f'{p.returncode} {out!r} {got[-300:]!r}')


def main():
    with t.folder() as folder:
        m = t.tiny(os.path.join(folder, 'tiny.gguf'))
        no_bos = t.tiny(os.path.join(folder, 'no-bos.gguf'), bos=False)
        where_it_ends(m)
        prompts(m, no_bos, folder)
        sampling(m, folder)
        stop_strings(m, folder)
        broken_outputs(m)
        terminal(m, folder)
        progress()
    t.finish()


main()

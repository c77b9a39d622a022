#!/usr/bin/env python3
"""`pantheon chat`: turns that go on where the last ended, commands, a full context, and lines edited on a terminal."""
import os
import pty
import re
import select
import stat
import subprocess
import time

import _tiny as t

OPEN, CLOSE = '<|im_start|>', '<|im_end|>\n'


def chat(m, lines, *args, **more):
    return t.run('chat', m, '-t', 1, *args, input='\n'.join(lines).encode() + b'\n', **more)


def rendered(turns):
    """The whole conversation as text, up to the opening of an answer."""
    return ''.join(f'{OPEN}{role}\n{text}{CLOSE}' for role, text in turns) + f'{OPEN}assistant\n'


QUESTIONS = ['hello', 'and what then', 'x']


def answers(label, m, args):
    r = chat(m, QUESTIONS, *args)
    lines = r.stdout.decode().split('\n')
    t.check(f'{label}: three answers', r.returncode == 0 and r.stderr == b'' and len(lines) == 4, t.why(r))
    return lines[:-1]


def turns(label, m, args):
    """Each answer is what the whole conversation gives at once: nothing is lost or doubled between turns."""
    past = [('system', 'Be brief.')] if '--system' in args else []
    wrong, got = [], answers(label, m, args)
    for question, answer in zip(QUESTIONS, got):
        past.append(('user', question))
        whole = t.run('run', m, '-t', 1, '--special', '-p', rendered(past), *args).stdout.decode()
        if whole != answer:
            wrong.append(f'{answer!r} in place of {whole!r}')
        past.append(('assistant', answer))
    t.check(f'{label}: the same as all at once', not wrong, '; '.join(wrong))
    return got


def all_turns(m, ini):
    base = ['-c', ini, '--temp', 0]
    turns('ended by -n', m, base + ['-n', 9])
    turns('with a system message', m, base + ['-n', 9, '--system', 'Be brief.'])
    # The end token is made as likely as it takes to come now and then.
    for bias in range(0, 40):
        args = base + ['-n', 30, '--set', f'sampling.bias.{t.STOP}={bias / 4}']
        lengths = [len(line) for line in chat(m, QUESTIONS, *args).stdout.decode().split('\n')[:-1]]
        if any(1 < n < 30 for n in lengths):
            break
    t.check('an answer that the model ends', any(1 < n < 30 for n in lengths), lengths)
    turns('ended by the model', m, args)
    # What follows the last letter shown is in the session and not in the text, so nothing to compare with.
    got = answers('ended by a stop string', m, base + ['-n', 30, '--stop', 'e', '--repeat-penalty', 1.3])
    t.check('no stop string is shown', not any('e' in line for line in got), got)


def commands(m, ini):
    base = ['-c', ini, '-n', 6, '--temp', 0]
    first = chat(m, ['hello'], *base)
    r = chat(m, ['hello', 'more', '/reset', 'hello'], *base)
    a = r.stdout.decode().split('\n')
    t.check('/reset begins anew', r.returncode == 0 and a[0] == a[2] == first.stdout.decode().strip(), t.why(r))
    r = chat(m, ['hello', '/system Be brief.', 'hello'], *base)
    with_system = chat(m, ['hello'], *base, '--system', 'Be brief.')
    t.check('/system changes it and begins anew', r.stdout == first.stdout + with_system.stdout, t.why(r))
    r = chat(m, ['/system', '/system new', '/system', '/system -', '/system'], *base, '--system', 'first')
    said = re.findall(r'system message: (\w+)', r.stderr.decode())
    t.check('/system shows it', said == ['first', 'new', 'first'], t.why(r))
    t.expect('/system without one', chat(m, ['/system'], *base), 0, b'', 'no system message is set')
    t.expect('/quit ends', chat(m, ['/quit', 'hello'], *base), 0, b'')
    t.expect('/help', chat(m, ['/help'], *base), 0, b'', ['/reset', '/system', '/stats', '/quit'])
    t.expect('/stats', chat(m, ['hello', '/stats'], *base), 0, None, ['2 messages', 'of 256 tokens', 'decode'])
    t.expect('unknown command', chat(m, ['/rest'], *base), 1, b'', ["'/rest'", "did you mean '/reset'?"])
    r = chat(m, ['//hello'], *base, '-v')
    n = len(OPEN + 'user\n/hello' + CLOSE + OPEN + 'assistant\n') - 2 * len(OPEN) - len(CLOSE) + 1 + 3
    t.expect('two slashes are one of the message', r, 0, None, f' {n} tokens, ')
    t.check('empty lines are nothing', chat(m, ['', '  ', 'hello', ''], *base).stdout == first.stdout)
    t.check('CR LF', chat(m, ['hello\r'], *base).stdout == first.stdout)
    r = t.run('chat', m, '-t', 1, *base, input=b'hello')
    t.check('a last line without an end', r.stdout == first.stdout, t.why(r))
    t.expect('no line at all', t.run('chat', m, *base, input=b''), 0, b'')


def full(m, ini):
    base = ['-c', ini, '--temp', 0, '--context', 64]
    r = chat(m, ['hello', 'more', '/reset', 'hello'], *base)
    a = r.stdout.decode().split('\n')
    t.check('a full context is said, and what does not fit is not sent', r.returncode == 1 and len(a) == 3 and
            b'the context of 64 tokens is full' in r.stderr and b'was not sent' in r.stderr, t.why(r))
    t.check('after /reset there is room', a[0] == a[1] and len(a[0]) > 10, a)
    r = chat(m, ['hello', 'x' * 100, 'more'], *base, '-n', 3)
    a = r.stdout.decode().split('\n')
    want = chat(m, ['hello', 'more'], *base, '-n', 3)
    t.check('a message that does not fit leaves the conversation as it was', r.returncode == 1 and
            r.stdout == want.stdout and want.returncode == 0 and b'100' not in r.stdout, t.why(r) + t.why(want))


def broken(m, ini):
    w = t.closed_pipe()
    r = subprocess.run([t.PANTHEON, 'chat', m, '-c', ini, '-t', '1', '-n', '5'], input=b'hello\n' * 3, stdout=w,
                       stderr=subprocess.PIPE)
    os.close(w)
    good = r.returncode == 1 and r.stderr == b''
    t.check('closed pipe: ends quietly with failure', good, f'{r.returncode} {r.stderr}')
    plain = t.tiny(m + '.plain', template=False)
    t.expect('no template', t.run('chat', plain, input=b'x\n'), 1, b'', 'template')
    t.expect('no template, but role strings', t.run('chat', plain, '-n', 3, '--set', 'prompt.user_prefix=Q: ', '--set',
             'prompt.assistant_prefix=A: ', *t.ENDLESS, input=b'x\n'), 0)


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, args, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(t.PANTHEON, [t.PANTHEON, *map(str, args)], env)
        self.got = b''

    def type(self, keys):
        os.write(self.fd, keys)

    def wait(self, text, seconds=60):
        """Wait for text; returns whether it came, and forgets what came before its end."""
        end = time.time() + seconds
        while text not in self.got:
            if time.time() > end or not select.select([self.fd], [], [], 1)[0]:
                if time.time() > end:
                    return False
                continue
            try:
                piece = os.read(self.fd, 4096)
            except OSError:
                return False
            if not piece:
                return False
            self.got += piece
        self.got = self.got[self.got.index(text) + len(text):]
        return True

    def end(self):
        self.wait(b'\0never\0', 20)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status


def terminal(m, ini, folder):
    state = os.path.join(folder, 'state')
    env = dict(os.environ, XDG_STATE_HOME=state, TERM='xterm', LC_ALL='C.UTF-8')
    history = os.path.join(state, 'pantheon', 'history')
    answer = chat(m, ['hello'], '-c', ini, '-n', 6, '--temp', 0).stdout.strip()
    args = ['chat', m, '-t', 1, '-c', ini, '-n', 6, '--temp', 0]
    c = Terminal(args, env)
    t.check('terminal: a prompt', c.wait(b'> '))
    c.type(b'helo\x02l\r')                      # Ctrl-B: one to the left
    t.check('terminal: edited line, answer', c.wait(answer), c.got)
    t.check('terminal: next prompt', c.wait(b'> '))
    c.type(b'this is forgotten\x03')            # Ctrl-C at the prompt
    t.check('terminal: Ctrl-C forgets the line', c.wait(b'^C') and c.wait(b'> '), c.got)
    c.type('/système'.encode() + b'\r')
    t.check('terminal: characters of several bytes', c.wait('système'.encode()) and c.wait(b'no command'), c.got)
    t.check('terminal: next prompt', c.wait(b'> '))
    c.type(b'/reset\r')
    t.check('terminal: next prompt', c.wait(b'> '))
    c.type(b'\x1b[A\x1b[A\x1b[A\r')             # three up: hello
    t.check('terminal: history', c.wait(answer), c.got)
    t.check('terminal: next prompt', c.wait(b'> '))
    c.type(b'\x04')
    t.check('terminal: Ctrl-D ends', c.end() == 0)
    mode = stat.S_IMODE(os.stat(history).st_mode) if os.path.exists(history) else 0
    t.check('history is kept for the user alone', mode == 0o600, oct(mode))
    t.check('nothing else is left there', os.listdir(os.path.dirname(history)) == ['history'])
    c = Terminal(args, env)
    c.wait(b'> ')
    c.type(b'\x1b[A\r')
    t.check('terminal: history of the last time', c.wait(answer), c.got)
    c.wait(b'> ')
    c.type(b'one \\\r')
    t.check('terminal: a line that goes on', c.wait(b'. '))
    c.type(b'two\r')
    t.check('terminal: and its answer', c.wait(b'> '))
    c.type(b'/quit\r')
    t.check('terminal: /quit', c.end() == 0)
    # Ctrl-C while an answer is made: back to the prompt, and the conversation goes on.
    c = Terminal(['chat', m, '-t', 1, '-c', ini, '--context', 1000000, '--temp', 1], env)
    c.wait(b'> ')
    c.type(b'hello\r')
    time.sleep(0.5)
    c.type(b'\x03')
    t.check('terminal: Ctrl-C ends an answer', c.wait(b'stopped') and c.wait(b'> '), c.got[-200:])
    c.type(b'/stats\r')
    t.check('terminal: what was said stays', c.wait(b'2 messages'), c.got)
    c.wait(b'> ')
    c.type(b'\x04')
    t.check('terminal: Ctrl-D ends', c.end() == 0)


def main():
    with t.folder() as folder:
        m = t.tiny(os.path.join(folder, 'tiny.gguf'))
        ini = t.letters_only(os.path.join(folder, 'letters.ini'))
        all_turns(m, ini)
        commands(m, ini)
        full(m, ini)
        broken(m, ini)
        terminal(m, ini, folder)
    t.finish()


main()

"""What the tests of the program share: reporting, running it, and a tiny random model whose tokens are single bytes,
made of the golden llama model and another vocabulary."""
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.environ.get('PN_ROOT') or os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.environ.get('PN_BUILD') or os.path.join(ROOT, 'build')
PANTHEON = os.environ.get('PANTHEON') or os.path.join(BUILD, 'pantheon')

failed = 0


def check(name, good, why=''):
    global failed
    if good:
        print(f'ok - {name}')
    else:
        failed += 1
        print(f'not ok - {name}: {why}')
    return bool(good)


def skip(name, why):
    print(f'skip - {name}: {why}')


def finish():
    sys.exit(1 if failed else 0)


def run(*args, **more):
    """The finished process; its stdout and stderr are bytes."""
    return subprocess.run([PANTHEON, *map(str, args)], capture_output=True, timeout=120, **more)


def why(r):
    return f'status {r.returncode}, stdout {r.stdout[:300]!r}, stderr {r.stderr.decode(errors="replace")[:500]}'


def expect(name, r, status=0, out=None, err=()):
    """Check status, standard output and parts of standard error at once."""
    err = [err] if isinstance(err, str) else err
    text = r.stderr.decode(errors='replace')
    good = r.returncode == status and (out is None or r.stdout == out) and all(e in text for e in err)
    return check(name, good, why(r) + (f', wanted {status} {out!r} {list(err)}'))


# ---- a tiny model ----

SCALAR = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: '?', 10: 'Q', 11: 'q', 12: 'd'}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        v = struct.unpack_from('<' + code, self.data, self.at)[0]
        self.at += struct.calcsize('<' + code)
        return v

    def string(self):
        n = self.take('Q')
        self.at += n
        return self.data[self.at - n:self.at]

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            item, n = self.take('I'), self.take('Q')
            return item, [self.value(item) for _ in range(n)]
        return self.take(SCALAR[kind])


def write_value(kind, v):
    if kind == 8:
        return struct.pack('<Q', len(v)) + v
    if kind == 9:
        return struct.pack('<IQ', v[0], len(v[1])) + b''.join(write_value(v[0], x) for x in v[1])
    return struct.pack('<' + SCALAR[kind], v)


def byte_symbols():
    """The printable character that stands for each byte in byte-level vocabularies."""
    kept = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    extra = iter(range(256, 512))
    return {b: chr(b if b in kept else next(extra)) for b in range(256)}


FIRST_BYTE = 3          # token of byte b is FIRST_BYTE + b
END, START, STOP = 0, 1, 2
SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>']
TEMPLATE = ("{% for message in messages %}"
            "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def tokens_of(text):
    return [FIRST_BYTE + b for b in text.encode()]


def tiny(path, bos=True, context=256, template=True):
    """Write a model of 320 tokens: three control tokens, the 256 bytes, and fillers that no text gives."""
    with open(os.path.join(ROOT, 'tests', 'data', 'graph', 'llama', 'model.gguf'), 'rb') as f:
        data = f.read()
    r = Reader(data)
    assert r.take('I') == 0x46554747
    version, n_tensors, n_values = r.take('I'), r.take('Q'), r.take('Q')
    values = {}
    for _ in range(n_values):
        key = r.string()
        kind = r.take('I')
        values[key] = (kind, r.value(kind))
    table = r.at
    for _ in range(n_tensors):
        r.string()
        for _ in range(r.take('I')):
            r.take('Q')
        r.take('I')
        r.take('Q')
    table = data[table:r.at]
    symbols = byte_symbols()
    tokens = SPECIAL + [symbols[b] for b in range(256)]
    tokens += [f'filler{i}' for i in range(320 - len(tokens))]
    values = {k: v for k, v in values.items() if not k.startswith(b'tokenizer.')}
    values[b'llama.context_length'] = (4, context)
    values[b'tokenizer.ggml.model'] = (8, b'gpt2')
    values[b'tokenizer.ggml.pre'] = (8, b'gpt-2')
    values[b'tokenizer.ggml.tokens'] = (9, (8, [t.encode() for t in tokens]))
    values[b'tokenizer.ggml.token_type'] = (9, (5, [3] * 3 + [1] * 317))
    values[b'tokenizer.ggml.merges'] = (9, (8, []))
    values[b'tokenizer.ggml.eos_token_id'] = (4, STOP)
    values[b'tokenizer.ggml.add_bos_token'] = (7, False)
    if template:
        values[b'tokenizer.chat_template'] = (8, TEMPLATE.encode())
    if bos:
        values[b'tokenizer.ggml.bos_token_id'] = (4, START)
    head = struct.pack('<IIQQ', 0x46554747, version, n_tensors, len(values))
    for key, (kind, v) in values.items():
        head += write_value(8, key) + struct.pack('<I', kind) + write_value(kind, v)
    head += table
    start = (r.at + 31) // 32 * 32
    with open(path, 'wb') as f:
        f.write(head + b'\0' * (-len(head) % 32) + data[start:])
    return path


def never(*ids):
    """Options that forbid tokens."""
    return [x for i in ids for x in ('--set', f'sampling.bias.{i}=-inf')]


# What generation may give: bytes, but neither control tokens nor fillers.
ENDLESS = never(*range(FIRST_BYTE), *range(FIRST_BYTE + 256, 320))


def letters_only(path):
    """An INI file with which only small letters are made."""
    with open(path, 'w') as f:
        f.write('[sampling]\n')
        for i in range(320):
            if not 97 <= i - FIRST_BYTE < 123:
                f.write(f'bias.{i} = -inf\n')
    return path


def closed_pipe():
    """The writing end of a pipe that nobody reads."""
    r, w = os.pipe()
    os.close(r)
    return w


def folder():
    return tempfile.TemporaryDirectory(prefix='pantheon-')

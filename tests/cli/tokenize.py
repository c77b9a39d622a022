#!/usr/bin/env python3
"""pantheon tokenize and detokenize: what they print, what they refuse, hostile vocabularies made here."""
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _tiny import ROOT, check, expect, finish, run, why


def string(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack('<Q', len(s)) + s


def value(v):
    if isinstance(v, bool):
        return struct.pack('<IB', 7, v)
    if isinstance(v, int):
        return struct.pack('<II', 4, v)
    if isinstance(v, (str, bytes)):
        return struct.pack('<I', 8) + string(v)
    if v and isinstance(v[0], int):
        return struct.pack('<IIQ', 9, 5, len(v)) + struct.pack(f'<{len(v)}i', *v)
    return struct.pack('<IIQ', 9, 8, len(v)) + b''.join(map(string, v))


def alphabet():
    """Byte-level characters: printable bytes stand for themselves, the others are numbered from U+0100."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in own]
    return [chr(b) if b in own else chr(256 + others.index(b)) for b in range(256)]


def vocabulary(path, more=(), merges=[], **keys):
    """A file that holds only a vocabulary: 256 bytes, then (text, kind) of `more`."""
    values = {'general.architecture': 'none', 'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'gpt-2',
              'tokenizer.ggml.tokens': alphabet() + [t for t, _ in more],
              'tokenizer.ggml.token_type': [1] * 256 + [k for _, k in more], 'tokenizer.ggml.merges': merges}
    values.update({'tokenizer.ggml.' + k: v for k, v in keys.items()})
    values = {k: v for k, v in values.items() if v is not None}
    with open(path, 'wb') as f:
        f.write(b'GGUF' + struct.pack('<IQQ', 3, 0, len(values)))
        f.write(b''.join(string(k) + value(v) for k, v in values.items()))
    return path


folder = tempfile.TemporaryDirectory()
at = lambda name: os.path.join(folder.name, name)
MORE = [('he', 1), ('<s>', 3), ('</s>', 3), ('\u0120he', 1)]
plain = vocabulary(at('plain.gguf'), MORE, ['h e', '\u0120 he'], bos_token_id=257, eos_token_id=258)
start = vocabulary(at('start.gguf'), MORE, ['h e'], bos_token_id=257, eos_token_id=258, add_bos_token=True,
                   add_eos_token=True)

expect('ids on one line', run('tokenize', plain, input=b'he he'), out=b'256 259\n')
expect('no text, no ids', run('tokenize', plain, input=b''), out=b'\n')
expect('any bytes', run('tokenize', plain, input=b'\0\xff'), out=b'0 239 191 189\n')
expect('markers are text', run('tokenize', plain, input=b'<s>'), out=b'60 115 62\n')
expect('markers by --special', run('tokenize', '--special', plain, input=b'<s>he'), out=b'257 256\n')
expect('start and end', run('tokenize', start, input=b'he'), out=b'257 256 258\n')
expect('--no-bos', run('tokenize', start, '--no-bos', input=b'he'), out=b'256\n')
expect('add_bos by --set', run('tokenize', start, '--set', 'tokenizer.add_bos=false', input=b'he'), out=b'256 258\n')
expect('pattern by --set', run('tokenize', plain, '--set', 'tokenizer.pattern=[^e]+', input=b'he'), out=b'104 101\n')
expect('pre by --set', run('tokenize', plain, '--set', 'tokenizer.pre=nonsense', input=b''), 1, b'', 'nonsense')

ini = at('model.ini')
open(ini, 'w').write('[model]\npath = plain.gguf\n[tokenizer]\nadd_bos = true\n')
expect('model of an INI file', run('tokenize', '-c', ini, input=b'he'), out=b'257 256\n')
open(ini, 'w').write('[runtime]\nthreads = 1\n')
expect('INI file without a model', run('tokenize', '-c', ini, input=b'he'), 1, b'', '[model] path')

expect('ids to bytes', run('detokenize', plain, input=b'256 259\n'), out=b'he he')
expect('no ids', run('detokenize', plain, input=b' \n'), out=b'')
expect('bytes of a split character', run('detokenize', plain, input=b'240 159\n166,153'), out=b'\xf0\x9f\xa6\x99')
expect('control tokens give nothing', run('detokenize', plain, input=b'257 104 258'), out=b'h')
expect('control tokens by --special', run('detokenize', plain, '--special', input=b'257 104 258'), out=b'<s>h</s>')
for text in [b'x', b'1x', b'-1', b'99999999999', b'1 2;3', b'1\x002']:
    expect(f'no ids: {text}', run('detokenize', plain, input=text), 1, err='token ids are wanted')
expect('an id too high', run('detokenize', plain, input=b'260'), 1, b'', ['260', '0 .. 259'])
everything = bytes(range(256)) * 3
r = run('tokenize', plain, input=everything.decode('latin-1').encode())
expect('there and back', run('detokenize', plain, input=r.stdout), out=everything.decode('latin-1').encode())
long = b'he' * 500000
r = run('tokenize', plain, input=long)
check('a megabyte without a space', r.returncode == 0 and len(r.stdout.split()) == 500000, why(r)[:300])

expect('help', run('tokenize', '--help'), 0)
expect('no model', run('tokenize', input=b''), 2, b'')
expect('two models', run('tokenize', plain, plain, input=b''), 2, b'')
expect('unknown option', run('tokenize', '--nonsense', plain, input=b''), 2, b'')
expect('--no-bos means nothing here', run('detokenize', '--no-bos', plain, input=b''), 2, b'')
expect('no such file', run('tokenize', at('absent.gguf'), input=b''), 1, b'', 'absent.gguf')

# ---- damaged vocabularies: a clean error, or a warning and an answer ----

bad = lambda name, **keys: vocabulary(at(name), MORE, **{'merges': ['h e'], **keys})
r = run('tokenize', bad('bos', bos_token_id=10**6, add_bos_token=True), input=b'he')
expect('start token outside', r, 0, b'256\n', 'bos_token_id')
r = run('tokenize', bad('eos', eos_token_id=2**32 - 1, add_eos_token=True), input=b'he')
expect('end token outside', r, 0, b'256\n', 'eos_token_id')
expect('kinds too few', run('tokenize', bad('kinds', token_type=[1, 1, 1]), input=b'he'), 1, b'',
       ['token_type', '3 entries'])
expect('no merges', run('tokenize', bad('merges', merges=None), input=b'he'), 1, b'', 'merges')
r = run('tokenize', bad('blank', merges=['he', 'h e']), input=b'he')
expect('a merge without a blank', r, 0, b'256\n', '1 of 2')
r = run('tokenize', bad('unknown', merges=['h zz', 'h e']), input=b'he')
expect('a merge of unknown tokens', r, 0, b'256\n', '1 of 2')
expect('no tokens', run('tokenize', bad('tokens', tokens=None), input=b'he'), 1, b'', 'tokens')
expect('unknown model', run('tokenize', bad('model', model='zzz'), input=b'he'), 1, b'', 'zzz')
expect('unknown pre', run('tokenize', bad('pre', pre='zzz'), input=b'he'), 1, b'', ['zzz', 'tokenizer.ggml.pre'])
expect('no pre', run('tokenize', bad('nopre', pre=None), input=b'he'), 0, b'256\n', 'pre-tokenizer')
huge = bad('huge', tokens=alphabet() + ['x' * (3 << 20), '<s>', '</s>', 'he'])
expect('a token of 3 MB', run('detokenize', huge, input=b'256'), 0, b'x' * (3 << 20))
spell = vocabulary(at('spell'), [('<s', 1), ('<s>', 3)], ['< s', '<s >'])
r = run('tokenize', spell, '--set', r'tokenizer.pattern=[\s\S]+', input=b'<s>')
expect('no merge makes a control token', r, 0, b'256 62\n')

# What is expected of the crafted files: text that standard error holds; status 0 gives ids.
CRAFTED = {'bpe_merge_empty': (0, '1 of 1'), 'bpe_merge_nospace': (0, '1 of 1'), 'bpe_merge_unknown': (0, '1 of 1'),
           'bpe_no_merges': (1, 'merges'), 'model_unknown': (1, 'zzz')}
vocab = os.path.join(ROOT, 'tests', 'data', 'vocab')
for name in sorted(os.listdir(vocab)):
    r = run('tokenize', '--special', os.path.join(vocab, name), input='a <s> z\u00e9'.encode())
    status, text = CRAFTED.get(name.removesuffix('.gguf'), (None, ''))
    good = r.returncode in (0, 1) if status is None else r.returncode == status
    check(f'crafted {name}', good and text in r.stderr.decode() and (r.returncode == 1 or r.stdout.split()), why(r))

finish()

#!/usr/bin/env python3
"""The real SmolLM2-135M-Instruct file against an independent program: token ids, logits, greedy text, at every level."""
import os

import _golden as g

NAMES = ['capital', 'chat-france', 'code', 'count']
UNSURE = 0.1        # a step whose two best logits are nearer than this may go either way
KL_MOST = 5e-5
FAST_MOST = 4.5e-3  # mean KL divergence of fast activations from exact ones
FAST_EVERY = 7      # tokens of which one is compared


def path(name):
    return os.path.join(g.DATA, 'smollm2', name)


def numbers(name, kind):
    with open(path(name)) as f:
        return [kind(x) for x in f.read().split()]


def text(name):
    with open(path(name), 'rb') as f:
        return f.read()


def main():
    model = os.environ.get('PN_MODEL')
    if not model:
        g.skip('smollm2', 'download of the model is missing (make model)')
        return
    for name in NAMES:
        ids(model, name)
    for level in g.levels():
        for name in NAMES:
            last_logits(model, name, level)
            every_step(model, name, level)
            greedy_text(model, name, level)
        demo(model, level)
        fast(model, level)
    stop_string(model)
    g.finish()


def ids(model, name):
    r = g.run(['tokenize', model, '--special'], input=text(name + '.prompt'))
    got = [int(x) for x in r.stdout.split()]
    g.check(f'{name}: ids of the prompt', r.returncode == 0 and got == numbers(name + '.ids', int),
            f'{got} {r.stderr.decode(errors="replace")[:300]}')


def last_logits(model, name, level):
    data, why = g.evaluate(model, numbers(name + '.ids', int), ['--last', '--activations', 'exact'], level)
    want = g.load(path(name + '.logits.f32'))
    if g.check(f'{name} at level {level}: logits', data is not None and len(data) == 4 * len(want), why):
        d = g.kl(want, g.floats(data))
        g.check(f'{name} at level {level}: KL divergence within {KL_MOST:g}', d <= KL_MOST, f'{d:.3g}')


def every_step(model, name, level):
    """Each step of the golden continuation, given those before it, so that one unsure step hides none after it."""
    prompt, greedy, gaps = numbers(name + '.ids', int), numbers(name + '.greedy', int), numbers(name + '.gaps', float)
    data, why = g.evaluate(model, prompt + greedy[:-1], ['--activations', 'exact'], level)
    if data is None:
        g.check(f'{name} at level {level}: steps', False, why)
        return
    all_logits = g.floats(data)
    v = len(all_logits) // (len(prompt) + len(greedy) - 1)
    wrong = []
    for i, (token, gap) in enumerate(zip(greedy, gaps)):
        at = (len(prompt) - 1 + i) * v
        row = all_logits[at:at + v]
        best = max(range(v), key=row.__getitem__)
        if best != token and gap >= UNSURE:
            wrong.append(f'step {i}: {best} in place of {token} (gap {gap})')
    g.check(f'{name} at level {level}: {len(greedy)} steps', not wrong, '; '.join(wrong))


def fast(model, level):
    """Fast activations against exact ones, over all prompts and their continuations."""
    total = count = 0
    for name in NAMES:
        tokens = numbers(name + '.ids', int) + numbers(name + '.greedy', int)
        both = [g.evaluate(model, tokens, ['--activations', mode], level) for mode in ('exact', 'fast')]
        if None in (both[0][0], both[1][0]):
            g.check(f'{name} at level {level}: fast activations', False, both[0][1] or both[1][1])
            return
        v = len(both[0][0]) // len(tokens)
        for i in range(FAST_EVERY - 1, len(tokens), FAST_EVERY):
            total += g.kl(*(g.floats(data[i * v:(i + 1) * v]) for data, _ in both))
            count += 1
    mean = total / count
    g.check(f'level {level}: mean KL divergence of fast activations within {FAST_MOST:g}, and not 0',
            0 < mean <= FAST_MOST, f'{mean:.3g} over {count} tokens')


def greedy_text(model, name, level):
    greedy, gaps = numbers(name + '.greedy', int), numbers(name + '.gaps', float)
    sure = next((i for i, gap in enumerate(gaps) if gap < UNSURE), len(gaps))
    if sure == 0:
        return
    r = g.run(['run', model, '--special', '-f', path(name + '.prompt'), '--temp', '0', '-n', str(sure)], level)
    d = g.run(['detokenize', model], input=' '.join(map(str, greedy[:sure])).encode())
    g.check(f'{name} at level {level}: text of {sure} tokens',
            r.returncode == 0 and d.returncode == 0 and r.stdout == d.stdout and len(r.stdout) > 0 and
            text(name + '.text').startswith(r.stdout.rstrip(b'\n')),
            f'{r.stdout!r} in place of {d.stdout!r}; {r.stderr.decode(errors="replace")[:300]}')


def demo(model, level):
    ini = os.path.join(g.ROOT, 'conf', 'smollm2.ini')
    r = g.run(['run', '-c', ini, model, '--chat', '-p', 'What is the capital of France?'], level)
    g.check(f'demo at level {level}: names Paris', r.returncode == 0 and b'Paris' in r.stdout,
            f'{r.stdout[:300]!r} {r.stderr.decode(errors="replace")[:300]}')


def stop_string(model):
    """A stop string that spans tokens: no part of it is shown."""
    r = g.run(['run', model, '-p', '1 2 3 4 5', '--temp', '0', '--stop', '7 8', '-n', '40'])
    g.check('stop string over a token border', r.returncode == 0 and r.stdout == b' 6 ', repr(r.stdout[:200]))
    r = g.run(['run', model, '-p', '1 2 3 4 5', '--temp', '0', '--stop', '7 x', '-n', '8'])
    g.check('what only begins like a stop string is shown', r.returncode == 0 and r.stdout == b' 6 7 8 9',
            repr(r.stdout[:200]))


if __name__ == '__main__':
    main()

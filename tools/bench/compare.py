#!/usr/bin/env python3
"""Measures `pantheon bench` and llama.cpp's `llama-bench` in turns on the same files, and prints a Markdown table.

Each round runs every program once on a file, in an order that turns round from one round to the next; a ratio is taken
within a round, so that what slows the machine for a while slows both, and the table has the medians of all rounds.
Both get the same number of threads and their own defaults otherwise. The file is read once before, so it is in memory.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEER = "llama.cpp"
NUMBERS = {"i8": "8-bit", "i16": "16-bit", "f32": "float"}


def say(text):
    print("compare: " + text, file=sys.stderr, flush=True)


def busy_seconds():
    """Processor seconds of the whole machine that something used; None where the system does not tell."""
    try:
        with open("/proc/stat") as f:
            n = [int(x) for x in f.readline().split()[1:]]
    except (OSError, ValueError):
        return None
    return (sum(n[:8]) - n[3] - n[4]) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


class Others:
    """How much of the machine others use between begin and end, in processors."""

    def __init__(self):
        self.at, self.busy, self.ours = time.monotonic(), busy_seconds(), children_seconds()

    def used(self):
        busy, seconds = busy_seconds(), time.monotonic() - self.at
        if busy is None or self.busy is None or seconds <= 0:
            return None
        return max(0.0, busy - self.busy - (children_seconds() - self.ours)) / seconds


def wait_for_quiet(o):
    """Returns when others used less than a twentieth of a processor for a second, or after --wait seconds."""
    until = time.monotonic() + o.wait
    while time.monotonic() < until:
        others = Others()
        time.sleep(1)
        used = others.used()
        if used is None or used < 0.05:
            return


def run(command):
    r = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if r.returncode != 0:
        lines = r.stderr.decode("utf-8", "replace").strip().splitlines()
        sys.exit(f"compare: {' '.join(command)}\ncompare: failed ({r.returncode}): " + "\n".join(lines[-5:]))
    try:
        return json.loads(r.stdout)
    except ValueError as e:
        sys.exit(f"compare: {' '.join(command)}\ncompare: printed no JSON: {e}")


def run_peer(o, path):
    """{part: tokens per second} and what it says about itself."""
    out = run([o.peer, "-m", path, "-t", str(o.threads), "-p", str(o.prompt), "-n", str(o.decode),
               "-r", str(o.repeats), "-o", "json", *o.peer_args.split()])
    speeds = {}
    for test in out:
        speeds["decode" if test["n_gen"] else "prompt"] = statistics.median(test["samples_ts"])
    return speeds, {k: out[0].get(k) for k in ("flash_attn", "type_k", "n_ubatch", "repack")}


def run_pantheon(o, path, mode):
    out = run([o.pantheon, "bench", path, "-t", str(o.threads), "-p", str(o.prompt), "-n", str(o.decode),
               "-r", str(o.repeats), "--activations", mode, "--limits", "--json"])
    return {part: out[part]["tokens_per_second"] for part in ("prompt", "decode") if part in out}, out


def in_memory(path):
    with open(path, "rb", buffering=0) as f:
        while f.read(1 << 24):
            pass


def measure(o, path):
    """All rounds of a file: {program: {part: [tokens per second]}}, the last reports, how much others used."""
    programs = [PEER] + o.activations
    speeds = {p: {} for p in programs}
    reports = {p: [] for p in programs}
    others = []
    in_memory(path)
    for r in range(o.rounds):
        for p in programs if r % 2 == 0 else programs[::-1]:
            wait_for_quiet(o)
            meter = Others()
            got, report = run_peer(o, path) if p == PEER else run_pantheon(o, path, p)
            used = meter.used()
            if used is not None:
                others.append(used)
            reports[p].append(report)
            for part, speed in got.items():
                speeds[p].setdefault(part, []).append(speed)
            say(f"{os.path.basename(path)} round {r + 1} of {o.rounds}: {p} " +
                ", ".join(f"{part} {speed:.1f}" for part, speed in got.items()) +
                (f" tokens/s; others used {used:.2f} processors" if used is not None else " tokens/s"))
    return speeds, reports, others


def share(report, part):
    r = report[part]
    if part == "decode":
        return r["share_of_read_bandwidth"], "reads"
    return r["share_of_multiply_adds"], NUMBERS[r["arithmetic"]]


def summary(o, path):
    """What was measured on a file, as one object."""
    speeds, reports, others = measure(o, path)
    result = {"file": os.path.basename(path), "bytes": os.path.getsize(path), "others": others, "parts": {}}
    for part in ("prompt", "decode"):
        if part not in speeds[PEER]:
            continue
        rows = result["parts"][part] = {PEER: {"samples": speeds[PEER][part],
                                               "median": statistics.median(speeds[PEER][part])}}
        for mode in o.activations:
            mine = speeds[mode][part]
            ratios = [a / b for a, b in zip(mine, speeds[PEER][part])]
            shares = [share(r, part) for r in reports[mode]]
            rows[mode] = {"samples": mine, "median": statistics.median(mine), "ratio": statistics.median(ratios),
                          "ratios": ratios, "share_of_limit": statistics.median(s for s, _ in shares),
                          "limit": shares[0][1]}
    limits = [r["limits"] for mode in o.activations for r in reports[mode]]
    result["limits"] = {k: statistics.median(x[k] for x in limits) for k in limits[0]}
    mine = reports[o.activations[0]][-1]
    result["pantheon"] = {"version": mine["version"], "features": mine["machine"]["features"], "kv": mine["kv"],
                          "batch": mine["batch"],
                          "kernels": sorted({k["name"] for m in o.activations for k in reports[m][-1]["kernels"]})}
    result["peer"] = reports[PEER][-1]
    return result


def spread(values):
    return f"{min(values):.2f} to {max(values):.2f}"


def peer_version(o):
    """What tools/bench/peers.sh says that it built."""
    try:
        with open(os.path.join(os.path.dirname(os.path.dirname(o.peer)), "version")) as f:
            return f.read().strip()
    except OSError:
        return "(unknown)"


def flash(peer):
    return {"-1": "auto", "0": "off", "1": "on"}.get(str(peer.get("flash_attn")), "unknown")


def table(o, results):
    """The report in Markdown."""
    first = results[0]
    peer = first["peer"]
    out = [f"Tokens per second, medians of {o.rounds} rounds; {o.threads} threads; prompt of {o.prompt} tokens, "
           f"{o.decode} tokens decoded. CPU features: {first['pantheon']['features'] or 'none beyond the base'}.",
           f"{PEER} {peer_version(o)}, flash attention {flash(peer)}"
           f"{' (default)' if '-fa' not in o.peer_args else ''}, cache {peer.get('type_k')}; "
           f"Pantheon {first['pantheon']['version']}, cache {first['pantheon']['kv']}. "
           "A ratio above 1 says that Pantheon is faster; in brackets: over the rounds."]
    head = ["file", "", PEER]
    for mode in o.activations:
        head += [mode, "ratio", "share of the limit"]
    rows = [head, ["---"] * len(head)]
    for r in results:
        for part, p in r["parts"].items():
            row = [r["file"], part, f"{p[PEER]['median']:.1f}"]
            for mode in o.activations:
                m = p[mode]
                row += [f"{m['median']:.1f}", f"**{m['ratio']:.2f}** ({spread(m['ratios'])})",
                        f"{100 * m['share_of_limit']:.0f} % of {m['limit']}"]
            rows.append(row)
    out += ["", *("| " + " | ".join(row) + " |" for row in rows), ""]
    limits = {k: statistics.median(r["limits"][k] for r in results) * 1e-9 for k in first["limits"]}
    out.append("Limits measured in the same runs: {:.1f} GB/s read; {:.0f} (8-bit), {:.0f} (16-bit), {:.0f} (float) "
               "10^9 multiply-adds a second.".format(*(limits[k] for k in (
                   "read_bytes_per_second", "i8_multiply_adds_per_second", "i16_multiply_adds_per_second",
                   "f32_multiply_adds_per_second"))))
    others = [x for r in results for x in r["others"]]
    if others:
        out.append(f"Meanwhile other programs used {statistics.mean(others):.2f} of {os.cpu_count()} processors on "
                   f"average, {max(others):.2f} at most" + ("." if statistics.mean(others) < 0.1 else
                                                            ": not a quiet machine, so these are no final figures."))
    return "\n".join(out)


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("files", nargs="+", metavar="FILE.gguf")
    p.add_argument("-t", "--threads", type=int, default=2, help="of both (2)")
    p.add_argument("-p", "--prompt", type=int, default=512, help="tokens of the prompt (512)")
    p.add_argument("-n", "--decode", type=int, default=64, help="tokens decoded (64)")
    p.add_argument("--rounds", type=int, default=5, help="runs of each program on each file (5)")
    p.add_argument("-r", "--repeats", type=int, default=1, help="measurements per run, after a warm-up (1)")
    p.add_argument("--activations", default="exact,fast", help="modes of Pantheon, with commas (exact,fast)")
    p.add_argument("--wait", type=float, default=0, metavar="SECONDS",
                   help="before each run wait at most this long for others to leave the machine alone (0)")
    p.add_argument("--pantheon", default=os.path.join(ROOT, "build", "pantheon"), help="(build/pantheon)")
    p.add_argument("--peer", default=os.path.join(ROOT, "build", "peers", "bin", "llama-bench"),
                   help="(build/peers/bin/llama-bench)")
    p.add_argument("--peer-args", default="", metavar="ARGS", help='more for llama-bench, such as "-fa on"')
    p.add_argument("--json", action="store_true", help="everything measured as JSON instead")
    o = p.parse_args()
    o.activations = o.activations.split(",")
    if unknown := set(o.activations) - {"exact", "fast"}:
        p.error(f"--activations: '{unknown.pop()}' is neither exact nor fast")
    if min(o.rounds, o.repeats, o.threads) < 1 or min(o.prompt, o.decode) < 0 or o.prompt + o.decode == 0:
        p.error("counts are at least 1, and -p or -n")
    for path, how in (*((f, "") for f in o.files), (o.pantheon, "; run make"),
                      (o.peer, "; run tools/bench/peers.sh")):
        if not os.path.isfile(path):
            p.error(f"{path} is missing{how}")
    return o


def main():
    o = options()
    results = [summary(o, f) for f in o.files]
    if o.json:
        print(json.dumps({"threads": o.threads, "prompt": o.prompt, "decode": o.decode, "rounds": o.rounds,
                          "repeats": o.repeats, "peer": peer_version(o), "processors": os.cpu_count(), "files": results}, indent=1))
    else:
        print(table(o, results))


main()

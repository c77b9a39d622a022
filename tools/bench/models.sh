#!/bin/sh
# models.sh: makes the files to measure with, under build/peers/models: a model of 1.2 billion random weights, quantized
# by the peer's tool (tools/bench/peers.sh builds it) to each type named, or to Q4_K_M Q4_0 Q8_0 Q6_K.
#
# Prints the files. Needs 6 GiB of disk: 4 stay. What is there already is left alone.
set -eu

cd "$(dirname "$0")/../.."
models=build/peers/models
quantize=build/peers/bin/llama-quantize
whole=$models/random-1.2b.F16.gguf
types=${*:-Q4_K_M Q4_0 Q8_0 Q6_K}

say() { echo "models: $*" >&2; }

mkdir -p "$models"
trap 'rm -f "$whole" "$models"/*.part' EXIT
trap 'exit 1' HUP INT TERM

missing=
for t in $types; do
    [ -f "$models/random-1.2b.$t.gguf" ] || missing="$missing $t"
done
if [ -n "$missing" ]; then
    [ -x "$quantize" ] || { say "$quantize is missing; run tools/bench/peers.sh"; exit 1; }
    free=$(df -Pk "$models" | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$free" -ge 6144 ] || { say "$models has $free MiB of disk left, and 6144 are wanted"; exit 1; }
    vocabulary=$(scripts/fetch-vocab.sh)/ggml-vocab-llama-bpe.gguf
    say "writing random weights (2.4 GiB)"
    python3 tools/bench/random_model.py "$whole" "$vocabulary"
fi
for t in $missing; do
    file=$models/random-1.2b.$t.gguf
    say "quantizing to $t"
    "$quantize" "$whole" "$file.part" "$t" >"$models/quantize.log" 2>&1 ||
        { tail -n 5 "$models/quantize.log" >&2; say "llama-quantize failed; see $models/quantize.log"; exit 1; }
    mv "$file.part" "$file"
done
for t in $types; do
    echo "$models/random-1.2b.$t.gguf"
done

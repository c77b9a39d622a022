#!/bin/sh
# deps.sh: finds the Debian packages that a build needs and that are missing; installs them when asked.
#
#   deps.sh check GROUP...     says what is missing, installs nothing
#   deps.sh install GROUP...   installs what is missing (needs no network when nothing is)
#
# Groups: build (make all), model (fetching the demo's model), test (make test), clang (clang's sanitizers and fuzzer).
# What is there is found by trying it, not by asking dpkg: a tool may come from elsewhere.
set -eu

mode=$1
shift
groups=" $* "
missing=

in_group() { case $groups in *" $1 "*) return 0 ;; esac; return 1; }
lacks() { case " $missing " in *" $1 "*) ;; *) missing="$missing $1" ;; esac; }
tool() { command -v "$1" >/dev/null 2>&1 || lacks "$2"; }

CC=${CC:-gcc}
# Headers are tried with whichever compiler there is.
compiler=
for c in "${CC%% *}" gcc cc clang-14; do
    [ -n "$compiler" ] || ! command -v "$c" >/dev/null 2>&1 || compiler=$c
done

# header FILE PACKAGE: without a compiler, look where Debian puts headers.
header() {
    if [ -n "$compiler" ]; then
        printf '#include <stddef.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include <stdint.h>\n%s\n#include <%s>\n' \
            '#define PCRE2_CODE_UNIT_WIDTH 8' "$1" | $compiler -E -x c - >/dev/null 2>&1 || lacks "$2"
    else
        [ -e "/usr/include/$1" ] || lacks "$2"
    fi
}

if in_group build; then
    case ${CC%% *} in
        clang-*) tool "$CC" "$CC" ;;
        *-linux-gnu*-gcc) tool "$CC" "gcc-${CC%-gcc}" ;;
        *) tool "${CC%% *}" gcc ;;
    esac
    tool ar binutils
    header stdio.h libc6-dev
    header ini.h libinih-dev
    header uthash.h uthash-dev
    header pcre2.h libpcre2-dev
    header utf8proc.h libutf8proc-dev
    header histedit.h libedit-dev
fi
if in_group model; then
    tool python3 python3
    # A venv can bring its own pip.
    python3 -c 'import pip' >/dev/null 2>&1 || python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || lacks python3-pip
fi
if in_group test; then
    header cmocka.h libcmocka-dev
    tool python3 python3
    tool pkg-config pkg-config
    tool g++ g++
    tool setarch util-linux
fi
if in_group clang; then
    tool clang-14 clang-14
    tool llvm-symbolizer-14 llvm-14
    if command -v clang-14 >/dev/null 2>&1; then
        dir=$(clang-14 -print-resource-dir)
        ls "$dir"/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 || lacks libclang-rt-14-dev
        [ -e "$dir/include/omp.h" ] || lacks libomp-14-dev
    else
        lacks libclang-rt-14-dev
        lacks libomp-14-dev
    fi
fi

missing=${missing# }
[ -n "$missing" ] || exit 0

command="apt-get update && apt-get install -y --no-install-recommends $missing"
if [ "$mode" = check ]; then
    echo "deps: missing Debian packages: $missing" >&2
    echo "deps: run \`make deps\` to install them" >&2
    exit 1
fi

by_hand() {
    echo "deps: $1" >&2
    echo "deps: as root, run: $command" >&2
    echo "deps: (on another system, install what gives the same headers and tools)" >&2
    exit 1
}

echo "deps: missing Debian packages: $missing"
command -v apt-get >/dev/null 2>&1 || by_hand "this system has no apt-get"
sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || by_hand "not root, and there is no sudo"
    sudo=sudo
    # Without a terminal sudo cannot ask for a password.
    [ -t 0 ] || sudo="sudo -n"
    $sudo true || by_hand "sudo did not permit it"
fi
echo "deps: installing them"
# One broken source in the lists is no reason to stop; what counts is whether the packages install.
$sudo apt-get -q -o DPkg::Lock::Timeout=300 update || echo "deps: apt-get update failed; trying all the same" >&2
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends $missing || by_hand "apt-get failed (no network?)"

#!/bin/bash
# run.sh: runs the test programs and scripts, shows the output of those that failed, and sums up.
#
#   tests/run.sh [unit] [checkasm] [scripts] [fuzz]
#
# Called by `make test`, which gives BUILD, SAN, FILTER, CI, EMULATOR, MODEL and CC. How a test reports is in
# tests/README.md. The last line is `N passed, M failed` (and `, K skipped`).
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

BUILD=${BUILD:-build}
SAN=${SAN:-}
FILTER=${FILTER:-}
CI=${CI:-}
[ $# -gt 0 ] || set -- unit checkasm scripts

# ---- what the tests are given -----------------------------------------------

mkdir -p "$BUILD/tests/out"
export PN_ROOT=$PWD
export PN_BUILD; PN_BUILD=$(cd "$BUILD" && pwd)
export PANTHEON=$PN_BUILD/pantheon
export PN_SAN=$SAN CI CC=${CC:-gcc}
export PN_MODEL=
model=${MODEL:-build/models/SmolLM2-135M-Instruct.Q4_1.gguf}
[ ! -f "$model" ] || PN_MODEL=$(readlink -f "$model")
export PN_SHARED=
[ ! -d ../shared ] || PN_SHARED=$(cd ../shared && pwd)

export CMOCKA_MESSAGE_OUTPUT=tap
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONPATH=$PWD/tests/lib
unset PANTHEON_PLUGIN_PATH MAKELEVEL MFLAGS
# A test that calls make must build with the same settings, so those stay; the job server does not reach it.
MAKEFLAGS=$(sed -E 's/ ?-j[0-9]*( --jobserver-[a-z]+=[^ ]*)?//' <<<"${MAKEFLAGS:-}")
export MAKEFLAGS BUILD SAN

# A home of their own: no plugin, history or setting of the user gets into a test. What python3 is may depend on
# the real home, so it is found first.
if py=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null); then PATH=$(dirname "$py"):$PATH; fi
out=$PN_BUILD/tests/out
export HOME=$PN_BUILD/tests/home TMPDIR=$PN_BUILD/tests/tmp
rm -rf "$HOME" "$TMPDIR"
mkdir -p "$HOME" "$TMPDIR"
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME

limit=${TEST_TIMEOUT:-300}
wrap=()
# cmocka catches these signals and tells only their names; a sanitizer tells where. (checkasm handles them itself.)
faults=handle_segv=2:handle_sigbus=2:handle_sigill=2:handle_sigfpe=2
unit_env=()
case $SAN in
address | fuzzer)
    # Hostile sizes must reach the code's own check, so the allocator returns NULL as malloc does. Not with
    # detect_stack_use_after_return: gcc 12 does not align its frames for the widest registers.
    ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
    export ASAN_OPTIONS UBSAN_OPTIONS=print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
    unit_env=(env ASAN_OPTIONS="$ASAN_OPTIONS:$faults")
    limit=$((limit * 3))
    ;;
undefined)
    export UBSAN_OPTIONS=print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
    unit_env=(env UBSAN_OPTIONS="$UBSAN_OPTIONS:$faults")
    limit=$((limit * 2))
    ;;
thread)
    # libomp itself is not instrumented; Archer tells the sanitizer about its forks, joins and barriers.
    export TSAN_OPTIONS=ignore_noninstrumented_modules=1:second_deadlock_stack=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}
    unit_env=(env TSAN_OPTIONS="$TSAN_OPTIONS:$faults")
    for a in /usr/lib/llvm-*/lib/libarcher.so; do [ ! -f "$a" ] || export OMP_TOOL_LIBRARIES=$a; done
    # Its shadow memory does not fit every layout that a kernel may pick at random.
    if setarch -R true 2>/dev/null; then wrap=(setarch -R); fi
    limit=$((limit * 5))
    ;;
esac
for s in /usr/bin/llvm-symbolizer /usr/bin/llvm-symbolizer-*; do
    [ ! -x "$s" ] || export ASAN_SYMBOLIZER_PATH=$s
done

# ---- running one ------------------------------------------------------------

passed=0 failed=0 skipped=0 ran=0
failures=()

# Reads a test's output; prints `passed failed skipped`, then a line for each failure and each skip.
# cmocka 1.1 writes a skip as `not ok N # SKIP name`; why is in the comment `# skip: why` before it.
tally() {
    awk -v ci="$CI" '
        function result(word, text) { print word " " text }
        function skip(text) {
            if (ci == "true" && text ~ /download/) { bad++; result("FAILED", text " (in CI the download must be there)") }
            else { skips++; result("SKIPPED", text) }
        }
        { sub(/\r$/, "") }
        /^1\.\.[0-9]+/ { planned += substr($0, 4) + 0; next }
        /^# skip: / { why = substr($0, 9); next }
        /^(not )?ok .*# *SKIP/ { seen++; t = $0; sub(/.*# *SKIP */, "", t); skip(t (why != "" ? ": " why : "")); why = ""; next }
        /^ok( |$)/ { seen++; good++; why = ""; next }
        /^not ok( |$)/ { seen++; bad++; t = $0; sub(/^not ok *[0-9]* *-? */, "", t); result("FAILED", t); next }
        /^skip( |$)/ { seen++; t = $0; sub(/^skip *-? */, "", t); skip(t); next }
        END {
            if (planned > seen) { bad++; result("FAILED", "stopped after " seen + 0 " of " planned " tests") }
            print "COUNT " good + 0 " " bad + 0 " " skips + 0
        }'
}

# run_one NAME COMMAND...: `quiet=1` before it lets a program that prints no result count as one.
run_one() {
    local name=$1 log rc counts good bad skips start took word text what
    shift
    [[ -z $FILTER || $name == *"$FILTER"* ]] || return 0
    ran=$((ran + 1))
    log=$out/${name//\//_}.log
    start=$SECONDS
    timeout --kill-after=10 "$limit" "${wrap[@]}" "$@" >"$log" 2>&1 </dev/null
    rc=$?
    took=$((SECONDS - start))
    counts=$(tally <"$log")
    read -r _ good bad skips <<<"${counts##*$'\n'}"
    what=
    if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
        what="stopped after $limit s"
    elif [ $rc -gt 128 ] && [ $rc -le 192 ]; then
        what="killed by signal $((rc - 128)) ($(kill -l $((rc - 128)) 2>/dev/null))"
    elif [ $rc -ne 0 ] && [ "$bad" -eq 0 ] && ! grep -q "^FAILED" <<<"$counts"; then
        what="exit status $rc"
    elif [ $((good + bad + skips)) -eq 0 ]; then
        if [ -n "${quiet:-}" ]; then good=1; else what="printed no result"; fi
    fi
    [ -z "$what" ] || bad=$((bad + 1))
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skips))
    printf '%-6s %-40s %4d ok' "$([ "$bad" -eq 0 ] && echo pass || echo FAIL)" "$name" "$good"
    [ "$bad" -eq 0 ] || printf ', %d failed' "$bad"
    [ "$skips" -eq 0 ] || printf ', %d skipped' "$skips"
    [ "$took" -lt 2 ] || printf '  (%d s)' "$took"
    printf '\n'
    [ -z "$what" ] || failures+=("$name: $what")
    while read -r word text; do
        case $word in
        FAILED) failures+=("$name: $text") ;;
        SKIPPED) echo "       skipped: $text" ;;
        esac
    done <<<"$counts"
    if [ "$bad" -ne 0 ]; then
        [ -z "$what" ] || echo "    $what"
        if [ "$(wc -l <"$log")" -gt 400 ]; then
            head -n 200 "$log" | sed 's/^/    | /'
            echo "    | ... (all of it: $log)"
            tail -n 200 "$log" | sed 's/^/    | /'
        else
            sed 's/^/    | /' "$log"
        fi
    fi
}

# A missing interpreter or program is a failure of that test, not of the runner.
run_script() {
    case $1 in
    *.py) run_one "$1" python3 "$1" ;;
    *.sh) run_one "$1" bash "$1" ;;
    esac
}

# ---- the suites -------------------------------------------------------------

emulator=()
[ -z "${EMULATOR:-}" ] || read -ra emulator <<<"$EMULATOR"

for suite in "$@"; do
    case $suite in
    unit)
        for src in tests/unit/test_*.c; do
            [ -e "$src" ] || continue
            n=$(basename "$src" .c)
            run_one "unit/$n" "${unit_env[@]}" "${emulator[@]}" "$PN_BUILD/tests/$n"
        done
        ;;
    checkasm)
        if compgen -G 'tests/checkasm/*.c' >/dev/null; then
            quiet=1 run_one checkasm "${emulator[@]}" "$PN_BUILD/tests/checkasm"
        fi
        ;;
    scripts)
        # Helpers are in tests/lib or begin with `_`; tests/peers needs libraries that only `make test-peers` has.
        while IFS= read -r script; do
            run_script "$script"
        done < <(find tests -mindepth 2 \( -name '*.py' -o -name '*.sh' \) ! -name '_*' \
            ! -path 'tests/lib/*' ! -path 'tests/peers/*' ! -path 'tests/data/*' | LC_ALL=C sort)
        ;;
    fuzz)
        for src in tests/fuzz/fuzz_*.c; do
            [ -e "$src" ] || continue
            n=$(basename "$src" .c)
            corpus=$PN_BUILD/tests/corpus/$n
            mkdir -p "$corpus"
            seeds=()
            [ ! -d "tests/fuzz/corpus/$n" ] || seeds=("tests/fuzz/corpus/$n")
            quiet=1 run_one "fuzz/$n" "$PN_BUILD/tests/$n" -max_total_time="${FUZZ_SECONDS:-10}" -timeout=20 \
                -rss_limit_mb=4096 -artifact_prefix="$out/$n-" -print_final_stats=1 "$corpus" "${seeds[@]}"
        done
        ;;
    *)
        echo "run.sh: no suite is called $suite (unit, checkasm, scripts, fuzz)" >&2
        exit 2
        ;;
    esac
done

# ---- the sum ----------------------------------------------------------------

if [ ${#failures[@]} -gt 0 ]; then
    printf '\nfailed:\n'
    printf '  %s\n' "${failures[@]}"
fi
if [ -n "$FILTER" ] && [ "$ran" -eq 0 ]; then
    echo "no test has '$FILTER' in its name"
    failed=1
fi
rm -rf "$TMPDIR"
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ]

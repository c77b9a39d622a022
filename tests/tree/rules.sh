# rules.sh: the rules of the source tree and of what is built from it that a machine can check.
set -u
cd "$PN_ROOT" || exit 1
status=0

# check NAME OUTPUT: fails when there is any output, which tells where.
check() {
    if [ -z "$2" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf '%s\n' "$2" | head -n 40
        status=1
    fi
}

sources() { find core plugins arch quant tools tests -name '*.[ch]' 2>/dev/null; }

check "core/ has no proper names" "$(grep -rniE \
    'gguf|ggml|safetensors|\bq[0-9]_|iq[0-9]|llama|qwen|mistral|phi[23]|chatml|sentencepiece' core/)"
check "architectures name no quantization type and no instruction set" "$(grep -rniE \
    '\bi?q[0-9]_|avx|neon|immintrin' arch/ 2>/dev/null)"
check "no OpenMP outside core/" "$(grep -rnE '#pragma omp|<omp\.h>' plugins arch quant tools 2>/dev/null)"
check "no flag that ties the build to this machine or bends arithmetic" \
    "$(grep -nE '(march|mtune)=native|ffast-math|Ofast' Makefile ./*/flags.mk ./*/*/flags.mk 2>/dev/null)"
check "lines up to 120 characters" "$(sources | xargs -r awk 'length($0) > 120 { print FILENAME ":" FNR }')"
check "files up to about 800 lines" "$(sources | xargs -r wc -l | awk '$2 != "total" && $1 > 850')"
check "each file begins by saying what it owns" "$(sources | while read -r f; do
    head -n 1 "$f" | grep -q '^/[/*]' || echo "$f"
done)"
check "only tools/ includes nothing but the public header" "$(grep -nE '^#include "\.\./|core/' tools/*.[ch] 2>/dev/null)"
check "plugins include no internal header" "$(grep -rnE '#include ["<](\.\./)*core/' plugins arch quant 2>/dev/null)"
if git rev-parse --git-dir >/dev/null 2>&1; then
    check "no machine's paths in what is committed" \
        "$(git grep -nIE '(^|[^a-zA-Z0-9_.$}])/((root|work|mnt)/[a-z]|home/[a-z0-9_]+/)' -- . ':!tests/tree/rules.sh')"
fi

for so in "$PN_BUILD"/plugins/*.so; do
    [ -e "$so" ] || continue
    name=$(basename "$so")
    symbols=$(nm -D --defined-only "$so" | awk '$2 ~ /[A-Z]/ && $3 !~ /^(__asan|__ubsan|__sancov|__tsan|___asan|__odr_asan)/')
    [ "$(printf '%s\n' "$symbols" | grep -c .)" -eq 1 ] && symbols=
    check "$name exports one symbol" "$symbols"
    check "$name links nothing of ours and no OpenMP" \
        "$(readelf -d "$so" | grep NEEDED | grep -E 'pantheon|gomp|libomp')"
done

if [ -n "$PN_SAN" ]; then
    echo "skip - what the built code may call: a sanitizer's build calls more"
else
    check "the library never prints or exits" "$(nm -D -u "$PN_BUILD/libpantheon.so" |
        grep -wE '_?exit|_Exit|abort|__assert_fail|(__)?v?f?printf(_chk)?|puts|fputs|putchar|perror|std(err|out)' |
        sed 's/$/ (libpantheon.so)/')"
    for so in "$PN_BUILD"/plugins/*.so; do
        [ -e "$so" ] || continue
        check "$(basename "$so") never prints or exits" "$(nm -D -u "$so" |
            grep -wE '_?exit|_Exit|abort|__assert_fail|(__)?v?f?printf(_chk)?|puts|fputs|putchar|perror|std(err|out)')"
    done
    # Wide registers show an object that was compiled for more than the baseline.
    if [ "$(uname -m)" = x86_64 ]; then
        check "only files for an instruction set use it" "$(find "$PN_BUILD/obj" -name '*.o' \
            ! -name '*_avx2.o' ! -name '*_avx512.o' ! -name '*_amx.o' | while read -r o; do
            objdump -d --no-show-raw-insn "$o" 2>/dev/null | grep -qE '%[yz]mm[0-9]' && echo "$o"
        done)"
    fi
fi
exit $status

# install.sh: `make install` under DESTDIR, what it puts there, and that `make uninstall` takes exactly that away.
set -u
cd "$PN_ROOT" || exit 1
status=0
dest=$TMPDIR/install
at=$dest/usr/local

check() {
    local name=$1
    shift
    if "$@" >"$TMPDIR/check" 2>&1; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        cat "$TMPDIR/check"
        status=1
    fi
}

make install DESTDIR="$dest" >"$TMPDIR/log" 2>&1 || { cat "$TMPDIR/log"; echo "not ok - make install"; exit 1; }
echo "ok - make install"
[ -f "$at/share/pantheon/manifest" ] || { echo "not ok - manifest (was another PREFIX given?)"; exit 1; }

for f in bin/pantheon lib/libpantheon.so.0 lib/libpantheon.so lib/libpantheon.a lib/pkgconfig/pantheon.pc \
    include/pantheon/pantheon.h include/pantheon/plugin.h include/pantheon/kit share/pantheon/conf; do
    check "$f is installed" test -e "$at/$f"
done
for so in "$PN_BUILD"/plugins/*.so; do
    check "lib/pantheon/$(basename "$so") is installed" test -x "$at/lib/pantheon/$(basename "$so")"
done
check "nothing installed may be written by others" test -z "$(find "$at" ! -type l -perm /022)"
check "the installed program runs with the installed library" "$at/bin/pantheon" --help

export PKG_CONFIG_PATH=$at/lib/pkgconfig
check "pkg-config knows the headers" test -f \
    "$(pkg-config --cflags-only-I pantheon | sed 's/^-I//; s/ *$//')/pantheon/plugin.h"
check "pkg-config gives the flag for equal results" grep -q -- -ffp-contract=off <(pkg-config --cflags pantheon)
check "pkg-config knows the plugin folder" test -d "$(pkg-config --variable=plugindir pantheon)"

touch "$at/lib/pantheon/someone-elses.so"
check "make uninstall" make uninstall DESTDIR="$dest"
check "make uninstall leaves what is not ours, and nothing else" \
    test "$(find "$dest" ! -type d)" = "$at/lib/pantheon/someone-elses.so"
rm -rf "$dest"
exit $status

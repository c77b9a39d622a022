#!/bin/sh
# install.sh: copies what was built under $DESTDIR$PREFIX, or removes it again. Called by the Makefile.
#
# A manifest of what was put there makes uninstall exact: plugins that someone else added stay.
set -eu
umask 022

root=${DESTDIR:-}$PREFIX
manifest=share/pantheon/manifest

# Also when nothing is listed any more, an empty folder of ours goes.
remove() {
    [ -f "$root/$manifest" ] || { echo "uninstall: no $root/$manifest; nothing is installed there" >&2; exit 1; }
    while IFS= read -r f; do
        rm -f -- "$root/$f"
        echo "$f"
    done <"$root/$manifest" | sed 's,/[^/]*$,,' | sort -ru | while IFS= read -r d; do
        while [ "$d" != "${d#*/}" ]; do
            rmdir -- "$root/$d" 2>/dev/null || break
            d=${d%/*}
        done
    done
    echo "uninstalled from $root"
}

if [ "$1" = uninstall ]; then
    remove
    exit 0
fi

new=$(mktemp)
trap 'rm -f "$new"' EXIT

# put MODE SOURCE TARGET: renamed into place, since a plugin or library in use must not be overwritten.
put() {
    mkdir -p "$(dirname "$root/$3")"
    install -m "$1" "$2" "$root/$3.new"
    mv -f "$root/$3.new" "$root/$3"
    echo "$3" >>"$new"
}

put_all() { # MODE SOURCE-FOLDER TARGET-FOLDER PATTERN
    [ -d "$2" ] || return 0
    (cd "$2" && find . -type f -name "$4" | sed 's,^\./,,' | sort) | while IFS= read -r f; do
        put "$1" "$2/$f" "$3/$f"
    done
}

[ ! -f "$BUILD/pantheon" ] || put 755 "$BUILD/pantheon" bin/pantheon
if [ -f "$BUILD/libpantheon.so" ]; then
    put 755 "$BUILD/libpantheon.so" "lib/$SONAME"
    ln -sfn "$SONAME" "$root/lib/libpantheon.so"
    echo lib/libpantheon.so >>"$new"
    put 644 "$BUILD/libpantheon.a" lib/libpantheon.a
fi
for p in $PLUGINS; do
    put 755 "$BUILD/plugins/$p.so" "lib/pantheon/$p.so"
done
put_all 644 core/include/pantheon include/pantheon '*.h'
put_all 644 conf share/pantheon/conf '*.ini'
put_all 644 docs share/doc/pantheon '*'
for f in README.md LICENSE; do
    [ ! -f "$f" ] || put 644 "$f" "share/doc/pantheon/$f"
done

# Relative to itself, so that it also holds under DESTDIR.
pc=$(mktemp)
trap 'rm -f "$new" "$pc"' EXIT
cat >"$pc" <<END
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib
includedir=\${prefix}/include
plugindir=\${prefix}/lib/pantheon

Name: pantheon
Description: plugin-based model runtime
Version: $VERSION
Cflags: -I\${includedir} -ffp-contract=off
Libs: -L\${libdir} -lpantheon
Libs.private: -ldl -linih -fopenmp -lm
END
put 644 "$pc" lib/pkgconfig/pantheon.pc

mkdir -p "$root/share/pantheon"
echo "$manifest" >>"$new"
# What an older version put here and this one does not have goes.
if [ -f "$root/$manifest" ]; then
    sort "$new" >"$pc"
    sort "$root/$manifest" | comm -23 - "$pc" | while IFS= read -r f; do rm -f -- "$root/$f"; done
fi
install -m 644 "$new" "$root/$manifest"
echo "installed under $root"

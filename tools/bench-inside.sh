#!/bin/sh
# What `./dev bench record` runs inside the sid root, with the newest CPython and peers there.
set -eu
[ -e build-sid/build.ninja ] || meson setup build-sid >/dev/null
ninja -C build-sid --quiet
export PITVIPER_BUILD=build-sid PITVIPER_MATRIX=1
exec /usr/bin/python3 bench/run.py "$@"

#!/bin/sh
# What `./dev matrix` runs inside the sid root: the program built with the newest compiler, the
# end-to-end tests on every interpreter there, the newest perf and samply.
set -eu
[ -e build-sid/build.ninja ] || meson setup build-sid >/dev/null
ninja -C build-sid --quiet
export PITVIPER_BUILD=build-sid PITVIPER_SANITIZED=build-sid PITVIPER_MATRIX=1
exec /usr/bin/python3 -m pytest tests/e2e "$@"

#!/bin/sh
# What `./dev lint` checks. Every check runs even when an earlier one failed, so that one run shows
# everything; the exit status is that of the worst.
# shellcheck disable=SC2317 # the functions are called through check
set -u
cd "$(dirname "$0")/.." || exit
status=0

check() {
	title=$1
	shift
	if output=$("$@" 2>&1); then
		echo "ok      $title"
	else
		echo "FAILED  $title"
		printf '%s\n' "$output" | head -n 60
		status=1
	fi
}

formatting() { find src tests bench -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run --Werror; }

# Each header must compile on its own: whoever includes it needs to know nothing else.
headers() {
	for header in src/*/*.h; do
		echo "#include \"${header#src/}\"" |
			cc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Isrc -fsyntax-only -x c - || return 1
	done
}

# Warnings are errors here and nowhere else: a newer compiler on somebody's machine must not stop
# their first build.
warnings() {
	folder=build-lint-$1
	[ -e "$folder/build.ninja" ] || CC=$1 meson setup "$folder" -Dwerror=true || return 1
	ninja -C "$folder"
}

tidy() { find src -name '*.c' -print0 | xargs -0 clang-tidy -p build-lint-clang --quiet --warnings-as-errors='*' 2>/dev/null; }

shell_scripts() { shellcheck dev .ci/run tools/*.sh examples/*.sh; }

check "formatting (clang-format)" formatting
check "layers: includes point upward only" tools/check_layers.py
check "headers compile alone" headers
check "no warnings with gcc" warnings gcc
check "no warnings with clang" warnings clang
check "static analysis (clang-tidy)" tidy
check "shell scripts (shellcheck)" shell_scripts
exit $status

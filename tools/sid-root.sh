#!/bin/sh
# A Debian sid root in the user's cache folder, for what the host's release does not have:
# the newest CPythons, the newest perf, samply, the newest compiler.
#
#   tools/sid-root.sh make           make it (a few minutes, once) or bring it up to date
#   tools/sid-root.sh run CMD...     run CMD inside, in this folder
#
# The root is made beside its final place and moved there when it is whole, so an interrupted
# make leaves nothing half-done. Mounts live in a mount namespace of their own and end with CMD:
# nothing has to be cleaned up, whatever happens. The checkout appears at its own path, and so
# do the interpreters of pyenv, which need nothing of the host but their own folder.
#
# Exit status 75 means that no root can be had here (no rights, no network); the reason is the
# one line on stderr.
set -eu

packages="python3.13 python3.13-dev python3.13-venv python3.14 python3.14-dev python3.14-venv \
python3.15 python3.15-dev python3.15-venv libpython3.13-testsuite libpython3.14-testsuite \
libpython3.15-testsuite linux-perf samply python3-pytest python3-hypothesis gcc libc6-dev \
meson ninja-build pkgconf libcmocka-dev libzstd-dev zlib1g-dev libdw-dev scdoc protobuf-compiler strace gdb pypy3 python3.13-dbg python3-greenlet musl-tools"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pitviper
root=$cache/sid
stamp=$root/.pitviper-packages

unavailable() {
	echo "sid root: $*" >&2
	exit 75
}

# Enters the root in a mount namespace of its own. The first argument is the folder to start in.
enter() {
	[ "$(id -u)" = 0 ] || unavailable "needs root rights (chroot, mount)"
	unshare --mount --propagation private true 2>/dev/null ||
		unavailable "this system does not allow mounts (unshare --mount failed)"
	# The script is for the inner shell, with its own variables.
	# shellcheck disable=SC2016
	ROOT=$root FOLDER=$1 PYENV=${PYENV_ROOT:-$HOME/.pyenv} \
		unshare --mount --propagation private sh -eu -c '
			shift
			for kernel in proc sys dev; do
				mount --rbind "/$kernel" "$ROOT/$kernel"
			done
			for shared in "$FOLDER" "$PYENV"; do
				[ -d "$shared" ] && [ "$shared" != / ] || continue
				mkdir -p "$ROOT$shared"
				mount --bind "$shared" "$ROOT$shared"
			done
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
			exec chroot "$ROOT" sh -c "cd \"\$0\" && exec \"\$@\"" "$FOLDER" "$@"
		' enter "$@"
}

in_root() {
	enter / env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"
}

# The release file of a frozen mirror may count as expired, hence Check-Valid-Until.
apt_get() {
	in_root apt-get -q -y -o Acquire::Check-Valid-Until=false --no-install-recommends "$@"
}

make_root() {
	[ "$(id -u)" = 0 ] || unavailable "needs root rights (debootstrap)"
	if [ ! -d "$root" ]; then
		mkdir -p "$cache"
		rm -rf --one-file-system "$root.partial"
		echo "sid root: debootstrap into $root (once, some minutes)" >&2
		if ! debootstrap --variant=minbase sid "$root.partial" >"$cache/debootstrap.log" 2>&1; then
			unavailable "debootstrap failed: $(tail -n 1 "$cache/debootstrap.log") (whole log: $cache/debootstrap.log)"
		fi
		mv "$root.partial" "$root"
	fi
	if [ "$(cat "$stamp" 2>/dev/null)" != "$packages" ]; then
		echo "sid root: installing packages (once)" >&2
		# Word splitting is wanted: one argument per package.
		# shellcheck disable=SC2086
		if ! { apt_get update && apt_get install $packages; } >"$cache/packages.log" 2>&1; then
			unavailable "its packages could not be installed: $(grep '^E:' "$cache/packages.log" | tail -n 1) (whole log: $cache/packages.log)"
		fi
		printf '%s\n' "$packages" >"$stamp"
	fi
}

case ${1-} in
make) make_root ;;
run)
	shift
	enter "$(pwd)" "$@"
	;;
*)
	echo "usage: tools/sid-root.sh make | run CMD..." >&2
	exit 2
	;;
esac

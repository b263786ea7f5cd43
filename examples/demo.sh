#!/bin/sh
# What `./dev demo` shows, with the system's python3 as it is: the documents' script recorded by
# pitviper, where its time goes by function and line, and the same script seen through perf.
#
# Stock interpreters keep no frame pointers, so for its own recordings perf copies the stack, and
# `pitviper run --jit` leaves the data to unwind it by.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/build:$PATH

python=/usr/bin/python3
[ -x $python ] || python=$(command -v python3)
script=$PWD/examples/my_script.py
folder=$(mktemp -d)
pid=
trap 'rm -rf "$folder" ${pid:+"/tmp/jit-$pid.dump"}' EXIT
export HOME="$folder" # for perf's cache of object files

# A command line as a person would type it.
show() {
	printf '\n\033[1m$ %s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[01]*m//g'; fi
}

show "pitviper doctor $python"
pitviper doctor "$python" || true

cd "$folder"
show "pitviper record -F 9999 -g -o perf.data $python my_script.py"
pitviper record -F 9999 -g -o perf.data "$python" "$script"

show "pitviper report"
pitviper report

for perf in perf /usr/lib/linux-tools/*/perf; do
	"$perf" --version >/dev/null 2>&1 && break
done
"$perf" --version >/dev/null 2>&1 || {
	echo "demo: no perf runs here; install it: apt-get install linux-perf (Ubuntu: linux-tools-generic)" >&2
	exit 1
}

# The tree below the script itself.
tree() {
	awk '/^#.*(Samples|Overhead|Children)/ {print} /\[\.\] py::<module>:.*my_script/ {on = 1} on && /^$/ {exit} on {print}'
}

show "perf report --stdio -n -g"
"$perf" report --stdio -n -g caller,5 --percent-limit 5 -i perf.data 2>/dev/null | tree

show "perf record -F 9999 -k 1 --call-graph dwarf pitviper run --jit -- $python my_script.py"
if ! "$perf" record -q -F 9999 -k 1 --call-graph dwarf -o perf.data \
	pitviper run --jit -- "$python" "$script" >log 2>&1; then
	cat log >&2
	echo "demo: perf may not record here; as root run: sysctl kernel.perf_event_paranoid=1" >&2
	exit 1
fi
pid=$("$perf" script -i perf.data -F pid 2>/dev/null | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2}')

show "pitviper report --stdio -n -g"
pitviper report --stdio -n -g caller,5 --percent-limit 5 | tree

#!/bin/sh
# What `./dev demo` shows: the documents' script under perf, with the system's python3 as it is, and
# its Python functions in the report.
#
# Stock interpreters keep no frame pointers, so perf unwinds by the data that `pitviper run --jit`
# gives it; `pitviper doctor` would recommend the same commands.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/build:$PATH

python=/usr/bin/python3
[ -x $python ] || python=$(command -v python3)
script=$PWD/examples/my_script.py
folder=$(mktemp -d)
pid=
trap 'rm -rf "$folder" ${pid:+"/tmp/jit-$pid.dump"}' EXIT

for perf in perf /usr/lib/linux-tools/*/perf; do
	"$perf" --version >/dev/null 2>&1 && break
done
"$perf" --version >/dev/null 2>&1 || {
	echo "demo: no perf runs here; install it: apt-get install linux-perf (Ubuntu: linux-tools-generic)" >&2
	exit 1
}

# A command line as a person would type it.
show() {
	printf '\n\033[1m$ %s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[01]*m//g'; fi
}

show "pitviper doctor $python"
pitviper doctor "$python" || true

show "perf record -F 9999 -k 1 --call-graph dwarf pitviper run --jit -- $python my_script.py"
cd "$folder"
if ! "$perf" record -q -F 9999 -k 1 --call-graph dwarf -o perf.data \
	pitviper run --jit -- "$python" "$script" >log 2>&1; then
	cat log >&2
	echo "demo: perf may not record here; as root run: sysctl kernel.perf_event_paranoid=1" >&2
	exit 1
fi
pid=$("$perf" script -i perf.data -F pid 2>/dev/null | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2}')

show "pitviper inspect /tmp/jit-$pid.dump"
pitviper inspect "/tmp/jit-$pid.dump"

show "perf inject --jit -i perf.data -o perf.jit.data; perf report --stdio -n -g -i perf.jit.data"
"$perf" --buildid-dir . inject --jit -i perf.data -o perf.jit.data >log 2>&1
"$perf" --buildid-dir . report -i perf.jit.data --stdio -n -g caller,5 --no-inline \
	--percent-limit 5 2>/dev/null >report.txt
# The tree below the script itself.
awk '/^#.*(Samples|Overhead|Children)/ {print} /\[\.\] py::<module>:.*my_script/ {on = 1} on && /^$/ {exit} on {print}' report.txt

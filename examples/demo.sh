#!/bin/sh
# What `./dev demo` shows: where the documents' script spends its time.
#
# The system's python3 runs it under perf. From Python 3.12 on the interpreter can name its functions
# itself; `pitviper inspect` then shows what it told perf.
set -eu
cd "$(dirname "$0")/.."

python=/usr/bin/python3
[ -x $python ] || python=$(command -v python3)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for perf in perf /usr/lib/linux-tools/*/perf; do
	"$perf" --version >/dev/null 2>&1 && break
done

# The script as in the documents, repeated until there is something to see.
cat >"$folder/repeat.py" <<'END'
import runpy
for _ in range(20):
    runpy.run_path("examples/my_script.py", run_name="__main__")
END

options=
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' && options="-X perf"
echo "$ perf record -F 999 -g $python $options my_script.py"
# shellcheck disable=SC2086
if ! "$perf" record -q -F 999 -g -o "$folder/perf.data" "$python" $options "$folder/repeat.py" 2>"$folder/log"; then
	cat "$folder/log" >&2
	echo "demo: perf may not record here; as root run: sysctl kernel.perf_event_paranoid=1" >&2
	exit 1
fi
"$perf" report -i "$folder/perf.data" --stdio --no-children -g none --percent-limit 2 2>/dev/null |
	grep -v '^$' | grep -v '^# *$' || true

pid=$("$perf" script -i "$folder/perf.data" -F pid 2>/dev/null | head -n 1 | tr -d ' ')
map=/tmp/perf-$pid.map
if [ -e "$map" ]; then
	echo
	echo "$ pitviper inspect $map"
	build/pitviper inspect "$map"
	rm -f "$map"
fi

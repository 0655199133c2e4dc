#!/bin/sh
# run.sh BUILD [PICTURES]: every benchmark, over PICTURES (a folder with a folder a class), or over
# drawn ones where none is given. Real figures need real pictures and an idle machine.
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
pictures=${2:-}
python=$(sed -n 's/^_*Python_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt" | head -n 1)
python=${python:-python3}
work=$build/bench-work
mkdir -p "$work"
if [ -z "$pictures" ]; then
  pictures=$work/pictures
  "$python" samples/make_pictures.py "$pictures" --per-class 250
fi

for program in "$build"/tests/bench/*_bench; do
  [ -x "$program" ] || continue
  case $program in */loader_bench | */picture_bench) continue ;; esac  # scripts run them
  echo "== $(basename "$program")"
  STRIPEPACK_BENCH_PICTURES=$pictures "$program"
done
for script in tests/bench/*_bench.py; do
  [ -e "$script" ] || continue
  echo "== $(basename "$script")"
  "$python" -B "$script" --pictures "$pictures" --work "$work/$(basename "$script" .py)" \
    --programs "$build" || [ $? -eq 77 ]  # skipped, saying why
done

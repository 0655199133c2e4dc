#!/bin/sh
# lint.sh BUILD JOBS: layers, format and clang-tidy over what BUILD compiles.
set -eu
cd "$(dirname "$0")/../.."
build=$1
jobs=$2
export STRIPEPACK_SOURCE="$PWD" PYTHONDONTWRITEBYTECODE=1
python3 tests/lint/layers_test.py
python3 tests/lint/format_test.py || [ $? = 77 ]

if ! command -v clang-tidy >/dev/null; then
  echo "lint: clang-tidy is missing (apt install clang-tidy)" >&2
  exit 1
fi
# The files of the library and the tools, each once.
files=$(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" | sort -u |
  grep -E '/(libformat/(src|python)|libimage/src|tools)/')
echo "lint: clang-tidy over $(printf '%s\n' "$files" | wc -l) files"
printf '%s\n' "$files" | xargs -d '\n' -n 1 -P "$jobs" clang-tidy -p "$build" --quiet 2>/dev/null
echo "lint: no warnings"

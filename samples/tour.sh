#!/bin/sh
# tour.sh BUILD OUT [SRC [OPTIONS OF PACK]]: from a folder of pictures to four ranks reading, each
# command shown before it runs. Without SRC it draws its own pictures. Everything it makes lies below
# OUT. A pack of drawn pictures is made anew each time; one of SRC is kept, and an unfinished one gone
# on with. SRC is only read.
set -eu
cd "$(dirname "$0")/.."
build=$1
out=$2
src=${3:-}
shift $(($# < 3 ? $# : 3))

# The Python that the module was built for.
python=$(sed -n 's/^Python_EXECUTABLE:[A-Z]*=//p;s/^_Python_EXECUTABLE:[A-Z]*=//p' \
  "$build/CMakeCache.txt" | head -n 1)
python=${python:-python3}
PATH=$PWD/$build:$PATH
export PATH
echo "$ export PATH=\$PWD/$build:\$PATH"

title() { printf '\n--- %s\n' "$*"; }
# show COMMAND...: the command, quoted where the shell would need it; run: shows and runs it.
show() {
  printf '$'
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:=,@%+-]*|'') printf " '%s'" "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
}
run() {
  show "$@"
  "$@"
}

if [ -n "$src" ] && [ ! -r "$src" ]; then
  echo "tour.sh: SRC '$src' is not there, or may not be read; nothing was changed" >&2
  exit 2
fi
mkdir -p "$out"
# What an earlier tour packed: nothing, or a line without a word where it drew pictures.
earlier=
drawn=
if [ -f "$out/source" ]; then
  earlier=$(cat "$out/source")
  [ -n "$earlier" ] || drawn=1
fi
if [ -n "$earlier" ] && [ -e "$out/pack" ] && [ "$earlier" != "$src" ]; then
  echo "tour.sh: $out/pack was made of '$earlier'; move it away if you want to keep it, or remove" \
    "it: nothing was changed" >&2
  exit 2
fi
if [ -z "$src" ] || [ -n "$drawn" ]; then
  rm -rf "$out/pack"  # of drawn pictures, which can be had again
fi
if [ ! -f "$out/source" ] || [ "$earlier" != "$src" ]; then
  rm -rf "$out/pack.partial"
  printf '%s\n' "$src" > "$out/source"
fi
if [ -z "$src" ]; then
  src=$out/pictures
  title 'Sample pictures'
  run "$python" samples/make_pictures.py "$src"
fi

title 'Pack: a folder of pictures becomes a few large, aligned shards'
run stripepack pack "$src" "$out/pack" "$@" || {
  code=$?
  case $code in
    3) echo "(through make: demo SRC=... OPTIONS='--max-rejects N')" >&2 ;;
    4) echo "(options of pack through make: demo SRC=... OPTIONS=--force)" >&2 ;;
  esac
  exit $code
}

title 'Verify: every byte against its checksum, every file against its sample'
run stripepack verify "$out/pack" --against "$src"

# With splits there is a pack for each; the tour goes on with the training pack.
pack=$out/pack
for split in val train training; do
  [ ! -f "$out/pack/$split/manifest.json" ] || pack=$out/pack/$split
done

title 'Look into it'
run stripepack info "$pack"
echo "$ stripepack ls $pack | head -n 5"
stripepack ls "$pack" | head -n 5

title 'Read it on 4 ranks at once: each reads its own equal part, by arithmetic'
with_python=
if PYTHONPATH=$PWD/$build/python "$python" -c 'import numpy, PIL, stripepack' 2>/dev/null; then
  with_python=1
  echo "$ export PYTHONPATH=$build/python"
  export PYTHONPATH="$PWD/$build/python"
fi
has_labels=$(stripepack info "$pack" --json | grep '"name": *"label"' || true)
val=$out/pack/val
[ -f "$val/manifest.json" ] || val=
ranks=
for rank in 0 1 2 3; do
  if [ -n "$with_python" ] && [ -n "$has_labels" ]; then
    set -- "$python" samples/train.py "$pack" ${val:+--val "$val"} --rank "$rank" --world 4 \
      --limit 1000
  else  # the Python module is not built, or numpy or Pillow is missing
    set -- "$build/samples/train_c" "$pack" "$rank" 4
  fi
  show "$@"
  "$@" &
  ranks="$ranks $!"
done
for rank in $ranks; do
  wait "$rank"
done

title "Done: the pack is $out/pack"
cat <<END
The program is $build/stripepack; 'make -f Makefile.dist install PREFIX=DIR' puts it, the library
and the Python module below DIR.
END

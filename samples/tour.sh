#!/bin/sh
# tour.sh BUILD OUT [SRC]: from a folder of pictures to four ranks reading, each command shown before
# it runs. Without SRC it draws its own pictures. Everything it makes lies below OUT; what an earlier
# tour left there is removed first. SRC is only read.
set -eu
cd "$(dirname "$0")/.."
build=$1
out=$2
src=${3:-}

# The Python that the module was built for.
python=$(sed -n 's/^Python_EXECUTABLE:[A-Z]*=//p;s/^_Python_EXECUTABLE:[A-Z]*=//p' \
  "$build/CMakeCache.txt" | head -n 1)
python=${python:-python3}
PATH=$PWD/$build:$PATH
export PATH

title() { printf '\n--- %s\n' "$*"; }
# run COMMAND...: shows the command, quoted where the shell would need it, and runs it.
run() {
  printf '$'
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:=,@%+-]*|'') printf " '%s'" "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
  "$@"
}

mkdir -p "$out"
rm -rf "$out/pack" "$out/pack.partial"
if [ -z "$src" ]; then
  src=$out/pictures
  title 'Sample pictures'
  run "$python" samples/make_pictures.py "$src"
fi

title 'Pack: a folder of pictures becomes a few large, aligned shards'
run stripepack pack "$src" "$out/pack"

# With splits there is a pack for each; the tour goes on with the training pack.
pack=$out/pack
packs=$pack
if [ ! -f "$pack/manifest.json" ]; then
  packs=$(find "$out/pack" -mindepth 2 -maxdepth 2 -name manifest.json -exec dirname {} + | sort)
  pack=$(printf '%s\n' "$packs" | head -n 1)
  for split in train training; do
    [ ! -f "$out/pack/$split/manifest.json" ] || pack=$out/pack/$split
  done
fi

title 'Verify: every byte against its checksum, every file against its sample'
printf '%s\n' "$packs" | while IFS= read -r one; do
  run stripepack verify "$one"
done

title 'Look into it'
run stripepack info "$pack"

title 'Read it on 4 ranks: each reads its own equal part'
. samples/tour_ranks.sh

title "Done: the pack is $pack"

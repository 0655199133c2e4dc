#!/bin/sh
# dist.sh FOLDER VERSION: writes FOLDER/stripepack-VERSION.tar.gz, the source of the last commit;
# where there is no git, of all files here but what building left. The same source gives the same
# bytes.
set -eu
cd "$(dirname "$0")/.."
folder=$1
name=stripepack-$2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
tarball=$folder/$name.tar.gz

if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
  if [ -n "$(git status --porcelain 2>/dev/null)" ]; then
    echo "dist: there are changes that are not committed; the tarball holds the last commit." >&2
  fi
  git archive --format=tar --prefix="$name/" HEAD | gzip -9n > "$tarball.partial"
else
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --format=gnu \
    --exclude=./.git --exclude=./build --exclude=./dist --exclude=__pycache__ --exclude='*.pyc' \
    --transform "s,^\./,$name/," . | gzip -9n > "$tarball.partial"
fi
mv "$tarball.partial" "$tarball"
echo "$tarball"

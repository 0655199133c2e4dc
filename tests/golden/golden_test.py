#!/usr/bin/env python3
# ctest: timeout=300
"""The golden packs, made anew, have the bytes that are checked in; and those are read and proven.

`--update` writes the archives and SHA256SUMS. That is a change of the format, or of how it is filled: it
takes an entry in docs/FORMAT_HISTORY.md with the new hash of the set (tests/lint/format_history_test.py)."""

import argparse
import os
import subprocess
import sys
import tempfile

import golden


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="check in what the code makes now")
    arguments = parser.parse_args()
    wanted = subprocess.run(
        [golden.program("spk_make_pack"), "names"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    with tempfile.TemporaryDirectory(prefix="stripepack-golden-") as scratch:
        packs = {name: golden.make(name, os.path.join(scratch, name)) for name in wanted}
    if arguments.update:
        os.makedirs(golden.VERSION_DIR, exist_ok=True)
        for name, files in packs.items():
            golden.store(name, files)
        with open(golden.sums_path(), "w", encoding="utf-8") as file:
            file.write(golden.sums(packs))
        print("hash of the golden set: " + golden.set_hash())
        return 0

    failed = 0
    if sorted(wanted) != golden.names():
        print("checked in are %s; the code makes %s" % (golden.names(), sorted(wanted)))
        failed += 1
    for name in golden.names():
        stored = golden.unpack(name)
        made = packs.get(name, {})
        for file in sorted(set(stored) | set(made)):
            old, new = stored.get(file), made.get(file)
            if old == new:
                continue
            failed += 1
            if old is None or new is None:
                print("%s/%s is only %s" % (name, file, "made" if old is None else "checked in"))
                continue
            at = next(
                (i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new))
            )
            print(
                "%s/%s differs from offset %d on (%d bytes checked in, %d made)"
                % (name, file, at, len(old), len(new))
            )
    with tempfile.TemporaryDirectory(prefix="stripepack-golden-") as scratch:
        for name in golden.names():
            path = os.path.join(scratch, name)
            golden.extract(name, path)
            run = subprocess.run([golden.program("spk_make_pack"), "verify", path], check=False)
            failed += run.returncode != 0
    if failed:
        print("if golden bytes were meant to change, see golden_test.py --help")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""`stripepack stage` against `cp -r` + sync of the same pack, alternately, medians of N rounds.

  stage_bench.py --pictures DIR --work DIR [--copies N] [--rounds N] [--programs DIR] [--pack PACK] [--cold]

The pictures are copied N times and packed into WORK first, unless a PACK is given. The copies go to WORK and are removed
before each round. The pack is read from a warm page cache, or with --cold (as root) from the disk. Both end when all is on the disk: cp by syncing the copy's
file system. Before each run memory is touched and freed, where PROGRAMS has touch_memory.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import time

from pack_bench import replicate

ROUNDS = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--pack", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--copies", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    program = args.programs / "stripepack"
    pack = args.pack
    if pack is None:
        source = args.work / f"pictures-{args.pictures.name}-{args.copies}"
        pack = args.work / f"stage-{args.pictures.name}-{args.copies}.pack"
        replicate(args.pictures, source, args.copies)
        subprocess.run([program, "pack", source, pack, "--progress", "never"], check=True)
    copy = args.work / "copy"
    touch = args.programs / "tests/bench/touch_memory"
    commands = {
        "cp -r + sync": [["cp", "-r", pack, copy], ["sync", "-f", copy]],
        "stage": [[program, "stage", pack, copy, "--progress", "never"]],
    }
    files = sorted(pack.glob("*"))
    total = sum(file.stat().st_size for file in files)
    times = {name: [] for name in commands}
    used = {name: [] for name in commands}
    for round_number in range(args.rounds + 1):  # the first is not counted
        for name, steps in commands.items():
            shutil.rmtree(copy, ignore_errors=True)
            if touch.exists():
                subprocess.run([touch, "6"], check=True, stdout=subprocess.DEVNULL)
            os.sync()
            if args.cold:
                pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
            else:
                subprocess.run(["cat", *files], check=True, stdout=subprocess.DEVNULL)
            before = os.times()
            start = time.monotonic()
            for step in steps:
                subprocess.run(step, check=True, stdout=subprocess.DEVNULL)
            seconds = time.monotonic() - start
            after = os.times()
            if round_number > 0:
                times[name].append(seconds)
                used[name].append(after.children_user - before.children_user +
                                  after.children_system - before.children_system)
    shutil.rmtree(copy)
    print(f"{total / 1e9:.2f} GB, {'cold' if args.cold else 'warm'}, medians of {args.rounds}:")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"  {name:14} {median:6.2f} s  {total / 1e6 / median:6.0f} MB/s  "
              f"({min(values):.2f} to {max(values):.2f})  CPU {statistics.median(used[name]):.2f} s")


if __name__ == "__main__":
    main()

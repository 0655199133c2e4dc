#!/usr/bin/env python3
"""Packing against its limit and against tar, alternately, medians of N rounds.

  pack_bench.py --pictures DIR --work DIR [--copies N] [--rounds N] [--cold] [--json FILE]

DIR holds pictures in class folders; they are copied N times (as files of their own) into WORK first.
Each round runs, in turn: limit_copy, `stripepack pack` (all checks on), and `tar cf` + sync. Before each
measured run several GiB of memory are touched and freed (touch_memory), what is dirty is synced, and
the source is either read once (warm) or dropped from the page cache (--cold; needs root).
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time


def replicate(pictures, target, copies):
    if target.exists():
        return
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for copy in range(copies):
        for path in sorted(pictures.rglob("*")):
            if path.is_file():
                relative = path.relative_to(pictures)
                to = partial / relative.parent / f"{copy:04d}-{relative.name}"
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to)
    partial.rename(target)
    os.sync()


def warm(source):
    for path in source.rglob("*"):
        if path.is_file():
            path.read_bytes()


def drop_caches():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def measure(command):
    os.sync()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, shell=isinstance(command, str), check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--copies", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--touch-gib", type=int, default=6)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--pack-options", default="")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()

    args.work.mkdir(parents=True, exist_ok=True)
    source = args.work / f"pictures-{args.pictures.name}-{args.copies}"
    replicate(args.pictures, source, args.copies)
    files = [p for p in source.rglob("*") if p.is_file()]
    total = sum(p.stat().st_size for p in files)
    out = args.work / "out"
    bench = args.programs / "tests" / "bench"
    touch = [str(bench / "touch_memory"), str(args.touch_gib)]
    commands = {
        "limit": f"{bench}/limit_copy {source} {out}.limit 2",
        "stripepack": f"{args.programs}/stripepack pack {source} {out}.pack --progress never {args.pack_options}",
        "tar": f"tar cf {out}.tar -C {source} . && sync {out}.tar",
    }
    times = {name: [] for name in commands}
    cpus = {name: [] for name in commands}
    for round_number in range(args.rounds):
        for name, command in commands.items():
            for leftover in args.work.glob("out.*"):
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
            subprocess.run(touch, check=True, stdout=subprocess.DEVNULL)
            if args.cold:
                drop_caches()
            else:
                warm(source)
            seconds, cpu = measure(command)
            times[name].append(seconds)
            cpus[name].append(cpu)
            print(f"round {round_number} {name:10} {seconds:7.3f} s  cpu {cpu:6.2f} s", file=sys.stderr)
    median = {name: statistics.median(values) for name, values in times.items()}
    result = {
        "files": len(files), "bytes": total, "cold": args.cold, "rounds": args.rounds,
        "seconds": times, "median_seconds": median,
        "median_cpu_seconds": {name: statistics.median(values) for name, values in cpus.items()},
        "stripepack_to_limit": median["stripepack"] / median["limit"],
        "tar_to_stripepack": median["tar"] / median["stripepack"],
    }
    for leftover in args.work.glob("out.*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    print(f"{len(files)} files, {total / 1e9:.2f} GB, {'cold' if args.cold else 'warm'}, medians of {args.rounds}:")
    for name in commands:
        print(f"  {name:10} {median[name]:7.2f} s  {total / 1e6 / median[name]:6.0f} MB/s  "
              f"min {min(times[name]):.2f} max {max(times[name]):.2f}")
    print(f"  stripepack takes {result['stripepack_to_limit']:.2f} x the limit; tar {result['tar_to_stripepack']:.2f} x stripepack")
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

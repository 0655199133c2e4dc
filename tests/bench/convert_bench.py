#!/usr/bin/env python3
"""Packing from foreign formats against the limit, and exporting to them against a plain copy, alternately.

  convert_bench.py --pictures DIR --work DIR [--copies N] [--rounds N] [--formats tar,lmdb,...] [--json FILE]
                   [--programs BUILD]

DIR holds pictures in class folders; they are copied N times (as files of their own) into WORK, packed, and the pack
is exported to each format once. Then, from a warm page cache and with all checks on, in turn:
  import   `stripepack pack` of what was exported, against limit_copy of the same files: two threads that copy whole
           8 MiB stripes by pread and pwrite, and where the format has checksums of its data hash what they read
  export   `stripepack export` of the pack, against `cp` of the files that it made and sync of the copy
Both sides end with everything synced. Before each run memory is touched and freed (touch_memory).
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

from pack_bench import measure, replicate, warm

FORMATS = ("tar", "lmdb", "tfrecord", "recordio")
CHECKSUMS = {"tfrecord"}  # that have checksums of their data
ASKED = 1.3


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def compare(args, name, source, sides):
    """Medians of the sides' seconds; each side is a command that makes the path it is given beside."""
    times = {side: [] for side in sides}
    for round_number in range(args.rounds):
        order = list(sides) if round_number % 2 == 0 else list(reversed(sides))
        for side in order:
            command, out = sides[side]
            remove(out)
            subprocess.run([args.programs / "tests" / "bench" / "touch_memory", str(args.touch_gib)], check=True,
                           stdout=subprocess.DEVNULL)
            warm(source)
            seconds, cpu = measure(command)
            times[side].append(seconds)
            print(f"{name} round {round_number} {side:10} {seconds:7.3f} s  cpu {cpu:6.2f} s", file=sys.stderr)
            remove(out)
    plain, ours = sides
    ratio = statistics.median(a / b for a, b in zip(times[ours], times[plain]))
    medians = {side: statistics.median(values) for side, values in times.items()}
    print(f"{name:16} {plain} {medians[plain]:6.2f} s, {ours} {medians[ours]:6.2f} s: {ratio:.2f} x, "
          f"asked {ASKED}: {'reached' if ratio <= ASKED else 'MISSED'}", flush=True)
    return {"seconds": times, "median_seconds": medians, "ratio": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--copies", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--touch-gib", type=int, default=6)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()

    args.work.mkdir(parents=True, exist_ok=True)
    pictures = args.work / f"pictures-{args.pictures.name}-{args.copies}"
    replicate(args.pictures, pictures, args.copies)
    stripepack = args.programs / "stripepack"
    limit = args.programs / "tests" / "bench" / "limit_copy"
    pack = args.work / f"{pictures.name}.pack"
    if not pack.exists():
        subprocess.run([stripepack, "pack", pictures, pack, "--splits", "none", "--progress", "never"], check=True)
    out = args.work / "out"
    found = {}
    for kind in args.formats.split(","):
        exported = args.work / f"{pictures.name}.{kind}"
        remove(exported)
        export = [stripepack, "export", pack, "--to", kind, "--progress", "never"]
        subprocess.run([*export, exported], check=True, stdout=subprocess.DEVNULL)
        hashing = ["hash"] if kind in CHECKSUMS else []
        found[f"import {kind}"] = compare(args, f"import {kind}", exported, {
            "limit": ([limit, exported, f"{out}.limit", "2", *hashing], out.with_suffix(".limit")),
            "stripepack": ([stripepack, "pack", exported, f"{out}.pack", "--progress", "never"],
                           out.with_suffix(".pack")),
        })
        found[f"export {kind}"] = compare(args, f"export {kind}", pack, {
            "cp": (f"cp -r '{exported}' '{out}.cp' && sync '{out}.cp'/*", out.with_suffix(".cp")),
            "stripepack": ([*export, f"{out}.export"], out.with_suffix(".export")),
        })
        remove(exported)
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

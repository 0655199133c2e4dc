#!/usr/bin/env python3
"""`stripepack verify` against a plain XXH3 pass over the same bytes, alternately, medians of N rounds.

  verify_bench.py --pictures DIR --work DIR [--copies N] [--rounds N] [--jobs N] [--programs DIR]

The pictures are copied N times and packed into WORK first. Both read from a warm page cache with the same number of threads; the plain pass reads chunk by chunk.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

from pack_bench import replicate


def measure(command):
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--copies", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release"))
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    source = args.work / f"pictures-{args.pictures.name}-{args.copies}"
    pack = args.work / f"verify-{args.pictures.name}-{args.copies}.pack"
    replicate(args.pictures, source, args.copies)
    subprocess.run([args.programs / "stripepack", "pack", source, pack, "--progress", "never"], check=True)
    chunk = json.loads((pack / "manifest.json").read_text())["chunk_bytes"]
    total = sum(p.stat().st_size for p in pack.iterdir())
    commands = {
        "plain XXH3": [args.programs / "tests/bench/hash_pass", pack, str(args.jobs), str(chunk)],
        "verify": [args.programs / "stripepack", "verify", pack, "--jobs", str(args.jobs),
                   "--progress", "never"],
    }
    times = {name: [] for name in commands}
    for command in commands.values():
        measure(command)  # warm
    for _ in range(args.rounds):
        for name, command in commands.items():
            times[name].append(measure(command))
    median = {name: statistics.median(values) for name, values in times.items()}
    print(f"{total / 1e9:.2f} GB, warm, {args.jobs} threads, medians of {args.rounds}:")
    for name, seconds in median.items():
        print(f"  {name:12} {seconds:7.3f} s  {total / 1e9 / seconds:6.2f} GB/s")
    print(f"  verify reaches {median['plain XXH3'] / median['verify']:.2f} x the speed of the plain pass")


if __name__ == "__main__":
    main()

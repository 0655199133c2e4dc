#!/usr/bin/env python3
"""Epochs of a loader against plain code, LMDB and single files: makes what loader_bench reads, and runs it.

  loader_bench.py --pictures DIR --work DIR [--copies N] [--rounds N] [--cold] [--programs BUILD]

DIR holds pictures in class folders; they are copied N times (as files of their own) into WORK, packed, and an
LMDB is made of them where the build has liblmdb. Warm: everything read before, each byte looked at as fast as memory
gives it, then once more byte by byte; last, tiny samples: what planning costs for each. --cold drops the page
cache before each run; needs root.
"""
import argparse
import json
import pathlib
import subprocess

from pack_bench import replicate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--copies", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--touch-gib", type=int, default=6)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release"))
    args = parser.parse_args()

    args.work.mkdir(parents=True, exist_ok=True)
    source = args.work / f"pictures-{args.pictures.name}-{args.copies}"
    replicate(args.pictures, source, args.copies)
    program = args.programs / "stripepack"
    pack = args.work / f"{source.name}.pack"
    if not pack.exists():
        subprocess.run([program, "pack", source, pack, "--splits", "none", "--progress", "never"],
                       check=True)
    files = args.work / "files"
    paths = [str(path) for path in source.rglob("*") if path.is_file()]
    files.write_text("\n".join(paths) + "\n", encoding="utf-8", errors="surrogateescape")

    bench = [args.programs / "tests" / "bench" / "loader_bench", "--pack", pack, "--files", files, "--lmdb",
             args.work / f"{source.name}.lmdb", "--rounds", str(args.rounds)]
    if args.cold:
        subprocess.run([*bench, "--cold", "--touch-gib", str(args.touch_gib)], check=True)
        return
    for how, option in (("eight bytes at a time", []), ("byte by byte", ["--bytewise"])):
        print(f"{len(paths)} samples, warm, summed {how}:", flush=True)
        subprocess.run([*bench, *option], check=True)
    tiny(args, program)


def tiny(args, program):
    """Fifty thousand samples of 3 KiB, as CIFAR has them."""
    source = args.work / "tiny"
    if not source.exists():
        for number in range(50_000):
            path = source / f"{number % 10}" / f"{number:05d}.bmp"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bmp(number))
    pack = args.work / "tiny.pack"
    if not pack.exists():
        subprocess.run([program, "pack", source, pack, "--splits", "none", "--progress", "never"],
                       check=True)
    done = subprocess.run([program, "bench", pack, "--batch", "128", "--epochs", str(args.rounds + 1), "--no-checks",
                           "--json", "--progress", "never"], check=True, capture_output=True)
    epochs = [json.loads(line) for line in done.stdout.splitlines()][2:-1]
    cpu = sorted(epoch["cpu_seconds"] / epoch["samples"] for epoch in epochs)
    speed = sorted(epoch["samples_per_second"] for epoch in epochs)
    print(f"tiny samples: {cpu[len(cpu) // 2] * 1e6:.2f} us of CPU a sample, "
          f"{speed[len(speed) // 2]:,.0f} samples/s")


def bmp(number):
    """A picture of 32 x 32 points, uncompressed."""
    points = number.to_bytes(4, "little") * (3 * 32 * 32 // 4)
    head = b"BM" + (54 + len(points)).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    info = b"".join(value.to_bytes(size, "little") for value, size in (
        (40, 4), (32, 4), (32, 4), (1, 2), (24, 2), (0, 4), (len(points), 4), (2835, 4), (2835, 4), (0, 4), (0, 4)))
    return head + info + points


if __name__ == "__main__":
    main()

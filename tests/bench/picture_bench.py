#!/usr/bin/env python3
"""Decoding with random resized crop, 224 x 224, mirrored with one half, batches in order of an epoch: stripepack.Loader
from a pack; OpenCV from the same pack, which decodes all, then cuts and resizes, in C++; torchvision's ImageFolder with
Pillow from single files in a DataLoader of as many workers as the others have threads.

  picture_bench.py --pictures DIR --work DIR [--copies N] [--rounds N] [--batches N] [--batch N] [--threads N]
                   [--programs BUILD]

DIR holds pictures in class folders; they are copied N times (as files of their own) into WORK and packed. Everything is
read once before. The sides run in turns, each run a process of its own, whose clock starts behind imports and before
the first read. Sides that are not installed or not built are left out, and said. BUILD has the Python module as well.
"""
import argparse
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

from pack_bench import replicate

SIDE = 224
PYTHON_SIDES = ("stripepack, Python", "torchvision, ToTensor", "torchvision, uint8")
C_SIDES = {"stripepack, C++": "stripepack", "OpenCV, INTER_LINEAR": "linear", "OpenCV, INTER_AREA": "area"}


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def from_pack(args, epoch):
    """Yields where the clock starts; then how many pictures a batch has, once it is decoded."""
    sys.path.insert(0, str(args.programs / "python"))
    import stripepack
    from stripepack.image import Pool, RandomResizedCrop
    dataset = stripepack.Dataset(str(args.pack))
    decode = RandomResizedCrop(SIDE, flip=0.5, pool=Pool(args.threads))
    with stripepack.Loader(dataset, batch=args.batch, epoch=epoch, decode=decode) as loader:
        loader.next()
        # Of the batches that are decoded ahead as many are under way now as at the end.
        yield 0
        for _ in range(args.batches):
            yield len(loader.next().pixels)


def from_folder(args, epoch, last):
    import torch
    from torchvision import datasets, transforms
    # What ImageNet's training script of PyTorch's examples does, short of the normalisation.
    dataset = datasets.ImageFolder(str(args.source), transforms.Compose([
        transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(), last(transforms)]))
    chosen = random.Random(epoch).sample(range(len(dataset)), args.batches * args.batch)
    torch.manual_seed(epoch)
    loader = torch.utils.data.DataLoader(torch.utils.data.Subset(dataset, chosen), batch_size=args.batch,
                                         num_workers=args.threads)
    yield 0
    for pixels, _ in loader:
        yield len(pixels)


def run_here(args):
    """One run, in a process of its own: a line of JSON."""
    name, epoch = args.one, args.epoch
    batches = {"stripepack, Python": lambda: from_pack(args, epoch),
               "torchvision, ToTensor": lambda: from_folder(args, epoch, lambda t: t.ToTensor()),
               "torchvision, uint8": lambda: from_folder(args, epoch, lambda t: t.PILToTensor())}[name]()
    next(batches)
    start, cpu, pictures = time.monotonic(), cpu_seconds(), 0
    for count in batches:
        pictures += count
        seconds = time.monotonic() - start
        own_cpu = cpu_seconds() - cpu
    # That of DataLoader's workers is known now that they have ended.
    if name.startswith("torchvision"):
        own_cpu = cpu_seconds() - cpu
    print(json.dumps({"pictures": pictures, "seconds": seconds, "cpu_seconds": own_cpu}))


def run(args, name, epoch):
    """What a run printed, or None where there is no such side."""
    if name in C_SIDES:
        command = [args.programs / "tests/bench/picture_bench", args.pack, C_SIDES[name], str(epoch),
                   str(args.batches), str(args.batch), str(args.threads)]
    else:
        command = [sys.executable, "-B", __file__, *sys.argv[1:], "--batches", str(args.batches),
                   "--one", name, "--epoch", str(epoch)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        print(f"without {name}: {lines[-1] if lines else done.returncode}", flush=True)
        return None
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--copies", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--one", choices=PYTHON_SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--epoch", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.source = args.work / f"pictures-{args.pictures.name}-{args.copies}"
    args.pack = args.work / f"{args.source.name}.pack"
    if args.one:
        run_here(args)
        return
    args.work.mkdir(parents=True, exist_ok=True)
    replicate(args.pictures, args.source, args.copies)
    if not args.pack.exists():
        subprocess.run([args.programs / "stripepack", "pack", args.source, args.pack, "--splits", "none",
                        "--progress", "never"], check=True)
    files = [path for path in args.source.rglob("*") if path.is_file()]
    for path in [*args.pack.glob("*"), *files]:
        path.read_bytes()
    args.batches = min(args.batches, len(files) // args.batch - 1)  # an epoch's, but for the one that is not counted
    if args.batches < 1:
        parser.error(f"{len(files)} pictures are too few for batches of {args.batch}")
    names = [name for name in (*C_SIDES, *PYTHON_SIDES) if run(args, name, 0)]
    runs = {name: [] for name in names}
    for round_number in range(1, args.rounds + 1):
        for name in names:
            runs[name].append(run(args, name, round_number))
    show(args, runs)


def show(args, runs):
    print(f"{args.batches} batches of {args.batch}, {args.threads} threads, medians of {args.rounds} (least to greatest)")
    own = [name for name in runs if name.startswith("stripepack")]
    for name, found in runs.items():
        speed = statistics.median(one["pictures"] / one["seconds"] for one in found)
        cpu = statistics.median(one["cpu_seconds"] / one["pictures"] for one in found)
        print(f"{name:22} {speed:7.0f} pictures/s  {cpu * 1e3:6.3f} CPU s for 1,000")
        for ours in own if name not in own else []:
            ratios = []
            for what in ("seconds", "cpu_seconds"):
                each = sorted(a[what] / a["pictures"] / (b[what] / b["pictures"]) for a, b in zip(found, runs[ours]))
                ratios.append(f"{statistics.median(each):.2f} ({each[0]:.2f} to {each[-1]:.2f})")
            print(f"{'':22} {ours} is {ratios[0]} x as fast, {ratios[1]} x by CPU time")


if __name__ == "__main__":
    main()

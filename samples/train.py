#!/usr/bin/env python3
"""A very small trainer: softmax regression on 8 x 8 thumbnails of the pictures in a pack.

    train.py PACK [--val PACK] [--rank R --world W] [--epochs N] [--limit N]

Each of W ranks reads its own equal part of the pack, without asking the others; here each trains on
its part alone, so that nothing but the reading is shown. Rank and world come from the launcher where
it sets them (torchrun, srun). Needs numpy and Pillow, and the module stripepack: installed, or
PYTHONPATH=build/release/python.
"""
import argparse
import io
import itertools
import os
import time

import numpy
from PIL import Image

import stripepack

THUMBNAIL = 8


def decode(blob):
    """A picture as a vector of THUMBNAIL x THUMBNAIL x 3 numbers in -0.5 .. 0.5, and a 1."""
    picture = Image.open(io.BytesIO(blob)).convert("RGB").resize((THUMBNAIL, THUMBNAIL), Image.BOX)
    return numpy.append(numpy.asarray(picture, numpy.float32).ravel() / 255 - 0.5, 1)


def load(pack, limit, rank=0, world=1):
    """(pictures, labels, bytes) of a rank's part, read chunk by chunk; at most LIMIT pictures."""
    pictures, samples, size = [], [], 0
    for sample, blob in itertools.islice(pack.iterate(rank, world), limit):
        size += len(blob)
        try:
            pictures.append(decode(blob))
            samples.append(sample)
        except OSError:  # a format that this Pillow does not know
            pass
    pictures = numpy.array(pictures, numpy.float32).reshape(len(samples), THUMBNAIL**2 * 3 + 1)
    return pictures, pack.labels[samples].reshape(len(samples), -1)[:, 0], size


def train(pictures, labels, classes, epochs, batch=16, rate=0.5):
    weights = numpy.zeros((pictures.shape[1], classes), numpy.float32)
    order = numpy.random.default_rng(0)
    for _ in range(epochs):
        for step in numpy.array_split(order.permutation(len(labels)), -(-len(labels) // batch)):
            scores = pictures[step] @ weights
            chances = numpy.exp(scores - scores.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            chances[numpy.arange(len(step)), labels[step]] -= 1
            weights -= rate / len(step) * (pictures[step].T @ chances)
    return weights


def environment(*names, default):
    """As text, which argparse reads as what is typed."""
    return next((os.environ[name] for name in names if name in os.environ), default)


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("pack")
    options.add_argument("--val", metavar="PACK", help="a pack to try the result on")
    options.add_argument("--rank", type=int, default=environment("RANK", "SLURM_PROCID", default=0))
    options.add_argument("--world", type=int,
                         default=environment("WORLD_SIZE", "SLURM_NTASKS", default=1))
    options.add_argument("--epochs", type=int, default=60)
    options.add_argument("--limit", type=int, metavar="N", help="read no more than N pictures")
    options = options.parse_args()

    try:
        pack = stripepack.open(options.pack)
    except stripepack.Error as error:
        raise SystemExit(f"train.py: {error}") from None
    if "label" not in pack.fields:
        raise SystemExit(f"train.py: {options.pack}: no labels to train on; a pack has them where its "
                         "pictures lay in folders of classes, or a list told them")
    part = pack.part(options.rank, options.world)
    start = time.perf_counter()
    pictures, labels, size = load(pack, options.limit, options.rank, options.world)
    said = (f"rank {options.rank} of {options.world}: samples {part.start} to {part.stop - 1} of "
            f"{len(pack)}; {len(labels)} pictures, {size / 1e6:.2f} MB, read and decoded in "
            f"{time.perf_counter() - start:.1f} s")
    if len(labels) and labels.min() >= 0:
        classes = max(len(pack.classes), int(labels.max()) + 1)
        weights = train(pictures, labels, classes, options.epochs)
        name = "its part"
        if options.val:
            name = "the val pack"
            pictures, labels, _ = load(stripepack.open(options.val), options.limit)
        right = (numpy.argmax(pictures @ weights, axis=1) == labels).mean()
        said += f"; trained, {100 * right:.0f} % of {name} right"
    print(said + "\n", end="", flush=True)  # in one write, as other ranks write too


if __name__ == "__main__":
    main()

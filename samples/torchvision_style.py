#!/usr/bin/env python3
"""The usual script that trains on a folder of pictures, changed by two lines to train on a pack.

    torchvision_style.py PACK [--epochs N] [--workers N]

What it was before is in the comments that begin with "was". Needs torch and Pillow (and no longer
torchvision). With torchrun, each process trains on its own samples.
"""
import argparse

import torch
import torch.nn.functional as functional
from torch.utils.data import DataLoader

import stripepack.torch

SIDE = 12


def transform(picture):
    picture = picture.resize((SIDE, SIDE))
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    return pixels.view(SIDE, SIDE, 3).permute(2, 0, 1) / 255 - 0.5


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("pack")
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--workers", type=int, default=2)
    options = options.parse_args()
    torch.manual_seed(1)

    # was: train = torchvision.datasets.ImageFolder("pictures/train", transform)
    train = stripepack.torch.ImageFolder(options.pack, transform)
    # was: sampler = torch.utils.data.DistributedSampler(train)
    sampler = stripepack.torch.DistributedSampler(train)

    loader = DataLoader(train, batch_size=16, sampler=sampler, num_workers=options.workers)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(16 * (SIDE // 2) ** 2, len(train.classes)))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        right = 0
        for pictures, targets in loader:
            scores = model(pictures)
            loss = functional.cross_entropy(scores, targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            right += (scores.argmax(1) == targets).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.3f}, {100 * right / len(sampler):.0f} % of "
              f"{len(train.classes)} classes right", flush=True)


if __name__ == "__main__":
    main()

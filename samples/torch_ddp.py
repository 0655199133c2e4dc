#!/usr/bin/env python3
r"""Trains on the pictures of a pack with PyTorch on several processes, stops anywhere, goes on with
another number of them.

    torchrun --nproc_per_node 2 samples/torch_ddp.py PACK [--val PACK] [--epochs N] [--batch B]
             [--checkpoint FILE] [--stop-after STEPS] [--cache DIR]

Each step takes B pictures, of which each process takes an equal part (B must divide by their number).
Where FILE exists the run goes on where it was made: on any number of processes the remaining steps
are of the same pictures, so that the result is that of a run that was never stopped, but for the last
digits. --stop-after saves FILE after so many steps of this start and ends. DIR: where `stripepack
stage` copied PACK, or a part of it, on this node's own disk. Needs torch and Pillow.

torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and so can anything else (in Debian 12
torchrun is missing, and python3 -m torch.distributed.run does not go with its Python):

    for rank in 0 1; do RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
        python3 samples/torch_ddp.py PACK & done; wait
"""
import argparse
import io
import os

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from PIL import Image
from torch.utils.data import DataLoader

import stripepack
from stripepack.torch import StreamingDataset

SIDE = 12


def tensors(batch):
    """(pictures, labels) of a stripepack.Batch."""
    pictures = []
    for blob in batch["image"]:
        picture = Image.open(io.BytesIO(blob)).convert("RGB").resize((SIDE, SIDE), Image.BOX)
        pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
        pictures.append(pixels.view(SIDE, SIDE, 3).permute(2, 0, 1) / 255 - 0.5)
    return torch.stack(pictures), torch.from_numpy(batch.labels)


def model_for(classes):
    torch.manual_seed(1)  # the same on every process, and whatever their number
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(16 * (SIDE // 2) ** 2, classes))


def accuracy(model, pack):
    loader = StreamingDataset(pack, 64, map_batch=tensors, order="sequential", tail="exact",
                              shard=False)
    with torch.no_grad():
        right = [(model(pictures).argmax(1) == labels) for pictures, labels in loader]
    return torch.cat(right).float().mean().item()


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("pack")
    options.add_argument("--val", metavar="PACK")
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--batch", type=int, default=16, metavar="B")
    options.add_argument("--workers", type=int, default=1, help="of each process's DataLoader")
    options.add_argument("--checkpoint", metavar="FILE")
    options.add_argument("--cache", metavar="DIR")
    options.add_argument("--stop-after", type=int, metavar="STEPS")
    options = options.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if options.batch % world != 0:
        raise SystemExit(f"torch_ddp.py: a batch of {options.batch} on {world} processes")
    dataset = StreamingDataset(options.pack, options.batch // world, map_batch=tensors, seed=7,
                               cache=options.cache)
    model = torch.nn.parallel.DistributedDataParallel(model_for(len(dataset.dataset.classes)))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if options.checkpoint and os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        dataset.load_state_dict(saved["data"])

    def save(steps):
        if options.checkpoint and rank == 0:
            torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(),
                        "data": dataset.state_dict(steps=steps)}, options.checkpoint + ".new")
            os.replace(options.checkpoint + ".new", options.checkpoint)

    started = 0
    for epoch in range(dataset.epoch, options.epochs):
        dataset.set_epoch(epoch)
        steps, total = 0, 0.0
        for pictures, labels in DataLoader(dataset, batch_size=None, num_workers=options.workers):
            loss = functional.cross_entropy(model(pictures), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            steps, started, total = steps + 1, started + 1, total + loss.item()
            if started == options.stop_after:
                save(steps)
                if rank == 0:
                    print(f"stopped in epoch {epoch} after {started} steps", flush=True)
                dist.destroy_process_group()
                return
        if rank == 0:
            print(f"epoch {epoch}: {steps} steps, loss {total / max(steps, 1):.4f}", flush=True)
        save(steps)

    if rank == 0:
        weights = sum(value.abs().sum().item() for value in model.parameters())
        said = f"trained on {world} processes; weights {weights:.4f}"
        if options.val:
            right = accuracy(model.module, stripepack.open(options.val))
            said += f"; {100 * right:.0f} % of the val pack right"
        print(said, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

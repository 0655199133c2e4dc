"""Which rank this process is, and who else would divide the samples among ranks."""
import os
import sys
import warnings

import torch

from .._options import integer

_VARIABLES = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))
# Classes that give each process a part of what they iterate over.
_SHARDERS = {
    "accelerate": ("IterableDatasetShard", "BatchSamplerShard", "DataLoaderDispatcher"),
    "lightning": ("DistributedSamplerWrapper", "UnrepeatedDistributedSamplerWrapper"),
}
_SHARDERS["pytorch_lightning"] = _SHARDERS["lightning_fabric"] = _SHARDERS["lightning"]
_printed = set()


def find_rank(rank=None, world=None):
    """(rank, world, where that was found): as given, or of torch.distributed where it is initialised,
    else of RANK and WORLD_SIZE, else of SLURM_PROCID and SLURM_NTASKS, else 0 of 1. ValueError where
    only one is given, or they contradict each other."""
    if (rank is None) != (world is None):
        raise ValueError("give both, the rank and the number of ranks, or neither")
    if rank is not None:
        found = integer("rank", rank), integer("the number of ranks", world, 1), "as given"
    elif torch.distributed.is_available() and torch.distributed.is_initialized():
        found = torch.distributed.get_rank(), torch.distributed.get_world_size(), "torch.distributed"
    else:
        found = 0, 1, "no launcher found"
        for names in _VARIABLES:
            if all(name in os.environ for name in names):
                found = (*map(_number_in, names), " and ".join(names))
                break
    if not 0 <= found[0] < found[1]:
        raise ValueError(f"rank {found[0]} of {found[1]} ranks ({found[2]})")
    return found


def _number_in(name):
    try:
        return int(os.environ[name])
    except ValueError:
        raise ValueError(f"{name} is {os.environ[name]!r}; it is a whole number") from None


def print_rank(what, rank, world, where, order):
    """Tells once what a process takes itself for, which is the first thing to look at when ranks get
    the same samples. Of all ranks the first one does, so that a launcher that was not seen shows as
    many such lines."""
    line = f"stripepack: {what}: rank {rank} of {world} ({where}); {order}"
    if rank == 0 and line not in _printed:
        _printed.add(line)
        print(line, file=sys.stderr, flush=True)


def warn_of_second_sharding(what, world, advice):
    """Warns where a framework gives each process a part of what is a part already."""
    by = _second_sharder() if world > 1 else None
    if by is not None:
        warnings.warn(f"{what} gives each of {world} ranks its own samples, and {by} divides them "
                      f"once more, so that most are never seen: {advice}", RuntimeWarning,
                      stacklevel=3)


def _second_sharder():
    frame = sys._getframe(2)
    while frame is not None:
        kind = type(frame.f_locals.get("self"))
        names = _SHARDERS.get(kind.__module__.partition(".")[0], ())
        if kind.__name__ in names:
            here = frame.f_locals["self"]
            if getattr(here, "num_processes", getattr(here, "num_replicas", 2)) != 1:
                return f"{kind.__module__.partition('.')[0]}'s {kind.__name__}"
        frame = frame.f_back
    # In a DataLoader's worker, whoever iterates over the DataLoader is out of sight.
    state = getattr(sys.modules.get("accelerate.state"), "PartialState", None)
    shared = getattr(state, "_shared_state", None)
    if torch.utils.data.get_worker_info() is not None and shared:
        if getattr(state(), "num_processes", 1) > 1:
            return "accelerate, where it prepares the DataLoader,"
    return None

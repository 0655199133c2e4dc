"""Drop-ins for PyTorch.

Map-style, for the script that there is: ImageFolder instead of torchvision's, and DistributedSampler
instead of torch's, whose order goes chunk by chunk.

    train = stripepack.torch.ImageFolder("imagenet/train", transform)
    sampler = stripepack.torch.DistributedSampler(train)
    for images, targets in torch.utils.data.DataLoader(train, 256, sampler=sampler, num_workers=8):

Streaming, which reads each chunk once: StreamingDataset.

    train = stripepack.torch.StreamingDataset("imagenet/train", 256, transform)
    for images, targets in torch.utils.data.DataLoader(train, batch_size=None, num_workers=8):

Ranks are found in torch.distributed where it is initialised, else in RANK and WORLD_SIZE, else in
SLURM_PROCID and SLURM_NTASKS; what was found is printed once, to standard error.
"""
from .folder import ImageFolder, default_loader
from .ranks import find_rank
from .sampler import DistributedSampler
from .stream import StreamingDataset

__all__ = ["DistributedSampler", "ImageFolder", "StreamingDataset", "default_loader", "find_rank"]

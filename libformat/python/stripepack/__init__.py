"""Reads stripepack packs.

    import stripepack
    dataset = stripepack.open("imagenet/train")
    len(dataset), dataset.classes[:3], dataset.labels   # labels: a numpy array
    sample = dataset[0]                                 # {"image": b"...", "label": 3, ...}
    blobs = dataset.read_many([5, 17, 4])               # one call, neighbours read together

    loader = stripepack.Loader(dataset, batch=256, rank=rank, world=world, seed=7)
    for batch in loader:                                # an epoch, shuffled, read ahead in threads
        batch["image"], batch.labels, batch.ids         # memoryviews without a copy; numpy arrays

stripepack.torch has drop-ins for PyTorch. A dataset never changes and may be used by any number of
threads at once; the interpreter is let go of while bytes are read. It may be used after fork, and
pickled (the other process opens it again). Errors are stripepack.Error, with .code ("damaged",
"not_found", ...), .path, .shard, .offset.

Where the compiled module is missing, a RuntimeWarning says so, and the same interface reads in pure
Python: stripepack.compiled is False then.
"""
from ._core import COMPILED as compiled
from ._core import core as _core_module
from ._errors import SortedStorageWarning
from .batch import Batch
from .dataset import Dataset, Field, open  # pylint: disable=redefined-builtin
from .loader import Loader

Error = _core_module.Error
Pack = Dataset

__all__ = ["Batch", "Dataset", "Error", "Field", "Loader", "Pack", "SortedStorageWarning", "compiled",
           "open"]
__version__ = _core_module.version

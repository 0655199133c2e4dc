from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, BinaryIO

import torch.utils.data

from ..batch import Batch
from ..dataset import Dataset, Engine
from ..loader import Direct, Order, Tail

def default_loader(file: BinaryIO) -> Any: ...
def find_rank(rank: int | None = None, world: int | None = None) -> tuple[int, int, str]: ...

class ImageFolder(torch.utils.data.Dataset[tuple[Any, Any]]):
    dataset: Dataset
    root: str
    classes: list[str]
    class_to_idx: dict[str, int]
    transform: Callable[[Any], Any] | None
    target_transform: Callable[[int], Any] | None
    loader: Callable[[BinaryIO], Any]
    def __init__(self, path: Dataset | str | PathLike[str],
                 transform: Callable[[Any], Any] | None = None,
                 target_transform: Callable[[int], Any] | None = None,
                 loader: Callable[[BinaryIO], Any] | None = None,
                 field: str | None = None,
                 cache: str | PathLike[str] | None = None) -> None: ...
    @property
    def targets(self) -> list[int]: ...
    @property
    def samples(self) -> list[tuple[str, int]]: ...
    @property
    def imgs(self) -> list[tuple[str, int]]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> tuple[Any, Any]: ...
    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, Any]]: ...

class DistributedSampler(torch.utils.data.distributed.DistributedSampler[int]):
    batch_size: int
    def __init__(self, dataset: ImageFolder | Dataset | str | PathLike[str],
                 num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False, batch_size: int = 1,
                 lanes: int | None = None, window: int | None = None) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self, samples: int | None = None) -> dict[str, str]: ...
    def load_state_dict(self, state_dict: dict[str, str]) -> None: ...

class StreamingDataset(torch.utils.data.IterableDataset[Any]):
    dataset: Dataset
    batch_size: int
    shard: bool
    def __init__(self, path: Dataset | str | PathLike[str], batch_size: int = 32,
                 transform: Callable[[Any], Any] | None = None,
                 target_transform: Callable[[int], Any] | None = None,
                 loader: Callable[[BinaryIO], Any] | None = None,
                 collate_fn: Callable[[list[tuple[Any, Any]]], Any] | None = None,
                 decode: Any = None, map_batch: Callable[[Batch], Any] | None = None,
                 field: str | None = None, shard: bool = True, rank: int | None = None,
                 world: int | None = None, seed: int = 0, epoch: int = 0,
                 order: Order = "shuffled", lanes: int | None = None, window: int | None = None,
                 tail: Tail = "drop", cache: str | PathLike[str] | None = None, *,
                 memory: int | None = None, engine: Engine = "auto",
                 direct: Direct = "auto", threads: int = 0, check: bool = True,
                 skip_damaged: bool = False, targets: Sequence[int] | None = None,
                 node_ranks: int | None = None, node_group: str = "",
                 node_memory: int | None = None) -> None: ...
    @property
    def epoch(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self, steps: int | None = None) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

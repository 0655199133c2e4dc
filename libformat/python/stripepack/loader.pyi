from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal

from .batch import Batch
from .dataset import Dataset, Engine

Order = Literal["shuffled", "sequential", "random"]
Tail = Literal["drop", "pad", "exact"]
Direct = Literal["auto", "on", "off"]

class Loader:
    dataset: Dataset
    batch: int
    rank: int
    world: int
    worker: int
    workers: int
    tail: Tail
    order: Order
    seed: int
    lanes: int
    window: int
    def __init__(self, dataset: Dataset | str | PathLike[str], batch: int = 32, rank: int = 0,
                 world: int = 1, seed: int = 0, epoch: int = 0, order: Order = "shuffled",
                 lanes: int | None = None, window: int | None = None, tail: Tail = "drop",
                 worker: int = 0, workers: int = 1, fields: Iterable[str] | None = None,
                 memory: int | None = None, engine: Engine = "auto", direct: Direct = "auto",
                 threads: int = 0, check: bool = True, skip_damaged: bool = False,
                 state: str | None = None, targets: Sequence[int] | None = None,
                 decode: Any = None, node_ranks: int | None = None, node_group: str = "",
                 node_memory: int | None = None) -> None: ...
    @property
    def epoch(self) -> int: ...
    @property
    def stats(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Batch]: ...
    def __enter__(self) -> Loader: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...
    def next(self) -> Batch | None: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state(self) -> str: ...
    def close(self) -> None: ...

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from .batch import Batch

Layout = Literal["HWC", "CHW"]
Size = int | tuple[int, int]
Pictures = Sequence[Any] | tuple[NDArray[np.uint64], NDArray[np.uint64]]

class Pool:
    def __init__(self, threads: int = 0) -> None: ...
    @property
    def threads(self) -> int: ...

def default_pool() -> Pool: ...
def set_threads(threads: int) -> None: ...

class _Operation:
    layout: Layout
    flip: float
    exif_orientation: bool
    max_pixels: int
    field: str | None
    bad: Literal["raise", "zeros"]
    seed: int | None
    pool: Pool | None
    def shape(self, count: int) -> tuple[int, int, int, int] | None: ...
    def crop(self, width: int, height: int, seed: int = 0, epoch: int = 0,
             id: int = 0) -> dict[str, Any]: ...
    def decode_batch(self, batch: Batch, epoch: int = 0, seed: int = 0) -> Any: ...

class RandomResizedCrop(_Operation):
    size: Size
    scale: tuple[float, float]
    ratio: tuple[float, float]
    def __init__(self, size: Size = 224, scale: tuple[float, float] = (0.08, 1.0),
                 ratio: tuple[float, float] = (3 / 4, 4 / 3), layout: Layout = "HWC",
                 flip: float = 0.0, exif_orientation: bool = False, max_pixels: int = 178_956_970,
                 field: str | None = None, bad: Literal["raise", "zeros"] = "raise",
                 seed: int | None = None, pool: Pool | None = None) -> None: ...

class CenterCrop(_Operation):
    size: Size
    resize: int | None
    def __init__(self, size: Size = 224, resize: int | None = None, layout: Layout = "HWC",
                 flip: float = 0.0, exif_orientation: bool = False, max_pixels: int = 178_956_970,
                 field: str | None = None, bad: Literal["raise", "zeros"] = "raise",
                 seed: int | None = None, pool: Pool | None = None) -> None: ...

class Resize(_Operation):
    size: Size
    def __init__(self, size: Size = 256, layout: Layout = "HWC", flip: float = 0.0,
                 exif_orientation: bool = False, max_pixels: int = 178_956_970,
                 field: str | None = None, bad: Literal["raise", "zeros"] = "raise",
                 seed: int | None = None, pool: Pool | None = None) -> None: ...

class FullDecode(_Operation):
    def __init__(self, layout: Layout = "HWC", flip: float = 0.0, exif_orientation: bool = False,
                 max_pixels: int = 178_956_970, field: str | None = None,
                 bad: Literal["raise", "zeros"] = "raise", seed: int | None = None,
                 pool: Pool | None = None) -> None: ...

@overload
def decode_many(pictures: Pictures, op: _Operation, seed: int = 0, epoch: int = 0,
                ids: Sequence[int] | NDArray[np.uint64] | None = None,
                out: NDArray[np.uint8] | None = None, pool: Pool | None = None,
                codes: Literal[False] = False) -> Any: ...
@overload
def decode_many(pictures: Pictures, op: _Operation, seed: int = 0, epoch: int = 0,
                ids: Sequence[int] | NDArray[np.uint64] | None = None,
                out: NDArray[np.uint8] | None = None, pool: Pool | None = None,
                codes: bool = True) -> tuple[Any, NDArray[np.int32]]: ...
def decode(picture: Any, op: _Operation, seed: int = 0, epoch: int = 0,
           id: int = 0) -> NDArray[np.uint8]: ...
def info(picture: Any) -> dict[str, Any]: ...
def formats() -> list[str]: ...

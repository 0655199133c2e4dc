from .batch import Batch as Batch
from .dataset import Dataset as Dataset
from .dataset import Field as Field
from .dataset import open as open
from .loader import Loader as Loader

__version__: str
compiled: bool
Pack = Dataset

class SortedStorageWarning(UserWarning): ...

class Error(Exception):
    code: str
    path: str
    shard: int | None
    offset: int | None
    os_errno: int

"""What the compiled module does, in Python and numpy: slow, but it needs no compiler.

The same names with the same arguments, so that the modules above it do not know the difference. Its
engine is always pread in the calling thread; files are not mapped.
"""

version = "0.1.0"


class Error(Exception):
    """What went wrong: .code, .path, .shard, .offset, .os_errno."""


from .loader import Batch, Loader  # noqa: E402  pylint: disable=wrong-import-position
from .pack import Iterator, Pack  # noqa: E402  pylint: disable=wrong-import-position

__all__ = ["Batch", "Error", "Iterator", "Loader", "Pack", "version"]

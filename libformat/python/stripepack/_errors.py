"""Errors that Python code raises, as the compiled module makes its own."""


class SortedStorageWarning(UserWarning):
    """A pack's storage is sorted by class, and a shuffled order of so few lanes does not mix it well.
    Given once for each pack, where a Loader of it is made."""


def error(code, message, path="", shard=None, offset=None, os_errno=0):
    """A stripepack.Error to raise."""
    from ._core import core  # it is being imported when this module is
    made = core.Error(message)
    made.code, made.path, made.shard, made.offset = code, path, shard, offset
    made.os_errno = os_errno
    return made

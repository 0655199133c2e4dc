"""Reads stripepack packs.

    import stripepack
    pack = stripepack.open("imagenet/train")
    len(pack), pack.classes[:3], pack.labels        # labels: a numpy array
    sample = pack[0]                                # {"image": b"...", "label": 3, ...}
    blobs = pack.read_many([5, 17, 4])              # one call, neighbours read together
    for index, image in pack.iterate(rank, world):  # this rank's part, chunk by chunk
        ...

A pack never changes and may be used by any number of threads at once; the interpreter is let go of
while bytes are read. It may be used after fork, and pickled (the other process opens it again).
Errors are stripepack.Error, with .code ("damaged", "not_found", ...), .path, .shard, .offset.
"""
import operator
import os

from . import _stripepack
from ._stripepack import Error

__all__ = ["Error", "Field", "Pack", "open"]
__version__ = _stripepack.version

_ENGINES = {"auto": 0, "pread": 1, "pool": 2, "uring": 3, "mmap": 4}
_KINDS = {1: "blob", 2: "int64", 3: "float32", 4: "float64"}


class Field:
    """A named value that every sample has: .name, .kind ("blob", "int64", "float32", "float64"),
    .length (numbers a sample; 0: it differs), .number."""

    def __init__(self, number, name, kind, length):
        self.number = number
        self.name = name
        self.kind = _KINDS[kind]
        self.length = length

    def __repr__(self):
        return f"Field({self.name!r}, {self.kind!r}, length={self.length})"


class Pack:
    """An open pack: a sequence of samples in storage order.

    engine: "auto" (mmap on local file systems, threads on network ones), "pread", "pool", "uring"
    or "mmap". threads: of a pool, 0 for a default. check: compare checksums when reading.
    """

    def __init__(self, path, engine="auto", threads=0, check=True):
        if engine not in _ENGINES:
            raise ValueError(f"engine is {engine!r}; choose one of {', '.join(_ENGINES)}")
        self._arguments = (os.fspath(path), engine, threads, check)
        self._pack = _stripepack.Pack(os.fsencode(path), _ENGINES[engine], threads, check)
        self.path = os.fspath(path)
        self.info = self._pack.info()
        self.fields = {field[0]: Field(number, *field)
                       for number, field in enumerate(self._pack.fields())}
        self.classes = [os.fsdecode(name) for name in self._pack.classes()]
        self._labels = None

    def __reduce__(self):
        return Pack, self._arguments

    def __repr__(self):
        return f"<stripepack.Pack {self.path!r}: {len(self)} samples>"

    def __len__(self):
        return self.info["samples"]

    def _sample(self, index):
        number = operator.index(index)
        if number < 0:
            number += len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return number

    def _field(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise KeyError(f"no field {name!r}; there are {', '.join(self.fields)}") from None

    def _blob_field(self, name):
        if name is None:
            for field in self.fields.values():
                if field.kind == "blob":
                    return field
            raise KeyError("this pack has no field of bytes")
        return self._field(name)

    def _values(self, field, index):
        if field.kind == "int64":
            values = self._pack.sample_ints(field.number, index)
        else:
            values = self._pack.sample_floats(field.number, index)
        if field.length != 1:
            return values
        return values[0] if values else None

    def __getitem__(self, index):
        """All fields of a sample: bytes, a number, or a list of numbers; None where absent."""
        index = self._sample(index)
        return {name: self._pack.read(field.number, index) if field.kind == "blob"
                else self._values(field, index)
                for name, field in self.fields.items()}

    @property
    def settings(self):
        """How the pack was made: options and facts of the source."""
        return {os.fsdecode(name): os.fsdecode(value)
                for name, value in self._pack.settings().items()}

    def column(self, name, begin=0, end=None):
        """A numeric field of all samples, or of begin .. end - 1, as a numpy array."""
        field = self._field(name)
        end = len(self) if end is None else end
        if not 0 <= begin <= end <= len(self):
            raise IndexError(f"samples {begin} to {end} of {len(self)}")
        get = self._pack.ints if field.kind == "int64" else self._pack.floats
        return get(field.number, begin, end, field.length)

    @property
    def labels(self):
        """The label of every sample, as a numpy array of int64. Read once."""
        if self._labels is None:
            self._labels = self.column("label")
        return self._labels

    def key(self, index):
        """The name of a sample in its source. Bytes that are no UTF-8 are kept as surrogates."""
        return os.fsdecode(self._pack.key(self._sample(index)))

    def keys(self):
        """The names of all samples, one after the other."""
        return (self.key(index) for index in range(len(self)))

    def find(self, key):
        """The sample with this name. Looks through all names."""
        return self._pack.find_key(os.fsencode(key))

    def read(self, index, field=None):
        """The bytes of one sample's field (the first field of bytes if none is named)."""
        return self._pack.read(self._blob_field(field).number, self._sample(index))

    def read_many(self, indices, field=None):
        """The bytes of many samples, in one call: a list in the order of indices."""
        return self._pack.read_many(self._blob_field(field).number,
                                    [self._sample(index) for index in indices])

    def read_packed(self, indices, field=None):
        """As read_many, but (data, offsets): sample i is data[offsets[i]:offsets[i + 1]], both
        numpy arrays (uint8 and int64)."""
        return self._pack.read_packed(self._blob_field(field).number,
                                      [self._sample(index) for index in indices])

    def locate(self, index, field=None):
        """Where the bytes lie: (shard, offset, size); None where the sample has none."""
        present, shard, offset, size, _ = self._pack.locate(self._blob_field(field).number,
                                                            self._sample(index))
        return (shard, offset, size) if present else None

    def part(self, rank, world):
        """The samples of one rank, a range. Parts differ by one sample at most."""
        return range(*self._pack.part(rank, world))

    def iterate(self, rank=0, world=1, field=None):
        """(index, bytes) for each sample of part(rank, world), read chunk by chunk. An Error of
        code "damaged" costs one sample: the iterator may be asked for the next."""
        return _stripepack.Iterator(self._pack, self._blob_field(field).number, rank, world)


def open(path, engine="auto", threads=0, check=True):  # pylint: disable=redefined-builtin
    """Opens the pack in the directory path. See Pack."""
    return Pack(path, engine, threads, check)

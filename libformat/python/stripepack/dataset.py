"""Datasets: open packs as sequences of samples."""
import collections.abc
import operator
import os

import numpy

from ._core import ENGINES, KINDS, core
from ._errors import error
from ._options import choice, integer, text, whole


class Field:
    """A named value that every sample has: .name, .kind ("blob", "int64", "float32", "float64"),
    .length (numbers a sample; 0: it differs), .number."""

    def __init__(self, number, name, kind, length):
        self.number = number
        self.name = name
        self.kind = KINDS[kind]
        self.length = length

    def __repr__(self):
        return f"Field({self.name!r}, {self.kind!r}, length={self.length})"


class Columns(collections.abc.Mapping):
    """Numeric fields by name, each a numpy array with a row for each sample. Read when first asked
    for, and kept."""

    def __init__(self, dataset):
        self._dataset = dataset
        self._read = {}

    def __getitem__(self, name):
        if name not in self._read:
            field = self._dataset._field(name)
            if field.kind == "blob" or field.length == 0:
                raise KeyError(f"field {name!r} is no column of numbers; there are "
                               f"{', '.join(self) or 'none'}")
            self._read[name] = self._dataset.column(name)
        return self._read[name]

    def __iter__(self):
        return (field.name for field in self._dataset.fields.values()
                if field.kind != "blob" and field.length != 0)

    def __len__(self):
        return sum(1 for _ in self)


class Dataset:
    """An open pack: a sequence of samples in storage order.

    path: the pack's directory. index: the bytes of its index.spki (one rank reads that file and sends
    it to the others); nothing in the directory is then looked at before a sample is read.
    engine: "auto" (mmap on local file systems, threads on network ones), "pread", "pool", "uring"
    or "mmap". threads: of a pool, 0 for a default. check: compare checksums when reading.
    cache: a directory with copies of shards, as `stripepack stage` makes it on a node's own disk: they
    are read instead of the pack's own, which are read for whatever is not there (yet). None: none.

    Never changes: any number of threads may use one, also after fork. Pickled, it is opened again
    by its path in the other process, which must find the same pack there.

    Raises Error: "not_found", "not_this_format" (the message says what it is instead),
    "unsupported", "damaged".
    """

    def __init__(self, path, engine="auto", threads=0, check=True, index=None, cache=None):
        number = choice("engine", engine, ENGINES)
        threads = integer("threads", threads, 0, (1 << 32) - 1)
        self.path = whole("path", os.fspath(path))
        # Absolute in another process, too, which may be in another directory.
        self.cache = None if cache is None else os.path.abspath(whole("cache", os.fsdecode(cache)))
        self._arguments = (self.path, engine, threads, check, self.cache)
        self._pack = core.Pack(os.fsencode(path), index, number, threads, check,
                               os.fsencode(self.cache or ""))
        self.info = self._pack.info()
        self.fields = {field[0]: Field(number, *field)
                       for number, field in enumerate(self._pack.fields())}
        self.classes = [os.fsdecode(name) for name in self._pack.classes()]
        self.columns = Columns(self)

    def __reduce__(self):
        return _open_again, (self._arguments, self.content_id)

    def __repr__(self):
        return f"<stripepack.Dataset {self.path!r}: {len(self)} samples>"

    def __len__(self):
        return self.info["samples"]

    @property
    def content_id(self):
        """32 hex digits that name the content."""
        return self.info["content_id"]

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
        """All fields of a sample by name: bytes, a number, or a list of numbers; None where absent.
        Bytes are read into the object that is given out."""
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
        """A numeric field of all samples, or of begin .. end - 1: a numpy array of int64, float32 or
        float64, of shape (samples,), or (samples, length) where the field's length is not 1. Zeros
        where a sample has no value."""
        field = self._field(name)
        begin = operator.index(begin)
        end = len(self) if end is None else operator.index(end)
        if field.kind == "blob":
            raise KeyError(f"field {name!r} is no column of numbers; there are "
                           f"{', '.join(self.columns) or 'none'}")
        if not 0 <= begin <= end <= len(self):
            raise IndexError(f"samples {begin} to {end} of {len(self)}")
        if field.kind == "int64":
            return self._pack.ints(field.number, begin, end, field.length)
        values = self._pack.floats(field.number, begin, end, field.length)
        return values.astype(numpy.float32) if field.kind == "float32" else values

    @property
    def labels(self):
        """The label of every sample: a numpy array of int64, shape (samples,). Read once."""
        return self.columns["label"]

    def key(self, index):
        """The name of a sample in its source. Bytes that are no UTF-8 are kept as surrogates."""
        return os.fsdecode(self._pack.key(self._sample(index)))

    def keys(self):
        """The names of all samples, one after the other."""
        return (self.key(index) for index in range(len(self)))

    def find(self, key):
        """The sample with this name. Looks through all names. Raises Error "not_found"."""
        return self._pack.find_key(os.fsencode(key))

    def read(self, index, field=None):
        """The bytes of one sample's field (the first field of bytes if none is named); None where
        it has none. Raises Error "damaged"."""
        return self._pack.read(self._blob_field(field).number, self._sample(index))

    def read_many(self, indices, field=None):
        """The bytes of many samples, in one call: a list in the order of indices. Raises Error
        "partial" where some could not be read."""
        return self._pack.read_many(self._blob_field(field).number,
                                    [self._sample(index) for index in indices])

    def read_packed(self, indices, field=None):
        """As read_many, but (data, offsets): sample i is data[offsets[i]:offsets[i + 1]]; numpy
        arrays of uint8, shape (bytes,), and int64, shape (samples + 1,)."""
        return self._pack.read_packed(self._blob_field(field).number,
                                      [self._sample(index) for index in indices])

    def locate(self, index, field=None):
        """Where the bytes lie: (shard, offset, size); None where the sample has none."""
        present, shard, offset, size, _ = self._pack.locate(self._blob_field(field).number,
                                                            self._sample(index))
        return (shard, offset, size) if present else None

    def chunk_samples(self):
        """The first sample of each chunk: a numpy array of uint64, shape (chunks,)."""
        return self._pack.chunk_samples()

    def recorded_targets(self, digest=""):
        """The storage target of each chunk, by a map that is recorded beside the pack (`stripepack
        layout`): a numpy array of uint32, shape (chunks,); empty where none is known. digest: 16
        hexadecimal digits, as behind "map=" in a loader's state; "": the current map.
        Raises Error of code "mismatch" where no such map is recorded."""
        return self._pack.recorded_targets(text("digest", digest))

    def part(self, rank, world):
        """The samples of one rank, a range. Parts differ by one sample at most."""
        return range(*self._pack.part(integer("rank", rank), integer("world", world)))

    def iterate(self, rank=0, world=1, field=None):
        """(index, bytes) for each sample of part(rank, world), read chunk by chunk. An Error of
        code "damaged" costs one sample: the iterator may be asked for the next."""
        return core.Iterator(self._pack, self._blob_field(field).number, integer("rank", rank),
                             integer("world", world))


def open(path, engine="auto", threads=0, check=True,  # pylint: disable=redefined-builtin
         index=None, cache=None):
    """Opens the pack in the directory path. See Dataset."""
    return Dataset(path, engine, threads, check, index, cache)


def as_dataset(path, cache=None):
    """path, where it is a Dataset, or the one that is there."""
    if not isinstance(path, Dataset):
        return Dataset(path, cache=cache)
    if cache is not None:
        raise ValueError("a Dataset has its cache already: give it to Dataset(path, cache=...)")
    return path


def _open_again(arguments, content_id):
    path, engine, threads, check, cache = arguments
    dataset = Dataset(path, engine, threads, check, cache=cache)
    if dataset.content_id != content_id:
        raise error("mismatch", f"{dataset.path}: another pack than the one that was pickled: its "
                    f"content id is {dataset.content_id}, expected {content_id}", dataset.path)
    return dataset

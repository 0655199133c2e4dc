"""Packs: what the index tells of samples, and their bytes."""
import bisect
import functools
import os
import stat
import struct
import threading
import weakref

import numpy

from .._errors import error
from .index import Index, Wrong
from .target_map import recorded_targets
from .xxh3 import xxh3_64

_BLOB, _INT64 = 1, 2
# Of a shard's footer: magic, number of the shard, digest.
_FOOTER = struct.Struct("<8s36xI40xQQ")
_FOOTER_MAGIC = b"SpkFoot1"


def shard_name(shard):
    return f"shard-{shard:05}.spks"


def _read_index(path):
    where = os.path.join(path, "index.spki")
    try:
        if not os.path.exists(path):
            raise error("not_found", f"{path}: there is no such directory", path, os_errno=2)
        if not os.path.exists(os.path.join(path, "manifest.json")):
            raise error("not_this_format", f"{path}: no manifest.json in it, so it is not a pack; "
                        "make one with `stripepack pack`", path)
        with open(where, "rb") as file:
            return file.read()
    except OSError as wrong:
        raise _system_error(where, wrong) from wrong


def _system_error(path, wrong):
    code = {2: "not_found", 13: "denied"}.get(wrong.errno, "io")
    return error(code, f"{path}: {wrong.strerror}", path, os_errno=wrong.errno or 0)


class _Files:
    """The shards' descriptors: of their copies in the cache, where it has them, otherwise by the
    directory as it was when the pack was opened."""

    def __init__(self, path, cache, index):
        self._path = path
        self._cache = cache
        self._index = index
        self._folder = None
        self._shards = {}  # (descriptor, path)
        self._lock = threading.Lock()

    def open_folder(self):
        if self._folder is None:
            try:
                self._folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
            except OSError as wrong:
                raise _system_error(self._path, wrong) from wrong

    def _open_copy(self, shard):
        """A descriptor of the shard in the cache, or None."""
        if not self._cache:
            return None
        try:
            copy = os.open(os.path.join(self._cache, shard_name(shard)), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            if stat.S_ISREG(os.fstat(copy).st_mode) and \
                    os.fstat(copy).st_size == self._index.file_bytes[shard]:
                head = os.pread(copy, _FOOTER.size, self._index.data_bytes[shard])
                if len(head) == _FOOTER.size and _FOOTER.unpack(head) == (
                        _FOOTER_MAGIC, shard, *self._index.digests[shard]):
                    return copy
        except OSError:
            pass
        os.close(copy)
        return None

    def _open(self, shard):
        copy = self._open_copy(shard)
        if copy is not None:
            return copy, os.path.join(self._cache, shard_name(shard))
        path = os.path.join(self._path, shard_name(shard))
        try:
            return os.open(shard_name(shard), os.O_RDONLY, dir_fd=self._folder), path
        except FileNotFoundError as wrong:
            raise error("damaged", f"{path}: this shard is missing", path, shard) from wrong
        except OSError as wrong:
            raise _system_error(path, wrong) from wrong

    def path(self, shard):
        """Of the file that the shard is read from. For one that was read."""
        return self._shards[shard][1]

    def read(self, shard, offset, size):
        with self._lock:
            self.open_folder()
            if shard not in self._shards:
                self._shards[shard] = self._open(shard)
        descriptor, path = self._shards[shard]
        try:
            return self._read(descriptor, offset, size)
        except OSError as wrong:
            raise _system_error(path, wrong) from wrong

    @staticmethod
    def _read(descriptor, offset, size):
        data = os.pread(descriptor, size, offset)
        while len(data) < size:
            more = os.pread(descriptor, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def close(self):
        for fd in [self._folder, *(shard[0] for shard in self._shards.values())]:
            if fd is not None:
                os.close(fd)
        self._folder, self._shards = None, {}


def checked(function):
    """An index that contradicts itself is an Error."""
    @functools.wraps(function)
    def call(self, *arguments):
        try:
            return function(self, *arguments)
        except (Wrong, struct.error) as wrong:
            where = os.path.join(self.path, "index.spki")
            raise error("damaged", f"{where}: the index is damaged: {wrong}", where) from wrong
    return call


class Pack:
    """As the compiled module's."""

    def __init__(self, path, index, engine, threads, check, cache=b""):
        del engine, threads
        self.path = os.fsdecode(path)
        cache = os.path.abspath(os.fsdecode(cache)) if cache else ""
        if cache and os.path.exists(cache) and not os.path.isdir(cache):
            raise error("invalid_argument", f"{cache}: a cache is a directory; this is none", cache)
        self._check = check
        data = _read_index(self.path) if index is None else bytes(index)
        self.index = Index(data, os.path.join(self.path, "index.spki"))
        self._files = _Files(self.path, cache, self.index)
        weakref.finalize(self, self._files.close)
        self._files.open_folder()
        self._tables = {}

    def info(self):
        index = self.index
        return {"format_version": index.version, "samples": index.sample_count,
                "rejects": index.reject_count, "chunks": index.chunk_count,
                "chunk_bytes": index.chunk_bytes, "payload_bytes": index.payload_bytes,
                "shards": index.shard_count, "content_id": index.content_id,
                "plan_id": index.plan_id}

    def fields(self):
        return self.index.fields

    def classes(self):
        return self.index.classes

    def settings(self):
        return self.index.settings

    def _field(self, field, kinds, what):
        name, kind, _ = self.index.fields[field]
        if kind not in kinds:
            raise error("invalid_argument", f"field '{name}' holds no {what}", self.path)

    def _place(self, sample):
        """(shard, row in it)"""
        if not 0 <= sample < self.index.sample_count:
            raise error("invalid_argument",
                        f"there is no sample {sample}; the pack has {self.index.sample_count}")
        shard = bisect.bisect_right(self.index.shard_firsts, sample) - 1
        return shard, sample - int(self.index.shard_firsts[shard])

    def _table(self, name, shard):
        if (name, shard) not in self._tables:
            self._tables[name, shard] = self.index.shard_table(name, shard)
        return self._tables[name, shard]

    @checked
    def key(self, sample):
        shard, row = self._place(sample)
        names = self._table("names", shard)
        ends = names.column("key_end")
        heap = names.find("key_bytes")
        return bytes(heap[int(ends[row - 1]) if row else 0:int(ends[row])])

    @checked
    def find_key(self, key):
        for shard in range(self.index.shard_count):
            keys = self._table("names", shard).strings()
            if key in keys:
                return int(self.index.shard_firsts[shard]) + keys.index(key)
        raise error("not_found", f"there is no sample '{os.fsdecode(key)}'", self.path)

    def _row_values(self, field, sample):
        """Of a numeric field, an array; None where absent."""
        shard, row = self._place(sample)
        table = self._table("samples", shard)
        present = table.find("present", field)
        if present is not None and not present[row]:
            return None
        length = self.index.fields[field][2]
        if length:
            return table.column("value", field, table.rows * length)[row * length:(row + 1) * length]
        ends = table.column("value_end", field)
        start, end = int(ends[row - 1]) if row else 0, int(ends[row])
        values = table.column("value", field, -1)
        if not start <= end <= len(values):
            raise Wrong("numbers lie outside their table")
        return values[start:end]

    @checked
    def sample_ints(self, field, sample):
        self._field(field, (_INT64,), "integers")
        values = self._row_values(field, sample)
        return [] if values is None else values.tolist()

    @checked
    def sample_floats(self, field, sample):
        self._field(field, (3, 4), "floating-point numbers")
        values = self._row_values(field, sample)
        return [] if values is None else values.tolist()

    @checked
    def ints(self, field, begin, end, length):
        self._field(field, (_INT64,), "integers")
        return self._column(field, begin, end, length, numpy.int64)

    @checked
    def floats(self, field, begin, end, length):
        self._field(field, (3, 4), "floating-point numbers")
        return self._column(field, begin, end, length, numpy.float64)

    def _column(self, field, begin, end, length, dtype):
        if length == 0:
            raise error("invalid_argument", f"field '{self.index.fields[field][0]}' has another "
                        "number of values for each sample", self.path)
        out = numpy.zeros((end - begin, length), dtype)
        firsts = self.index.shard_firsts
        for shard in range(self.index.shard_count):
            first, last = max(begin, int(firsts[shard])), min(end, int(firsts[shard + 1]))
            if first < last:
                table = self._table("samples", shard)
                values = table.column("value", field, table.rows * length).reshape(-1, length)
                out[first - begin:last - begin] = values[first - firsts[shard]:last - firsts[shard]]
        return out[:, 0] if length == 1 else out

    @checked
    def locate(self, field, sample):
        self._field(field, (_BLOB,), "bytes")
        shard, row = self._place(sample)
        table = self._table("samples", shard)
        present = table.find("present", field)
        if present is not None and not present[row]:
            return False, 0, 0, 0, 0
        offset, size, checksum = (int(table.column(role, field)[row])
                                  for role in ("blob_offset", "blob_bytes", "blob_checksum"))
        if offset + size > self.index.data_bytes[shard]:
            raise Wrong("bytes lie outside their shard")
        return True, shard, offset, size, checksum

    def read(self, field, sample, check=None):
        """None where the sample has no value."""
        present, shard, offset, size, checksum = self.locate(field, sample)
        if not present:
            return None
        data = self._files.read(shard, offset, size)
        path = self._files.path(shard)
        if len(data) < size:
            what = f"is cut off: {len(data)} of {size} bytes"
        elif (self._check if check is None else check) and xxh3_64(data) != checksum:
            what = "is damaged: its checksum is wrong"
        else:
            return data
        raise error("damaged", f"{path} @{offset}: sample '{os.fsdecode(self.key(sample))}' {what}",
                    path, shard, offset)

    def read_many(self, field, samples):
        blobs, failed = [], []
        for sample in samples:
            try:
                blobs.append(self.read(field, sample))
            except self._errors() as wrong:
                failed.append(wrong)
        if failed:
            first = failed[0]
            raise error("partial", f"{len(failed)} of {len(samples)} samples could not be read: "
                        f"{first}", first.path, first.shard, first.offset)
        return blobs

    @staticmethod
    def _errors():
        return type(error("", ""))

    def read_packed(self, field, samples):
        return pack_blobs(self.read_many(field, samples))

    @checked
    def chunk_samples(self):
        return self.index.chunk_samples()

    @checked
    def recorded_targets(self, digest):
        return recorded_targets(self, digest)

    def part(self, rank, world):
        if not 0 <= rank < world:
            raise error("invalid_argument", f"there is no rank {rank} in a world of {world} ranks")
        count = self.index.sample_count
        return rank * count // world, (rank + 1) * count // world


def pack_blobs(blobs):
    """(data, offsets) of bytes or None each."""
    sizes = [0 if blob is None else len(blob) for blob in blobs]
    data = numpy.frombuffer(b"".join(blob for blob in blobs if blob is not None), numpy.uint8)
    return data.copy(), numpy.cumsum([0] + sizes, dtype=numpy.int64)


class Iterator:
    """(sample, bytes or None) of a part."""

    def __init__(self, pack, field, rank, world):
        self._pack, self._field = pack, field
        self._samples = iter(range(*pack.part(rank, world)))

    def __iter__(self):
        return self

    def __next__(self):
        sample = next(self._samples)
        return sample, self._pack.read(self._field, sample)

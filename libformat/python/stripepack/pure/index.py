"""The index of a pack: docs/FORMAT.md as far as reading needs it."""
import struct

import numpy

from .._errors import error
from .xxh3 import xxh3_64

_MAGIC = b"SpkIndx1"
_VERSION = 1
_HEAD = struct.Struct("<8sQ4Q4I8QIIIBBH6Q")
_SECTION = struct.Struct("<IIQQQ")
_TABLE = struct.Struct("<IIQ")
_COLUMN = struct.Struct("<HHBBBBQQ")
_BLOCK_BYTES = 1 << 20
_MAX_HEAD_BYTES = 1 << 26
_NO_FIELD = 65535
_REQUIRED = 1

_SECTIONS = {"fields": 1, "classes": 2, "settings": 3, "shards": 4, "chunks": 5, "samples": 6,
             "names": 7}
_ROLES = {
    "key_end": 1, "key_bytes": 2, "ordinal": 3, "sample_flags": 4, "blob_offset": 8, "blob_bytes": 9,
    "blob_checksum": 10, "present": 11, "value": 16, "value_end": 17, "slot": 32, "span_slots": 33,
    "first_sample": 34, "sample_count": 35, "header_checksum": 36, "used_bytes": 37,
    "file_bytes": 48, "data_bytes": 49, "chunk_count": 50, "reject_count": 51, "digest_low": 52,
    "digest_high": 53, "chunks_offset": 54, "chunks_bytes": 55, "samples_offset": 56,
    "samples_bytes": 57, "names_offset": 58, "names_bytes": 59, "field_kind": 64,
    "field_length": 65,
}
_KNOWN_ROLES = frozenset(_ROLES.values())
_TYPES = {1: "u", 2: "i", 3: "f"}
_BYTES = 4


class Wrong(Exception):
    """The bytes contradict themselves; whoever knows the file makes an Error of it."""


def _require(condition, what):
    if not condition:
        raise Wrong(what)


class Table:
    """Columns by (role, field), as numpy arrays."""

    def __init__(self, data):
        _require(len(data) >= _TABLE.size, "a table is cut off")
        count, _, self.rows = _TABLE.unpack_from(data)
        _require(_TABLE.size + count * _COLUMN.size <= len(data), "a table is cut off")
        self._columns = {}
        for i in range(count):
            field, role, kind, width, flags, _, offset, size = _COLUMN.unpack_from(
                data, _TABLE.size + i * _COLUMN.size)
            if role not in _KNOWN_ROLES:
                if flags & _REQUIRED:
                    raise error("unsupported", f"a column with role {role} must be known")
                continue
            _require(offset + size <= len(data) and width in (1, 2, 4, 8) and size % width == 0,
                     "a column lies outside its table")
            if kind == _BYTES:
                column = data[offset:offset + size]
            else:
                _require(kind in _TYPES and (kind != 3 or width >= 4), "a column of an unknown type")
                column = numpy.frombuffer(data, f"<{_TYPES[kind]}{width}", size // width, offset)
            self._columns[role, field] = column

    def find(self, role, field=_NO_FIELD):
        return self._columns.get((_ROLES[role], field))

    def column(self, role, field=_NO_FIELD, count=None):
        """An array with one element a row, or count."""
        column = self.find(role, field)
        count = self.rows if count is None else count
        _require(isinstance(column, numpy.ndarray) and (count < 0 or len(column) == count),
                 f"there is no column {role} as it should be")
        return column

    def strings(self, ends="key_end", heap="key_bytes"):
        """[bytes]"""
        heap = self.find(heap)
        ends = self.column(ends).tolist()
        _require(isinstance(heap, (bytes, memoryview)) and all(
            a <= b for a, b in zip([0] + ends, ends)) and (not ends or ends[-1] <= len(heap)),
                 "names lie outside their table")
        return [bytes(heap[a:b]) for a, b in zip([0] + ends, ends)]


class Index:
    """data: the bytes of index.spki. Raises Error where they are none, or damaged."""

    def __init__(self, data, where):
        self._data = memoryview(data)
        try:
            self._read_head(where)
            self._read_sections()
        except (Wrong, struct.error, ValueError, IndexError, OverflowError) as wrong:
            raise error("damaged", f"{where}: the index is damaged: {wrong}", where) from wrong

    def _read_head(self, where):
        data = self._data
        if len(data) < _HEAD.size or bytes(data[:8]) != _MAGIC:
            raise error("not_this_format", f"{where}: not an index of stripepack", where)
        (_, checksum, plan_low, plan_high, content_low, content_high, version, features, _,
         self.shard_count, self.chunk_count, self.sample_count, self.reject_count,
         self.payload_bytes, file_bytes, head_bytes, _, _, sections, blocks, _, chunk_log2, _, _,
         overlay_low, overlay_high, *_) = _HEAD.unpack_from(data)
        _require(_HEAD.size <= head_bytes <= min(len(data), _MAX_HEAD_BYTES), "its head is cut off")
        _require(xxh3_64(data[16:head_bytes]) == checksum, "the checksum of its head is wrong")
        if version > _VERSION or features or overlay_low or overlay_high:
            raise error("unsupported", f"{where}: version {version} with features {features:#x}; this "
                        "stripepack reads version 1", where)
        _require(file_bytes == len(data), f"it has {len(data)} bytes, expected {file_bytes}")
        self.version = version
        self.chunk_bytes = 1 << chunk_log2
        self.plan_id = f"{plan_high:016x}{plan_low:016x}"
        self.content_id = f"{content_high:016x}{content_low:016x}"
        at = _HEAD.size
        self._sections = {}
        for _ in range(sections):
            kind, flags, offset, size, _ = _SECTION.unpack_from(data, at)
            at += _SECTION.size
            _require(head_bytes <= offset and offset + size <= len(data), "a section lies outside it")
            if flags & _REQUIRED and kind not in (*_SECTIONS.values(), 8):
                raise error("unsupported", f"{where}: a section of kind {kind} must be known", where)
            self._sections[kind] = (offset, size)
        sums = struct.unpack_from(f"<{blocks}Q", data, at)
        _require(len(sums) == -(-(len(data) - head_bytes) // _BLOCK_BYTES), "it lacks blocks")
        for number, checksum in enumerate(sums):
            start = head_bytes + number * _BLOCK_BYTES
            _require(xxh3_64(data[start:start + _BLOCK_BYTES]) == checksum,
                     f"the checksum of block {number} is wrong")

    def section(self, name):
        _require(_SECTIONS[name] in self._sections, f"it has no section '{name}'")
        offset, size = self._sections[_SECTIONS[name]]
        return self._data[offset:offset + size]

    def _read_sections(self):
        fields = Table(self.section("fields"))
        self.fields = [(name.decode(), kind, length) for name, kind, length in zip(
            fields.strings(), fields.column("field_kind").tolist(),
            fields.column("field_length").tolist())]
        for name, kind, _ in self.fields:
            if kind not in (1, 2, 3, 4):
                raise error("unsupported", f"field '{name}' is of kind {kind}")
        self.classes = Table(self.section("classes")).strings()
        settings = Table(self.section("settings"))
        self.settings = dict(zip(settings.strings(), settings.strings("value_end", "value")))
        shards = Table(self.section("shards"))
        _require(shards.rows == self.shard_count, "it tells of another number of shards")
        self._places = {name: [shards.column(f"{name}_{what}").tolist() for what in
                               ("offset", "bytes")] for name in ("chunks", "samples", "names")}
        self.data_bytes = shards.column("data_bytes").tolist()
        self.file_bytes = shards.column("file_bytes").tolist()
        self.digests = list(zip(shards.column("digest_low").tolist(),
                                shards.column("digest_high").tolist()))
        # The first sample of each shard, and behind the last the number of samples.
        self.shard_firsts = numpy.cumsum([0] + shards.column("sample_count").tolist())
        _require(self.shard_firsts[-1] == self.sample_count, "shards have another number of samples")

    def shard_table(self, name, shard):
        offset, size = (numbers[shard] for numbers in self._places[name])
        _require(offset + size <= len(self._data), "a shard's table lies outside it")
        return Table(self._data[offset:offset + size])

    def chunk_places(self):
        """(shard, offset in its file) of each chunk."""
        return [(shard, slot * self.chunk_bytes) for shard in range(self.shard_count)
                for slot in self.shard_table("chunks", shard).column("slot").tolist()]

    def chunk_samples(self):
        """The first sample of each chunk."""
        firsts = [self.shard_table("chunks", shard).column("first_sample").astype(numpy.uint64)
                  + numpy.uint64(self.shard_firsts[shard]) for shard in range(self.shard_count)]
        return numpy.concatenate(firsts or [numpy.zeros(0, numpy.uint64)])

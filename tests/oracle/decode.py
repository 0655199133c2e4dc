#!/usr/bin/env python3
"""Reads stripepack packs with nothing but the Python standard library.

Written from docs/FORMAT.md alone, as a check of that document and of the C++ code. It refuses what
the document says a reader must refuse, and opening a pack checks it completely unless told otherwise.

    decode.py PACK                    check everything, print a summary
    decode.py PACK --json             print everything as JSON (floats as the hex digits of their bits)
    decode.py PACK --json --content   ... with the blobs' bytes in hex
    decode.py PACK --cat KEY          write one sample's first blob to standard output

Exit codes: 0 all is well, 1 damaged, 2 usage or no such sample, 5 not a pack or not supported.
"""

import argparse
import hashlib
import json
import os
import re
import struct
import sys

from xxh3 import xxh3_64, xxh3_128

FORMAT_VERSION = 1
NO_FIELD = 65535
MIN_CHUNK_LOG2, MAX_CHUNK_LOG2 = 16, 26
MAX_BLOB_ALIGN_LOG2 = 12
FOOTER_ALIGN = 4096
TABLE_ALIGN = 8
SECTION_ALIGN = 64
INDEX_BLOCK_BYTES = 1048576
MAX_COLUMNS = 8192
MAX_FIELDS = 1024
MAX_PARTS = 64
MAX_TABLE_BYTES = 1 << 30
MAX_SHARDS = 1048576
MAX_INDEX_HEAD_BYTES = 67108864

TYPE_UNSIGNED, TYPE_SIGNED, TYPE_FLOAT, TYPE_BYTES = 1, 2, 3, 4
COLUMN_REQUIRED = 1
PART_REQUIRED = 1

# Roles that this reader knows; codec (12) and shape (13) are reserved, so not among them.
ROLES = {
    "key_end": 1, "key_bytes": 2, "ordinal": 3, "sample_flags": 4,
    "blob_offset": 8, "blob_bytes": 9, "blob_checksum": 10, "present": 11,
    "value": 16, "value_end": 17,
    "slot": 32, "span_slots": 33, "first_sample": 34, "sample_count": 35,
    "header_checksum": 36, "used_bytes": 37,
    "file_bytes": 48, "data_bytes": 49, "chunk_count": 50, "reject_count": 51,
    "digest_low": 52, "digest_high": 53, "chunks_offset": 54, "chunks_bytes": 55,
    "samples_offset": 56, "samples_bytes": 57, "names_offset": 58, "names_bytes": 59,
    "field_kind": 64, "field_length": 65,
}  # fmt: skip
KNOWN_ROLES = frozenset(ROLES.values())

KINDS = {1: "blob", 2: "int64", 3: "float32", 4: "float64"}

PARTS = {
    "fields": 1, "classes": 2, "settings": 3, "shards": 4,
    "chunks": 5, "samples": 6, "names": 7, "rejects": 8,
}  # fmt: skip
KNOWN_PARTS = frozenset(PARTS.values())


# --- Errors --------------------------------------------------------------------------------------


class PackError(Exception):
    """The bytes are not what a reader may accept. `where` is added on the way up."""

    def __init__(self, message):
        super().__init__(message)
        self.where = []

    def __str__(self):
        return ": ".join(self.where + [super().__str__()])


class NotThisFormat(PackError):
    """Something else altogether."""


class Unsupported(PackError):
    """Ours, but newer or needing something that this reader does not know."""


class Damaged(PackError):
    """Ours, but contradicting a checksum, a rule or itself."""


class NotFound(PackError):
    """No such sample, field or value."""


class at:
    """with at("shard 3"): ... names the place in any PackError raised inside."""

    def __init__(self, where):
        self.where = where

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, PackError):
            error.where.insert(0, self.where)
        return False


def require(condition, message):
    if not condition:
        raise Damaged(message)


def require_supported(condition, message):
    if not condition:
        raise Unsupported(message)


def require_zero(data, what):
    require(data.count(0) == len(data), "padding is not zero: " + what)


# --- Small things --------------------------------------------------------------------------------


def round_up(value, align):
    return (value + align - 1) // align * align


def hex64(value):
    return "%016x" % value


def hex128(low, high):
    return "%016x%016x" % (high, low)


def hash_numbers(numbers):
    """XXH3-128 over u64s one after another."""
    return xxh3_128(struct.pack("<%dQ" % len(numbers), *numbers))


_WELL_FORMED = re.compile(
    rb"[\x00-\x7f]"
    rb"|[\xc2-\xdf][\x80-\xbf]"
    rb"|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)


def escape(data):
    """Keys as text: bytes to str, reversibly."""
    out = []
    start = 0
    while start < len(data):
        match = _WELL_FORMED.match(data, start)
        byte = data[start]
        if byte == 0x5C:
            out.append("\\\\")
        elif match is None or byte < 0x20 or byte == 0x7F:
            out.append("\\x%02x" % byte)
        else:
            out.append(match.group().decode())
        start = match.end() if match else start + 1
    return "".join(out)


def unescape(text):
    """The bytes that escape() wrote; ValueError where it cannot have written them."""
    parts = re.split(r"(\\\\|\\x[0-9a-f]{2})", text)
    data = b"".join(
        (b"\\" if part == "\\\\" else bytes([int(part[2:], 16)])) if i % 2 else part.encode()
        for i, part in enumerate(parts)
    )
    if escape(data) != text:
        raise ValueError("not an escaped key: %r" % text)
    return data


# --- Fixed records -------------------------------------------------------------------------------


class RecordType:
    """A fixed record: names and types of its fields, in order and without gaps."""

    _CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}

    def __init__(self, name, layout):
        pairs = [field.split(":") for field in layout.split()]
        self.name = name
        self.names = [field for field, _ in pairs]
        self.packing = struct.Struct("<" + "".join(self._CODES[kind] for _, kind in pairs))
        self.size = self.packing.size

    def decode(self, data, offset=0):
        require(len(data) - offset >= self.size, "%s is cut off" % self.name)
        record = Record()
        record.__dict__.update(zip(self.names, self.packing.unpack_from(data, offset)))
        return record


class Record:
    """A decoded record; its fields are attributes."""

    def check_reserved(self, what):
        for name, value in self.__dict__.items():
            if name.startswith("reserved"):
                require_supported(value == 0, "reserved bytes of %s are in use" % what)

    def check_version(self, what):
        require_supported(
            1 <= self.version <= FORMAT_VERSION, "%s has version %d" % (what, self.version)
        )
        features = self.__dict__.get("features_incompatible", 0)
        require_supported(features == 0, "%s needs features %#x" % (what, features))

    @property
    def plan_id(self):
        return self.plan_id_low, self.plan_id_high


CHUNK_HEADER = RecordType(
    "chunk header",
    "magic:u64 checksum:u64 plan_id_low:u64 plan_id_high:u64 version:u32 features_incompatible:u32 "
    "features_compatible:u32 shard:u32 chunk:u32 slot:u32 span_slots:u32 sample_count:u32 "
    "first_sample:u64 table_bytes:u64 payload_offset:u64 used_bytes:u64 chunk_bytes_log2:u8 "
    "blob_align_log2:u8 header_bytes:u16 reserved_0:u32 reserved_1:u64 reserved_2:u64 "
    "reserved_3:u64",
)
TABLE_HEADER = RecordType("table header", "column_count:u32 reserved_0:u32 row_count:u64")
COLUMN_HEADER = RecordType(
    "column header",
    "field:u16 role:u16 type:u8 width:u8 flags:u8 reserved_0:u8 offset:u64 bytes:u64",
)
FOOTER_HEADER = RecordType(
    "footer header",
    "magic:u64 checksum:u64 plan_id_low:u64 plan_id_high:u64 version:u32 features_incompatible:u32 "
    "features_compatible:u32 shard:u32 shard_count:u32 chunk_count:u32 sample_count:u64 "
    "reject_count:u64 data_bytes:u64 footer_bytes:u64 digest_low:u64 digest_high:u64 "
    "schema_hash_low:u64 schema_hash_high:u64 part_count:u32 chunk_bytes_log2:u8 "
    "blob_align_log2:u8 header_bytes:u16 first_position:u64 position_count:u64 payload_bytes:u64 "
    "reserved_0:u64",
)
PART_ENTRY = RecordType("part entry", "kind:u32 flags:u32 offset:u64 bytes:u64 checksum:u64")
TRAILER = RecordType(
    "trailer",
    "magic:u64 checksum:u64 footer_offset:u64 footer_bytes:u64 footer_checksum:u64 plan_id_low:u64 "
    "plan_id_high:u64 shard:u32 version:u32",
)
INDEX_HEADER = RecordType(
    "index header",
    "magic:u64 checksum:u64 plan_id_low:u64 plan_id_high:u64 content_id_low:u64 content_id_high:u64 "
    "version:u32 features_incompatible:u32 features_compatible:u32 shard_count:u32 chunk_count:u64 "
    "sample_count:u64 reject_count:u64 payload_bytes:u64 file_bytes:u64 head_bytes:u64 "
    "schema_hash_low:u64 schema_hash_high:u64 section_count:u32 block_count:u32 revision:u32 "
    "chunk_bytes_log2:u8 blob_align_log2:u8 header_bytes:u16 overlay_low:u64 overlay_high:u64 "
    "reserved_0:u64 reserved_1:u64 reserved_2:u64 reserved_3:u64",
)


def magic(text):
    return int.from_bytes(text, "little")


CHUNK_MAGIC = magic(b"SpkChnk1")
FOOTER_MAGIC = magic(b"SpkFoot1")
TRAILER_MAGIC = magic(b"SpkTail1")
INDEX_MAGIC = magic(b"SpkIndx1")


def check_geometry(header):
    require(
        MIN_CHUNK_LOG2 <= header.chunk_bytes_log2 <= MAX_CHUNK_LOG2
        and header.blob_align_log2 <= MAX_BLOB_ALIGN_LOG2,
        "chunk_bytes_log2 or blob_align_log2 is out of range",
    )


def check_parts(parts, head_end, limit, checksums_are_zero):
    """Places, kinds and flags of a part or section list. Returns where the last one ends."""
    end = head_end
    kinds = set()
    for part in parts:
        require(
            part.offset == round_up(end, SECTION_ALIGN) and part.bytes <= limit - part.offset,
            "part of kind %d lies at %d with %d bytes" % (part.kind, part.offset, part.bytes),
        )
        require(part.kind not in kinds, "two parts of kind %d" % part.kind)
        kinds.add(part.kind)
        require(part.flags & ~PART_REQUIRED == 0, "part has flags %#x" % part.flags)
        require(not checksums_are_zero or part.checksum == 0, "section has a checksum of its own")
        require_supported(
            part.kind in KNOWN_PARTS or not part.flags & PART_REQUIRED,
            "part of kind %d must be known" % part.kind,
        )
        end = part.offset + part.bytes
    return end


# --- Tables --------------------------------------------------------------------------------------


class Column:
    def __init__(self, header, data):
        self.type = header.type
        self.width = header.width
        self.data = data

    def numbers(self):
        """All elements as integers; floats as their bits."""
        code = {1: "b", 2: "h", 4: "i", 8: "q"}[self.width]
        if self.type != TYPE_SIGNED:
            code = code.upper()
        return struct.unpack("<%d%s" % (len(self.data) // self.width, code), self.data)


class Table:
    """Columns by (field, role). Every check that needs no other knowledge is made at once."""

    def __init__(self, data):
        header = TABLE_HEADER.decode(data)
        header.check_reserved("a table header")
        end = TABLE_HEADER.size + header.column_count * COLUMN_HEADER.size
        require(header.column_count <= MAX_COLUMNS and end <= len(data), "table is cut off")
        self.data = data
        self.rows = header.row_count
        self._columns = {}
        self._gaps = []
        names = set()
        for i in range(header.column_count):
            column = COLUMN_HEADER.decode(data, TABLE_HEADER.size + i * COLUMN_HEADER.size)
            column.check_reserved("a column header")
            require_supported(column.flags & ~COLUMN_REQUIRED == 0, "unknown column flags")
            known = column.role in KNOWN_ROLES
            require_supported(
                known or not column.flags & COLUMN_REQUIRED,
                "column with role %d must be known" % column.role,
            )
            require(
                column.offset == end and column.bytes <= len(data) - column.offset,
                "column %d lies at %d, expected %d" % (i, column.offset, end),
            )
            data_end = column.offset + column.bytes
            end = round_up(data_end, TABLE_ALIGN)
            require(end <= len(data), "column %d is cut off" % i)
            self._gaps.append((data_end, end))
            name = (column.field, column.role)
            require(name not in names, "two columns with field %d, role %d" % name)
            names.add(name)
            if not known:
                continue
            require(
                column.width in (1, 2, 4, 8)
                and TYPE_UNSIGNED <= column.type <= TYPE_BYTES
                and column.bytes % column.width == 0,
                "column %d has type %d, width %d" % (i, column.type, column.width),
            )
            self._columns[name] = Column(column, data[column.offset : data_end])
        require(end == len(data), "table ends at %d of %d bytes" % (end, len(data)))

    def check_padding(self):
        for start, end in self._gaps:
            require_zero(self.data[start:end], "table column")

    def find(self, role, field=NO_FIELD):
        return self._columns.get((field, ROLES[role]))

    def column(self, role, field, kind, count):
        column = self.find(role, field)
        require(column is not None, "no column %s for field %d" % (role, field))
        require(column.type == kind, "column %s has type %d" % (role, column.type))
        require(
            count is None or len(column.data) == count * column.width,
            "column %s has %d bytes of width %d; expected %s elements"
            % (role, len(column.data), column.width, count),
        )
        return column

    def unsigned(self, role, field=NO_FIELD):
        return self.column(role, field, TYPE_UNSIGNED, self.rows).numbers()

    def ends(self, role, field=NO_FIELD):
        """An end column; returns the ends and the total."""
        ends = self.unsigned(role, field)
        previous = 0
        for end in ends:
            require(end >= previous, "%s falls" % role)
            previous = end
        return ends, previous

    def strings(self, end_role, heap_role):
        ends, total = self.ends(end_role)
        heap = self.column(heap_role, NO_FIELD, TYPE_BYTES, None).data
        require(total == len(heap), "%s ends at %d, its heap at %d" % (end_role, total, len(heap)))
        return [heap[start:end] for start, end in zip((0,) + ends, ends)]

    def keys(self):
        return self.strings("key_end", "key_bytes")


# --- Schema and settings -------------------------------------------------------------------------


class Field:
    def __init__(self, name, kind, length):
        self.name = name
        self.kind = kind
        self.length = length

    @property
    def is_blob(self):
        return self.kind == "blob"


class Schema:
    def __init__(self, fields_part, classes_part):
        table = Table(fields_part)
        require(table.rows <= MAX_FIELDS, "too many fields")
        self.hash = xxh3_128(fields_part + classes_part)
        self.fields = []
        names = set()
        for name, kind, length in zip(
            table.keys(), table.unsigned("field_kind"), table.unsigned("field_length")
        ):
            try:
                text = name.decode()
            except UnicodeDecodeError:
                raise Damaged("field name is not UTF-8") from None
            require(text and text not in names, "field name is empty or repeated")
            names.add(text)
            require_supported(kind in KINDS, "field %s has kind %d" % (text, kind))
            field = Field(text, KINDS[kind], length)
            require(length < 1 << 32 and (length == 1 or not field.is_blob), "bad field length")
            self.fields.append(field)
        classes = Table(classes_part)
        self.classes = classes.keys()
        self._tables = (table, classes)

    def check_padding(self):
        for table in self._tables:
            table.check_padding()

    def number(self, name):
        for number, field in enumerate(self.fields):
            if field.name == name:
                return number
        raise NotFound("no field %r" % name)


def decode_settings(part):
    table = Table(part)
    table.check_padding()
    return list(zip(table.keys(), table.strings("value_end", "value")))


# --- Samples -------------------------------------------------------------------------------------


class Blob:
    def __init__(self, offset, size, checksum):
        self.offset = offset
        self.size = size
        self.checksum = checksum

    def check(self, data):
        actual = xxh3_64(data)
        require(
            actual == self.checksum,
            "blob has checksum %s, expected %s" % (hex64(actual), hex64(self.checksum)),
        )
        return data


def decode_values(table, schema):
    """The rows of a sample table as (flags, values): a value is None, a Blob, or a tuple of integers
    (floats as their bits)."""
    rows = table.rows
    flags = (0,) * rows
    if table.find("sample_flags") is not None:
        require(table.find("sample_flags").width == 1, "sample_flags is not one byte wide")
        flags = table.unsigned("sample_flags")
    columns = []
    for number, field in enumerate(schema.fields):
        present = None
        if table.find("present", number) is not None:
            present = table.unsigned("present", number)
            require(all(value <= 1 for value in present), "present is neither 0 nor 1")
        decode = _decode_blobs if field.is_blob else _decode_numbers
        columns.append(decode(table, number, field, present))
    return flags, list(zip(*columns)) if columns else [()] * rows


def _decode_blobs(table, number, field, present):
    blobs = list(
        zip(
            table.unsigned("blob_offset", number),
            table.unsigned("blob_bytes", number),
            table.unsigned("blob_checksum", number),
        )
    )
    values = []
    for row, blob in enumerate(blobs):
        if present is None or present[row]:
            values.append(Blob(*blob))
        else:
            require(blob == (0, 0, 0), "absent blob of %s has numbers" % field.name)
            values.append(None)
    return values


def _decode_numbers(table, number, field, present):
    if field.length:
        ends = tuple(range(field.length, table.rows * field.length + 1, field.length))
        total = table.rows * field.length
    else:
        ends, total = table.ends("value_end", number)
    kind = TYPE_SIGNED if field.kind == "int64" else TYPE_FLOAT
    column = table.column("value", number, kind, total)
    if kind == TYPE_FLOAT:
        require(column.width == (4 if field.kind == "float32" else 8), "float of wrong width")
    stored = column.numbers()
    values = []
    for row, (start, end) in enumerate(zip((0,) + ends, ends)):
        if present is None or present[row]:
            values.append(stored[start:end])
        else:
            absent = stored[start:end]
            require(not any(absent), "absent value of %s is not zero" % field.name)
            require(field.length or not absent, "absent value of %s has elements" % field.name)
            values.append(None)
    return values


def to_numbers(field, stored):
    """Stored integers as what they mean."""
    if field.kind == "int64":
        return stored
    code = ("f", "I") if field.kind == "float32" else ("d", "Q")
    packed = struct.pack("<%d%s" % (len(stored), code[1]), *stored)
    return struct.unpack("<%d%s" % (len(stored), code[0]), packed)


class Sample:
    def __init__(self, key, ordinal, flags, values):
        self.key = key
        self.ordinal = ordinal
        self.flags = flags
        self.values = values


# --- Chunks --------------------------------------------------------------------------------------


class ChunkRow:
    """A row of the chunks table."""

    COLUMNS = ("slot", "span_slots", "first_sample", "sample_count", "header_checksum", "used_bytes")

    def __init__(self, values):
        self.__dict__.update(zip(self.COLUMNS, values))


def decode_chunk_rows(table):
    rows = [
        ChunkRow(values) for values in zip(*(table.unsigned(name) for name in ChunkRow.COLUMNS))
    ]
    slot = sample = 0
    for row in rows:
        require(
            row.slot == slot and row.first_sample == sample, "chunks do not follow one another"
        )
        require(row.span_slots >= 1 and row.sample_count >= 1, "empty chunk")
        slot += row.span_slots
        sample += row.sample_count
        require(slot < 1 << 32, "too many slots")
    return rows, sample


class Chunk:
    """One chunk, checked completely. `data` is all of its slots, up to the end of the shard's data."""

    def __init__(self, data, schema):
        header = CHUNK_HEADER.decode(data)
        if header.magic != CHUNK_MAGIC:
            raise NotThisFormat("no chunk here")
        self.header = header
        self._check_numbers(header)
        table_end = CHUNK_HEADER.size + header.table_bytes
        require(header.used_bytes <= len(data), "chunk is cut off")
        require(xxh3_64(data[16:table_end]) == header.checksum, "chunk header's checksum is wrong")
        header.check_version("chunk")
        header.check_reserved("a chunk header")
        table = Table(data[CHUNK_HEADER.size : table_end])
        require(table.rows == header.sample_count, "row count differs from the header")
        table.check_padding()
        flags, values = decode_values(table, schema)
        self.samples = [
            Sample(*row) for row in zip(table.keys(), table.unsigned("ordinal"), flags, values)
        ]
        self._check_payloads(data, table_end)

    @staticmethod
    def _check_numbers(header):
        require(header.header_bytes == CHUNK_HEADER.size, "header_bytes is not 128")
        check_geometry(header)
        require(header.table_bytes <= MAX_TABLE_BYTES, "table is too large")
        align = 1 << header.blob_align_log2
        require(
            header.payload_offset == round_up(CHUNK_HEADER.size + header.table_bytes, align)
            and header.payload_offset <= header.used_bytes,
            "payload_offset is wrong",
        )
        chunk_bytes = 1 << header.chunk_bytes_log2
        require(
            header.span_slots == round_up(header.used_bytes, chunk_bytes) // chunk_bytes,
            "span_slots is wrong",
        )
        require(
            header.sample_count == 1 or (header.sample_count > 1 and header.span_slots == 1),
            "sample_count is wrong",
        )

    def _check_payloads(self, data, table_end):
        header = self.header
        align = 1 << header.blob_align_log2
        end = header.payload_offset
        require_zero(data[table_end:end], "before the payloads")
        for sample in self.samples:
            for value in sample.values:
                if not isinstance(value, Blob):
                    continue
                with at("sample '%s'" % escape(sample.key)):
                    require(value.offset == round_up(end, align), "blob is not where it should be")
                    require(value.size <= header.used_bytes - value.offset, "blob is too long")
                    require_zero(data[end : value.offset], "before a blob")
                    end = value.offset + value.size
                    value.check(data[value.offset : end])
        require(end == header.used_bytes, "used_bytes is wrong")
        require_zero(data[end:], "behind the payloads")


# --- Shards --------------------------------------------------------------------------------------


class File:
    def __init__(self, path):
        self.path = path
        self._fd = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._fd).st_size

    def read(self, offset, size):
        require(0 <= offset and offset + size <= self.size, "file is cut off")
        pieces = []
        while size:
            piece = os.pread(self._fd, min(size, 1 << 30), offset)
            require(piece, "file is cut off")
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def close(self):
        os.close(self._fd)


class Shard:
    """A shard by itself: what its footer says."""

    def __init__(self, path):
        self.file = File(path)
        try:
            self._read_trailer()
            self._read_header()
        except PackError:
            self.file.close()
            raise

    def close(self):
        self.file.close()

    def _read_trailer(self):
        if self.file.size < TRAILER.size:
            raise NotThisFormat("too short to be a shard")
        data = self.file.read(self.file.size - TRAILER.size, TRAILER.size)
        trailer = TRAILER.decode(data)
        if trailer.magic != TRAILER_MAGIC:
            raise NotThisFormat("no trailer at the end of the file")
        require(xxh3_64(data[16:]) == trailer.checksum, "trailer's checksum is wrong")
        trailer.check_version("trailer")
        require(
            trailer.footer_offset + trailer.footer_bytes == self.file.size
            and trailer.footer_bytes >= FOOTER_HEADER.size + TRAILER.size,
            "trailer places the footer outside the file",
        )
        self.trailer = trailer

    def _read_header(self):
        footer = self.file.read(self.trailer.footer_offset, self.trailer.footer_bytes)
        header = FOOTER_HEADER.decode(footer)
        require(header.magic == FOOTER_MAGIC, "footer has no magic")
        require(
            header.header_bytes == FOOTER_HEADER.size and header.footer_bytes == len(footer),
            "footer's sizes are wrong",
        )
        head_end = FOOTER_HEADER.size + header.part_count * PART_ENTRY.size
        parts_limit = len(footer) - TRAILER.size
        require(header.part_count <= MAX_PARTS and head_end <= parts_limit, "part list is cut off")
        require(xxh3_64(footer[16:head_end]) == header.checksum, "footer's checksum is wrong")
        header.check_version("footer")
        header.check_reserved("a footer header")
        check_geometry(header)
        require(
            header.data_bytes % FOOTER_ALIGN == 0 and header.footer_bytes % FOOTER_ALIGN == 0,
            "footer is not aligned",
        )
        require(header.shard < header.shard_count <= MAX_SHARDS, "shard number is impossible")
        require(
            header.sample_count + header.reject_count == header.position_count,
            "samples and rejects are not the shard's positions",
        )
        require(
            (header.data_bytes, header.checksum, header.shard, header.plan_id)
            == (
                self.trailer.footer_offset,
                self.trailer.footer_checksum,
                self.trailer.shard,
                self.trailer.plan_id,
            ),
            "trailer and footer contradict each other",
        )
        self.header = header
        self._parts = {}
        parts = [
            PART_ENTRY.decode(footer, FOOTER_HEADER.size + i * PART_ENTRY.size)
            for i in range(header.part_count)
        ]
        end = check_parts(parts, head_end, parts_limit, checksums_are_zero=False)
        require(
            round_up(round_up(end, SECTION_ALIGN) + TRAILER.size, FOOTER_ALIGN) == len(footer),
            "footer is longer than it needs to be",
        )
        gap = head_end
        for part in parts:
            require_zero(footer[gap : part.offset], "before a part")
            gap = part.offset + part.bytes
            self._parts[part.kind] = (part, footer[part.offset : gap])
        require_zero(footer[gap:parts_limit], "before the trailer")

    def has_part(self, name):
        return PARTS[name] in self._parts

    def part(self, name):
        require(self.has_part(name), "footer has no part '%s'" % name)
        entry, data = self._parts[PARTS[name]]
        require(xxh3_64(data) == entry.checksum, "checksum of part '%s' is wrong" % name)
        return data

    def table(self, name):
        with at("part '%s'" % name):
            table = Table(self.part(name))
            table.check_padding()
            return table

    def rejects(self):
        table = self.table("rejects")
        rows = list(
            zip(table.keys(), table.unsigned("ordinal"), table.strings("value_end", "value"))
        )
        require(len(rows) == self.header.reject_count, "reject_count is wrong")
        return rows

    def chunks(self, schema):
        """All chunks, each checked completely and against the footer."""
        header = self.header
        rows, samples = decode_chunk_rows(self.table("chunks"))
        require(
            len(rows) == header.chunk_count and samples == header.sample_count,
            "footer's counts are wrong",
        )
        numbers = [row.header_checksum for row in rows] + [len(rows), samples]
        require(
            hash_numbers(numbers) == (header.digest_low, header.digest_high),
            "shard digest is wrong",
        )
        require(
            (header.schema_hash_low, header.schema_hash_high) == schema.hash, "another schema"
        )
        chunk_bytes = 1 << header.chunk_bytes_log2
        data_bytes = 0
        if rows:
            end = rows[-1].slot * chunk_bytes + rows[-1].used_bytes
            data_bytes = round_up(end, FOOTER_ALIGN)
        require(data_bytes == header.data_bytes, "data_bytes is wrong")
        for number, row in enumerate(rows):
            start = row.slot * chunk_bytes
            with at("chunk %d at %d" % (number, start)):
                end = min(start + row.span_slots * chunk_bytes, data_bytes)
                chunk = Chunk(self.file.read(start, end - start), schema)
                self._check_chunk(chunk.header, row, number)
                yield chunk

    def _check_chunk(self, chunk, row, number):
        footer = self.header
        require(chunk.plan_id == footer.plan_id, "chunk of another plan")
        require(
            (chunk.shard, chunk.chunk, chunk.chunk_bytes_log2, chunk.blob_align_log2)
            == (footer.shard, number, footer.chunk_bytes_log2, footer.blob_align_log2),
            "another chunk",
        )
        for name in ChunkRow.COLUMNS:
            stored = chunk.checksum if name == "header_checksum" else getattr(chunk, name)
            require(stored == getattr(row, name), "%s differs from the footer" % name)

    def check(self, schema):
        """Reads everything; returns the chunks. Blob offsets are made those of the file."""
        chunks = list(self.chunks(schema))
        chunk_bytes = 1 << self.header.chunk_bytes_log2
        payload_bytes = 0
        for chunk in chunks:
            for sample in chunk.samples:
                for value in sample.values:
                    if isinstance(value, Blob):
                        value.offset += chunk.header.slot * chunk_bytes
                        payload_bytes += value.size
        require(payload_bytes == self.header.payload_bytes, "payload_bytes is wrong")
        stored = [sample for chunk in chunks for sample in chunk.samples]
        names = self.table("names")
        require(
            list(zip(names.keys(), names.unsigned("ordinal")))
            == [(sample.key, sample.ordinal) for sample in stored],
            "part 'names' differs from the chunks",
        )
        flags, values = decode_values(self.table("samples"), schema)
        require(
            [(sample.flags, comparable(sample.values)) for sample in stored]
            == [(flag, comparable(value)) for flag, value in zip(flags, values)],
            "part 'samples' differs from the chunks",
        )
        return chunks


def comparable(values):
    return [vars(value) if isinstance(value, Blob) else value for value in values]


# --- The index -----------------------------------------------------------------------------------


class Index:
    SHARD_COLUMNS = (
        "file_bytes", "data_bytes", "chunk_count", "sample_count", "reject_count", "chunks_offset",
        "chunks_bytes", "samples_offset", "samples_bytes", "names_offset", "names_bytes",
        "digest_low", "digest_high",
    )  # fmt: skip

    def __init__(self, path):
        self.file = File(path)
        try:
            self._read_head()
            self._read_sections()
        finally:
            self.file.close()

    def _read_head(self):
        size = self.file.size
        header = INDEX_HEADER.decode(self.file.read(0, min(size, INDEX_HEADER.size)))
        if header.magic != INDEX_MAGIC:
            raise NotThisFormat("not an index")
        require(header.file_bytes == size, "index has %d bytes" % size)
        require(
            INDEX_HEADER.size <= header.head_bytes <= min(size, MAX_INDEX_HEAD_BYTES),
            "head_bytes is impossible",
        )
        head = self.file.read(0, header.head_bytes)
        require(xxh3_64(head[16:]) == header.checksum, "index head's checksum is wrong")
        header.check_version("index")
        header.check_reserved("the index header")
        require_supported(
            header.overlay_low == 0 and header.overlay_high == 0, "index has a label overlay"
        )
        check_geometry(header)
        body_bytes = size - header.head_bytes
        lists_end = (
            INDEX_HEADER.size + header.section_count * PART_ENTRY.size + 8 * header.block_count
        )
        require(
            header.header_bytes == INDEX_HEADER.size
            and header.head_bytes % FOOTER_ALIGN == 0
            and 1 <= header.shard_count <= MAX_SHARDS
            and header.section_count <= MAX_PARTS
            and header.block_count == round_up(body_bytes, INDEX_BLOCK_BYTES) // INDEX_BLOCK_BYTES
            and lists_end <= header.head_bytes,
            "index header is impossible",
        )
        require_zero(head[lists_end:], "index head")
        self.header = header
        self._sections = [
            PART_ENTRY.decode(head, INDEX_HEADER.size + i * PART_ENTRY.size)
            for i in range(header.section_count)
        ]
        end = check_parts(self._sections, header.head_bytes, size, checksums_are_zero=True)
        require(round_up(end, SECTION_ALIGN) == size, "index is longer than its sections")
        blocks_at = INDEX_HEADER.size + header.section_count * PART_ENTRY.size
        self._block_checksums = struct.unpack_from("<%dQ" % header.block_count, head, blocks_at)

    def _read_sections(self):
        header = self.header
        body = self.file.read(header.head_bytes, header.file_bytes - header.head_bytes)
        for number, checksum in enumerate(self._block_checksums):
            start = number * INDEX_BLOCK_BYTES
            require(
                xxh3_64(body[start : start + INDEX_BLOCK_BYTES]) == checksum,
                "block %d's checksum is wrong" % number,
            )
        self._data = bytes(header.head_bytes) + body  # so that offsets are those of the file
        gap = header.head_bytes
        for section in self._sections:
            require_zero(self._data[gap : section.offset], "before a section")
            gap = section.offset + section.bytes
        require_zero(self._data[gap:], "behind the sections")
        self.schema = Schema(self.section("fields"), self.section("classes"))
        self.schema.check_padding()
        self.settings = decode_settings(self.section("settings"))
        self._read_shards()

    def section(self, name):
        for section in self._sections:
            if section.kind == PARTS[name]:
                return self._data[section.offset : section.offset + section.bytes]
        raise Damaged("index has no section '%s'" % name)

    def _read_shards(self):
        header = self.header
        table = Table(self.section("shards"))
        table.check_padding()
        require(table.rows == header.shard_count, "shards section has %d rows" % table.rows)
        self.shards = []
        for values in zip(*(table.unsigned(name) for name in self.SHARD_COLUMNS)):
            row = Record()
            row.__dict__.update(zip(self.SHARD_COLUMNS, values))
            self.shards.append(row)
        for name in ("chunk_count", "sample_count", "reject_count"):
            total = sum(getattr(row, name) for row in self.shards)
            require(total == getattr(header, name), "%s is wrong" % name)
        for name in ("chunks", "samples", "names"):
            where = next((s for s in self._sections if s.kind == PARTS[name]), None)
            require(where is not None, "index has no section '%s'" % name)
            end = where.offset
            for row in self.shards:
                require(getattr(row, name + "_offset") == end, "%s tables have gaps" % name)
                end += getattr(row, name + "_bytes")
            require(end == where.offset + where.bytes, "%s section has another size" % name)
        require(
            self.schema.hash == (header.schema_hash_low, header.schema_hash_high),
            "schema hash is wrong",
        )
        numbers = list(self.schema.hash)
        for row in self.shards:
            numbers += [row.digest_low, row.digest_high]
        require(
            hash_numbers(numbers) == (header.content_id_low, header.content_id_high),
            "content id is wrong",
        )

    def shard_table(self, shard, name):
        """The bytes of a shard's chunks, samples or names table."""
        row = self.shards[shard]
        start = getattr(row, name + "_offset")
        return self._data[start : start + getattr(row, name + "_bytes")]


# --- The pack ------------------------------------------------------------------------------------


def shard_name(shard):
    return "shard-%05d.spks" % shard


class Pack:
    """An open pack. Reads single samples by the index; check() reads everything."""

    def __init__(self, path):
        self.path = path
        if not os.path.isfile(self._path("manifest.json")):
            raise NotThisFormat("%s: no manifest.json, so not a pack" % path)
        with at("index.spki"):
            self.index = Index(self._path("index.spki"))
        self.schema = self.index.schema
        self._samples = {}

    def _path(self, name):
        return os.path.join(self.path, name)

    def __len__(self):
        return self.index.header.sample_count

    def _locate(self, number):
        require(0 <= number < len(self), "no sample %d" % number)
        for shard, row in enumerate(self.index.shards):
            if number < row.sample_count:
                return shard, number
            number -= row.sample_count
        raise AssertionError("counts were checked")

    def _shard_samples(self, shard):
        if shard not in self._samples:
            flags, values = decode_values(
                Table(self.index.shard_table(shard, "samples")), self.schema
            )
            names = Table(self.index.shard_table(shard, "names"))
            self._samples[shard] = [
                Sample(*row) for row in zip(names.keys(), names.unsigned("ordinal"), flags, values)
            ]
            require(
                len(self._samples[shard]) == self.index.shards[shard].sample_count,
                "shard %d has another number of samples" % shard,
            )
        return self._samples[shard]

    def sample(self, number):
        """Everything the index knows of one sample."""
        shard, row = self._locate(number)
        return self._shard_samples(shard)[row]

    def find(self, key):
        """Number of the first sample with this key (bytes)."""
        number = 0
        for shard in range(len(self.index.shards)):
            for sample in self._shard_samples(shard):
                if sample.key == key:
                    return number
                number += 1
        raise NotFound("no sample '%s'" % escape(key))

    def read(self, number, field):
        """One blob, its checksum compared."""
        shard, row = self._locate(number)
        sample = self._shard_samples(shard)[row]
        value = sample.values[self.schema.number(field)]
        if not isinstance(value, Blob):
            raise NotFound("sample '%s' has no blob in %s" % (escape(sample.key), field))
        require(
            value.offset + value.size <= self.index.shards[shard].data_bytes,
            "blob lies outside its shard",
        )
        with at("%s at %d, sample '%s'" % (shard_name(shard), value.offset, escape(sample.key))):
            file = File(self._path(shard_name(shard)))
            try:
                return value.check(file.read(value.offset, value.size))
            finally:
                file.close()

    def check(self):
        """Reads and compares everything. Returns [(shard, chunks, rejects)]."""
        result = []
        payload_bytes = 0
        for number in range(len(self.index.shards)):
            with at(shard_name(number)):
                shard = Shard(self._path(shard_name(number)))
                try:
                    self._check_shard(shard, number)
                    position = result[-1][0].header if result else None
                    require(
                        shard.header.first_position
                        == (position.first_position + position.position_count if position else 0),
                        "first_position is wrong",
                    )
                    result.append((shard, shard.check(self.schema), shard.rejects()))
                    payload_bytes += shard.header.payload_bytes
                finally:
                    shard.close()
        positions = sum(shard.header.position_count for shard, _, _ in result)
        for number, (shard, _, _) in enumerate(result):
            require(
                shard.header.first_position == number * positions // len(result),
                "positions of shard %d are not its share" % number,
            )
        require(payload_bytes == self.index.header.payload_bytes, "payload_bytes is wrong")
        self._check_text("manifest.json", render_manifest(self.index))
        self._check_text("rejects.tsv", render_rejects([rejects for _, _, rejects in result]))
        self._check_sha256()
        return result

    def _check_shard(self, shard, number):
        header, index, row = shard.header, self.index.header, self.index.shards[number]
        require(header.plan_id == index.plan_id, "shard of another plan")
        require(
            (header.shard, header.shard_count, header.chunk_bytes_log2, header.blob_align_log2)
            == (number, index.shard_count, index.chunk_bytes_log2, index.blob_align_log2),
            "another shard",
        )
        require(shard.file.size == row.file_bytes, "file_bytes differs from the index")
        for name in ("data_bytes", "chunk_count", "sample_count", "reject_count", "digest_low",
                     "digest_high"):  # fmt: skip
            require(getattr(header, name) == getattr(row, name), name + " differs from the index")
        for name in ("chunks", "samples", "names"):
            require(
                shard.part(name) == self.index.shard_table(number, name),
                "part '%s' differs from the index" % name,
            )
        outer = number in (0, header.shard_count - 1)
        for name in ("fields", "classes"):
            require(shard.has_part(name) == outer, "part '%s' in the wrong shard" % name)
        for name in ("fields", "classes", "settings"):
            require(
                not shard.has_part(name) or shard.part(name) == self.index.section(name),
                "part '%s' differs from the index" % name,
            )

    def _check_text(self, name, expected):
        with open(self._path(name), "rb") as file:
            require(file.read() == expected.encode(), name + " is not what the index says")

    def _check_sha256(self):
        if not os.path.exists(self._path("SHA256SUMS")):
            return
        with open(self._path("SHA256SUMS"), encoding="utf-8") as file:
            for line in file:
                digest, name = line.rstrip("\n").split(maxsplit=1)
                with open(self._path(name.lstrip("*")), "rb") as data:
                    require(hashlib.sha256(data.read()).hexdigest() == digest, name + ": SHA-256")


# --- Text ----------------------------------------------------------------------------------------


def json_string(text):
    special = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"%s"' % "".join(
        special.get(c, "\\u%04x" % ord(c) if c < " " else c) for c in text
    )


def render_json(value, level=0):
    """Like the manifest: members as (name, value) pairs in a tuple, arrays as lists."""
    indent = "\n" + "  " * (level + 1)
    if isinstance(value, tuple):
        items = [
            "%s: %s" % (json_string(name), render_json(member, level + 1)) for name, member in value
        ]
        opening, closing = "{", "}"
    elif isinstance(value, list):
        items = [render_json(item, level + 1) for item in value]
        opening, closing = "[", "]"
    else:
        return json_string(value) if isinstance(value, str) else str(value)
    if not items:
        return opening + closing
    return opening + indent + ("," + indent).join(items) + "\n" + "  " * level + closing


def render_manifest(index):
    header = index.header
    fields = [
        (("name", field.name), ("kind", field.kind))
        + (() if field.is_blob else (("length", field.length),))
        for field in index.schema.fields
    ]
    shards = [
        (
            ("name", shard_name(number)),
            ("bytes", row.file_bytes),
            ("chunks", row.chunk_count),
            ("samples", row.sample_count),
            ("rejects", row.reject_count),
            ("digest", hex128(row.digest_low, row.digest_high)),
        )
        for number, row in enumerate(index.shards)
    ]
    members = (
        ("format", "stripepack"),
        ("version", header.version),
        ("content_id", hex128(header.content_id_low, header.content_id_high)),
        ("plan_id", hex128(*header.plan_id)),
        ("samples", header.sample_count),
        ("rejects", header.reject_count),
        ("payload_bytes", header.payload_bytes),
        ("chunks", header.chunk_count),
        ("chunk_bytes", 1 << header.chunk_bytes_log2),
        ("blob_align_bytes", 1 << header.blob_align_log2),
        ("fields", fields),
        ("classes", [escape(name) for name in index.schema.classes]),
        ("settings", tuple((escape(key), escape(value)) for key, value in index.settings)),
        (
            "index",
            (
                ("name", "index.spki"),
                ("bytes", header.file_bytes),
                ("checksum", hex64(header.checksum)),
            ),
        ),
        ("shards", shards),
    )
    return render_json(members) + "\n"


def render_rejects(shards):
    lines = ["ordinal\tkey\treason\n"]
    for rejects in shards:
        for key, ordinal, reason in rejects:
            lines.append("%d\t%s\t%s\n" % (ordinal, escape(key), escape(reason)))
    return "".join(lines)


def dump(pack, content=False):
    """Everything in a pack, checked, as plain lists and dicts."""
    header = pack.index.header
    return {
        "version": header.version,
        "plan_id": hex128(*header.plan_id),
        "content_id": hex128(header.content_id_low, header.content_id_high),
        "chunk_bytes": 1 << header.chunk_bytes_log2,
        "blob_align_bytes": 1 << header.blob_align_log2,
        "fields": [dict(vars(field)) for field in pack.schema.fields],
        "classes": [escape(name) for name in pack.schema.classes],
        "settings": [[escape(key), escape(value)] for key, value in pack.index.settings],
        "shards": [
            _dump_shard(pack, shard, chunks, rejects, content)
            for shard, chunks, rejects in pack.check()
        ],
    }


def _dump_shard(pack, shard, chunks, rejects, content):
    file = File(shard.file.path)
    try:
        return {
            "first_position": shard.header.first_position,
            "position_count": shard.header.position_count,
            "chunks": [
                {
                    "slot": chunk.header.slot,
                    "span_slots": chunk.header.span_slots,
                    "used_bytes": chunk.header.used_bytes,
                    "samples": [
                        _dump_sample(pack.schema, sample, file if content else None)
                        for sample in chunk.samples
                    ],
                }
                for chunk in chunks
            ],
            "rejects": [
                {"key": escape(key), "ordinal": ordinal, "reason": escape(reason)}
                for key, ordinal, reason in rejects
            ],
        }
    finally:
        file.close()


def _dump_sample(schema, sample, file):
    values = []
    for field, value in zip(schema.fields, sample.values):
        if value is None:
            values.append(None)
        elif isinstance(value, Blob):
            blob = {
                "offset": value.offset,
                "bytes": value.size,
                "checksum": hex64(value.checksum),
            }
            if file is not None:
                blob["content"] = file.read(value.offset, value.size).hex()
            values.append(blob)
        elif field.kind == "int64":
            values.append(list(value))
        else:
            digits = 8 if field.kind == "float32" else 16
            values.append(["%0*x" % (digits, bits) for bits in value])
    return {
        "key": escape(sample.key),
        "ordinal": sample.ordinal,
        "flags": sample.flags,
        "values": values,
    }


# --- Command line --------------------------------------------------------------------------------


def run(arguments):
    pack = Pack(arguments.pack)
    if arguments.cat is not None:
        field = arguments.field
        if field is None:
            field = next((f.name for f in pack.schema.fields if f.is_blob), None)
        if field is None:
            raise NotFound("the pack has no blob field")
        sys.stdout.buffer.write(pack.read(pack.find(unescape(arguments.cat)), field))
    elif arguments.json:
        json.dump(dump(pack, arguments.content), sys.stdout, indent=1)
        print()
    else:
        pack.check()
        header = pack.index.header
        print(
            "%d samples, %d rejects, %d chunks of %d bytes in %d shards; content id %s: all is well"
            % (
                header.sample_count,
                header.reject_count,
                header.chunk_count,
                1 << header.chunk_bytes_log2,
                header.shard_count,
                hex128(header.content_id_low, header.content_id_high),
            )
        )


def main():
    parser = argparse.ArgumentParser(description="reads and checks a pack")
    parser.add_argument("pack", help="the pack's directory")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--content", action="store_true", help="with --json: blobs in hex")
    parser.add_argument("--cat", metavar="KEY", help="write one blob; KEY escaped as in the JSON")
    parser.add_argument("--field", help="with --cat: which one; default: the first blob")
    try:
        run(parser.parse_args())
        return 0
    except Damaged as error:
        print("decode.py: damaged: %s" % error, file=sys.stderr)
        return 1
    except NotFound as error:
        print("decode.py: %s" % error, file=sys.stderr)
        return 2
    except (NotThisFormat, Unsupported) as error:
        print("decode.py: %s" % error, file=sys.stderr)
        return 5


if __name__ == "__main__":
    sys.exit(main())

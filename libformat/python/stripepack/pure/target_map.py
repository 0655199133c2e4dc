"""The storage targets of a pack's chunks, by the maps recorded in layout.json."""
import json
import os

import numpy

from .._errors import error
from .xxh3 import xxh3_64

_MOST_BYTES = 64 << 20
_MOST_TARGETS = 1 << 20
_NO_END = (1 << 64) - 1


class _Wrong(Exception):
    """What the record says makes no sense."""


def recorded_targets(pack, digest):
    """By the map with that digest of 16 hexadecimal digits, "" for the current one: an array of
    uint32, empty where there is none."""
    if digest and (len(digest) != 16 or not set(digest) <= set("0123456789abcdefABCDEF")):
        raise error("invalid_argument",
                    f"the digest of a target map is 16 hexadecimal digits, not '{digest}'")
    none = numpy.zeros(0, numpy.uint32)
    wanted = int(digest, 16) if digest else None
    if wanted == 0:
        return none
    where = os.path.join(pack.path, "layout.json")
    try:
        maps = _read_maps(where)
        if wanted is None:
            found = maps[-1] if maps else None
        else:
            found = next((one for one in maps if _digest_of(one) == wanted), None)
            if found is None:
                raise error("mismatch", f"{pack.path}: the loader state is of the target map with "
                            f"digest {digest}, which layout.json does not have; bring back the "
                            "layout.json that the run began with, or begin a new run", pack.path)
        if found is None or _digest_of(found) == 0:
            return none
        targets = _chunk_targets(found["shards"], pack.index.chunk_places())
        made = xxh3_64(targets.astype("<u4").tobytes()) if len(targets) else 0
        if made != _digest_of(found):
            raise _Wrong(f"the targets of map {found['digest']} have another digest, {made:016x}")
        return targets
    except (_Wrong, ValueError, KeyError, TypeError, AttributeError, IndexError) as wrong:
        raise error("damaged", f"{where}: layout record: {wrong}; move it away; `stripepack layout "
                    "PACK --refresh` writes a new one", where) from wrong


def _read_maps(where):
    try:
        with open(where, "rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return []
    except OSError as wrong:
        raise error("io", f"{where}: {wrong.strerror}", where, os_errno=wrong.errno or 0) from wrong
    if len(text) > _MOST_BYTES:
        raise _Wrong("it is too large")
    record = json.loads(text)
    if "version" not in record and "maps" not in record:
        return []
    if record["version"] != 1:
        raise error("unsupported", f"{where}: layout record of version {record['version']}, known is "
                    "1; a newer stripepack reads it", where)
    return list(record["maps"])


def _digest_of(one):
    if len(one["digest"]) != 16:
        raise _Wrong("'digest' is not 16 hexadecimal digits")
    return int(one["digest"], 16)


def _chunk_targets(shards, places):
    """Of each chunk's first byte, numbered anew from 0 by their numbers in the file system."""
    targets = []
    for shard, offset in places:
        target = _stripe_target(shards[shard], offset) if shard < len(shards) else None
        if target is None:
            return numpy.zeros(0, numpy.uint32)
        targets.append(target)
    distinct, numbered = numpy.unique(numpy.array(targets, numpy.uint32), return_inverse=True)
    if not 2 <= len(distinct) <= _MOST_TARGETS:
        return numpy.zeros(0, numpy.uint32)
    return numbered.astype(numpy.uint32)


def _stripe_target(layout, offset):
    for part in layout["components"]:
        if part.get("begin", 0) <= offset < part.get("end", _NO_END):
            targets = part.get("targets", [])
            if not targets or part["stripe_bytes"] == 0:
                return None
            # Counted from the file's begin in every component, as Lustre does.
            return targets[offset // part["stripe_bytes"] % len(targets)]
    return None

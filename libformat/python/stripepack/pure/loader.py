"""Loaders: the batches of a rank, read when they are asked for."""
import time

import numpy

from .. import _order
from .._errors import error
from .pack import pack_blobs

_KINDS = ("shuffled", "sequential", "random")
_TAILS = ("drop", "pad", "exact")


class Batch:
    """As the compiled module's."""

    def __init__(self, pack, samples, positions, repeated, blobs, fields):
        self._pack, self._samples, self._blobs, self._fields = pack, samples, blobs, fields
        self._positions, self._repeated = positions, repeated

    def __len__(self):
        return len(self._samples)

    def samples(self):
        return numpy.array(self._samples, numpy.uint64)

    def positions(self):
        return self._positions, self._repeated

    def blobs(self, field):
        return [None if blob is None else memoryview(blob) for blob in self._blobs[field]]

    def packed(self, field):
        return pack_blobs(self._blobs[field])

    def ints(self, field):
        return self._numbers(field, self._pack.sample_ints, numpy.int64)

    def floats(self, field):
        return self._numbers(field, self._pack.sample_floats, numpy.float64)

    def _numbers(self, field, get, dtype):
        name, _, length = self._pack.index.fields[field]
        if length == 0:
            raise error("invalid_argument",
                        f"field '{name}' has another number of values for each sample")
        out = numpy.zeros((len(self), length), dtype)
        present = numpy.zeros(len(self), bool)
        for i, sample in enumerate(self._samples):
            values = get(field, sample)
            if values:
                out[i], present[i] = values, True
        return (out[:, 0] if length == 1 else out), present


def class_warning(pack, kind, mixed, step_samples):
    """What to tell people where storage is sorted by class; "" otherwise. MIXED: lanes x window. The
    same samples are looked at, and the same text is made, as by the compiled module."""
    fields = [number for number, field in enumerate(pack.fields()) if field[0] == "label"]
    if kind != "shuffled" or not fields or pack.fields()[fields[0]][1:] != (2, 1):
        return ""
    firsts = numpy.append(pack.chunk_samples(), numpy.uint64(pack.index.sample_count)).tolist()
    units = len(firsts) - 1
    groups = min(units, 8)
    every, pairs_in_units, same_in_units = [], 0, 0
    picked = []
    for group in range(groups):
        first, after = group * units // groups, (group + 1) * units // groups
        stride = min(max((after - first) // 8, 1), 4)
        picked += range(first, min(first + 8 * stride, after), stride)
    for unit in picked:
        begin, end = firsts[unit], min(firsts[unit + 1], firsts[unit] + 128)
        try:
            labels = pack.ints(fields[0], begin, end, 1)
        except Exception as wrong:
            if getattr(wrong, "code", None) is None:
                raise
            return ""  # what cannot be read is no error here
        every.append(labels)
        pairs_in_units += (end - begin) * (end - begin - 1)
        same_in_units += _same_pairs(labels)
    every = numpy.concatenate([numpy.empty(0, numpy.int64), *every])
    pairs = len(every) * (len(every) - 1)
    within = same_in_units / pairs_in_units if pairs_in_units else 0
    outside = ((_same_pairs(every) - same_in_units) / (pairs - pairs_in_units)
               if pairs > pairs_in_units else 0)
    correlation = (within - outside) / (1 - outside) if outside < 1 else 0
    estimate = 1 + max(correlation, 0) * (step_samples - 1) / mixed
    if correlation <= 0.5 or estimate < 1.1:
        return ""
    return (f"storage is sorted by class: expect a class variance up to {estimate:.1f} x that of a "
            "full shuffle" +
            ("; pack with --shuffle full, or use a random order" if estimate > 2 else ""))


def _same_pairs(labels):
    _, counts = numpy.unique(labels, return_counts=True)
    return int((counts * (counts - 1)).sum())


class Loader:
    """As the compiled module's; options that choose how to read are without effect."""

    def __init__(self, pack, options):
        self._pack = pack
        self._options = options
        self._samples = pack.index.sample_count
        self._targets = options["targets"] or None
        if options["use_recorded_map"]:
            digest = _order.map_of_state(options["state"], pack.index.content_id)
            if digest or _KINDS[options["order"]] == "shuffled":
                self._targets = pack.recorded_targets(digest)
        if self._targets is not None and len(self._targets) == 0:
            self._targets = None
        self._digest = _order.map_digest(self._targets)
        names = [name for name, _, _ in pack.fields()]
        for name in options["fields"]:
            if name not in names:
                raise error("not_found", f"{pack.path}: the pack has no field '{name}'; there are "
                            f"{', '.join(names)}", pack.path)
        self._fields = [number for number, (name, kind, _) in enumerate(pack.fields())
                        if kind == 1 and (not options["fields"] or name in options["fields"])]
        kind = _KINDS[options["order"]]
        lanes, window = _order.resolve(kind, options["world"], options["lanes"], options["window"])
        seed, epoch, consumed = options["seed"], options["epoch"], 0
        if options["state"]:
            kind, seed, epoch, lanes, window, consumed = _order.parse_state(
                options["state"], pack.index.content_id, self._digest, self._samples)
        self._kind, self._seed, self._lanes, self._window = kind, seed, lanes, window
        self._tail = _TAILS[options["tail"]]
        self._counts = dict.fromkeys(("steps", "samples", "payload_bytes", "repeated", "skipped",
                                      "reads", "read_bytes", "wait_ns"), 0)
        self._begin(epoch, consumed)

    def _begin(self, epoch, consumed):
        firsts = numpy.append(self._pack.chunk_samples(), numpy.uint64(self._samples))
        self._epoch, self._consumed = epoch, consumed
        self._order = _order.EpochOrder(firsts, self._targets, self._kind, self._seed, epoch,
                                        self._lanes, self._window)
        self._step_samples = self._options["batch"] * self._options["world"]
        self._steps = _order.steps_from(self._samples, self._step_samples, self._tail, consumed)
        self._begun_at = consumed
        self._next = self._options["worker"]  # step, counted from where the run began

    def start_epoch(self, epoch):
        self._begin(epoch, 0)

    def next(self):
        options = self._options
        while self._next < self._steps:
            begin = self._begun_at + self._next * self._step_samples
            places = _order.step_positions(self._samples, self._order.lanes, options["world"],
                                           options["rank"], options["batch"], self._tail, begin)
            # With the tail rule "exact" a rank may have no sample in the last step.
            batch = self._read(places) if len(places) else None
            self._consumed = min(begin + self._step_samples, self._samples)
            self._next += options["workers"]
            self._counts["steps"] += 1
            if batch is not None:
                return batch
        return None

    def _read(self, places):
        count = numpy.uint64(self._samples)
        positions, repeated = places % count, places >= count
        samples = self._order.sample_numbers(positions).tolist()
        began = time.monotonic_ns()
        blobs, kept = {field: [] for field in self._fields}, []
        for i, sample in enumerate(samples):
            try:
                read = [self._pack.read(field, sample, self._options["check"])
                        for field in self._fields]
            except Exception as wrong:
                if getattr(wrong, "code", "") != "damaged" or not self._options["skip_damaged"]:
                    raise
                continue
            kept.append(i)
            for field, blob in zip(self._fields, read):
                blobs[field].append(blob)
        sizes = [len(blob) for field in blobs.values() for blob in field if blob is not None]
        counts = self._counts
        counts["wait_ns"] += time.monotonic_ns() - began
        counts["reads"] += len(sizes)
        counts["read_bytes"] += sum(sizes)
        counts["payload_bytes"] += sum(sizes)
        counts["samples"] += len(kept)
        counts["skipped"] += len(samples) - len(kept)
        counts["repeated"] += int(repeated[kept].sum())
        return Batch(self._pack, [samples[i] for i in kept], positions[kept], repeated[kept], blobs,
                     self._fields)

    def state(self):
        return _order.state_text(self._pack.index.content_id, self._digest, self._kind, self._seed,
                                 self._epoch, self._order.lanes, self._order.window, self._consumed)

    def info(self):
        return {"order": _KINDS.index(self._kind), "lanes": self._order.lanes,
                "window": self._order.window, "seed": self._seed, "epoch": self._epoch,
                "consumed": self._consumed, "step_count": self._steps,
                "shared_reads": 0, "shared_hits": 0, "memory_limit_bytes": 0, "memory_peak_bytes": 0, "engine": 1, "direct": 0,
                "reading": "through the page cache: by Python", **self._counts}

    def warning(self):
        return class_warning(self._pack, self._kind, self._lanes * self._window,
                             self._step_samples)

    def close(self):
        self._next = self._steps

"""Batches: what a loader gives in a step."""
import functools

import numpy


class Batch:
    """The samples of one step. len(batch) of them; never changes; may outlive its loader.

    batch["image"], a field of bytes: a list of read-only memoryviews, None where a sample has no
    value. They are not copied, and each keeps the memory of the whole batch: release them before
    long, or copy what must live. numpy.frombuffer(view, numpy.uint8) copies nothing either.
    batch["label"], a field of numbers: a numpy array of int64, float32 or float64, of shape
    (samples,), or (samples, length). KeyError where the loader was not asked for the field.
    """

    def __init__(self, raw, fields, state, pixels=None):
        self._raw = raw
        self._fields = fields
        self._values = {}
        self.state = state
        """The loader's state() after this batch."""
        if pixels is not None:
            self.pixels = pixels

    def __len__(self):
        return len(self._raw)

    def __repr__(self):
        return f"<stripepack.Batch: {len(self)} samples; {', '.join(self._fields)}>"

    @functools.cached_property
    def ids(self):
        """Numbers of the samples: a numpy array of uint64, shape (samples,)."""
        return self._raw.samples()

    @property
    def labels(self):
        """batch["label"]: a numpy array of int64, shape (samples,)."""
        return self["label"]

    @functools.cached_property
    def _places(self):
        return self._raw.positions()

    @property
    def positions(self):
        """Where the samples stand in the epoch's order: a numpy array of uint64, shape (samples,)."""
        return self._places[0]

    @property
    def repeated(self):
        """True for each sample that was given before, to fill the batch (tail "pad"): a numpy array
        of bool, shape (samples,)."""
        return self._places[1]

    def _field(self, name):
        try:
            return self._fields[name]
        except KeyError:
            raise KeyError(f"no field {name!r} in this batch; there are "
                           f"{', '.join(self._fields)}") from None

    def __getitem__(self, name):
        if name not in self._values:
            field = self._field(name)
            if field.kind == "blob":
                self._values[name] = self._raw.blobs(field.number)
            else:
                self._values[name] = self._numbers(field)[0]
        return self._values[name]

    def __contains__(self, name):
        return name in self._fields

    def keys(self):
        """Names of the fields."""
        return self._fields.keys()

    def _numbers(self, field):
        if field.kind == "int64":
            return self._raw.ints(field.number)
        values, present = self._raw.floats(field.number)
        return (values.astype(numpy.float32) if field.kind == "float32" else values), present

    def present(self, name):
        """Which samples have a value in a field: a numpy array of bool, shape (samples,)."""
        field = self._field(name)
        if field.kind == "blob":
            return numpy.array([value is not None for value in self[name]], bool)
        return self._numbers(field)[1]

    def packed(self, name):
        """A field of bytes, copied into one array: (data, offsets). Sample i is
        data[offsets[i]:offsets[i + 1]]; numpy arrays of uint8, shape (bytes,), and int64, shape
        (samples + 1,). Nothing where a sample has no value."""
        return self._raw.packed(self._field(name).number)

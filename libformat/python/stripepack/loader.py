"""Loaders: a rank's batches, epoch by epoch."""
import os
import warnings

from . import _errors, _order
from ._ahead import Ahead
from ._core import DIRECT, ENGINES, ORDERS, TAILS, core
from ._options import choice, integer, text
from .batch import Batch
from .dataset import Dataset

_ORDER_NAMES = list(ORDERS)
_ENGINE_NAMES = list(ENGINES)
_MOST_32 = (1 << 32) - 1
_warnings = {}  # what there is to tell, by what it depends on
_warned = set()  # content ids of packs


def _number_or_none(name, value, most=(1 << 64) - 1):
    """0 for None: chosen."""
    return 0 if value is None else integer(name, value, 0, most)


class Loader:
    """Gives the batches of one rank, in an order that depends on the pack, order, seed, epoch, lanes
    and window, and on nothing else: whatever the number of ranks, together they are given the same
    steps. Reads run ahead in threads of their own, in bounded memory.

        loader = stripepack.Loader(dataset, batch=256, rank=rank, world=world, seed=7)
        for epoch in range(90):
            loader.set_epoch(epoch)
            for batch in loader:
                train(batch["image"], batch.labels)
                checkpoint["data"] = loader.state()

    dataset: a Dataset or a path. batch: samples that this rank is given in a step.
    order: "shuffled" (chunk by chunk), "sequential" or "random" (a full shuffle: many small reads).
    lanes, window: how well "shuffled" mixes (docs/ORDER.md); None: by the number of ranks.
    tail: what becomes of samples that do not fill a batch for every rank: "drop", "pad" (filled with
    samples from the epoch's start, which Batch.repeated marks) or "exact" (a short batch).
    worker, workers: of the processes that serve this rank: each gives every workers-th batch.
    fields: names of those that are wanted; None: all. memory: bytes at most in buffers; None: chosen.
    engine, threads: as of Dataset. check: compare checksums.
    direct: whether reads pass by the page cache: "on", "off", or "auto": where it cannot help, as the
    pack is more than half of the memory that it may use; .stats["reading"] tells what was chosen.
    skip_damaged: leave damaged samples out, so that a batch is shorter, and count them in .stats.
    targets: the storage target of each chunk; an empty list: not known; None: by the map that is
    recorded beside the pack, if any: Dataset.recorded_targets(). All ranks must have the same.
    state: as from state(): goes on exactly there, with any number of ranks. Order, seed, epoch, lanes
    and window are then the state's.
    node_ranks: ranks of this node that read chunks which several of them want once, into memory that
    they share; None: none. node_group: any text that tells apart runs which should not share, such as
    a job's number. node_memory: bytes at most of that memory; None: chosen. See docs/PYTHON.md.
    decode: what becomes of pictures, from stripepack.image: batches then have .pixels, decoded ahead.

    Where storage is sorted by class and the order does not mix it well, a SortedStorageWarning with an
    estimate is given, once for each pack; .stats["warning"] has its text, or "".

    For one thread at a time. After fork a child makes loaders of its own. Raises ValueError and
    TypeError, or Error: "invalid_argument", "mismatch" (the state is of another pack), and while
    iterating "damaged" (it names the sample), "io", and "busy" where batches that are still held take
    all of the memory. After an Error of reading the loader stands where it stood; a batch that cannot be
    decoded is left out, and the next call gives the one behind it.
    """

    def __init__(self, dataset, batch=32, rank=0, world=1, seed=0, epoch=0, order="shuffled",
                 lanes=None, window=None, tail="drop", worker=0, workers=1, fields=None, memory=None,
                 engine="auto", direct="auto", threads=0, check=True, skip_damaged=False, state=None,
                 targets=None, decode=None, node_ranks=None, node_group="", node_memory=None):
        self.dataset = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        batch, world = integer("batch", batch, 1), integer("world", world, 1)
        rank, worker = integer("rank", rank), integer("worker", worker)
        workers = integer("workers", workers, 1)
        if fields is not None:
            if isinstance(fields, str):
                raise ValueError(f"fields is {fields!r}; give a list of names")
            fields = [text("a name of fields", name) for name in fields]
            if not fields:
                raise ValueError("fields is empty; name some, or give None for all")
        if decode is not None and not callable(getattr(decode, "decode_batch", None)):
            raise TypeError(f"decode is {decode!r:.80}; it is an operation of stripepack.image")
        if rank >= world:
            raise ValueError(f"rank is {rank}, of a world of {world}")
        if worker >= workers:
            raise ValueError(f"worker is {worker}, of {workers} workers")
        self.batch, self.rank, self.world = batch, rank, world
        self.worker, self.workers, self.tail = worker, workers, tail
        options = {
            "order": choice("order", order, ORDERS), "tail": choice("tail", tail, TAILS),
            "engine": choice("engine", engine, ENGINES), "seed": integer("seed", seed),
            "epoch": integer("epoch", epoch), "rank": rank, "world": world, "batch": batch,
            "lanes": _number_or_none("lanes", lanes, _MOST_32),
            "window": _number_or_none("window", window, _MOST_32),
            "worker": worker, "workers": workers, "memory": _number_or_none("memory", memory),
            "threads": integer("threads", threads, 0, _MOST_32),
            "direct": choice("direct", direct, DIRECT), "check": bool(check),
            "skip_damaged": bool(skip_damaged), "fields": fields or [],
            "targets": _order.target_map(targets), "use_recorded_map": targets is None,
            "state": "" if state is None else text("state", state),
            "node_ranks": _number_or_none("node_ranks", node_ranks, _MOST_32),
            "node_group": text("node_group", str(node_group)),
            "node_memory": _number_or_none("node_memory", node_memory),
        }
        self._raw = core.Loader(self.dataset._pack, options)
        self._fields = {name: field for name, field in self.dataset.fields.items()
                        if fields is None or name in fields}
        info = self._raw.info()
        self.order = _ORDER_NAMES[info["order"]]
        self.seed, self.lanes, self.window = info["seed"], info["lanes"], info["window"]
        self._warning = self._warn(world * batch)
        self._epoch = info["epoch"]
        self._begun_at = info["consumed"]
        self._begun = False  # whether a batch of this epoch has been given
        self._ended = False
        self._closed = False
        self._last_info = None  # once it is closed
        self._state = None
        self._decode = decode
        self._ahead = None
        self._process = os.getpid()

    def _warn(self, step_samples):
        """Warns of a pack once, and looks at it once for orders that mix alike."""
        pack = self.dataset.content_id
        alike = pack, self.order, self.lanes * self.window, step_samples
        if alike not in _warnings:
            _warnings[alike] = self._raw.warning()
        if _warnings[alike] and pack not in _warned:
            _warned.add(pack)
            warnings.warn(f"{self.dataset.path}: {_warnings[alike]}", _errors.SortedStorageWarning,
                          stacklevel=3)
        return _warnings[alike]

    @property
    def epoch(self):
        """The epoch that batches are of."""
        return self._epoch

    def __len__(self):
        """Batches from where the loader was made or resumed, or its epoch set, to the epoch's end."""
        return _order.batch_count(len(self.dataset), self.lanes, self.world, self.rank, self.batch,
                                  self.tail, self._begun_at, self.worker, self.workers)

    def set_epoch(self, epoch):
        """Begins an epoch from its start. A loader that stands at that epoch and has not given a
        batch of it stays where it is: so a resumed one goes on in mid-epoch."""
        epoch = integer("epoch", epoch)
        self._must_be_open()
        if epoch == self._epoch and not self._begun and not self._ended:
            return
        self._stop_ahead()
        self._raw.start_epoch(epoch)
        self._epoch = epoch
        self._begun_at = 0
        self._begun = self._ended = False
        self._state = None

    def __iter__(self):
        """The batches that are left of the epoch; after its end, those of the next one."""
        if self._ended:
            self.set_epoch(self._epoch + 1)
        return self._batches()

    def _batches(self):
        while True:
            batch = self.next()
            if batch is None:
                return
            yield batch

    def next(self):
        """The next Batch; None at the epoch's end."""
        self._must_be_open()
        if self._decode is None:
            batch = self._next_raw()
        else:
            ahead = self._ahead
            if ahead is None or self._process != os.getpid():
                self._process = os.getpid()
                self._state = self.state()  # which the loader's own is soon ahead of
                ahead = self._ahead = Ahead(_Decoding(self))
            batch = ahead.take()
        if batch is None:
            self._ended = True
            return None
        self._begun = True
        self._state = batch.state
        return batch

    def _must_be_open(self):
        if self._closed:
            raise _errors.error("invalid_argument", f"{self.dataset.path}: this loader was closed",
                                self.dataset.path)

    def _next_raw(self):
        raw = self._raw.next()
        return None if raw is None else Batch(raw, self._fields, self._raw.state())

    def state(self):
        """Where the run stands after the last batch that was given: a line of ASCII, the same on
        every rank after the same step. Loader(..., state=...) goes on there."""
        return self._raw.state() if self._state is None else self._state

    @property
    def stats(self):
        """Counts since the loader was made: a dict with steps, samples, payload_bytes, repeated,
        skipped (damaged samples), reads and read_bytes (0 where files are mapped), wait_ns (for
        reads), memory_limit_bytes and memory_peak_bytes, shared_reads (chunks read into memory that
        the node's loaders share) and shared_hits (chunks that were there). And how files are read, as it was chosen:
        engine ("pool", "uring", "mmap"; "pread" in pure Python), direct (whether the page cache is passed by) and reading
        (why, in words). And warning: of storage that is sorted by class, or "".
        """
        info = self._last_info or self._raw.info()
        stats = {name: info[name] for name in (
            "steps", "samples", "payload_bytes", "repeated", "skipped", "reads", "read_bytes",
            "wait_ns", "memory_limit_bytes", "memory_peak_bytes", "shared_reads", "shared_hits",
            "reading")}
        return {**stats, "warning": self._warning, "engine": _ENGINE_NAMES[info["engine"]],
                "direct": info["direct"] != 0}

    def _stop_ahead(self):
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.stop()

    def close(self):
        """Ends the threads and lets go of the memory; done as well when the loader is collected.
        Batches stay good, and state() and .stats tell how it ended."""
        if self._closed:
            return
        self._closed = self._ended = True
        self._stop_ahead()
        self._state, self._last_info = self.state(), self._raw.info()
        self._raw.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return (f"<stripepack.Loader of {self.dataset.path!r}: {self.order}, epoch {self._epoch}, "
                f"seed {self.seed}, lanes {self.lanes}, window {self.window}; "
                f"rank {self.rank} of {self.world}>")


class _Decoding:
    """Makes batches with pixels; knows the loader's parts but not the loader, which may go first."""

    def __init__(self, loader):
        self.raw, self.fields, self.decode = loader._raw, loader._fields, loader._decode
        self.epoch, self.seed = loader._epoch, loader.seed

    def __call__(self):
        raw = self.raw.next()
        if raw is None:
            return None
        batch = Batch(raw, self.fields, self.raw.state())
        batch.pixels = self.decode.decode_batch(batch, self.epoch, self.seed)
        return batch

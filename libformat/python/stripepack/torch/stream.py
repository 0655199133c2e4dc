"""Batches as they are read, for DataLoader(dataset, batch_size=None)."""
import io

import torch.utils.data

from .. import _order
from .._options import integer
from ..dataset import as_dataset
from ..loader import Loader
from .folder import _naming, default_loader
from .ranks import find_rank, print_rank, warn_of_second_sharding

_MAX_EPOCH = (1 << 63) - 1
_MAX_STATE = 512  # bytes of its text, the number of workers, and the map


class StreamingDataset(torch.utils.data.IterableDataset):
    """A rank's batches, each a step of docs/ORDER.md, made in the process that iterates: the same
    ones whatever the number of DataLoader workers.

        dataset = StreamingDataset("imagenet/train", 256, transform)
        for epoch in range(90):
            dataset.set_epoch(epoch)
            for images, targets in DataLoader(dataset, batch_size=None, num_workers=8):

    path: the pack's directory, or a stripepack.Dataset. batch_size: samples of a rank in a step.
    cache: as of stripepack.Dataset.
    transform, target_transform, loader: as of ImageFolder; collate_fn makes a batch of the list of
    (picture, target), as DataLoader's does.
    decode: from stripepack.image, instead of loader and transform: images are then a uint8 tensor,
    decoded by the library.
    map_batch: makes of a stripepack.Batch what is given out, instead of all that. It must not keep
    the batch's memoryviews.
    field: which holds the pictures; None: the first of bytes.
    shard: False gives every rank all samples, as for a framework that divides them itself.
    rank, world: as found by find_rank(), when first needed. Other options are those of
    stripepack.Loader: seed, order, lanes, window, tail, memory, engine, direct, threads, check,
    skip_damaged, targets, node_ranks, node_group, node_memory. With node_ranks the workers read each
    chunk once for all of them (docs/PYTHON.md, "Sharing on a node").

    Workers: worker k of n gives batches k, k + n, ...; since each then reads most chunks, one worker
    whose transform is light, or none, reads least. Iterating again gives the same epoch again.
    """

    def __init__(self, path, batch_size=32, transform=None, target_transform=None, loader=None,
                 collate_fn=None, decode=None, map_batch=None, field=None, shard=True, rank=None,
                 world=None, seed=0, epoch=0, order="shuffled", lanes=None, window=None, tail="drop",
                 cache=None, **options):
        super().__init__()
        self.dataset = as_dataset(path, cache)
        self.batch_size = integer("batch_size", batch_size, 1, _order.MAX_STEP)
        self.transform, self.target_transform = transform, target_transform
        self.loader = loader or default_loader
        self.collate_fn = collate_fn or torch.utils.data.default_collate
        self.decode, self.map_batch = decode, map_batch
        self.field = self.dataset._blob_field(field).name
        if decode is None and map_batch is None:
            options.setdefault("fields", [self.field, "label"])
        self.shard = shard
        self._wanted_rank = (rank, world) if shard else (0, 1)
        if self._wanted_rank != (None, None):
            find_rank(*self._wanted_rank)  # says what is wrong with them
        self._found_rank = None
        self._order = {"order": order, "seed": integer("seed", seed), "lanes": lanes,
                       "window": window}
        self._tail = tail
        self._options = options
        # In shared memory, so that workers that live on from epoch to epoch see it, too: the epoch,
        # whether the rank was printed, and how often the state was set, with what it was set to.
        self._shared = torch.tensor([integer("epoch", epoch, 0, _MAX_EPOCH), 0, 0],
                                    dtype=torch.int64).share_memory_()
        self._shared_state = torch.zeros(_MAX_STATE, dtype=torch.uint8).share_memory_()
        self._states_seen = 0
        self._state = None  # where the run begins; None: at the start of the epoch
        self._state_workers = None  # that must be of this number; None: of any
        self._kept = True  # set_epoch() to the state's epoch keeps the state
        self._workers, self._steps = 1, 0  # of this process: given since it began to iterate
        self._map = _order.known_map(self.dataset, options.get("targets"), order)
        Loader(self.dataset, batch=batch_size, epoch=epoch, tail=tail, **self._order,
               **options).close()  # says what is wrong with the options
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self._rank()

    @property
    def epoch(self):
        return int(self._shared[0])

    def _rank(self):
        """(rank, world)"""
        if self._found_rank is None:
            rank, world, where = find_rank(*self._wanted_rank)
            self._found_rank = rank, world
            info = torch.utils.data.get_worker_info()
            if self.shard and not self._shared[1] and (info is None or info.id == 0):
                self._shared[1] = 1
                kind, _, _, lanes, window, _ = self._begin()
                print_rank("StreamingDataset", rank, world, where,
                           f"{kind}, {_order.lanes_text(lanes, window)}")
        return self._found_rank

    def __getstate__(self):
        self._rank()  # a spawned worker could not find it in torch.distributed
        return dict(self.__dict__)

    def _begin(self):
        """(order, seed, epoch, lanes, window, consumed) where iterating begins."""
        if self._state is not None:
            begin = _order.parse_state(self._state, self.dataset.content_id, self._map,
                                       len(self.dataset))
            if begin[2] == self.epoch:
                return begin
        kind = self._order["order"]
        lanes, window = _order.resolve(kind, self._rank()[1], self._order["lanes"],
                                       self._order["window"])
        return kind, self._order["seed"], self.epoch, lanes, window, 0

    def _after(self, steps):
        """The state after so many steps."""
        kind, seed, epoch, lanes, window, consumed = self._begin()
        step_samples = self.batch_size * self._rank()[1]
        steps = min(steps, _order.steps_from(len(self.dataset), step_samples, self._tail, consumed))
        consumed = min(consumed + steps * step_samples, max(consumed, len(self.dataset)))
        return _order.state_text(self.dataset.content_id, self._map, kind, seed, epoch, lanes, window,
                                 consumed)

    def _set_state(self, state, workers):
        self._state, self._state_workers = state, workers
        if torch.utils.data.get_worker_info() is not None:
            return  # a worker's own, as StatefulDataLoader keeps them
        text = f"{workers or 0} {self._map} {state or ''}".encode().ljust(_MAX_STATE, b"\0")
        self._shared_state.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        self._states_seen += 1
        self._shared[2] = self._states_seen

    def _see_state(self):
        """In a worker: takes over the state that was set since it was begun."""
        seen = int(self._shared[2])
        if seen != self._states_seen:
            text = bytes(self._shared_state.tolist()).rstrip(b"\0").decode()
            workers, known_map, state = text.split(" ", 2)
            self._states_seen, self._state = seen, state or None
            self._state_workers, self._map = int(workers) or None, int(known_map)

    def set_epoch(self, epoch):
        """Begins an epoch. After load_state_dict(), that epoch goes on where the state was made."""
        epoch = integer("epoch", epoch, 0, _MAX_EPOCH)
        if self._state is not None and not (self._kept and epoch == self.epoch):
            self._set_state(None, None)
        self._kept = False
        self._steps = 0
        self._shared[0] = epoch

    def __len__(self):
        """The rank's batches from where it was begun or resumed, of all workers together."""
        rank, world = self._rank()
        _, _, _, lanes, _, consumed = self._begin()
        return _order.batch_count(len(self.dataset), lanes, world, rank, self.batch_size, self._tail,
                                  consumed)

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        if info is not None:
            self._see_state()
        if self._state_workers not in (None, workers):
            raise ValueError(f"the state is of a worker of {self._state_workers}, this is one of "
                             f"{workers}: keep num_workers, or make states by state_dict(steps=...)")
        rank, world = self._rank()
        warn_of_second_sharding("stripepack.torch.StreamingDataset", world,
                                "give it shard=False, or do not let the framework prepare it")
        self._workers, self._steps = workers, 0
        self._kept = False
        with Loader(self.dataset, batch=self.batch_size, rank=rank, world=world, tail=self._tail,
                    worker=worker, workers=workers, state=self._after(0), decode=self.decode,
                    **self._options) as loader:
            for batch in loader:
                self._steps += 1
                yield self._made_of(batch)

    def _made_of(self, batch):
        if self.map_batch is not None:
            return self.map_batch(batch)
        if self.decode is not None:
            return torch.from_numpy(batch.pixels), torch.from_numpy(batch.labels)
        pairs = []
        for sample, blob, target in zip(batch.ids, batch[self.field], batch.labels.tolist()):
            file = io.BytesIO(blob)
            file.name = self.dataset.key(int(sample))
            with _naming(file.name):
                picture = self.loader(file)
                if self.transform is not None:
                    picture = self.transform(picture)
            if self.target_transform is not None:
                target = self.target_transform(target)
            pairs.append((picture, target))
        return self.collate_fn(pairs)

    def state_dict(self, steps=None):
        """Where the run stands. steps: of this rank, that were trained on, of this epoch or since a
        state was loaded; the state is then good for any number of ranks and workers, and the same on
        every rank. None: those that this process gave, as StatefulDataLoader asks each worker."""
        if steps is not None:
            steps = integer("steps", steps)
            return {"state": self._after(steps), "workers": None}
        return {"state": self._after(self._steps * self._workers),
                "workers": None if self._workers == 1 else self._workers}

    def load_state_dict(self, state_dict):
        """Goes on there, with the order, seed, epoch, lanes and window of then. Raises
        stripepack.Error of code "mismatch" where the state is of another pack."""
        state = _order.state_of(state_dict)
        known_map = _order.known_map(self.dataset, self._options.get("targets"), None, state)
        begin = _order.parse_state(state, self.dataset.content_id, known_map, len(self.dataset))
        workers = state_dict.get("workers")
        if workers is not None:
            workers = integer("workers of the state", workers, 1)
        self._shared[0] = integer("the state's epoch", begin[2], 0, _MAX_EPOCH)
        self._map = known_map
        self._set_state(state, workers)
        self._kept = True
        self._steps = 0

    def __repr__(self):
        return f"<stripepack.torch.StreamingDataset {self.dataset.path!r}: {len(self.dataset)} " \
               f"samples, batches of {self.batch_size}>"

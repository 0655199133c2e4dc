"""Which samples a rank takes, for datasets that are asked for them one by one."""
import numpy
import torch.utils.data

from .. import _order
from .._options import integer
from ..dataset import Dataset
from .ranks import find_rank, print_rank, warn_of_second_sharding

_SAMPLES_AT_ONCE = 1 << 14


class DistributedSampler(torch.utils.data.distributed.DistributedSampler):
    """As torch's, in the order of docs/ORDER.md, so that samples that lie together are asked for
    at about the same time.

    dataset: a stripepack.torch.ImageFolder, a stripepack.Dataset, or a path. num_replicas, rank: as
    found by find_rank(). shuffle: False is storage order. drop_last: leave out what does not divide
    by the number of ranks; otherwise samples from the epoch's start fill it up.
    batch_size: of the DataLoader. Not needed but for a run that goes on with a number of ranks that
    does not divide lanes: steps are then the same ones, and those that are not full are dropped or
    filled up. lanes, window: as of stripepack.Loader.

    len(sampler): the rank's samples from where it was begun or resumed. set_epoch(e) before each
    epoch, as with torch's.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False,
                 batch_size=1, lanes=None, window=None):
        pack = getattr(dataset, "dataset", dataset)
        if isinstance(pack, (str, bytes)) or hasattr(pack, "__fspath__"):
            pack = dataset = Dataset(pack)
        if not isinstance(pack, Dataset) or len(pack) != len(dataset):
            raise ValueError(f"{type(dataset).__name__} is no dataset of all samples of one pack")
        rank, num_replicas, where = find_rank(rank, num_replicas)
        super().__init__(dataset, num_replicas=num_replicas, rank=rank, shuffle=shuffle,
                         seed=integer("seed", seed), drop_last=drop_last)
        self.batch_size = integer("batch_size", batch_size, 1, _order.MAX_STEP // num_replicas)
        self._tail = "drop" if drop_last else "pad"
        self._pack = pack
        self._kind = "shuffled" if shuffle else "sequential"
        self._lanes, self._window = _order.resolve(self._kind, num_replicas, lanes, window)
        # By the map recorded beside the pack, which a run keeps.
        self._targets = pack.recorded_targets() if shuffle else numpy.zeros(0, numpy.uint32)
        self._begun_at = 0  # samples of all ranks
        self._given = 0  # samples of this rank, from there
        self._loaded = False
        print_rank("DistributedSampler", rank, num_replicas, where, self._order_text())

    def _order_text(self):
        return f"{self._kind}, {_order.lanes_text(self._lanes, self._window)}"

    @property
    def _step_samples(self):
        return self.batch_size * self.num_replicas

    def _steps(self):
        return _order.steps_from(len(self._pack), self._step_samples, self._tail, self._begun_at)

    def __len__(self):
        return self._steps() * self.batch_size

    def set_epoch(self, epoch):
        """Begins an epoch. After load_state_dict(), that epoch goes on where the state was made."""
        epoch = integer("epoch", epoch)
        if not (self._loaded and epoch == self.epoch):
            self._begun_at = self._given = 0
        self._loaded = False
        super().set_epoch(epoch)

    def __iter__(self):
        warn_of_second_sharding("stripepack.torch.DistributedSampler", self.num_replicas,
                                "leave out the sampler, or give it num_replicas=1, rank=0")
        firsts = numpy.append(self._pack.chunk_samples(), numpy.uint64(len(self._pack)))
        targets = self._targets if len(self._targets) else None
        order = _order.EpochOrder(firsts, targets, self._kind, self.seed, self.epoch, self._lanes,
                                  self._window)
        self._given = 0
        self._loaded = False
        steps, count = self._steps(), numpy.uint64(len(self._pack))
        at_once = max(1, _SAMPLES_AT_ONCE // self.batch_size)
        for first in range(0, steps, at_once):
            positions = numpy.concatenate([
                _order.step_positions(len(self._pack), order.lanes, self.num_replicas, self.rank,
                                      self.batch_size, self._tail,
                                      self._begun_at + step * self._step_samples)
                for step in range(first, min(first + at_once, steps))])
            for sample in order.sample_numbers(positions % count).tolist():
                self._given += 1
                yield sample

    def state_dict(self, samples=None):
        """Where the run stands, for any number of ranks. samples: how many of this rank's were
        trained on, of this epoch or since a state was loaded (whole batches). It is needed where the
        DataLoader has workers, for these ask ahead; None: all that were asked for."""
        given = self._given if samples is None else integer("samples", samples)
        steps = min(given // self.batch_size, self._steps())
        consumed = min(self._begun_at + steps * self._step_samples, len(self._pack))
        return {"state": _order.state_text(self._pack.content_id, _order.map_digest(self._targets),
                                           self._kind, self.seed, self.epoch, self._lanes,
                                           self._window, consumed)}

    def load_state_dict(self, state_dict):
        """Goes on there, with the seed, epoch, lanes and window of then. Raises stripepack.Error of
        code "mismatch" where the state is of another pack."""
        state = _order.state_of(state_dict)
        digest = _order.map_of_state(state, self._pack.content_id)
        targets = self._pack.recorded_targets(digest) if digest else []
        (self._kind, self.seed, self.epoch, self._lanes, self._window,
         self._begun_at) = _order.parse_state(state, self._pack.content_id,
                                              _order.map_digest(targets), len(self._pack))
        self._targets = targets
        self.shuffle = self._kind != "sequential"
        self._given = 0
        self._loaded = True

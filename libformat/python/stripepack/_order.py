"""The order of an epoch with numpy: docs/ORDER.md, whose sections the comments name."""
import heapq
import re

import numpy

from ._errors import error
from ._options import integer

VERSION = 1
MAX_LANES = 1 << 20
MAX_WINDOW = 1 << 16
MAX_STEP = 1 << 31  # samples of all ranks
_M64 = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_UNITS, _TARGETS, _WINDOW, _RANDOM = 1, 2, 3, 4
_U = numpy.uint64


# --- 2. Random numbers

def mix64(x):
    x = (x + _GAMMA) & _M64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _M64
    return x ^ x >> 31


def _mix_array(x):
    x = x + _U(_GAMMA)
    x = (x ^ (x >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _U(27))) * _U(0x94D049BB133111EB)
    return x ^ (x >> _U(31))


def stream(kind, epoch, a=0, b=0):
    return mix64(mix64(mix64(mix64(kind) ^ epoch) ^ a) ^ b)


def permute(seed, t, n, x):
    """P(seed, t, n) of an array of uint64 below n."""
    half = next(h for h in range(1, 33) if 1 << 2 * h >= n)
    shift, mask = _U(half), _U((1 << half) - 1)
    key = mix64(seed) ^ mix64((mix64(t) + 1) & _M64)
    keys = []
    for _ in range(6):
        key = mix64(key)
        keys.append(_U(key))
    out = numpy.array(x, _U)
    todo = numpy.arange(len(out))
    while len(todo):
        left, right = out[todo] >> shift, out[todo] & mask
        for key in keys:
            left, right = right, left ^ (_mix_array(right ^ key) & mask)
        out[todo] = left << shift | right
        todo = todo[out[todo] >= _U(n)]
    return out


def shuffle_table(seed, t, table):
    """A shuffled copy of an array."""
    n = len(table)
    if n < 2:
        return table.copy()
    start = _U(mix64(mix64(seed) ^ t))
    draws = _mix_array(start + numpy.arange(n - 1, dtype=_U) * _U(_GAMMA))
    bounds = numpy.arange(n, 1, -1).astype(_U)
    low, high = draws & _U(0xFFFFFFFF), draws >> _U(32)
    partners = ((high * bounds + (low * bounds >> _U(32))) >> _U(32)).tolist()
    places = list(range(n))
    for i, j in zip(range(n - 1, 0, -1), partners):
        places[i], places[j] = places[j], places[i]
    return table[places]


# --- 3 to 5. The order

class EpochOrder:
    """first_samples: the first sample of each unit, and behind the last the number of samples.
    targets: of the units; None without a map. Units are dealt when shuffled samples are first asked
    for; windows are shuffled when they are reached. For one thread at a time."""

    def __init__(self, first_samples, targets=None, kind="shuffled", seed=0, epoch=0, lanes=64,
                 window=1):
        self.firsts = numpy.asarray(first_samples, _U)
        self.samples = int(self.firsts[-1])
        self.targets = targets
        self.kind, self.seed, self.epoch = kind, seed, epoch
        shuffled = kind == "shuffled"
        self.lanes = lanes if shuffled else 1
        self.window = window if shuffled else 1
        if not 1 <= self.lanes <= MAX_LANES or not 1 <= self.window <= MAX_WINDOW:
            raise error("invalid_argument", f"lanes are 1 to {MAX_LANES} and windows 1 to "
                        f"{MAX_WINDOW}, not {lanes} and {window}")
        if targets is not None and len(targets) != len(self.firsts) - 1:
            raise error("invalid_argument",
                        f"{len(targets)} targets, but the pack has {len(self.firsts) - 1} chunks")
        self._lanes = None  # [(pieces, first row of each window, and the last one's end)]
        self._windows = {}

    def sample_numbers(self, positions):
        """The samples at an array of positions, both uint64."""
        positions = numpy.asarray(positions, _U)
        if self.kind == "sequential":
            return positions.copy()
        if self.kind == "random":
            return permute(self.seed, stream(_RANDOM, self.epoch), self.samples, positions)
        if self._lanes is None:
            self._deal()
        out = numpy.empty(len(positions), _U)
        lanes, rows = positions % _U(self.lanes), (positions // _U(self.lanes)).astype(numpy.int64)
        by_lane = numpy.argsort(lanes, kind="stable")
        for run in numpy.split(by_lane, numpy.flatnonzero(numpy.diff(lanes[by_lane])) + 1):
            if not len(run):
                continue
            lane = int(lanes[run[0]])
            starts = self._lanes[lane][1]
            numbers = numpy.searchsorted(starts, rows[run], "right") - 1
            for number in numpy.unique(numbers):
                here = run[numbers == number]
                out[here] = self._window_samples(lane, int(number))[rows[here] - starts[number]]
        return out

    def _window_samples(self, lane, number):
        kept = self._windows.get(lane)
        if kept is None or kept[0] != number:
            pieces = self._lanes[lane][0][number * self.window:(number + 1) * self.window]
            samples = numpy.concatenate([numpy.arange(first, first + n, dtype=_U)
                                         for first, n in pieces])
            t = stream(_WINDOW, self.epoch, lane, number)
            kept = self._windows[lane] = (number, shuffle_table(self.seed, t, samples))
        return kept[1]

    def _sequence(self):
        """All units, spread over the targets."""
        units = len(self.firsts) - 1
        targets = numpy.zeros(units, numpy.int64)
        if self.targets is not None:
            targets[:] = self.targets
        target_count = int(targets.max(initial=0)) + 1
        order = permute(self.seed, stream(_TARGETS, self.epoch), target_count,
                        numpy.arange(target_count))
        place = numpy.empty(target_count, numpy.int64)
        place[order.astype(numpy.int64)] = numpy.arange(target_count)
        held, keys, places = [], [], []
        for target in range(target_count):
            mine = numpy.flatnonzero(targets == target) if target_count > 1 else numpy.arange(units)
            c = len(mine)
            if not c:
                continue
            shuffled = permute(self.seed, stream(_UNITS, self.epoch, target), c, numpy.arange(c))
            held.append(mine[shuffled.astype(numpy.int64)])
            keys.append(((2 * numpy.arange(c, dtype=_U) + _U(1)) << _U(31)) // _U(c))
            places.append(numpy.full(c, place[target]))
        if not held:
            return []
        by_key = numpy.lexsort((numpy.concatenate(places), numpy.concatenate(keys)))
        return numpy.concatenate(held)[by_key].tolist()

    def _deal(self):
        counts = numpy.diff(self.firsts).tolist()
        firsts = self.firsts.tolist()
        sequence = self._sequence()
        lanes = [[] for _ in range(self.lanes)]
        times = [(0, lane) for lane in range(self.lanes)]
        for at in range(0, len(sequence), self.window):
            time, lane = times[0]
            for unit in sequence[at:at + self.window]:
                lanes[lane].append((firsts[unit], counts[unit]))
                time += counts[unit]
            heapq.heapreplace(times, (time, lane))
        self._equalise(lanes, {lane: time for time, lane in times})
        self._lanes = []
        for pieces in lanes:
            ends = numpy.cumsum([0] + [n for _, n in pieces])
            starts = ends[:-1:self.window]
            self._lanes.append((pieces, starts))

    def _equalise(self, lanes, totals):
        """Cuts from the ends of lanes with too many samples, and gives to those with too few."""
        wanted = [self.samples // self.lanes + (lane < self.samples % self.lanes)
                  for lane in range(self.lanes)]
        pool = []
        for lane, pieces in enumerate(lanes):
            surplus, cut = totals[lane] - wanted[lane], []
            while surplus > 0:
                first, n = pieces.pop()
                away = min(n, surplus)
                surplus -= away
                cut.append((first + n - away, away))
                if away < n:
                    pieces.append((first, n - away))
            pool.extend(reversed(cut))
        pool.reverse()  # its front is where pop() takes
        for lane, pieces in enumerate(lanes):
            lacking = wanted[lane] - totals[lane]
            while lacking > 0:
                first, n = pool.pop()
                taken = min(n, lacking)
                lacking -= taken
                pieces.append((first, taken))
                if taken < n:
                    pool.append((first + taken, n - taken))


# --- 6. Ranks

def steps_from(samples, step_samples, tail, consumed):
    left = max(samples - consumed, 0)
    return left // step_samples if tail == "drop" else -(-left // step_samples)


def step_positions(samples, lanes, world, rank, batch, tail, consumed):
    """The rank's positions of the step that starts at consumed, an array of uint64. With the tail
    rule "pad" some may be beyond the samples: take them modulo."""
    full = consumed + batch * world
    end = full if tail == "pad" else min(full, samples)
    if lanes % world == 0:
        return numpy.arange(consumed + (rank - consumed) % world, end, world).astype(_U)
    step = numpy.arange(consumed, end)
    step = step[numpy.lexsort((step, step % lanes))]
    n = len(step)
    return step[rank * n // world:(rank + 1) * n // world].astype(_U)


def batch_count(samples, lanes, world, rank, batch, tail, consumed, worker=0, workers=1):
    """How many batches a worker of a rank gives from consumed on."""
    steps = steps_from(samples, batch * world, tail, consumed)
    mine = max(0, -(-(steps - worker) // workers))
    if mine and tail == "exact" and (steps - 1) % workers == worker:
        last = consumed + (steps - 1) * batch * world
        if len(step_positions(samples, lanes, world, rank, batch, tail, last)) == 0:
            mine -= 1
    return mine


# --- 7 and 8. State, defaults

_STATE = re.compile(r"stripepack-state/1 content=([0-9a-f]{32}) map=([0-9a-f]{16}) "
                    r"order=(shuffled|sequential|random) seed=(\d+) epoch=(\d+) lanes=(\d+) "
                    r"window=(\d+) consumed=(\d+)", re.ASCII)
_STATE_LIMITS = (("seed", 0, _M64), ("epoch", 0, _M64), ("lanes", 1, MAX_LANES),
                 ("window", 1, MAX_WINDOW), ("consumed", 0, _M64))


def state_text(content_id, map_digest, kind, seed, epoch, lanes, window, consumed):
    return (f"stripepack-state/{VERSION} content={content_id} map={map_digest:016x} order={kind} "
            f"seed={seed} epoch={epoch} lanes={lanes} window={window} consumed={consumed}")


def parse_state(text, content_id, map_digest, samples):
    """(kind, seed, epoch, lanes, window, consumed) of a state that is of this pack and map."""
    if not isinstance(text, str):
        raise error("invalid_argument", f"not a loader state: {text!r:.60}")
    found = _STATE.fullmatch(text)
    if found is None:
        if text.startswith("stripepack-state/") and not text.startswith("stripepack-state/1 "):
            raise error("unsupported", f"the loader state is of another version: {text[:40]!r}")
        raise error("invalid_argument", f"not a loader state: {text[:300]!r}")
    if found[1] != content_id:
        raise error("mismatch", f"the loader state is of the pack with content id {found[1]}, this "
                    f"one has {content_id}; resume with the pack that the run began with")
    if int(found[2], 16) != map_digest:
        raise error("mismatch", f"the loader state is of the target map with digest {found[2]}, at "
                    f"hand is {map_digest:016x}")
    numbers = [int(found[i]) for i in range(4, 9)]
    for (name, least, most), number in zip(_STATE_LIMITS, numbers):
        if not least <= number <= most:
            raise error("invalid_argument", f"not a loader state: {name} is '{number}'")
    seed, epoch, lanes, window, consumed = numbers
    if consumed > samples:
        raise error("invalid_argument", f"the loader state says that {consumed} samples were "
                    f"consumed, the pack has {samples}")
    return found[3], seed, epoch, lanes, window, consumed


def map_of_state(text, content_id):
    """The digest of the target map of a state, in hexadecimal; "" where it is no state of this
    pack."""
    found = _STATE.fullmatch(text) if isinstance(text, str) else None
    return found[2] if found and found[1] == content_id else ""


def known_map(dataset, targets, kind, state=None):
    """The digest of the target map that a run uses: of `targets`, or where they are None of the one
    that the state is of, which must be recorded beside the pack, or of the current one there."""
    if targets is not None:
        return map_digest(targets)
    digest = map_of_state(state, dataset.content_id)
    if digest or (state is None and kind == "shuffled"):
        return map_digest(dataset.recorded_targets(digest))
    return 0


def state_of(state_dict):
    """The state within what state_dict() made."""
    try:
        return state_dict["state"]
    except (KeyError, IndexError, TypeError):
        raise error("invalid_argument", "not what state_dict() made: there is no 'state' in "
                    f"{state_dict!r:.60}") from None


def target_map(targets):
    """A list of the chunks' targets; empty where there is no map."""
    if targets is None:
        return []
    try:
        given = numpy.asarray(targets)
        flat = given.ndim == 1 and (given.size == 0 or given.dtype.kind in "iu")
    except (TypeError, ValueError):
        flat = False
    if not flat:
        raise TypeError("targets is a list of whole numbers, one for each chunk")
    given = given.tolist()
    for number in given and (min(given), max(given)):
        integer("a target", number, 0, (1 << 32) - 1)
    return given


def map_digest(targets):
    if targets is None or len(targets) == 0:
        return 0
    from .pure.xxh3 import xxh3_64
    return xxh3_64(numpy.asarray(targets, "<u4").tobytes())


def lanes_text(lanes, window):
    return f"{lanes} lane{'s' if lanes != 1 else ''}, window {window}"


def default_lanes(world):
    return 64 if 64 % world == 0 else -(-64 // world) * world


def resolve(kind, world, lanes, window):
    """(lanes, window) as a loader has them, 0 or None where not asked for."""
    lanes = 0 if lanes is None else integer("lanes", lanes)
    window = 0 if window is None else integer("window", window)
    if kind != "shuffled":
        return 1, 1
    if lanes:
        window = window or 1
    else:
        lanes, window = default_lanes(world), window or (1 if 64 % world == 0 else 4)
    for name, value, most in (("lanes", lanes, MAX_LANES), ("window", window, MAX_WINDOW)):
        if value > most:
            raise error("invalid_argument", f"{name} must be 1 to {most}, not {value}")
    return lanes, window

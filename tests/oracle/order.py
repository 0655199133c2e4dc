#!/usr/bin/env python3
"""The order of an epoch with nothing but the Python standard library.

Written from docs/ORDER.md alone, as a check of that page and of the C++ code. Numbers of sections
are that page's.

    order.py PACK [options]             the samples of one rank, one a line
    order.py --units FILE [options]     the same; FILE has the samples of each unit, one a line
    order.py --vectors                  section 9 of the page

Exit codes: 0 done, 1 the pack is damaged, 2 usage, 5 not a pack or not supported.
"""

import argparse
import heapq
import struct
import sys

import decode
from xxh3 import xxh3_64

ORDER_VERSION = 1
MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
KIND_UNITS, KIND_TARGETS, KIND_WINDOW, KIND_RANDOM = 1, 2, 3, 4
ORDERS = ("shuffled", "sequential", "random")
TAILS = ("drop", "pad", "exact")


# --- 2. Random numbers ----------------------------------------------------------------------------


def mix64(x):
    x = (x + GAMMA) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def stream(kind, epoch, a=0, b=0):
    return mix64(mix64(mix64(mix64(kind) ^ epoch) ^ a) ^ b)


class Permutation:
    """P(seed, t, n): calling it permutes 0 ... n-1."""

    def __init__(self, seed, t, n):
        self.n = n
        self.half = next(h for h in range(1, 33) if 1 << (2 * h) >= n)
        self.keys = []
        key = mix64(seed) ^ mix64((mix64(t) + 1) & MASK)
        for _ in range(6):
            key = mix64(key)
            self.keys.append(key)

    def __call__(self, x):
        half, mask = self.half, (1 << self.half) - 1
        while True:
            left, right = x >> half, x & mask
            for key in self.keys:
                left, right = right, left ^ (mix64(right ^ key) & mask)
            x = (left << half) | right
            if x < self.n:
                return x


def shuffle_table(seed, t, table):
    """Shuffles a list in place."""
    s = mix64(mix64(seed) ^ t)
    for d, i in enumerate(range(len(table) - 1, 0, -1)):
        j = (mix64((s + d * GAMMA) & MASK) * (i + 1)) >> 64
        table[i], table[j] = table[j], table[i]


# --- 3 to 5. The order ----------------------------------------------------------------------------


class Order:
    """`counts` are the samples of each unit; `targets` the target of each, or None without a map.

    `pieces[l]` are lane l's pieces as (first sample, samples, unit), for the order "shuffled".
    """

    def __init__(self, counts, targets=None, order="shuffled", seed=0, epoch=0, lanes=64, window=1):
        if order not in ORDERS:
            raise ValueError("no such order: %s" % order)
        if targets is not None and len(targets) != len(counts):
            raise ValueError("%d targets for %d units" % (len(targets), len(counts)))
        self.counts = counts
        self.firsts = []
        self.samples = 0
        for count in counts:
            self.firsts.append(self.samples)
            self.samples += count
        self.targets = targets
        self.order = order
        self.seed = seed
        self.epoch = epoch
        self.lanes = lanes if order == "shuffled" else 1
        self.window = window if order == "shuffled" else 1
        if order == "random" and self.samples > 0:
            self.random = Permutation(seed, stream(KIND_RANDOM, epoch), self.samples)
        if order == "shuffled":
            self.pieces = self._equal_lanes(self._deal(self._sequence()))
            self._lane_samples = [None] * self.lanes

    def sample_at(self, position):
        if self.order == "sequential":
            return position
        if self.order == "random":
            return self.random(position)
        return self.lane_samples(position % self.lanes)[position // self.lanes]

    def all(self):
        return [self.sample_at(position) for position in range(self.samples)]

    def lane_samples(self, lane):
        """All samples of a lane, window after window."""
        if self._lane_samples[lane] is None:
            pieces, w = self.pieces[lane], self.window
            samples = []
            for number, at in enumerate(range(0, len(pieces), w)):
                window = [first + i for first, n, _ in pieces[at : at + w] for i in range(n)]
                shuffle_table(self.seed, stream(KIND_WINDOW, self.epoch, lane, number), window)
                samples += window
            self._lane_samples[lane] = samples
        return self._lane_samples[lane]

    def _sequence(self):
        """Units, spread over the targets."""
        targets = self.targets or [0] * len(self.counts)
        target_count = max(targets, default=0) + 1
        units = [[] for _ in range(target_count)]
        for unit, target in enumerate(targets):
            units[target].append(unit)
        permutation = Permutation(self.seed, stream(KIND_TARGETS, self.epoch), target_count)
        place = [0] * target_count
        for x in range(target_count):
            place[permutation(x)] = x
        keyed = []
        for target, held in enumerate(units):
            if not held:
                continue
            c = len(held)
            shuffle = Permutation(self.seed, stream(KIND_UNITS, self.epoch, target), c)
            for j in range(c):
                keyed.append((((2 * j + 1) << 31) // c, place[target], held[shuffle(j)]))
        keyed.sort()
        return [unit for _, _, unit in keyed]

    def _deal(self, sequence):
        """The units of each lane."""
        dealt = [[] for _ in range(self.lanes)]
        times = [(0, lane) for lane in range(self.lanes)]
        for at in range(0, len(sequence), self.window):
            time, lane = times[0]
            units = sequence[at : at + self.window]
            dealt[lane] += units
            heapq.heapreplace(times, (time + sum(self.counts[u] for u in units), lane))
        return dealt

    def lane_rows(self, lane):
        """T of a lane."""
        return self.samples // self.lanes + (1 if lane < self.samples % self.lanes else 0)

    def _equal_lanes(self, dealt):
        lanes = [[(self.firsts[u], self.counts[u], u) for u in units] for units in dealt]
        totals = [sum(n for _, n, _ in pieces) for pieces in lanes]
        pool = []
        for lane, pieces in enumerate(lanes):
            surplus = totals[lane] - self.lane_rows(lane)
            cut = []
            while surplus > 0:
                first, n, unit = pieces.pop()
                away = min(n, surplus)
                surplus -= away
                cut.insert(0, (first + n - away, away, unit))
                if away < n:
                    pieces.append((first, n - away, unit))
            pool += cut
        pool.reverse()  # its front is the end of this list
        for lane, pieces in enumerate(lanes):
            lacking = self.lane_rows(lane) - totals[lane]
            while lacking > 0:
                first, n, unit = pool.pop()
                taken = min(n, lacking)
                lacking -= taken
                pieces.append((first, taken, unit))
                if taken < n:
                    pool.append((first + taken, n - taken, unit))
        assert not pool
        return lanes


# --- 6. Ranks -------------------------------------------------------------------------------------


def rank_steps(samples, lanes, world, rank, batch, tail="drop", consumed=0):
    """Yields (positions of the rank, consumed after the step) for every step from `consumed` on.

    With the tail rule "pad", positions may be beyond the samples: take them modulo."""
    if tail not in TAILS:
        raise ValueError("no such tail rule: %s" % tail)
    while consumed < samples:
        end = min(consumed + batch * world, samples)
        after = end
        if end - consumed < batch * world:
            if tail == "drop":
                return
            if tail == "pad":
                end = consumed + batch * world
        if lanes % world == 0:
            mine = [g for g in range(consumed, end) if g % world == rank]
        else:
            step = sorted(range(consumed, end), key=lambda g: (g % lanes, g))
            n = len(step)
            mine = step[rank * n // world : (rank + 1) * n // world]
        yield mine, after
        consumed = after


def rank_samples(order, world, rank, batch, tail="drop", consumed=0):
    """The samples that a rank gets, in order."""
    return [
        order.sample_at(g % order.samples)
        for mine, _ in rank_steps(order.samples, order.lanes, world, rank, batch, tail, consumed)
        for g in mine
    ]


# --- 7 and 8. State, defaults ---------------------------------------------------------------------


def map_digest(targets):
    return 0 if targets is None else xxh3_64(struct.pack("<%dI" % len(targets), *targets))


def state_text(order, content_id, consumed):
    return (
        "stripepack-state/%d content=%s map=%016x order=%s seed=%d epoch=%d lanes=%d window=%d "
        "consumed=%d"
        % (ORDER_VERSION, content_id, map_digest(order.targets), order.order, order.seed,
           order.epoch, order.lanes, order.window, consumed)
    )  # fmt: skip


def default_lanes(world):
    return 64 if 64 % world == 0 else -(-64 // world) * world


def default_window(world):
    return 1 if 64 % world == 0 else 4


# --- 9. Test vectors ------------------------------------------------------------------------------


def digest(samples):
    return xxh3_64(struct.pack("<%dQ" % len(samples), *samples))


# Units, map, and the (kind, seed, epoch, L, w) whose orders are printed in full.
SMALL_UNITS = [3, 1, 4, 1, 5, 9, 2, 6]
SMALL_MAP = [0, 0, 0, 2, 0, 4, 2, 0]
SMALL = [
    (False, ("shuffled", 0, 0, 1, 1)),
    (False, ("shuffled", 7, 0, 2, 1)),
    (False, ("shuffled", 7, 1, 2, 1)),
    (False, ("shuffled", 7, 0, 5, 2)),
    (False, ("shuffled", 7, 0, 40, 3)),
    (True, ("shuffled", 7, 0, 1, 1)),
    (True, ("shuffled", 7, 0, 2, 1)),
    (True, ("shuffled", 7, 0, 5, 2)),
    (True, ("shuffled", MASK, MASK, 3, 4)),
    (False, ("sequential", 7, 3, 1, 1)),
    (False, ("random", 7, 0, 1, 1)),
    (False, ("random", 7, 1, 1, 1)),
]
# Of the order (with the map, seed 7, epoch 0, L 4, w 1): W, b, tail, G at the start.
RANKS = [
    (2, 3, "drop", 0),
    (2, 4, "pad", 0),
    (4, 3, "exact", 0),
    (3, 4, "drop", 0),
    (3, 4, "pad", 0),
    (3, 4, "exact", 0),
    (5, 2, "exact", 10),
    (8, 5, "pad", 0),
]
LARGE_UNITS = [1 + (u * u + 7 * u) % 73 for u in range(3000)]
LARGE_MAP = [(u // 4 * 5) % 11 if u % 13 else 3 for u in range(3000)]
LARGE = [
    (kind, seed, epoch, lanes, window, with_map)
    for with_map in (False, True)
    for kind, seed, epoch, lanes, window in (
        ("shuffled", 0, 0, 64, 1),
        ("shuffled", 0, 1, 64, 1),
        ("shuffled", 123456789, 5, 12, 4),
        ("shuffled", 1, 2, 7, 1),
        ("shuffled", 1, 2, 1000, 2),
        ("shuffled", 1, 2, 5000, 1),
    )
] + [("random", 1, 2, 1, 1, False)]


def listed(numbers):
    return " ".join(str(number) for number in numbers)


def vectors():
    """The lines of section 9, between its marks."""
    lines = ["Numbers:", "", "| | |", "|---|---|"]

    def row(*cells):
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")

    for x in (0, 1, MASK):
        row("mix64(%#x)" % x, "`%016x`" % mix64(x))
    row("stream(3, 1, 2, 4)", "`%016x`" % stream(3, 1, 2, 4))
    for n in (1, 4, 5, 10, 17):
        permutation = Permutation(7, 11, n)
        row("P(7, 11, %d) of 0 … %d" % (n, n - 1), listed(permutation(x) for x in range(n)))
    big = Permutation(7, 11, 10**12)
    row("P(7, 11, 10¹²) of 0, 1, 2", listed(big(x) for x in range(3)))
    table = list(range(10))
    shuffle_table(7, 11, table)
    row("table shuffle of 0 … 9 with (7, 11)", listed(table))
    row("digest of the map %s" % listed(SMALL_MAP), "`%016x`" % map_digest(SMALL_MAP))
    samples = sum(SMALL_UNITS)
    lines += ["", "Orders of %d samples in units of %s; *map*: targets %s." % (
        samples, listed(SMALL_UNITS), listed(SMALL_MAP)), ""]
    row("kind", "map", "seed", "epoch", "L", "w", "samples at positions 0 … %d" % (samples - 1))
    lines.append("|---|---|---|---|---|---|---|")
    for with_map, (kind, seed, epoch, lanes, window) in SMALL:
        order = Order(SMALL_UNITS, SMALL_MAP if with_map else None, kind, seed, epoch, lanes, window)
        row(kind, "yes" if with_map else "no", seed, epoch, lanes, window, listed(order.all()))
    order = Order(SMALL_UNITS, SMALL_MAP, "shuffled", 7, 0, 4, 1)
    lines += ["", "Ranks, of the same with the map, seed 7, epoch 0, L = 4, w = 1; steps are parted "
              "by a stroke, `-` is no batch.", ""]
    row("W", "b", "tail", "from G", "rank", "samples")
    lines.append("|---|---|---|---|---|---|")
    for world, batch, tail, consumed in RANKS:
        for rank in range(world):
            steps = rank_steps(samples, order.lanes, world, rank, batch, tail, consumed)
            texts = [listed(order.sample_at(g % samples) for g in mine) or "-" for mine, _ in steps]
            row(world, batch, tail, consumed, rank, " / ".join(texts))
    lines += ["", "State of that run after 12 samples, where the content id is 16 bytes of 0xab:", "",
              "```text", state_text(order, "ab" * 16, 12), "```", "",
              "Orders of %d samples in 3,000 units: unit u has 1 + (u² + 7u) mod 73 samples; *map*: it is "
              "on target 5⌊u/4⌋ mod 11," % sum(LARGE_UNITS),
              "or on 3 where 13 divides u. The digest is the XXH3-64 of all sample numbers in their "
              "order, each as a u64 in", "little-endian.", ""]
    row("kind", "map", "seed", "epoch", "L", "w", "first samples", "digest")
    lines.append("|---|---|---|---|---|---|---|---|")
    for kind, seed, epoch, lanes, window, with_map in LARGE:
        order = Order(LARGE_UNITS, LARGE_MAP if with_map else None, kind, seed, epoch, lanes, window)
        everything = order.all()
        row(kind, "yes" if with_map else "no", seed, epoch, lanes, window, listed(everything[:6]),
            "`%016x`" % digest(everything))
    return lines


# --- The command ----------------------------------------------------------------------------------


def read_numbers(path):
    with open(path, encoding="ascii") as file:
        return [int(line) for line in file]


def unit_samples(path):
    """The samples of each unit of a pack."""
    index = decode.Pack(path).index
    tables = [decode.Table(index.shard_table(s, "chunks")) for s in range(len(index.shards))]
    return [count for table in tables for count in table.unsigned("sample_count")]


def main():
    parser = argparse.ArgumentParser(description="Prints the samples of a rank, one a line.")
    parser.add_argument("pack", nargs="?")
    parser.add_argument("--units")
    parser.add_argument("--targets", help="the target of each unit, one a line")
    parser.add_argument("--order", choices=ORDERS, default="shuffled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--window", type=int)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tail", choices=TAILS, default="exact")
    parser.add_argument("--consumed", type=int, default=0)
    parser.add_argument("--vectors", action="store_true")
    options = parser.parse_args()
    if options.vectors:
        print("\n".join(vectors()))
        return 0
    if (options.pack is None) == (options.units is None):
        parser.error("PACK or --units is needed")
    try:
        counts = read_numbers(options.units) if options.units else unit_samples(options.pack)
    except decode.PackError as error:
        print("order.py: %s" % error, file=sys.stderr)
        return 1 if isinstance(error, decode.Damaged) else 5
    order = Order(
        counts,
        read_numbers(options.targets) if options.targets else None,
        options.order, options.seed, options.epoch,
        options.lanes or default_lanes(options.world),
        options.window or default_window(options.world),
    )  # fmt: skip
    for sample in rank_samples(
        order, options.world, options.rank, options.batch, options.tail, options.consumed
    ):
        print(sample)
    return 0


if __name__ == "__main__":
    sys.exit(main())

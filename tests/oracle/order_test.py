#!/usr/bin/env python3
# ctest: timeout=900
"""The second implementation of docs/ORDER.md against `stripepack order`: the page's test vectors,
random units, and packs that `stripepack pack` makes. `--fix` rewrites the vectors in the page.

SPK_SEED (default: 1) is the first seed, SPK_ROUNDS (default: 40) says how many random cases."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "golden")]

import golden  # noqa: E402
import order  # noqa: E402
import pictures  # noqa: E402

FIRST_SEED = int(os.environ.get("SPK_SEED", "1"))
ROUNDS = int(os.environ.get("SPK_ROUNDS", "40"))
PROGRAM = os.environ.get("STRIPEPACK", os.path.join(golden.BUILD, "stripepack"))
ORDER_MD = os.path.join(golden.SOURCE, "docs", "ORDER.md")
VECTORS = re.compile(r"(<!-- begin generated: order vectors -->\n)(.*?)(<!-- end generated -->)", re.S)


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    if done.returncode != code:
        raise AssertionError("%s: exit %d: %s" % (arguments, done.returncode, done.stderr))
    return done.stdout


def program_order(*arguments):
    return [int(line) for line in run("order", *arguments).split()]


class OrderTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="stripepack-order-")
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def path(self, name):
        return os.path.join(self.scratch, name)

    def numbers(self, name, numbers):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.writelines("%d\n" % number for number in numbers)
        return self.path(name)

    def units(self, counts, targets):
        """Options for such units."""
        options = ["--units", self.numbers("units", counts)]
        if targets is not None:
            options += ["--targets", self.numbers("targets", targets)]
        return options

    # --- The page

    def test_vectors_are_those_of_the_page(self):
        with open(ORDER_MD, encoding="utf-8") as file:
            self.assertEqual(VECTORS.search(file.read())[2], "\n".join(order.vectors()) + "\n")

    def test_small_orders_of_the_page(self):
        for with_map, (kind, seed, epoch, lanes, window) in order.SMALL:
            targets = order.SMALL_MAP if with_map else None
            expected = order.Order(
                order.SMALL_UNITS, targets, kind, seed, epoch, lanes, window
            ).all()  # fmt: skip
            found = program_order(
                *self.units(order.SMALL_UNITS, targets), "--order", kind, "--seed", seed, "--epoch",
                epoch, "--lanes", lanes, "--window", window,
            )  # fmt: skip
            self.assertEqual(found, expected)

    def test_ranks_of_the_page(self):
        like = order.Order(order.SMALL_UNITS, order.SMALL_MAP, "shuffled", 7, 0, 4, 1)
        for world, batch, tail, consumed in order.RANKS:
            for rank in range(world):
                steps = order.rank_steps(like.samples, 4, world, rank, batch, tail, consumed)
                lines = run(
                    "order", *self.units(order.SMALL_UNITS, order.SMALL_MAP), "--seed", 7, "--lanes",
                    4, "--window", 1, "--world", world, "--rank", rank, "--batch", batch, "--tail",
                    tail, "--consumed", consumed, "--json",
                ).splitlines()  # fmt: skip
                head, *found = map(json.loads, lines)
                self.assertEqual(head["map"], "%016x" % order.map_digest(order.SMALL_MAP))
                self.assertEqual(
                    [(step["samples"], step["consumed"]) for step in found],
                    [([like.sample_at(g % like.samples) for g in mine], after)
                     for mine, after in steps],
                )  # fmt: skip

    def test_large_orders_of_the_page(self):
        for kind, seed, epoch, lanes, window, with_map in order.LARGE:
            targets = order.LARGE_MAP if with_map else None
            expected = order.Order(order.LARGE_UNITS, targets, kind, seed, epoch, lanes, window)
            found = program_order(
                *self.units(order.LARGE_UNITS, targets), "--order", kind, "--seed", seed, "--epoch",
                epoch, "--lanes", lanes, "--window", window,
            )  # fmt: skip
            self.assertEqual(order.digest(found), order.digest(expected.all()))

    # --- Random cases

    def test_random_units(self):
        for seed in range(FIRST_SEED, FIRST_SEED + ROUNDS):
            with self.subTest(seed=seed):
                rng = random.Random(seed)
                most = rng.choice([1, 2, 9, 100])
                counts = [rng.randint(1, most) for _ in range(rng.choice([0, 1, 3, 20, 150]))]
                targets = None
                if counts and rng.random() < 0.7:
                    highest = rng.choice([0, 1, 5, 300])
                    targets = [rng.randint(0, rng.randint(0, highest)) for _ in counts]
                self.check_as_ranks(rng, counts, targets, self.units(counts, targets))

    def check_as_ranks(self, rng, counts, targets, source):
        """A random order over `counts`, as all ranks of a random world see it."""
        kind = rng.choice(["shuffled"] * 4 + ["sequential", "random"])
        world = rng.choice([1, 2, 3, 4, 5, 8, 12])
        settings = {
            "seed": rng.choice([0, rng.getrandbits(64)]),
            "epoch": rng.choice([0, 1, rng.getrandbits(64)]),
            "lanes": order.default_lanes(world) if kind == "shuffled" else 1,
            "window": order.default_window(world) if kind == "shuffled" else 1,
        }
        batch = rng.choice([1, 2, 3, 7, 40])
        tail = rng.choice(order.TAILS)
        options = ["--order", kind, "--seed", settings["seed"], "--epoch", settings["epoch"],
                   "--world", world, "--batch", batch, "--tail", tail]  # fmt: skip
        if kind == "shuffled" and rng.random() < 0.8:
            settings["lanes"] = rng.choice([1, 2, 5, world, 3 * world, 90])
            options += ["--lanes", settings["lanes"]]
        if kind == "shuffled" and rng.random() < 0.8:
            settings["window"] = rng.choice([1, 2, 3, 50])
            options += ["--window", settings["window"]]
        expected = order.Order(counts, targets, kind, **settings)
        self.assertEqual(sorted(expected.all()), list(range(sum(counts))))
        together = []
        for rank in range(world):
            mine = program_order(*source, *options, "--rank", rank)
            self.assertEqual(mine, order.rank_samples(expected, world, rank, batch, tail), options)
            together += mine
        if tail == "exact":
            self.assertEqual(sorted(together), list(range(sum(counts))))

    # --- Packs

    def test_packs(self):
        sizes = [(12, []), (400, ["--chunk-size", "64KiB"]), (150, ["--chunk-size", "64KiB",
                 "--shards", "3"])]  # fmt: skip
        for number, (count, options) in enumerate(sizes):
            source, pack = self.path("src%d" % number), self.path("pack%d" % number)
            pictures.make_folder(source, {"cat": count, "dog": count // 2, "hen": 3})
            run("pack", source, pack, *options)
            counts = order.unit_samples(pack)
            self.assertEqual(sum(counts), count + count // 2 + 3)
            for seed in range(FIRST_SEED, FIRST_SEED + 5):
                with self.subTest(pack=number, seed=seed):
                    rng = random.Random(seed)
                    self.check_as_ranks(rng, counts, None, [pack])
                    targets = [rng.randint(0, 6) for _ in counts]
                    self.check_as_ranks(
                        rng, counts, targets, [pack, "--targets", self.numbers("map", targets)]
                    )
            self.check_command(pack)

    def check_command(self, pack):
        for options in (["--epoch", "3"], ["--world", "3", "--rank", "2", "--tail", "pad"]):
            mine = subprocess.run([sys.executable, "-B", os.path.join(HERE, "order.py"), pack,
                                   *options], check=True, stdout=subprocess.PIPE, text=True)  # fmt: skip
            self.assertEqual(mine.stdout, run("order", pack, *options))


def fix():
    with open(ORDER_MD, encoding="utf-8") as file:
        page = file.read()
    body = "\n".join(order.vectors()) + "\n"
    with open(ORDER_MD, "w", encoding="utf-8") as file:
        file.write(VECTORS.sub(lambda match: match[1] + body + match[3], page))


if __name__ == "__main__":
    if "--fix" in sys.argv:
        fix()
    else:
        unittest.main()

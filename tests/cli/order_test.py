"""order: samples of ranks, its simulation and its judgement, and how it ends. That the order is the right
one is the matter of tests/oracle/order_test.py."""

import json
import os
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NOT_A_PACK, PROGRAM, USAGE, PackTest, main, run,  # noqa: E402
                     text)

# Lanes, targets, and what the balanced order may reach as a multiple of the ideal, or as it is.
BARS = [(512, 56, 1.1, None), (64, 56, 1.1, None), (1024, 248, 1.1, None), (9216, 56, 1.1, None),
        (128, 128, None, 1.6)]


class OrderTest(PackTest):
    def lines(self, *arguments):
        done = self.expect(run("order", *map(str, arguments)), DONE)
        self.assertEqual(done.err, b"")
        return text(done.out).splitlines()

    def fails(self, code, message, *arguments):
        done = run("order", *map(str, arguments))
        self.assertEqual((done.code, text(done.err), done.out),
                         (code, "stripepack order: " + message + "\n", b""))

    def numbers(self, name, numbers):
        path = self.path(name)
        with open(path, "w", encoding="ascii") as file:
            file.writelines("%s\n" % number for number in numbers)
        return path

    def make(self):
        pictures.make_folder(self.path("src"), {"cat": 40, "dog": 30})
        self.pack(self.path("src"), self.out)

    # --- Samples

    def test_ranks_share_all_samples(self):
        self.make()
        for world in (1, 2, 3, 5, 64, 100):
            ranks = [list(map(int, self.lines(self.out, "--world", world, "--rank", rank)))
                     for rank in range(world)]
            self.assertEqual(sorted(sum(ranks, [])), list(range(70)))
            self.assertLessEqual(max(map(len, ranks)) - min(map(len, ranks)), 1)

    def test_epochs_and_seeds_differ_and_runs_do_not(self):
        self.make()
        orders = {tuple(self.lines(self.out, "--epoch", epoch, "--seed", seed))
                  for epoch in range(3) for seed in range(3) for _ in range(2)}
        self.assertEqual(len(orders), 9)
        self.assertEqual(self.lines(self.out, "--order", "sequential", "--epoch", 5),
                         [str(number) for number in range(70)])

    def test_json(self):
        self.make()
        done = self.expect(run("order", self.out, "--json", "--world", "2", "--rank", "1", "--batch",
                               "20", "--tail", "drop", "--epoch", "4"), DONE)
        head, *steps = done.objects
        self.assertEqual(head, {
            "type": "order", "v": 1, "order": "shuffled", "order_version": 1, "seed": 0, "epoch": 4,
            "lanes": 64, "window": 1, "map": "0" * 16, "world": 2, "rank": 1, "batch": 20,
            "tail": "drop", "samples": 70})
        self.assertEqual([(step["type"], step["consumed"], len(step["samples"])) for step in steps],
                         [("step", 40, 20)])

    def test_going_on(self):
        self.make()
        common = (self.out, "--world", 1, "--batch", 10, "--lanes", 64, "--window", 1)
        whole = self.lines(*common)
        self.assertEqual(self.lines(*common, "--consumed", 30), whole[30:])
        self.assertEqual(self.lines(*common, "--consumed", 70), [])
        self.fails(USAGE, "--consumed 71: an epoch has only 70 samples", *common, "--consumed", 71)

    def test_a_reader_that_stops_early(self):
        units = self.numbers("units", [1000] * 1000)
        done = subprocess.run("'%s' order --units '%s' | head -n 1; echo ${PIPESTATUS[0]}" %
                              (PROGRAM, units), shell=True, executable="/bin/bash",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.stderr, done.stdout.split()[1:]), (b"", [b"0"]))

    # --- What is wrong

    def test_errors(self):
        self.make()
        self.fails(USAGE, "whose order?; name a PACK, or give --units or --simulate")
        self.fails(USAGE, "there is no rank 2 in a world of 2 ranks", self.out, "--world", 2,
                   "--rank", 2)
        self.fails(USAGE, "the order 'random' has no lanes and no window: leave both at 1", self.out,
                   "--order", "random", "--lanes", 4)
        self.fails(USAGE, "--epoch: '-1' is not a whole number from 0 to 18446744073709551615; see "
                   "`stripepack order --help`", self.out, "--epoch", -1)
        done = run("order", self.path("src"))
        self.assertEqual(done.code, NOT_A_PACK)
        done = run("order", "--units", self.path("nothing"))
        self.assertEqual(done.code, FAILED)
        units = self.numbers("units", [3, "", 4, 0])
        self.fails(USAGE, "%s: line 4: '0' is not a whole number from 1 to 524288" % units,
                   "--units", units)
        units = self.numbers("units", [3, 4])
        self.fails(USAGE, "the target map has 1 chunk, the pack 2", "--units", units, "--targets",
                   self.numbers("map", [1]))
        self.fails(USAGE, "%s: there is no target in it" % self.path("map"), "--units", units,
                   "--targets", self.numbers("map", []))
        self.assertEqual(run("order", self.out, "--simulate").code, USAGE)
        self.fails(USAGE, "--simulate needs --sizes FILE and --targets N", "--simulate")

    # --- The load on targets

    def sizes(self):
        """Like photographs: 110 kB on average, most smaller."""
        rng = random.Random(1)
        return self.numbers("sizes", [int(rng.lognormvariate(11.4, 0.6)) for _ in range(1000)])

    def simulate(self, *arguments):
        done = self.expect(run("order", "--simulate", "--json", *map(str, arguments)), DONE)
        (found,) = done.objects
        self.assertEqual(found["type"], "simulation")
        return found

    def test_balance(self):
        sizes = self.sizes()
        for lanes, targets, of_ideal, at_most in BARS:
            with self.subTest(lanes=lanes, targets=targets):
                found = self.simulate("--sizes", sizes, "--lanes", lanes, "--targets", targets,
                                      "--chunks-per-lane", 48)
                self.assertEqual((found["chunks"], found["slots"]), (lanes * 48, 44))
                self.assertAlmostEqual(found["ideal"], -(-lanes // targets) * targets / lanes)
                self.assertLessEqual(found["balanced"], at_most or of_ideal * found["ideal"])
                self.assertGreater(found["plain"], found["balanced"] * 1.1)

    def test_balance_where_shards_begin_anywhere(self):
        for lanes in (64, 512):
            found = self.simulate("--sizes", self.sizes(), "--lanes", lanes, "--targets", 56,
                                  "--chunks-per-lane", 48, "--layout", "random-start",
                                  "--stripe-count", 4, "--shards", 64)
            self.assertLessEqual(found["balanced"], 2.1)
            self.assertLessEqual(found["balanced"], 1.1 * found["ideal"])
            self.assertGreater(found["plain"], found["balanced"] * 1.1)

    def test_simulation_as_text_and_its_errors(self):
        sizes = self.sizes()
        lines = self.lines("--simulate", "--sizes", sizes, "--targets", 8, "--lanes", 16)
        self.assertEqual([line.split()[0] for line in lines],
                         ["heaviest", "balanced", "plain", "ideal"])
        common = ("--simulate", "--sizes", sizes)
        self.fails(USAGE, "--targets: with --simulate a number from 1 to 1048576, not 'x'", *common,
                   "--targets", "x")
        self.fails(USAGE, "--shards and --stripe-count go with --layout random-start", *common,
                   "--targets", 4, "--shards", 3)
        self.fails(USAGE, "a lane has 4 windows; the first two and the last two are left "
                   "out; give --chunks-per-lane a larger number", *common, "--targets", 4,
                   "--chunks-per-lane", 4)
        self.fails(USAGE, "there are no sizes to draw from", "--simulate", "--sizes",
                   self.numbers("none", []), "--targets", 4)

    # --- How well it shuffles

    def test_quality(self):
        self.make()
        pictures.make_folder(self.path("more"), {"c%02d" % c: 60 for c in range(20)})
        self.pack(self.path("more"), self.path("mixed"), "--chunk-size", "64KiB")
        self.pack(self.path("more"), self.path("sorted"), "--chunk-size", "64KiB", "--no-shuffle")
        common = ("--quality", "--lanes", "4", "--batch", "8", "--world", "2", "--json")
        (mixed,) = self.expect(run("order", self.path("mixed"), *common), DONE).objects
        (by_class,) = self.expect(run("order", self.path("sorted"), *common), DONE).objects
        self.assertFalse(mixed["sorted"])
        self.assertTrue(by_class["sorted"])
        self.assertLess(mixed["class_variance"], 1.3)
        self.assertGreater(by_class["class_variance"], 2)
        self.assertLess(by_class["class_variance"], by_class["class_variance_estimate"])
        self.assertGreater(mixed["pairs_again"], 1)
        advice = self.lines(self.path("sorted"), *common[:-1])[-1]
        self.assertIn("storage is sorted by class", advice)
        self.assertIn("pack with --shuffle full", advice)
        self.assertEqual(len(self.lines(self.path("mixed"), *common[:-1])), 4)

    def test_quality_of_next_to_nothing(self):
        units = self.numbers("units", [1])
        (found,) = self.expect(run("order", "--units", units, "--quality", "--json"), DONE).objects
        self.assertNotIn("pairs_again", found)
        self.assertEqual(len(self.lines("--units", units, "--quality")), 3)


if __name__ == "__main__":
    main()

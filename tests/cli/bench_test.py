"""bench: what it reads, what it tells, and how it ends."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NOT_A_PACK, USAGE, PackTest, main, run,  # noqa: E402
                     text)


class BenchTest(PackTest):
    def make(self):
        self.source = self.path("src")
        pictures.make_folder(self.source, {"cat": 40, "dog": 30})
        self.payload = sum(path.stat().st_size for path in pathlib.Path(self.source).rglob("*.*"))
        self.pack(self.source, self.out)

    def bench(self, *arguments):
        done = self.expect(run("bench", self.out, "--json", *map(str, arguments)), DONE)
        head, *epochs, summary = done.objects
        self.assertEqual((head["type"], summary["type"]), ("bench", "summary"))
        self.assertEqual({epoch["type"] for epoch in epochs}, {"epoch"})
        return head, epochs, summary

    def fails(self, code, message, *arguments):
        done = run("bench", *map(str, arguments))
        self.assertEqual(done.code, code, str(done))
        self.assertIn(message, text(done.err))

    def test_epochs_of_ranks(self):
        self.make()
        for ranks in (1, 3, 4, 100):
            head, epochs, summary = self.bench("--ranks", ranks, "--batch", 5, "--epochs", 3,
                                               "--epoch", 7)
            self.assertEqual((head["samples"], head["ranks"], head["batch"]), (70, ranks, 5))
            self.assertEqual([epoch["epoch"] for epoch in epochs], [7, 8, 9])
            for epoch in epochs:
                self.assertEqual((epoch["samples"], epoch["payload_bytes"]), (70, self.payload))
                self.assertEqual(epoch["steps"], -(-70 // (5 * ranks)))
                self.assertGreater(epoch["samples_per_second"], 0)
                self.assertLessEqual(epoch["wait_median_ms"], epoch["wait_p99_ms"])
                self.assertLessEqual(epoch["wait_p99_ms"], epoch["wait_most_ms"])
                self.assertNotIn("accelerator_busy", epoch)
            self.assertLessEqual(summary["memory_peak_bytes"], head["memory_limit_bytes"])

    def test_engines_and_orders(self):
        self.make()
        for engine in ("auto", "pool", "uring", "mmap"):
            for order in ("shuffled", "sequential", "random"):
                head, (epoch,), _ = self.bench("--engine", engine, "--epoch-order", order,
                                               "--no-checks", "--seed", 5)
                self.assertEqual((head["order"], head["checks"], head["seed"]), (order, False, 5))
                self.assertIn(head["engine"], {"auto": ("mmap", "pool"), "uring": ("uring", "pool")}
                              .get(engine, (engine,)))
                self.assertFalse(head["direct"])
                self.assertIn("through the page cache: ", head["reading"])
                self.assertEqual(epoch["payload_bytes"], self.payload)
                if engine in ("pool", "uring"):
                    self.assertGreater(epoch["reads"], 0)
                    self.assertAlmostEqual(epoch["mean_read_bytes"],
                                           epoch["read_bytes"] / epoch["reads"])
        head, _, _ = self.bench("--direct", "on")
        self.assertEqual((head["engine"], head["direct"], head["reading"]),
                         ("pool", True, "past the page cache: as asked"))
        head, _, _ = self.bench("--direct", "off")
        self.assertEqual((head["direct"], head["reading"]),
                         (False, "through the page cache: as asked"))
        self.fails(USAGE, "cannot pass by the page cache", self.out, "--engine", "mmap", "--direct",
                   "on")

    def test_ranks_share(self):
        pictures.make_folder(self.path("src"), {"cat": 300})
        self.pack(self.path("src"), self.out, "--chunk-size", "64KiB")
        alone = ("--ranks", 3, "--lanes", 4, "--engine", "pool")
        head, (first, second), _ = self.bench(*alone, "--share", "--epochs", 2)
        self.assertIn("; chunks are shared on the node", head["reading"])
        self.assertEqual((first["reads"], first["shared_reads"]), (head["chunks"],) * 2)
        self.assertGreater(first["shared_hits"], 0)
        self.assertEqual((second["reads"], second["shared_reads"]), (0, 0))  # they are still there
        head, (epoch,), _ = self.bench(*alone)
        self.assertGreater(epoch["reads"], head["chunks"])
        self.assertEqual((epoch["shared_reads"], epoch["shared_hits"]), (0, 0))
        head, (epoch,), _ = self.bench("--ranks", 2, "--engine", "pool", "--share")
        self.assertIn("; not shared: each rank has lanes of its own", head["reading"])
        done = self.expect(run("bench", self.out, *map(str, alone), "--share"), DONE)
        self.assertRegex(text(done.out), r"(?m)^  shared +\d+ chunks were read for all, and found ")

    def test_steps_take_their_time(self):
        self.make()
        _, (epoch,), _ = self.bench("--ranks", 2, "--batch", 7, "--step-ms", 20)
        self.assertEqual(epoch["steps"], 5)
        self.assertGreater(epoch["seconds"], 0.1)
        self.assertGreater(epoch["accelerator_busy"], 0)
        self.assertLessEqual(epoch["accelerator_busy"], 1)
        self.assertAlmostEqual(epoch["accelerator_busy"], 0.1 / epoch["seconds"], places=6)

    def test_decode(self):
        self.make()
        done = run("bench", self.out, "--decode", "--json")
        if done.code != DONE:
            self.assertIn("this build of stripepack has no picture decoders", text(done.err))
            return
        epoch = done.objects[1]
        self.assertEqual((epoch["samples"], epoch["undecoded"]), (70, 0))

    def test_text(self):
        self.make()
        done = self.expect(run("bench", self.out, "--batch", "8", "--step-ms", "1", "--epochs", "2"),
                           DONE)
        lines = text(done.out).splitlines()
        self.assertEqual(lines[0], "70 samples, 2 chunks; ranks 1, batch 8, order shuffled, "
                                   "lanes 64, window 1")
        self.assertTrue(lines[1].startswith("engine "), lines[1])
        self.assertTrue(lines[2].startswith("reads through the page cache: "), lines[2])
        self.assertEqual([line for line in lines if line.startswith("epoch")], ["epoch 0", "epoch 1"])
        self.assertEqual(sum(line.startswith("  accelerators busy") for line in lines), 2)
        self.assertEqual(done.err, b"")

    def test_sorted_storage_is_warned_about(self):
        pictures.make_folder(self.path("src"), {"c%02d" % c: 60 for c in range(20)})
        self.pack(self.path("src"), self.out, "--chunk-size", "64KiB", "--no-shuffle")
        done = self.expect(run("bench", self.out, "--lanes", "4", "--batch", "16"), DONE)
        self.assertIn("warning: storage is sorted by class", text(done.err))
        _, _, summary = self.bench("--lanes", 4, "--batch", 16)
        self.assertTrue(summary["sorted"])
        self.assertGreater(summary["class_variance"], 1)
        done = self.expect(run("bench", self.out, "--epoch-order", "random"), DONE)
        self.assertEqual(done.err, b"")

    def test_what_cannot_be(self):
        self.make()
        self.fails(NOT_A_PACK, "src", self.source)
        self.fails(USAGE, "--ranks", self.out, "--ranks", 0)
        self.fails(USAGE, "'libaio' is not one of auto|pool|uring|mmap", self.out, "--engine",
                   "libaio")
        self.fails(USAGE, "is too small", self.out, "--engine", "pool", "--memory", "1KiB")

    def test_damage_ends_it(self):
        self.make()
        shard = os.path.join(self.out, "shard-00000.spks")
        with open(shard, "r+b") as file:
            file.seek(os.path.getsize(shard) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 255]))
        self.fails(FAILED, "shard-00000.spks", self.out, "--ranks", 3)


if __name__ == "__main__":
    main()

"""Sizes at the edges, and files that are no pictures at all."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, PackTest, main, payloads, rejects, run, samples, text  # noqa: E402

FAILED = 4
NOT_PUBLISHED = 3


class LimitsTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")

    def write(self, name, data):
        pictures.write(os.path.join(self.src, name), data)

    def verified(self):
        self.expect(run("verify", self.out), DONE, "ok:")

    def test_empty_blobs(self):
        self.write("a/0.jpg", b"")
        self.write("a/1.jpg", b"x")
        self.write("b/2.jpg", b"")
        self.pack(self.src, self.out, "--check", "none")
        self.assertEqual({key: data for (_, key, _), data in payloads(self.out).items()},
                         {b"a/0.jpg": b"", b"a/1.jpg": b"x", b"b/2.jpg": b""})
        self.verified()

    def test_one_sample_and_more_shards_than_samples(self):
        self.write("a/1.jpg", pictures.jpeg(1))
        self.pack(self.src, self.out, "--shards", "7")
        report = self.report(run("pack", self.src, self.out, "--shards", "7", "--json"))
        self.assertEqual(report["packs"][0]["shards"], 1)
        self.assertEqual(len(samples(self.out)), 1)
        self.verified()

    def test_one_of_anything_is_no_plural(self):
        self.write("a/1.jpg", pictures.jpeg(1))
        self.expect(run("pack", self.src, self.path("none"), "--expect", "2"), FAILED,
                    "found 1 sample, but --expect says 2")
        done = self.pack(self.src, self.out)
        self.assertTrue(text(done.out).startswith("packed 1 sample, "), str(done))
        self.assertIn(", into 1 shard of ", text(done.out))
        done = run("verify", self.out)
        self.assertTrue(text(done.out).startswith("ok: 1 sample in 1 chunk of 1 shard, "), str(done))
        done = run("extract", self.out, self.path("files"))
        self.assertTrue(text(done.out).startswith("extracted 1 of 1 sample, "), str(done))
        self.assertEqual(text(run("diff", self.out, self.out).out), "identical: 1 sample\n")

    def test_a_sample_larger_than_a_chunk(self):
        data = {b"a/%d.jpg" % n: os.urandom(size) for n, size in
                enumerate((10, 65536, 200_000, 65536 * 3, 5, 70_000))}
        for name, payload in data.items():
            self.write(name.decode(), payload)
        self.pack(self.src, self.out, "--check", "none", "--chunk-size", "64KiB")
        self.assertEqual({key: found for (_, key, _), found in payloads(self.out).items()}, data)
        self.verified()

    def test_smallest_and_largest_chunks(self):
        pictures.make_folder(self.src, {"a": 20})
        for size in ("64KiB", "64MiB"):
            out = self.path("out" + size)
            self.pack(self.src, out, "--chunk-size", size)
            self.expect(run("verify", out, "--against", self.src), DONE, "against: ok")
        for size in ("32KiB", "128MiB", "100000"):
            self.expect(run("pack", self.src, self.path("no"), "--chunk-size", size), 2,
                        "--chunk-size")

    def test_names_of_any_bytes_and_lengths(self):
        odd = bytes(b for b in range(1, 256) if b not in b"/.")[:200] + b".jpg"
        long = b"n" * 251 + b".jpg"
        root = os.fsencode(self.src)
        for name in (odd, long):
            os.makedirs(os.path.join(root, b"a"), exist_ok=True)
            with open(os.path.join(root, b"a", name), "wb") as file:
                file.write(pictures.jpeg(len(name)))
        self.addCleanup(subprocess.run, ["rm", "-rf", self.src], check=True)
        deep = b"/".join([b"d" * 200] * 25) + b"/p.jpg"  # longer than a path may be at once
        where = os.open(root, os.O_RDONLY)
        for part in [b"b"] + deep.split(b"/")[:-1]:
            os.mkdir(part, dir_fd=where)
            below = os.open(part, os.O_RDONLY, dir_fd=where)
            os.close(where)
            where = below
        file = os.open(b"p.jpg", os.O_WRONLY | os.O_CREAT, dir_fd=where)
        os.write(file, pictures.jpeg(3))
        os.close(file)
        os.close(where)
        self.pack(self.src, self.out)
        self.assertEqual([one["key"] for one in samples(self.out)],
                         sorted([b"a/" + odd, b"a/" + long, b"b/" + deep]))
        self.expect(run("verify", self.out, "--against", self.src), DONE, "against: ok")

    def test_what_is_no_file(self):
        self.write("a/good.jpg", pictures.jpeg(1))
        os.mkfifo(os.path.join(self.src, "a", "fifo.jpg"))
        os.symlink("nowhere", os.path.join(self.src, "a", "link.jpg"))
        self.write("b/good.jpg", pictures.jpeg(2))
        done = run("pack", self.src, self.out, "--shards", "3", timeout=20)
        self.expect(done, NOT_PUBLISHED, "--max-rejects 2")
        self.assertFalse(os.path.exists(self.out))
        found = sorted(rejects(self.partial))
        self.assertEqual(found, [(b"a/fifo.jpg", "not a regular file"), (b"a/link.jpg", "not found")])
        done = self.pack(self.src, self.out, "--shards", "3", "--max-rejects", "2", "--json")
        self.assertEqual(self.report(done)["packs"][0]["shards_found_complete"], 3)
        self.assertEqual(len(samples(self.out)), 2)

    def test_expected_numbers(self):
        pictures.make_folder(self.src, {"a": 3})
        done = run("pack", self.src, self.out, "--expect", "4")
        self.expect(done, FAILED, "3", "4", "--expect")
        self.assertFalse(os.path.exists(self.partial))
        self.pack(self.src, self.out, "--expect", "3")

    def test_hopeless_sources_stop_early(self):
        for number in range(1500):
            self.write("a/%04d.jpg" % number, b"no picture")
        done = run("pack", self.src, self.out)
        self.expect(done, FAILED, "samples were all rejected", "not an image")

    def test_dry_run_writes_nothing(self):
        pictures.make_folder(self.src, {"a": 3, "b": 2})
        done = self.pack(self.src, self.out, "--dry-run")
        self.assertIn("5", text(done.out))
        self.assertEqual(sorted(os.listdir(self.dir)), ["src"])

    def test_dry_run_needs_no_less_than_a_small_pack_takes(self):
        pictures.make_folder(self.src, {"a": 3, "b": 2})
        for shards in ("1", "4"):
            out = self.path("out" + shards)
            told, = [one for one in self.pack(self.src, out, "--shards", shards, "--dry-run", "--json").objects
                     if one["type"] == "dry_run"]
            self.pack(self.src, out, "--shards", shards)
            files = [os.path.join(out, name) for name in os.listdir(out)]
            taken = sum(map(os.path.getsize, files))
            self.assertEqual(told["files"], len(files))
            self.assertLessEqual(taken, told["pack_bytes"])
            self.assertLess(told["pack_bytes"], taken + 16384)


if __name__ == "__main__":
    main()

# ctest: timeout=300
"""A pack's bytes are a function of the source's bytes and the options that shape bytes: not of
threads, memory, the order of directories, times, places or users."""

import os
import pathlib
import random
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, USAGE, PackTest, identity, main, names, payloads, run,  # noqa: E402
                     samples, snapshot)

SMALL = ["--shards", "3", "--chunk-size", "64KiB"]


class PurityTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"a": 60, "b": 50, "c": 40}, largest=30000)
        # Too large for a chunk; and some that cannot be packed.
        self.made["b/large.jpg"] = pictures.jpeg("large", 300000)
        pictures.write(os.path.join(self.src, "b", "large.jpg"), self.made["b/large.jpg"])
        for number in range(4):
            pictures.write(os.path.join(self.src, "c", "cut%d.jpg" % number),
                           pictures.cut_jpeg(number))
        self.common = [*SMALL, "--max-rejects", "4"]

    def whole(self, *options, source=None, name="out", **how):
        """The bytes that these options make, with the pack thrown away again."""
        out = self.path(name)
        self.pack(source or self.src, out, *self.common, *options, **how)
        made = identity(out)
        shutil.rmtree(out)
        return made

    def test_threads_and_memory(self):
        expected = self.whole()
        for options in (["--jobs", "1"], ["--jobs", "2"], ["--jobs", "7"],
                        ["--io-threads", "1"], ["--io-threads", "64"],
                        ["--jobs", "1", "--io-threads", "1", "--memory", "53MiB"],
                        ["--jobs", "7", "--io-threads", "64", "--memory", "53MiB"],
                        ["--memory", "4GiB"], ["--json"], ["--sha256"],
                        ["--progress", "never"], ["--report", self.path("report.json")],
                        ["--expect", "155"]):
            with self.subTest(options=options):
                self.assertEqual(self.whole(*options), expected)

    def test_the_limit_of_rejects_shapes_nothing(self):
        expected = self.whole()
        self.pack(self.src, self.out, *SMALL, "--max-rejects", "100")
        self.assertEqual(identity(self.out), expected)

    def test_too_little_memory_is_said(self):
        for memory in ("1MiB", "20MiB", "51MiB"):
            self.pack(self.src, self.out, *self.common, "--memory", memory, code=USAGE,
                      words=("--memory",))
        self.assertEqual(names(self.dir), ["src"])

    def test_memory_below_what_waits_for_its_chunk(self):
        """What does not fit into memory is read again; the bytes are the same."""
        source = self.path("large")
        pictures.make_folder(source, {"a": 60}, smallest=500000, largest=900000)
        options = ["--chunk-size", "64MiB", "--shards", "1"]
        done = run("pack", source, self.out, *options, "--memory", "4GiB")
        self.expect(done, DONE)
        done = run("pack", source, self.path("tight"), *options, "--memory", "53MiB")
        self.expect(done, DONE)
        self.assert_same_pack(self.out, self.path("tight"))

    def test_a_copy_with_another_directory_order_and_other_times(self):
        expected = self.whole()
        copy = self.path("elsewhere", "copy")
        keys = sorted(os.path.relpath(os.path.join(where, name), self.src)
                      for where, _, files in os.walk(self.src) for name in files)
        random.Random(7).shuffle(keys)
        for number, key in enumerate(keys):
            target = os.path.join(copy, key)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.join(self.src, key), target)
            os.utime(target, (number, 10**9 + number))
        self.assertEqual(self.whole(source=copy), expected)
        self.assertEqual(self.whole(source=copy + "//", name="other name"), expected)
        # And what was made from the one is complete for the other.
        self.pack(self.src, self.out, *self.common)
        self.pack(copy, self.out, *self.common, words=("complete",))

    def test_seeds(self):
        made = [self.whole("--seed", seed) for seed in ("0", "1", "18446744073709551615")]
        self.assertEqual(len({str(sorted(one.items())) for one in made}), 3)
        self.assertEqual(self.whole(), made[0])

    def order(self, *options, source=None):
        out = self.path("ordered")
        self.pack(source or self.src, out, *self.common, *options)
        found = [one["key"].decode() for one in samples(out, "id")]
        shutil.rmtree(out)
        return found

    def test_orders(self):
        keys = sorted(self.made)
        self.assertEqual(self.order("--no-shuffle"), keys)
        self.assertEqual(self.order("--shuffle", "none"), keys)
        shuffled = self.order()
        self.assertEqual(self.order("--shuffle", "full"), shuffled)
        blocks = self.order("--shuffle", "blocks")
        for order in (shuffled, blocks):
            self.assertEqual(sorted(order), keys)
            # In a random order about half of the steps go up.
            ups = sum(order[i] < order[i + 1] for i in range(len(order) - 1))
            self.assertLess(abs(ups - len(order) / 2), len(order) / 6)
        self.assertNotEqual(blocks, shuffled)
        self.assertEqual(self.order("--shuffle", "blocks", "--jobs", "7"), blocks)

    def test_evaluation_splits_keep_their_order(self):
        tree = self.path("tree")
        for split in ("train", "val", "test"):
            shutil.copytree(self.src, os.path.join(tree, split))
        self.pack(tree, self.out, *SMALL, "--max-rejects", "12")
        self.assertEqual(names(self.out), ["test", "train", "val"])
        keys = [key.encode() for key in sorted(self.made)]
        for split in ("val", "test"):
            found = [one["key"] for one in samples(os.path.join(self.out, split), "id")]
            self.assertEqual(found, keys)
        found = [one["key"] for one in samples(os.path.join(self.out, "train"), "id")]
        self.assertEqual(sorted(found), keys)
        self.assertNotEqual(found, keys)

    def test_the_bytes_are_the_sources(self):
        self.pack(self.src, self.out, *self.common)
        found = {key.decode(): data for (_, key, _), data in payloads(self.out).items()}
        self.assertEqual(found, self.made)

    def test_chunks_start_at_multiples_and_no_sample_straddles(self):
        self.pack(self.src, self.out, *self.common)
        for one in samples(self.out):
            first = one["offset"] // 65536
            last = (one["offset"] + one["bytes"] - 1) // 65536
            if one["key"] == b"b/large.jpg":
                self.assertEqual(last - first, 300000 // 65536)
            else:
                self.assertEqual(first, last, one)
        for name in names(self.out):
            if name.startswith("shard-"):
                self.assertEqual(os.path.getsize(os.path.join(self.out, name)) % 4096, 0)


class PlacesTest(PackTest):
    """Where things are, and that nothing else is touched."""

    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"a": 8, "b": 7})
        pictures.write(os.path.join(self.src, "b", "cut.jpg"), pictures.cut_jpeg(1))

    def test_the_source_is_not_changed_and_nothing_is_written_elsewhere(self):
        self.pack(self.src, self.path("warm"), "--max-rejects", "1")
        before = snapshot(self.src)
        outer = self.path("outer")
        os.mkdir(outer)
        for options, code in (([], 3), (["--max-rejects", "1"], DONE), ([], DONE),
                              (["--seed", "2", "--max-rejects", "1", "--force"], DONE)):
            run_in = self.path("outer", "here")
            os.makedirs(run_in, exist_ok=True)
            self.pack(self.src, self.path("outer", "out"), *options, code=code, cwd=run_in,
                      env={"HOME": run_in, "TMPDIR": run_in})
            self.assertEqual(snapshot(self.src), before)
            self.assertEqual(os.listdir(run_in), [])
            self.assertLessEqual({name.split("-")[0] for name in names(outer)},
                                 {"here", "out", "out.partial", "out.old"})
        self.assertNotIn("out.partial", names(outer))

    def test_a_source_that_cannot_be_written(self):
        for where, folders, files in os.walk(self.src, topdown=False):
            for name in files:
                os.chmod(os.path.join(where, name), 0o444)
            os.chmod(where, 0o555)
        self.pack(self.src, self.out, "--max-rejects", "1")
        self.assertEqual(len(samples(self.out)), 15)

    def test_out_inside_the_source(self):
        before = snapshot(self.src)
        os.symlink(os.path.join(self.src, "a"), self.path("link"))
        for out in (os.path.join(self.src, "out"), os.path.join(self.src, "a", "out"),
                    os.path.join(self.src, "a", "..", "out"), self.path("link", "out")):
            self.pack(self.src, out, "--max-rejects", "1", code=USAGE, words=("inside SRC",))
        self.pack(self.src, self.src, code=USAGE, words=("SRC",))
        self.pack(self.src, "out", code=USAGE, words=("inside SRC",), cwd=self.src)
        self.pack(".", "out", code=USAGE, words=("inside SRC",), cwd=self.src)
        self.assertEqual(snapshot(self.src), before)

    def test_out_that_is_somebodys(self):
        pictures.write(os.path.join(self.out, "thesis.txt"), b"years of work")
        os.symlink("nowhere", self.path("dangling"))
        os.mkdir(self.path("empty"))
        os.symlink("empty", self.path("to-empty"))
        pictures.write(self.path("file"), b"")
        before = snapshot(self.out)
        for name in ("out", "dangling", "to-empty", "file"):
            for options in ([], ["--force"], ["--restart"]):
                self.pack(self.src, self.path(name), *options, "--max-rejects", "1", code=FAILED,
                          words=("left alone",))
        self.assertEqual(snapshot(self.out), before)
        self.assertFalse(any(name.endswith(".partial") for name in names(self.dir)))

    def test_out_that_names_nothing(self):
        for out in ("", "/", ".", "..", "a/.."):
            self.pack(self.src, out, code=USAGE, cwd=self.dir)
        self.pack(self.src, self.path("missing", "out"), code=FAILED,
                  words=("make the folder that OUT shall stand in first",))
        self.assertEqual(names(self.dir), ["src"])

    def test_an_empty_directory_becomes_the_pack(self):
        os.mkdir(self.out)
        self.pack(self.src, self.out, "--max-rejects", "1")
        self.assertEqual(len(samples(self.out)), 15)
        self.assertEqual(names(self.dir), ["out", "src"])

    def test_paths_of_all_kinds(self):
        self.pack(self.src, self.path("plain"), "--max-rejects", "1")
        expected = identity(self.path("plain"))
        for source, out, made in (("src", "relative", "relative"), ("src/", "slash/", "slash"),
                                  ("./src/.", "./dots", "dots"), ("src//", "src/../up", "up"),
                                  (self.src, b"caf\xe9 \xff", b"caf\xe9 \xff"),
                                  ("src", "new\nline \"quote' $x;", "new\nline \"quote' $x;"),
                                  ("src", "--dash", None), ("src", "./-dash", "-dash"),
                                  ("src", "n" * 247, "n" * 247)):
            with self.subTest(out=out):
                arguments = ["--max-rejects", "1", "--", source, out]
                self.pack(*arguments, cwd=self.dir)
                made = os.path.join(os.fsencode(self.dir), os.fsencode(made or out))
                self.assertEqual({name: digest for name, digest in identity(os.fsdecode(made)).items()},
                                 expected)

    def test_an_open_reader_keeps_the_old_pack(self):
        """--force renames: who has the old shards open goes on with them."""
        self.pack(self.src, self.out, "--max-rejects", "1")
        with open(os.path.join(self.out, "shard-00000.spks"), "rb") as shard:
            before = shard.read()
            self.pack(self.src, self.out, "--seed", "9", "--max-rejects", "1", "--force")
            shard.seek(0)
            self.assertEqual(shard.read(), before)
        with open(os.path.join(self.out, "shard-00000.spks"), "rb") as shard:
            self.assertNotEqual(shard.read(), before)


if __name__ == "__main__":
    main()

# ctest: timeout=300
"""Chunks of every size, shards of none and few samples, options that cannot be, names of every byte;
what is packed is read by the program and by the second decoder."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import SOURCE, USAGE, PackTest, main, names, payloads, samples  # noqa: E402

ORACLE = str(SOURCE / "tests" / "oracle" / "decode.py")


class SizesTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")

    def check(self, made):
        """The pack holds exactly these, and both readers find it whole."""
        found = {key: data for (_, key, _), data in payloads(self.out).items()}
        self.assertEqual({key.decode(): data for key, data in found.items()}, made)
        self.assert_verifies(self.out)

    def check_by_second_decoder(self):
        done = subprocess.run([sys.executable, "-B", ORACLE, self.out], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_blobs_of_no_bytes(self):
        made = {"a/%d.jpg" % number: b"" for number in range(10)}
        for key, data in made.items():
            pictures.write(os.path.join(self.src, key), data)
        made["b/one.jpg"] = pictures.jpeg(1)
        pictures.write(os.path.join(self.src, "b/one.jpg"), made["b/one.jpg"])
        self.pack(self.src, self.out, "--check", "none")
        self.check(made)
        self.check_by_second_decoder()

    def test_nothing_but_blobs_of_no_bytes(self):
        made = {"a/%d.jpg" % number: b"" for number in range(3)}
        for key, data in made.items():
            pictures.write(os.path.join(self.src, key), data)
        self.pack(self.src, self.out, "--check", "none", "--shards", "2")
        self.check(made)
        self.check_by_second_decoder()

    def test_fewer_samples_than_shards(self):
        """Each sample its own shard; there are never more."""
        made = pictures.make_folder(self.src, {"a": 3})
        self.pack(self.src, self.out, "--shards", "10")
        self.check(made)
        self.assertEqual(sorted(one["shard"] for one in samples(self.out)), [0, 1, 2])

    def test_shards_whose_samples_are_all_rejected(self):
        """A shard may be empty; its place is kept."""
        made = pictures.make_folder(self.src, {"a": 2})
        for number in range(4):
            pictures.write(os.path.join(self.src, "b", "%d.jpg" % number),
                           pictures.cut_jpeg(number))
        self.pack(self.src, self.out, "--shards", "6", "--max-rejects", "4")
        self.check(made)
        self.check_by_second_decoder()
        self.assertEqual(len([name for name in names(self.out) if name.startswith("shard-")]), 6)

    def test_samples_larger_than_a_chunk(self):
        made = pictures.make_folder(self.src, {"a": 5})
        for number, size in enumerate((65536, 65537, 3 << 16, (1 << 20) + 1, 7 << 20)):
            key = "b/%d.jpg" % number
            made[key] = pictures.jpeg(number, size)
            pictures.write(os.path.join(self.src, key), made[key])
        for options in ([], ["--no-shuffle"], ["--memory", "53MiB", "--jobs", "1"]):
            self.pack(self.src, self.out, "--chunk-size", "64KiB", "--force", *options)
            self.check(made)

    def test_every_chunk_size(self):
        made = pictures.make_folder(self.src, {"a": 40}, largest=30000)
        for log2 in range(16, 27):
            with self.subTest(log2=log2):
                self.pack(self.src, self.out, "--chunk-size", "%dKiB" % (1 << (log2 - 10)),
                          "--force")
                self.check(made)
                for one in samples(self.out):
                    self.assertEqual(one["offset"] >> log2,
                                     one["offset"] + one["bytes"] - 1 >> log2)
        self.check_by_second_decoder()

    def test_chunk_and_shard_sizes_that_cannot_be(self):
        pictures.make_folder(self.src, {"a": 2})
        for options in (["--chunk-size", "32KiB"], ["--chunk-size", "128MiB"],
                        ["--chunk-size", "100KiB"], ["--chunk-size", "much"],
                        ["--chunk-size", "1MiB", "--shard-size", "64KiB"], ["--shards", "0"],
                        ["--shards", "2", "--shard-size", "1GiB"], ["--shards", "1048577"],
                        ["--io-threads", "0"], ["--shuffle", "perhaps"],
                        ["--no-shuffle", "--shuffle", "full"], ["--max-rejects", "-1"],
                        ["--max-rejects", "1e6"], ["--seed", "-1"], ["--seed", "0x10"],
                        ["--seed", "18446744073709551616"], ["--expect", "+1"],
                        ["--max-pixels", "many"], ["--jobs", "-1"], ["--memory", "-1"]):
            with self.subTest(options=options):
                self.pack(self.src, self.out, *options, code=USAGE, words=(options[0],))
        self.assertEqual(names(self.dir), ["src"])

    def test_repeated_lines_are_samples_each(self):
        data = pictures.jpeg(1)
        pictures.write(os.path.join(self.src, "p.jpg"), data)
        with open(self.path("list.txt"), "w", encoding="ascii") as file:
            file.writelines("p.jpg %d\n" % label for label in range(1000))
        self.pack(self.path("list.txt"), self.out, "--root", self.src)
        found = samples(self.out)
        self.assertEqual([one["labels"] for one in found], [[label] for label in range(1000)])
        self.assertEqual({one["key"] for one in found}, {b"p.jpg"})
        self.assert_verifies(self.out)


class NamesTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")

    def test_every_byte_in_a_name(self):
        made = {}
        for byte in range(1, 256):
            if byte in b"/":
                continue
            name = b"x" + bytes([byte]) + b"y.jpg"
            key = b"c" + bytes([byte]) + b"d/" + name
            made[key] = pictures.jpeg(byte)
            path = os.path.join(os.fsencode(self.src), key)
            os.makedirs(os.path.dirname(path))
            with open(path, "wb") as file:
                file.write(made[key])
        self.pack(self.src, self.out)
        self.assertEqual({key: data for (_, key, _), data in payloads(self.out).items()}, made)
        found = samples(self.out)
        self.assertEqual([one["key"] for one in found], sorted(made))
        self.assertEqual([one["labels"] for one in found], [[n] for n in range(len(made))])
        self.assert_verifies(self.out)
        self.assert_verifies(self.out, "--against", self.src)


if __name__ == "__main__":
    main()

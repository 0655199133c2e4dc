# ctest: timeout=120
"""The Python package: packs as sequences, numbers as arrays, errors with their facts."""
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

BUILD = pathlib.Path(os.environ["STRIPEPACK_BUILD"])
PACK_PROGRAM = os.environ["STRIPEPACK"]
sys.path.insert(0, str(BUILD / "python"))

try:
    import numpy
    import stripepack  # exists in the build tree only where the module was built
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)


# One pixel.
GIF = bytes.fromhex("47494638396101000100800000ff0000ffffff2c00000000010001000002024401003b")


def picture(number):
    """A GIF of one pixel whose colours tell its number."""
    return GIF[:13] + number.to_bytes(3, "big") + GIF[16:]


class PythonModule(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="stripepack-python-")
        root = pathlib.Path(cls.folder.name)
        cls.files = {}
        for number in range(120):
            name = f"{('cat', 'dog', 'hen')[number % 3]}/{number}.gif"
            cls.files[name] = picture(number)
        cls.files["cat/caf\udce9.gif"] = picture(120)  # a name that is no UTF-8
        for name, content in cls.files.items():
            path = root / "pictures" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        cls.path = root / "pack"
        done = subprocess.run([PACK_PROGRAM, "pack", root / "pictures", cls.path, "--shards", "3"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.pack = stripepack.open(self.path)

    def test_is_a_sequence_of_samples(self):
        pack = self.pack
        self.assertEqual(len(pack), len(self.files))
        self.assertEqual(pack.classes, ["cat", "dog", "hen"])
        self.assertEqual(sorted(pack.keys()), sorted(self.files))
        for index in range(len(pack)):
            sample = pack[index]
            key = pack.key(index)
            self.assertEqual(sample["image"], self.files[key])
            self.assertEqual(pack.classes[sample["label"]], key.split("/")[0])
            self.assertEqual((sample["height"], sample["width"]), (1, 1))
            self.assertEqual(pack.find(key), index)
        self.assertEqual(pack[-1], pack[len(pack) - 1])
        for index in (len(pack), -len(pack) - 1):
            with self.assertRaises(IndexError):
                pack[index]
        self.assertEqual(sum(1 for _ in pack), len(pack))  # the old protocol ends by IndexError

    def test_tells_what_it_is(self):
        info = self.pack.info
        self.assertEqual(info["samples"], 121)
        self.assertEqual(info["shards"], 3)
        self.assertEqual(info["payload_bytes"], sum(map(len, self.files.values())))
        self.assertEqual(len(info["content_id"]), 32)
        self.assertEqual(self.pack.fields["label"].kind, "int64")
        self.assertEqual(self.pack.fields["image"].kind, "blob")
        self.assertTrue(self.pack.settings)
        self.assertIn("121 samples", repr(self.pack))

    def test_numbers_are_arrays(self):
        labels = self.pack.labels
        self.assertEqual(labels.dtype, numpy.int64)
        self.assertEqual(labels.tolist(), [self.pack[i]["label"] for i in range(121)])
        self.assertEqual(self.pack.column("width", 5, 9).tolist(), [1, 1, 1, 1])
        for wrong in ((0, 122), (5, 4), (-1, 3)):
            with self.assertRaises(IndexError):
                self.pack.column("width", *wrong)
        with self.assertRaises(KeyError):
            self.pack.column("depth")
        with self.assertRaises(KeyError) as caught:
            self.pack.column("image")
        self.assertEqual(caught.exception.args, ("field 'image' is no column of numbers; there are "
                                                 "label, height, width, channels",))

    def test_many_in_one_call(self):
        for engine in ("auto", "pread", "pool", "uring"):
            pack = stripepack.open(self.path, engine=engine)
            wanted = [7, 3, 120, 3, -1, numpy.int64(50)]
            blobs = pack.read_many(wanted)
            self.assertEqual(blobs, [pack.read(index) for index in wanted])
            data, offsets = pack.read_packed(wanted)
            self.assertEqual(data.dtype, numpy.uint8)
            self.assertEqual([data[a:b].tobytes() for a, b in zip(offsets, offsets[1:])], blobs)
            self.assertEqual(pack.read_many([]), [])
        with self.assertRaises(ValueError):
            stripepack.open(self.path, engine="steam")

    def test_parts_and_iterators(self):
        for world in (1, 3, 200):
            seen = []
            for rank in range(world):
                part = self.pack.part(rank, world)
                mine = list(self.pack.iterate(rank, world))
                self.assertEqual([index for index, _ in mine], list(part))
                seen += mine
            self.assertEqual([index for index, _ in seen], list(range(121)))
            self.assertTrue(all(self.pack.read(index) == blob for index, blob in seen))
        with self.assertRaises(stripepack.Error):
            self.pack.part(3, 3)

    def test_an_iterator_keeps_its_pack(self):
        iterator = stripepack.open(self.path).iterate()
        gc.collect()
        self.assertEqual(sum(1 for _ in iterator), 121)

    def test_places(self):
        shard, offset, size = self.pack.locate(9)
        content = (self.path / f"shard-{shard:05}.spks").read_bytes()
        self.assertEqual(content[offset:offset + size], self.pack.read(9))

    def test_threads_fork_and_pickle(self):
        expected = [self.pack.read(index) for index in range(121)]
        wrong = []

        def read_all():
            if self.pack.read_many(range(121)) != expected:
                wrong.append(1)
        threads = [threading.Thread(target=read_all) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        pid = os.fork()
        if pid == 0:
            os._exit(0 if self.pack.read_many(range(121)) == expected else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        again = pickle.loads(pickle.dumps(self.pack))
        self.assertEqual(again.read_many(range(121)), expected)

    def test_errors_carry_their_facts(self):
        with self.assertRaises(stripepack.Error) as caught:
            stripepack.open("/nowhere/at/all")
        self.assertEqual(caught.exception.code, "not_found")
        self.assertEqual(caught.exception.path, "/nowhere/at/all")
        with self.assertRaises(stripepack.Error) as caught:
            stripepack.open(self.path.parent / "pictures")
        self.assertEqual(caught.exception.code, "not_this_format")
        self.assertIn("stripepack pack", str(caught.exception))

    def test_damage_costs_one_sample(self):
        shard, offset, _ = self.pack.locate(60)
        file = self.path / f"shard-{shard:05}.spks"
        good = file.read_bytes()
        file.write_bytes(good[:offset] + bytes([good[offset] ^ 255]) + good[offset + 1:])
        try:
            pack = stripepack.open(self.path)
            with self.assertRaises(stripepack.Error) as caught:
                pack.read(60)
            error = caught.exception
            self.assertEqual((error.code, error.path, error.shard, error.offset),
                             ("damaged", str(file), shard, offset))
            self.assertIn(pack.key(60), str(error))
            with self.assertRaises(stripepack.Error) as caught:
                pack.read_many([1, 60, 2])
            self.assertEqual(caught.exception.code, "partial")
            iterator = pack.iterate()
            good_ones = []
            while True:
                try:
                    good_ones.append(next(iterator)[0])
                except stripepack.Error as error:
                    self.assertEqual(error.code, "damaged")
                except StopIteration:
                    break
            self.assertEqual(good_ones, [index for index in range(121) if index != 60])
            self.assertEqual(len(stripepack.open(self.path, check=False).read(60)), len(GIF))
        finally:
            file.write_bytes(good)


if __name__ == "__main__":
    unittest.main()

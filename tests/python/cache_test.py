# ctest: timeout=240
"""Datasets and loaders that read copies of shards, in the compiled module and in pure Python."""
import multiprocessing
import os
import pathlib
import pickle
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import PROGRAM, TestPack, run_python, stripepack  # noqa: E402

import subprocess  # noqa: E402


def shard(number):
    return f"shard-{number:05}.spks"


def blobs(dataset):
    return dataset.read_many(range(len(dataset)))


def count_read(dataset):
    return len(blobs(dataset))


class Sizes:
    """Makes of a batch what a spawned worker can send."""

    def __call__(self, batch):
        return [(number, len(blob)) for number, blob in zip(batch.ids.tolist(), batch["image"])]


class CacheTest(unittest.TestCase):
    def setUp(self):
        self.pack = TestPack({"cat": 40, "dog": 40})
        self.addCleanup(self.pack.close)
        self.cache = self.pack.root / "cache"
        self.expected = blobs(self.pack.open())

    def stage(self, *options):
        done = subprocess.run([PROGRAM, "stage", self.pack.path, self.cache, *options],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def take_away(self, *numbers):
        for number in numbers:
            os.remove(self.pack.path / shard(number))

    def test_what_is_there_is_read_from_there(self):
        self.stage("--node", "0/2")
        self.take_away(0, 2)
        for engine in ("auto", "pread", "pool", "uring", "mmap"):
            dataset = self.pack.open(engine=engine, cache=self.cache)
            self.assertEqual(dataset.cache, str(self.cache))
            self.assertEqual(blobs(dataset), self.expected)
        with self.assertRaises(stripepack.Error):
            blobs(self.pack.open())

    def test_loaders(self):
        plain = [batch.ids.tolist() for batch in stripepack.Loader(self.pack.open(), batch=8)]
        self.stage("--node", "0/2")
        self.take_away(0, 2)
        for options in ({}, {"engine": "pool"}, {"engine": "uring"},
                        {"engine": "pool", "direct": "on"}):
            loader = stripepack.Loader(self.pack.open(cache=str(self.cache)), batch=8, **options)
            found = []
            for batch in loader:
                found.append(batch.ids.tolist())
                for number, blob in zip(batch.ids.tolist(), batch["image"]):
                    self.assertEqual(bytes(blob), self.expected[number])
            self.assertEqual(found, plain, options)

    def test_nothing_there_is_no_error(self):
        self.assertEqual(blobs(self.pack.open(cache=self.cache)), self.expected)
        dataset = self.pack.open(cache=self.cache)
        self.stage()
        self.take_away(0, 1, 2)
        self.assertEqual(blobs(dataset), self.expected)  # opened when they are first read
        self.assertEqual(self.pack.open().cache, None)
        with self.assertRaises(stripepack.Error) as caught:
            self.pack.open(cache=self.pack.path / "index.spki")
        self.assertEqual(caught.exception.code, "invalid_argument")
        with self.assertRaises(TypeError):
            self.pack.open(cache=5)

    def test_other_processes_have_it_too(self):
        self.stage()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.pack.root)
        dataset = stripepack.open(str(self.pack.path), cache="cache")
        os.chdir(before)
        self.take_away(0, 1, 2)
        self.assertEqual(blobs(pickle.loads(pickle.dumps(dataset))), self.expected)
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                self.assertEqual(pool.apply(count_read, (dataset,)), len(self.expected), method)

    def test_errors_name_the_copy(self):
        self.stage()
        dataset = self.pack.open(cache=self.cache)
        number, offset, _ = dataset.locate(7)
        copy = self.cache / shard(number)
        with open(copy, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 1]))
        with self.assertRaises(stripepack.Error) as caught:
            dataset.read(7)
        self.assertEqual((caught.exception.code, caught.exception.path, caught.exception.shard,
                          caught.exception.offset), ("damaged", str(copy), number, offset))
        with self.assertRaises(stripepack.Error) as caught:
            list(stripepack.Loader(dataset, order="sequential", batch=4))
        self.assertEqual(caught.exception.path, str(copy))
        loader = stripepack.Loader(dataset, batch=8, skip_damaged=True, tail="exact")
        self.assertEqual(sum(len(batch) for batch in loader), len(self.expected) - 1)
        self.assertEqual(blobs(self.pack.open()), self.expected)

    def test_another_packs_copy_is_not_used(self):
        other = TestPack({"cat": 41, "dog": 40})
        self.addCleanup(other.close)
        shutil.copytree(other.path, self.cache)
        self.assertEqual(blobs(self.pack.open(cache=self.cache)), self.expected)

    def test_torch(self):
        try:
            import torch  # noqa: F401
            import stripepack.torch as ours
        except ImportError as missing:
            self.skipTest(str(missing))
        self.stage()
        self.take_away(0, 1, 2)
        folder = ours.ImageFolder(self.pack.path, loader=lambda file: file.read(), cache=self.cache)
        self.assertEqual([picture for picture, _ in folder], self.expected)
        stream = ours.StreamingDataset(self.pack.path, 8, map_batch=Sizes(), rank=0, world=1,
                                       cache=self.cache)
        for context in (None, "fork", "spawn"):
            batches = torch.utils.data.DataLoader(stream, batch_size=None,
                                                  num_workers=0 if context is None else 1,
                                                  multiprocessing_context=context)
            seen = sorted(tuple(pair) for batch in batches for pair in batch)
            self.assertEqual(seen, [(number, len(blob))
                                    for number, blob in enumerate(self.expected)])
        with self.assertRaises(ValueError):
            ours.ImageFolder(self.pack.open(), cache=self.cache)

    def test_pure_python(self):
        self.stage("--node", "0/2")
        shutil.copy(self.pack.path / shard(0), self.cache / shard(1))
        self.take_away(0, 2)
        found = run_python(pathlib.Path(__file__), "--pure", self.pack.path, self.cache)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stdout.split(), [str(len(self.expected)),
                                                str(sum(map(len, self.expected)))])


def pure(path, cache):
    for name in [name for name in sys.modules if name.partition(".")[0] == "stripepack"]:
        del sys.modules[name]
    sys.modules["stripepack._stripepack"] = None
    import stripepack as there  # pylint: disable=reimported
    assert not there.compiled
    found = blobs(there.open(path, cache=cache))
    assert blobs(pickle.loads(pickle.dumps(there.open(path, cache=cache)))) == found
    print(len(found), sum(map(len, found)))
    try:
        there.open(path, cache=__file__)
        raise AssertionError("a file is no cache")
    except there.Error as wrong:
        assert wrong.code == "invalid_argument"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pure"]:
        pure(*sys.argv[2:])
    else:
        unittest.main()

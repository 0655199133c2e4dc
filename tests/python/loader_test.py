# ctest: timeout=300
"""Loaders from Python: the order of the second implementation, batches without copies, resuming,
damage, fork and threads, nothing left behind by many opens."""
import gc
import os
import random
import resource
import sys
import threading
import time
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import TestPack, stripepack  # noqa: E402

import numpy  # noqa: E402
import order as oracle  # noqa: E402


def rows(loader):
    """The samples of each batch that is left."""
    return [batch.ids.tolist() for batch in loader]


def threads_end(seconds=20):
    """Whether this process soon has one thread."""
    until = time.monotonic() + seconds
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until:
        time.sleep(0.01)
    return len(os.listdir("/proc/self/task")) == 1


class FirstBytes:
    """In place of an operation on pictures: makes an array with one byte of each."""

    def __init__(self):
        self.made = 0
        self.fails_at = None

    def decode_batch(self, batch, epoch, seed):  # pylint: disable=unused-argument
        assert epoch == 0
        self.made += 1
        if self.made == self.fails_at:
            raise ValueError("no picture")
        return numpy.array([view[20] for view in batch["image"]], numpy.uint8)

    def has_made(self, count, seconds=20):
        until = time.monotonic() + seconds
        while self.made < count and time.monotonic() < until:
            time.sleep(0.001)
        return self.made >= count


class LoaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pack = TestPack()
        cls.dataset = cls.pack.open()
        cls.units = oracle.unit_samples(str(cls.pack.path))
        cls.count = len(cls.dataset)

    @classmethod
    def tearDownClass(cls):
        del cls.dataset
        cls.pack.close()

    def loader(self, **options):
        return stripepack.Loader(self.dataset, **{"batch": 8, "lanes": 4, "tail": "exact", **options})

    # --- Datasets

    def test_chunks_are_those_of_the_index(self):
        firsts = self.dataset.chunk_samples()
        self.assertGreater(len(firsts), 30)
        self.assertEqual(numpy.diff(firsts.tolist() + [self.count]).tolist(), self.units)

    def test_columns(self):
        columns = self.dataset.columns
        self.assertIn("label", list(columns))
        self.assertNotIn("image", list(columns))
        self.assertIs(columns["label"], columns["label"])
        self.assertIs(self.dataset.labels, columns["label"])
        self.assertEqual(columns["width"].tolist(), [16] * self.count)
        with self.assertRaises(KeyError):
            columns["image"]

    def test_open_with_the_index_at_hand(self):
        index = (self.pack.path / "index.spki").read_bytes()
        for form in (index, bytearray(index), memoryview(index), numpy.frombuffer(index, "u1")):
            dataset = stripepack.open(self.pack.path, index=form)
            self.assertEqual(dataset.read(3), self.dataset.read(3))
        elsewhere = stripepack.open(self.pack.root, index=index)  # a directory without shards
        self.assertEqual((len(elsewhere), elsewhere.labels.sum()),
                         (self.count, self.dataset.labels.sum()))
        for call, code in ((lambda: elsewhere.read(0), "damaged"),
                           (lambda: stripepack.open("/not/there", index=index), "not_found")):
            with self.assertRaises(stripepack.Error) as caught:
                call()
            self.assertEqual(caught.exception.code, code)
        with self.assertRaises(stripepack.Error):
            stripepack.open(self.pack.path, index=index[:5000])
        with self.assertRaises(TypeError):
            stripepack.open(self.pack.path, index=5)

    def test_zero_bytes_end_no_text(self):
        path = str(self.pack.path)
        for call in (lambda: stripepack.open(path + "\0junk"),
                     lambda: stripepack.open(os.fsencode(path) + b"\0junk"),
                     lambda: stripepack.open(path, cache=path + "\0junk"),
                     lambda: stripepack.Loader(self.dataset, node_group="a\0b"),
                     lambda: stripepack.Loader(self.dataset, state="a\0b"),
                     lambda: type(self.dataset._pack)(os.fsencode(path) + b"\0", None, 0, 0, True, b""),
                     lambda: type(self.dataset._pack)(os.fsencode(path), None, 0, 0, True, b"a\0")):
            with self.assertRaisesRegex(ValueError, "has a zero byte in it"):
                call()

    # --- Order

    def test_the_order_is_the_oracles(self):
        dice = random.Random(1)
        for _ in range(60):
            options = {"seed": dice.getrandbits(64), "epoch": dice.getrandbits(30),
                       "order": dice.choice(["shuffled", "shuffled", "sequential", "random"]),
                       "world": dice.choice([1, 2, 3, 4, 7]), "batch": dice.choice([1, 5, 16, 150]),
                       "tail": dice.choice(["drop", "pad", "exact"])}
            if options["order"] == "shuffled":
                options.update(lanes=dice.choice([1, 4, 6, 64]), window=dice.choice([1, 2]))
            wanted = oracle.Order(self.units, None, options["order"], options["seed"],
                                  options["epoch"], options.get("lanes", 1),
                                  options.get("window", 1))
            with self.subTest(**options):
                for rank in range(options["world"]):
                    steps = list(oracle.rank_steps(self.count, wanted.lanes, options["world"], rank,
                                                   options["batch"], options["tail"]))
                    expected = [[wanted.sample_at(g % self.count) for g in mine]
                                for mine, _ in steps if mine]
                    loader = stripepack.Loader(self.dataset, rank=rank, **{"lanes": None, **options})
                    self.assertEqual(len(loader), len(expected))
                    self.assertEqual(rows(loader), expected)

    def test_repeated_and_positions(self):
        loader = stripepack.Loader(self.dataset, batch=150, lanes=4, tail="pad", fields=["label"])
        batches = list(loader)
        places = numpy.concatenate([batch.positions for batch in batches])
        self.assertEqual(places.tolist(), [*range(self.count), *range(450 - self.count)])
        repeated = numpy.concatenate([batch.repeated for batch in batches])
        self.assertEqual(repeated.dtype, bool)
        self.assertEqual(repeated.sum(), 450 - self.count)
        self.assertEqual(loader.stats["repeated"], 450 - self.count)

    def test_epochs(self):
        loader = self.loader()
        first = rows(loader)
        self.assertEqual(loader.epoch, 0)
        second = rows(loader)  # goes on with the next one
        self.assertEqual(loader.epoch, 1)
        self.assertNotEqual(first, second)
        self.assertEqual(rows(self.loader(epoch=1)), second)
        loader.set_epoch(0)
        self.assertEqual(rows(loader), first)
        loader.set_epoch(5)
        next(iter(loader))
        loader.set_epoch(5)
        self.assertEqual(rows(loader), rows(self.loader(epoch=5)))

    def test_workers_divide_the_steps(self):
        whole = rows(self.loader())
        for workers in (2, 3):
            for worker in range(workers):
                loader = self.loader(worker=worker, workers=workers)
                self.assertEqual(len(loader), len(whole[worker::workers]))
                self.assertEqual(rows(loader), whole[worker::workers])

    # --- Batches

    def test_batches_hold_what_the_pack_does(self):
        for engine in ("auto", "pread", "pool", "uring", "mmap"):
            for batch in self.loader(engine=engine):
                images = batch["image"]
                self.assertTrue(all(view.readonly for view in images))
                self.assertEqual([view.tobytes() for view in images],
                                 self.dataset.read_many(batch.ids))
                data, offsets = batch.packed("image")
                self.assertEqual((data.dtype, offsets.dtype), (numpy.uint8, numpy.int64))
                self.assertEqual([data[a:b].tobytes() for a, b in zip(offsets, offsets[1:])],
                                 [bytes(view) for view in images])
                numbers = batch.ids.astype(int)
                self.assertEqual(batch.ids.dtype, numpy.uint64)
                self.assertEqual(batch.labels.dtype, numpy.int64)
                self.assertTrue((batch.labels == self.dataset.labels[numbers]).all())
                self.assertTrue(batch.present("label").all() and batch.present("image").all())

    def test_views_keep_their_batch(self):
        loader = self.loader(engine="pread")
        batch = next(iter(loader))
        views, ids = batch["image"], batch.ids
        arrays = [numpy.frombuffer(view, numpy.uint8) for view in views]
        del batch, loader, views
        gc.collect()
        junk = [bytearray(1 << 20) for _ in range(20)]  # would take freed memory
        self.assertEqual([array.tobytes() for array in arrays], self.dataset.read_many(ids))
        del junk

    def test_only_the_wanted_fields(self):
        batch = next(iter(self.loader(fields=["label"])))
        self.assertEqual(list(batch.keys()), ["label"])
        self.assertNotIn("image", batch)
        with self.assertRaisesRegex(KeyError, "there are label"):
            batch["image"]

    def test_held_batches_are_counted(self):
        loader = self.loader(engine="pread", memory=1 << 20, batch=16)
        held = []
        with self.assertRaises(stripepack.Error) as caught:
            for batch in loader:
                held.append(batch)
        self.assertEqual(caught.exception.code, "busy")
        state = loader.state()
        held.clear()
        del batch
        rest = rows(loader)
        self.assertEqual(rest, rows(self.loader(batch=16, state=state)))
        self.assertLessEqual(loader.stats["memory_peak_bytes"], 1 << 20)

    def test_how_files_are_read(self):
        stats = self.loader(engine="pool", direct="on").stats
        self.assertEqual((stats["direct"], stats["engine"], stats["reading"]),
                         (True, "pool", "past the page cache: as asked"))
        stats = self.loader(direct="off").stats
        self.assertEqual((stats["direct"], stats["reading"]),
                         (False, "through the page cache: as asked"))
        self.assertRegex(self.loader().stats["reading"], "^through the page cache: ")
        with self.assertRaisesRegex(ValueError, "direct is 'maybe'; choose one of auto, on, off"):
            self.loader(direct="maybe")

    def test_sorted_storage_is_warned_about_once(self):
        test_pack = TestPack({f"class{i:02}": 40 for i in range(20)}, shuffle=False)
        self.addCleanup(test_pack.close)
        dataset = test_pack.open()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stripepack.Loader(dataset, batch=16, order="random")
            self.assertEqual(caught, [])
            loader = stripepack.Loader(dataset, batch=16, world=2, lanes=4)
            stripepack.Loader(dataset, batch=16, world=2, lanes=4)
            self.loader(batch=64, lanes=2)
        self.assertEqual([warning.category for warning in caught], [stripepack.SortedStorageWarning])
        self.assertEqual(caught[0].filename, __file__)
        self.assertEqual(str(caught[0].message), f"{dataset.path}: {loader.stats['warning']}")
        self.assertRegex(loader.stats["warning"],
                         r"^storage is sorted by class: expect a class variance up to [78]\.\d x ")
        self.assertEqual(self.loader().stats["warning"], "")

    def test_sharing_on_a_node(self):
        options = {"batch": 8, "lanes": 4, "world": 3, "engine": "pread"}
        alone = [rows(self.loader(rank=rank, **options)) for rank in range(3)]
        options.update(node_ranks=3, node_group=f"test {os.getpid()}")
        loaders = [self.loader(rank=rank, **options) for rank in range(3)]
        threads, found = [], [None] * 3
        for rank, loader in enumerate(loaders):
            def read(rank=rank, loader=loader):
                found[rank] = rows(loader)
            threads.append(threading.Thread(target=read))
            threads[-1].start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, alone)
        stats = [loader.stats for loader in loaders]
        chunks = len(self.dataset.chunk_samples())
        self.assertEqual(sum(told["reads"] for told in stats), chunks)
        self.assertEqual(sum(told["shared_reads"] for told in stats), chunks)
        self.assertGreater(sum(told["shared_hits"] for told in stats), 0)
        for told in stats:
            self.assertIn("; chunks are shared on the node", told["reading"])
        with self.assertRaisesRegex(ValueError, "node_ranks is -1"):
            self.loader(node_ranks=-1)
        loader = self.loader(node_ranks=2, world=2, engine="pread")
        self.assertIn("; not shared: each rank has lanes of its own", loader.stats["reading"])

    # --- State

    def test_resume_at_every_step(self):
        for world in (1, 3):
            options = {"batch": 24 // world, "world": world, "seed": 7, "epoch": 3, "lanes": 6}
            states, steps = [], []
            loaders = [self.loader(rank=rank, **options) for rank in range(world)]
            for batches in zip(*loaders):
                steps.append(sorted(sum((batch.ids.tolist() for batch in batches), [])))
                states.append({batch.state for batch in batches})
                self.assertEqual(states[-1], {loader.state() for loader in loaders})
                self.assertEqual(len(states[-1]), 1)
            for at, (state,) in enumerate(states):
                for others in (1, 2, 4):
                    ranks = [rows(self.loader(batch=24 // others, world=others, rank=rank,
                                              state=state)) for rank in range(others)]
                    found = [sorted(sum(step, [])) for step in zip(*ranks)]
                    self.assertEqual(found, steps[at + 1:], (at, others))

    def test_two_loaders_from_one_state(self):
        loader = self.loader(seed=5)
        batches = iter(loader)
        for _ in range(7):
            next(batches)
        state = loader.state()
        first, second = self.loader(state=state), self.loader(state=state)
        both = [(a.ids.tolist(), b.ids.tolist()) for a, b in zip(first, second)]
        self.assertTrue(all(a == b for a, b in both))
        self.assertEqual([a for a, _ in both], [batch.ids.tolist() for batch in batches])

    def test_a_resumed_loader_stays_at_its_epoch(self):
        loader = self.loader(epoch=4)
        next(iter(loader))
        resumed = self.loader(state=loader.state())
        self.assertEqual(resumed.epoch, 4)
        left = len(resumed)
        resumed.set_epoch(4)  # as a training loop does
        self.assertEqual(len(resumed), left)
        self.assertEqual(rows(resumed), [batch.ids.tolist() for batch in loader])

    def test_states_that_are_refused(self):
        state = self.loader().state()
        other = state.replace(self.dataset.content_id, "0" * 32)
        for wrong, code in ((other, "mismatch"), ("nonsense", "invalid_argument"),
                            (state + "9" * 9, "invalid_argument"),
                            (state.replace("state/1", "state/2"), "unsupported")):
            with self.assertRaises(stripepack.Error) as caught:
                self.loader(state=wrong)
            self.assertEqual(caught.exception.code, code)

    # --- Trouble

    def test_damage(self):
        undo = self.pack.flip(60)
        try:
            loader = self.loader(engine="pread")
            with self.assertRaises(stripepack.Error) as caught:
                rows(loader)
            self.assertEqual(caught.exception.code, "damaged")
            self.assertIn(self.dataset.key(60), str(caught.exception))
            with self.assertRaises(stripepack.Error):
                loader.next()  # stands where it stood
            skipping = self.loader(skip_damaged=True, engine="pread")
            found = rows(skipping)
            whole = rows(self.loader(check=False))
            self.assertEqual([[i for i in batch if i != 60] for batch in whole], found)
            self.assertEqual(skipping.stats["skipped"], 1)
        finally:
            undo()
        state = loader.state()
        self.assertEqual(rows(self.loader(state=state)),
                         whole[whole.index(next(b for b in whole if 60 in b)):])

    def test_fork(self):
        expected = rows(self.loader())
        begun = self.loader()
        next(iter(begun))
        untouched = self.loader()
        child = os.fork()
        if child == 0:
            right = rows(self.loader()) == expected and rows(untouched) == expected
            try:
                begun.next()
                right = False
            except stripepack.Error as error:
                right = right and error.code == "invalid_argument"
            os._exit(0 if right else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(rows(begun), expected[1:])

    def test_threads(self):
        expected, wrong = rows(self.loader()), []

        def read():
            if rows(self.loader()) != expected:
                wrong.append(1)
        threads = [threading.Thread(target=read) for _ in range(4)]
        shared, found = self.loader(), []
        lock = threading.Lock()

        def take():  # calls of one loader take turns
            while (batch := shared.next()) is not None:
                with lock:
                    found.append(batch.ids.tolist())
        threads += [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(sorted(found), sorted(expected))

    def test_ten_thousand_opens_leave_nothing(self):
        def once():
            dataset = stripepack.open(self.pack.path)
            loader = stripepack.Loader(dataset, batch=4, lanes=2, fields=["label"])
            return dataset, loader

        def some(count):
            for i in range(count):
                dataset, loader = once()
                if i % 100 == 0:
                    next(iter(loader))
                    dataset.read(0)
                del dataset, loader

        def memory():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * resource.getpagesize()
        some(1000)
        gc.collect()
        files, before = len(os.listdir("/proc/self/fd")), memory()
        some(9000)
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)
        self.assertEqual(len(os.listdir("/proc/self/task")), 1)
        if not any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")):
            self.assertLess(memory() - before, 4 << 20)

    # --- Decoding ahead

    def test_batches_are_decoded_ahead(self):
        decode = FirstBytes()
        loader = self.loader(decode=decode)
        plain = self.loader()
        start = loader.state()
        batches = iter(loader)
        for given, (batch, other) in enumerate(zip(batches, plain), 1):
            self.assertEqual(batch.ids.tolist(), other.ids.tolist())
            self.assertEqual(batch.pixels.tolist(), [view[20] for view in other["image"]])
            self.assertEqual((loader.state(), batch.state), (plain.state(), other.state))
            if given <= 40:  # two wait, whoever takes them or not
                self.assertTrue(decode.has_made(given + 2), given)
            self.assertLessEqual(decode.made, given + 4)
        self.assertEqual(given, len(plain))
        loader.set_epoch(0)
        self.assertEqual(loader.state(), start)
        self.assertEqual(next(iter(loader)).ids.tolist(), rows(self.loader())[0])
        del batches, loader, plain
        gc.collect()
        self.assertTrue(threads_end())

    def test_what_decoding_raises(self):
        decode = FirstBytes()
        decode.fails_at = 3
        loader = self.loader(decode=decode)
        whole = rows(self.loader())
        found = [loader.next().ids.tolist() for _ in range(2)]
        with self.assertRaisesRegex(ValueError, "no picture"):
            loader.next()
        found += rows(loader)
        self.assertEqual(found, whole[:2] + whole[3:])
        loader.close()
        self.assertTrue(threads_end())


if __name__ == "__main__":
    unittest.main()

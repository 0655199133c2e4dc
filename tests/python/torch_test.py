# ctest: timeout=600
"""The drop-ins for PyTorch: pictures, samplers, streams; workers by fork and spawn; resuming."""
import collections
import contextlib
import os
import sys
import types
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import TestPack, run_python, skip, stripepack  # noqa: E402

try:
    import torch
except ImportError as error:
    skip(f"{error} (Debian: apt install python3-torch)")

import order as oracle  # noqa: E402
import stripepack.torch as spk  # noqa: E402

DataLoader = torch.utils.data.DataLoader
torch.set_num_threads(1)


def content(file):
    """Instead of a picture: the file's bytes."""
    return file.read()


def length(blob):
    return len(blob)


def facts(batch):
    """Of a stripepack.Batch, what can go from process to process."""
    return batch.ids.tolist(), [len(view) for view in batch["image"]], batch.labels.tolist()


def ids(batch):
    return batch.ids.tolist()


@contextlib.contextmanager
def environment(**values):
    names = ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
            if before[name] is not None:
                os.environ[name] = before[name]


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pack = TestPack()
        cls.path = str(cls.pack.path)
        cls.dataset = cls.pack.open()
        cls.units = oracle.unit_samples(cls.path)
        cls.count = len(cls.dataset)

    @classmethod
    def tearDownClass(cls):
        del cls.dataset
        cls.pack.close()

    def steps(self, world=1, rank=0, batch=8, tail="exact", consumed=0, lanes=64, window=1, **order):
        wanted = oracle.Order(self.units, None, lanes=lanes, window=window, **order)
        return [[wanted.sample_at(g % self.count) for g in mine] for mine, _ in oracle.rank_steps(
            self.count, wanted.lanes, world, rank, batch, tail, consumed) if mine]

    def stream(self, map_batch=ids, rank=0, world=1, **options):
        return spk.StreamingDataset(self.path, 8, map_batch=map_batch, rank=rank, world=world,
                                    **{"tail": "exact", "threads": 2, **options})

    # --- ImageFolder

    def test_image_folder(self):
        folder = spk.ImageFolder(self.path, loader=content)
        self.assertEqual(folder.classes, ["cat", "dog", "hen"])
        self.assertEqual(folder.class_to_idx, {"cat": 0, "dog": 1, "hen": 2})
        self.assertEqual(len(folder), self.count)
        self.assertEqual(collections.Counter(folder.targets), {0: 150, 1: 170, 2: 80})
        self.assertIs(folder.imgs, folder.samples)
        for index in (0, 7, self.count - 1, -1):
            blob, target = folder[index]
            name, label = folder.samples[index]
            self.assertEqual((blob, target), (self.pack.files[name], label))
            self.assertEqual(folder.classes[target], name.partition("/")[0])
        self.assertEqual(folder.__getitems__([4, 9]), [folder[4], folder[9]])
        with self.assertRaises(IndexError):
            folder[self.count]

    def test_transforms_and_pillow(self):
        try:
            import PIL  # noqa: F401
        except ImportError:
            self.skipTest("no Pillow")
        folder = spk.ImageFolder(self.path, transform=lambda picture: (picture.mode, picture.size),
                                 target_transform=str)
        self.assertEqual(folder[0], (("RGB", (16, 24)), str(folder.targets[0])))

    def test_workers_read_the_folder(self):
        folder = spk.ImageFolder(self.path, transform=length, loader=content)
        wanted = [(folder.transform(self.dataset.read(i)), folder.targets[i])
                  for i in range(self.count)]
        for method, workers in ((None, 0), ("fork", 2), ("spawn", 1)):
            loader = DataLoader(folder, 64, num_workers=workers, multiprocessing_context=method)
            found = [pair for sizes, targets in loader
                     for pair in zip(sizes.tolist(), targets.tolist())]
            self.assertEqual(found, wanted)

    # --- Sampler

    def sampler(self, world, rank, **options):
        return spk.DistributedSampler(spk.ImageFolder(self.path), world, rank, **options)

    def test_sampler_is_torchs(self):
        for world in (1, 3, 4, 7):
            for drop_last in (False, True):
                for shuffle in (True, False):
                    seen = []
                    for rank in range(world):
                        mine = self.sampler(world, rank, shuffle=shuffle, drop_last=drop_last)
                        torchs = torch.utils.data.DistributedSampler(
                            range(self.count), world, rank, shuffle, drop_last=drop_last)
                        self.assertIsInstance(mine, torch.utils.data.DistributedSampler)
                        found = list(mine)
                        self.assertEqual((len(mine), len(found)), (len(torchs), len(torchs)))
                        seen += found
                    self.assertEqual(len(set(seen)), min(self.count, len(seen)))

    def test_sampler_goes_by_the_order(self):
        for world, batch in ((1, 16), (2, 16), (5, 10), (3, 7)):
            lanes, window = oracle.default_lanes(world), oracle.default_window(world)
            for rank in range(world):
                sampler = self.sampler(world, rank, seed=3, batch_size=batch)
                sampler.set_epoch(2)
                wanted = self.steps(world, rank, batch, "pad", lanes=lanes, window=window, seed=3,
                                    epoch=2)
                self.assertEqual(list(sampler), sum(wanted, []))

    def test_sampler_resumes(self):
        whole = [list(self.sampler(2, rank, seed=9)) for rank in range(2)]
        sampler = self.sampler(2, 0, seed=9)
        taken = iter(sampler)
        for _ in range(40):
            next(taken)
        states = [sampler.state_dict(), sampler.state_dict(24)]
        for state, at in zip(states, (40, 24)):
            left = sorted(whole[0][at:] + whole[1][at:])
            for world in (1, 2, 4, 5):
                found = []
                for rank in range(world):
                    resumed = self.sampler(world, rank, drop_last=world == 5)
                    resumed.load_state_dict(state)
                    resumed.set_epoch(0)  # as a training loop does
                    self.assertEqual(len(resumed), (len(left) // world if world == 5 else
                                                    -(-len(left) // world)))
                    found.append(list(resumed))
                self.assertEqual(sorted(set(sum(found, []))), sorted(set(left) & set(sum(found, []))))
                if world == 2:
                    self.assertEqual(found, [one[at:] for one in whole])
                resumed.set_epoch(1)
                self.assertEqual(len(list(resumed)), len(list(self.sampler(world, 0, drop_last=world
                                                                           == 5))))
        with self.assertRaises(stripepack.Error):
            sampler.load_state_dict({"state": states[0]["state"].replace(
                self.dataset.content_id, "0" * 32)})

    def test_sampler_refuses_parts(self):
        part = torch.utils.data.Subset(spk.ImageFolder(self.path), range(10))
        with self.assertRaisesRegex(ValueError, "all samples of one pack"):
            spk.DistributedSampler(part, 1, 0)

    # --- Streams

    def test_batches_do_not_depend_on_workers(self):
        wanted = self.steps()
        for method, workers in ((None, 0), ("fork", 1), ("fork", 2), ("fork", 3), ("spawn", 2)):
            loader = DataLoader(self.stream(), batch_size=None, num_workers=workers,
                                multiprocessing_context=method)
            self.assertEqual((len(loader), list(loader)), (len(wanted), wanted), (method, workers))

    def test_what_streams_hold(self):
        sizes = {i: len(self.dataset.read(i)) for i in range(self.count)}
        stream = self.stream(facts, seed=4)
        for samples, lengths, labels in DataLoader(stream, batch_size=None, num_workers=2):
            self.assertEqual(lengths, [sizes[i] for i in samples])
            self.assertEqual(labels, self.dataset.labels[samples].tolist())
        plain = spk.StreamingDataset(self.path, 8, transform=length, loader=content, seed=4, rank=0,
                                     world=1)
        for (lengths, targets), (samples, _, labels) in zip(plain, stream):
            self.assertEqual(lengths.tolist(), [sizes[i] for i in samples])
            self.assertEqual(targets.tolist(), labels)

    def test_ranks_and_shard(self):
        for rank in range(3):
            wanted = self.steps(3, rank, lanes=66, window=4)
            self.assertEqual(list(self.stream(rank=rank, world=3)), wanted)
            self.assertEqual(len(self.stream(rank=rank, world=3)), len(wanted))
        whole = self.stream(rank=2, world=3, shard=False)
        self.assertEqual(list(whole), self.steps())

    def test_epochs_also_with_workers_that_stay(self):
        stream = self.stream()
        loader = DataLoader(stream, batch_size=None, num_workers=2, persistent_workers=True)
        for epoch in (0, 3, 1):
            stream.set_epoch(epoch)
            self.assertEqual(list(loader), self.steps(epoch=epoch))

    def test_states_reach_workers_that_stay(self):
        for context in ("fork", "spawn"):
            stream = self.stream()
            loader = DataLoader(stream, batch_size=None, num_workers=2, persistent_workers=True,
                                multiprocessing_context=context)
            whole = self.steps()
            self.assertEqual(list(loader), whole)
            stream.load_state_dict(stream.state_dict(steps=20))
            self.assertEqual(len(stream), len(whole) - 20)
            self.assertEqual(list(loader), whole[20:])
            stream.set_epoch(0)  # keeps the state, as this process has given nothing since
            self.assertEqual(list(loader), whole[20:])
            stream.set_epoch(0)
            self.assertEqual(list(loader), whole)
            stream.set_epoch(2)
            stream.load_state_dict(stream.state_dict(steps=7))
            stream.set_epoch(2)
            self.assertEqual(list(loader), self.steps(epoch=2)[7:])

    def test_what_is_no_state(self):
        sampler = spk.DistributedSampler(self.dataset, 1, 0)
        stream = self.stream()
        good = sampler.state_dict()["state"]
        for wrong in (None, 5, {}, [], {"state": None}, {"state": good.encode()}, {"state": good[:-1]},
                      {"state": good + "\n"}, {"state": good.replace("lanes=64", "lanes=0")},
                      {"state": good.replace("window=1", "window=65537")},
                      {"state": good.replace("seed=0", "seed=18446744073709551616")},
                      {"state": good.replace("consumed=0", "consumed=\u0660")}):
            for use in (sampler, stream):
                with self.assertRaises(stripepack.Error, msg=wrong) as caught:
                    use.load_state_dict(wrong)
                self.assertEqual(caught.exception.code, "invalid_argument")
        for workers in ("2", 0, -1):
            with self.assertRaises((TypeError, ValueError)):
                stream.load_state_dict({"state": good, "workers": workers})

    def test_numbers_that_are_refused(self):
        sampler = spk.DistributedSampler(self.dataset, 1, 0)
        stream = self.stream()
        for wrong, kind in ((-1, ValueError), (1 << 64, ValueError), (2.5, TypeError),
                            (float("nan"), TypeError), ("3", TypeError), ([], TypeError)):
            for call in (sampler.set_epoch, sampler.state_dict, stream.set_epoch, stream.state_dict,
                         lambda seed: spk.DistributedSampler(self.dataset, 1, 0, seed=seed),
                         lambda size: spk.DistributedSampler(self.dataset, 1, 0, batch_size=size),
                         lambda rank: spk.DistributedSampler(self.dataset, 1, rank),
                         lambda lanes: spk.DistributedSampler(self.dataset, 1, 0, lanes=lanes),
                         lambda seed: self.stream(seed=seed), lambda epoch: self.stream(epoch=epoch),
                         lambda rank: self.stream(rank=rank),
                         lambda window: self.stream(window=window)):
                if wrong == 1 << 64:  # beyond what any order has
                    self.assertRaises((ValueError, stripepack.Error), call, wrong)
                else:
                    self.assertRaises(kind, call, wrong)
        self.assertEqual(sampler.epoch, 0)
        self.assertEqual(stream.epoch, 0)
        with environment(RANK="first", WORLD_SIZE="2"):
            with self.assertRaisesRegex(ValueError, "RANK is 'first'; it is a whole number"):
                spk.find_rank()

    @unittest.skipUnless(hasattr(BaseException, "add_note"), "Python 3.11 and newer")
    def test_a_transform_that_fails_names_its_sample(self):
        def fails(picture):
            raise ArithmeticError("too dark")

        with self.assertRaisesRegex(ArithmeticError, "too dark") as caught:
            spk.ImageFolder(self.path, fails, loader=content)[3]
        self.assertIn(repr(self.dataset.key(3)), caught.exception.__notes__[0])
        with self.assertRaisesRegex(ArithmeticError, "too dark") as caught:
            next(iter(self.stream(None, transform=fails, loader=content)))
        self.assertIn(repr(self.dataset.key(self.steps()[0][0])), caught.exception.__notes__[0])

    def test_streams_resume_on_any_number_of_ranks(self):
        streams = [self.stream(rank=rank, world=2, seed=6) for rank in range(2)]
        for stream in streams:
            stream.set_epoch(5)
        whole = [sorted(sum(step, [])) for step in zip(*streams)]
        for at in (0, 1, 11, len(whole)):
            state = streams[0].state_dict(steps=at)
            self.assertEqual(state, streams[1].state_dict(steps=at))
            for world, workers in ((1, 0), (1, 3), (2, 0), (2, 2), (4, 0)):
                found = []
                for rank in range(world):
                    resumed = spk.StreamingDataset(self.path, 16 // world, map_batch=ids, rank=rank,
                                                   world=world, tail="exact", threads=2)
                    resumed.load_state_dict(state)
                    resumed.set_epoch(5)
                    self.assertEqual(resumed.epoch, 5)
                    found.append(list(DataLoader(resumed, batch_size=None, num_workers=workers)))
                self.assertEqual([sorted(sum(step, [])) for step in zip(*found)], whole[at:])
                resumed.set_epoch(6)
                self.assertEqual(len(resumed), len(whole))

    def test_stateful_protocol_in_process(self):
        stream = self.stream()
        batches = iter(stream)
        for _ in range(5):
            next(batches)
        state = stream.state_dict()
        resumed = self.stream()
        resumed.load_state_dict(state)
        self.assertEqual(list(resumed), list(batches))

    def test_stateful_protocol_in_workers(self):
        # As torchdata's StatefulDataLoader goes about it: a state of each worker, after its last
        # batch; then the same worker of as many goes on.
        info = torch.utils.data._utils.worker
        whole, states, given = self.steps(), [], 7
        try:
            for worker in range(3):
                info._worker_info = types.SimpleNamespace(id=worker, num_workers=3)
                stream = self.stream()
                batches = iter(stream)
                for _ in range(len(range(worker, given, 3))):
                    next(batches)
                states.append(stream.state_dict())
            found = {}
            for worker, state in enumerate(states):
                info._worker_info = types.SimpleNamespace(id=worker, num_workers=3)
                resumed = self.stream()
                resumed.load_state_dict(state)
                first = next(at for at in range(given, given + 3) if at % 3 == worker)
                found.update(zip(range(first, len(whole) + 3, 3), resumed))
            self.assertEqual([found[at] for at in range(given, len(whole))], whole[given:])
            info._worker_info = types.SimpleNamespace(id=0, num_workers=2)
            resumed.load_state_dict(states[0])
            with self.assertRaisesRegex(ValueError, "keep num_workers"):
                next(iter(resumed))
        finally:
            info._worker_info = None

    def test_stateful_data_loader(self):
        try:
            from torchdata.stateful_dataloader import StatefulDataLoader
        except ImportError:
            self.skipTest("no torchdata")
        for workers in (0, 2):
            loader = StatefulDataLoader(self.stream(), batch_size=None, num_workers=workers)
            batches = iter(loader)
            for _ in range(7):
                next(batches)
            resumed = StatefulDataLoader(self.stream(), batch_size=None, num_workers=workers)
            resumed.load_state_dict(loader.state_dict())
            self.assertEqual(list(resumed), self.steps()[7:])

    def test_damage(self):
        undo = self.pack.flip(60)
        try:
            with self.assertRaisesRegex(stripepack.Error, self.dataset.key(60)):
                list(self.stream())
            whole = [[i for i in step if i != 60] for step in self.steps()]
            self.assertEqual(list(DataLoader(self.stream(skip_damaged=True), batch_size=None,
                                             num_workers=2)), whole)
        finally:
            undo()

    # --- Ranks

    def test_where_ranks_are_found(self):
        with environment():
            self.assertEqual(spk.find_rank()[:2], (0, 1))
            self.assertEqual(spk.find_rank(2, 5)[:2], (2, 5))
            with self.assertRaises(ValueError):
                spk.find_rank(rank=2)
        with environment(SLURM_PROCID="3", SLURM_NTASKS="4"):
            self.assertEqual(spk.find_rank(), (3, 4, "SLURM_PROCID and SLURM_NTASKS"))
        with environment(SLURM_PROCID="3", SLURM_NTASKS="4", RANK="1", WORLD_SIZE="2"):
            self.assertEqual(spk.find_rank(), (1, 2, "RANK and WORLD_SIZE"))
            path = os.path.join(self.pack.root, "rendezvous")
            torch.distributed.init_process_group("gloo", f"file://{path}", rank=0, world_size=1)
            try:
                self.assertEqual(spk.find_rank(), (0, 1, "torch.distributed"))
            finally:
                torch.distributed.destroy_process_group()
        with environment(RANK="2", WORLD_SIZE="2"):
            with self.assertRaises(ValueError):
                spk.find_rank()

    def test_the_rank_is_printed_once(self):
        code = ("import stripepack.torch as s, torch, sys\n"
                "d = s.StreamingDataset(sys.argv[1], 8, map_batch=len)\n"
                "for _ in range(2):\n"
                "    for n in range(3): list(torch.utils.data.DataLoader(d, None, num_workers=n))\n")
        for rank, lines in (("0", 1), ("1", 0)):
            done = run_python("-c", code, self.path, env={"RANK": rank, "WORLD_SIZE": "2"})
            self.assertEqual(done.returncode, 0, done.stderr)
            told = [line for line in done.stderr.splitlines() if line.startswith("stripepack")]
            self.assertEqual(told, ["stripepack: StreamingDataset: rank 0 of 2 (RANK and "
                                    "WORLD_SIZE); shuffled, 64 lanes, window 1"] * lines)

    def test_a_second_sharding_is_warned_of(self):
        class IterableDatasetShard:  # shaped like accelerate's
            def __init__(self, dataset, num_processes):
                self.dataset, self.num_processes = dataset, num_processes

            def __iter__(self):
                yield from self.dataset
        IterableDatasetShard.__module__ = "accelerate.data_loader"
        with self.assertWarnsRegex(RuntimeWarning, "accelerate's IterableDatasetShard"):
            list(IterableDatasetShard(self.stream(rank=0, world=2), 2))
        IterableDatasetShard.__name__ = "DistributedSamplerWrapper"
        IterableDatasetShard.__module__ = "lightning.fabric.utilities.distributed"
        with self.assertWarnsRegex(RuntimeWarning, "lightning's DistributedSamplerWrapper"):
            list(IterableDatasetShard(self.sampler(2, 0), 2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            list(IterableDatasetShard(self.sampler(2, 0), 1))
            list(IterableDatasetShard(self.stream(rank=0, world=2, shard=False), 2))
            list(self.stream(rank=0, world=2))


if __name__ == "__main__":
    unittest.main()

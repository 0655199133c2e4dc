# ctest: timeout=300
"""Loaders and samplers go by the target map that is recorded beside the pack; a run keeps its own."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import TestPack, run_python, stripepack  # noqa: E402

import numpy  # noqa: E402
import xxh3 as oracle_hash  # noqa: E402

try:
    import torch  # noqa: F401
    import stripepack.torch
except ImportError:
    torch = None


def make_map(dataset, targets_of_shard):
    """As `stripepack layout` records it, and the targets: shard i with its chunks on
    targets_of_shard[i], in turn."""
    chunk_bytes = dataset.info["chunk_bytes"]
    shards = [{"system": "lustre", "components": [{
        "stripe_bytes": chunk_bytes, "stripe_count": len(targets), "targets": targets}]}
              for targets in targets_of_shard]
    targets = []
    for sample in dataset.chunk_samples().tolist():
        shard, offset, _ = dataset.locate(sample)
        of_shard = targets_of_shard[shard]
        targets.append(of_shard[offset // chunk_bytes % len(of_shard)])
    distinct = sorted(set(targets))
    targets = [distinct.index(target) for target in targets]
    digest = oracle_hash.xxh3_64(numpy.array(targets, "<u4").tobytes())
    return {"digest": f"{digest:016x}", "made": "2026-11-30T12:00:00Z", "file_system": "lustre",
            "asked": "", "refused": "", "shards": shards}, targets


def record(path, *maps):
    with open(os.path.join(path, "layout.json"), "w", encoding="ascii") as file:
        json.dump({"version": 1, "chunk_bytes": 65536, "maps": maps}, file)


def samples_of(loader):
    return [batch.ids.tolist() for batch in loader]


def failure(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except stripepack.Error as error:
        return error.code
    return None


def answers(path, first, second):
    """What a package says of the pack with these two maps recorded, and of a state of each."""
    dataset = stripepack.open(path)
    (old, _), (new, _) = first, second
    record(path, old)
    loader = stripepack.Loader(dataset, batch=8, lanes=4)
    begin = [batch.ids.tolist() for _, batch in zip(range(3), loader)]
    state = loader.state()
    record(path, old, new)
    told = [begin, state, samples_of(stripepack.Loader(dataset, batch=8, state=state)),
            samples_of(stripepack.Loader(dataset, batch=8, lanes=4)),
            samples_of(stripepack.Loader(dataset, batch=8, lanes=4, targets=[])),
            samples_of(stripepack.Loader(dataset, batch=8, order="random")),
            stripepack.Loader(dataset, order="sequential").state(),
            dataset.recorded_targets().tolist(), dataset.recorded_targets(old["digest"]).tolist(),
            dataset.recorded_targets("0" * 16).tolist(), str(dataset.recorded_targets().dtype),
            failure(dataset.recorded_targets, "1" * 16), failure(dataset.recorded_targets, "1"),
            failure(stripepack.Loader, dataset, state=state, targets=[])]
    record(path, new)
    told.append(failure(stripepack.Loader, dataset, state=state))
    record(path, dict(new, digest="1" * 16))
    told.append(failure(stripepack.Loader, dataset))
    record(path, dict(new, shards=5))
    told.append(failure(stripepack.Loader, dataset))
    os.unlink(os.path.join(path, "layout.json"))
    told.append(stripepack.Loader(dataset, batch=8, lanes=4).state())
    return told


class TargetMapTest(unittest.TestCase):
    def setUp(self):
        self.pack = TestPack()
        self.addCleanup(self.pack.close)
        self.dataset = self.pack.open()
        self.old = make_map(self.dataset, [[7, 9], [9, 3], [3, 7]])
        self.new = make_map(self.dataset, [[1], [2], [3]])

    def test_a_loader(self):
        told = answers(self.pack.path, self.old, self.new)
        (old, old_targets), (new, new_targets) = self.old, self.new
        explicit = samples_of(stripepack.Loader(self.dataset, batch=8, lanes=4, targets=old_targets))
        self.assertEqual(told[0] + told[2], explicit)
        self.assertIn(f" map={old['digest']} ", told[1])
        self.assertEqual(told[3], samples_of(
            stripepack.Loader(self.dataset, batch=8, lanes=4, targets=new_targets)))
        none = samples_of(stripepack.Loader(self.dataset, batch=8, lanes=4))
        self.assertEqual(told[4], none)
        self.assertEqual(len({str(told[3]), str(told[4]), str(explicit)}), 3)
        self.assertIn(" map=0000000000000000 ", told[6])
        self.assertEqual(told[7:10], [new_targets, old_targets, []])
        self.assertEqual(told[10:-1], ["uint32", "mismatch", "invalid_argument", "mismatch",
                                       "mismatch", "damaged", "damaged"])
        self.assertIn(" map=0000000000000000 ", told[-1])

    def test_the_same_in_pure_python(self):
        arguments = [str(self.pack.path), json.dumps(self.old), json.dumps(self.new)]
        found = run_python(__file__, "--answers", *arguments)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("pure Python", found.stderr)
        self.assertEqual(json.loads(found.stdout), answers(self.pack.path, self.old, self.new))

    @unittest.skipIf(torch is None, "no PyTorch here")
    def test_a_sampler(self):
        def sampler():
            return stripepack.torch.DistributedSampler(self.dataset, 2, 1, batch_size=8, lanes=4)

        def loader(**options):
            batches = samples_of(stripepack.Loader(self.dataset, batch=8, world=2, rank=1, lanes=4,
                                                   tail="pad", **options))
            return [sample for batch in batches for sample in batch]

        record(self.pack.path, self.old[0])
        run = sampler()
        self.assertEqual(list(run), loader(targets=self.old[1]))
        state = run.state_dict(samples=16)
        record(self.pack.path, self.old[0], self.new[0])
        self.assertEqual(list(run), loader(targets=self.old[1]))
        again = sampler()
        self.assertEqual(list(again), loader(targets=self.new[1]))
        again.load_state_dict(state)
        self.assertEqual(list(again), loader(targets=self.old[1])[16:])
        record(self.pack.path, self.new[0])
        self.assertEqual(failure(again.load_state_dict, state), "mismatch")

    @unittest.skipIf(torch is None, "no PyTorch here")
    def test_a_stream(self):
        def stream():
            return stripepack.torch.StreamingDataset(
                self.dataset, 8, map_batch=lambda batch: batch.ids.tolist(), lanes=4, rank=0, world=1)

        def batches(dataset, workers):
            return list(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers,
                                                    persistent_workers=False, collate_fn=None))

        def loader(targets, **options):
            return samples_of(stripepack.Loader(self.dataset, batch=8, lanes=4, targets=targets,
                                                **options))

        record(self.pack.path, self.old[0])
        run = stream()
        record(self.pack.path, self.old[0], self.new[0])
        for workers in (0, 2):
            self.assertEqual(batches(run, workers), loader(self.old[1]), workers)
        run.set_epoch(1)  # the run keeps its map
        self.assertEqual(batches(run, 2), loader(self.old[1], epoch=1))
        state = run.state_dict(steps=4)
        self.assertIn(f" map={self.old[0]['digest']} ", state["state"])
        again = stream()
        self.assertEqual(batches(again, 2), loader(self.new[1]))
        again.load_state_dict(state)
        self.assertEqual(batches(again, 2), loader(self.old[1], epoch=1)[4:])
        record(self.pack.path, self.new[0])
        self.assertEqual(failure(stream().load_state_dict, state), "mismatch")


def main():
    if sys.argv[1:2] == ["--answers"]:
        for name in [name for name in sys.modules if name.partition(".")[0] == "stripepack"]:
            del sys.modules[name]
        sys.modules["stripepack._stripepack"] = None
        global stripepack  # pylint: disable=global-statement
        import stripepack
        path, old, new = sys.argv[2:]
        print(json.dumps(answers(path, json.loads(old), json.loads(new))))
        return
    unittest.main()


if __name__ == "__main__":
    main()

# ctest: timeout=300
"""The package without its compiled module: the same answers, in Python alone."""
import hashlib
import json
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import TestPack, run_python, stripepack  # noqa: E402

import xxh3 as oracle_hash  # noqa: E402
from stripepack.pure import xxh3  # noqa: E402


def code_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except stripepack.Error as error:
        return error.code, error.shard, error.offset
    except (IndexError, KeyError, ValueError) as error:
        return type(error).__name__
    return None


def answers(path, damaged):
    """Everything that the package tells of a pack, as JSON can hold it."""
    dataset = stripepack.open(path)
    every = range(len(dataset))
    told = [dataset.info, repr(dataset.fields), dataset.classes, dataset.settings,
            list(dataset.keys()), dataset.labels.tolist(), [dataset.locate(i) for i in every],
            dataset.chunk_samples().tolist(), dataset.find(dataset.key(5)), list(dataset.part(1, 3)),
            repr(dataset[7]), dataset.columns["width"].tolist(), str(dataset.labels.dtype),
            [hashlib.md5(blob).hexdigest() for blob in dataset.read_many(every)],
            dataset.read_packed([3, 1])[1].tolist(), [i for i, _ in dataset.iterate(1, 3)],
            stripepack.__version__]
    dice = random.Random(2)
    for _ in range(60):
        options = {"world": dice.choice([1, 2, 3, 6]), "workers": dice.choice([1, 1, 3]),
                   "batch": dice.choice([1, 8, 50]), "seed": dice.getrandbits(64),
                   "epoch": dice.randrange(3), "tail": dice.choice(["drop", "pad", "exact"]),
                   "order": dice.choice(["shuffled", "shuffled", "sequential", "random"])}
        options.update(rank=dice.randrange(options["world"]),
                       worker=dice.randrange(options["workers"]))
        if options["order"] == "shuffled" and dice.random() < 0.5:
            options.update(lanes=dice.choice([1, 4, 6]), window=dice.choice([None, 2]))
        loader = stripepack.Loader(dataset, **options)
        batches = [[batch.ids.tolist(), batch.positions.tolist(), batch.repeated.tolist(),
                    batch.labels.tolist(), batch.state, batch.packed("image")[1].tolist(),
                    hashlib.md5(batch.packed("image")[0]).hexdigest(), batch.present("label").tolist()]
                   for batch in loader]
        told.append([options, batches, loader.state(), loader.lanes, loader.window,
                     {name: loader.stats[name] for name in ("steps", "samples", "payload_bytes",
                                                           "warning")}])
        if batches:
            options.update(state=dice.choice(batches)[4], world=5, rank=3)
            told.append([batch.ids.tolist() for batch in stripepack.Loader(dataset, **options)])
    state = loader.state()
    told.append([
        code_of(stripepack.open, "/not/there"), code_of(stripepack.open, path + "\0junk"),
        code_of(stripepack.open, path, cache=path + "\0junk"),
        code_of(stripepack.Loader, dataset, node_group="a\0b"), code_of(stripepack.open, os.path.dirname(path)),
        code_of(dataset.find, "none"), code_of(dataset.column, "image"),
        code_of(dataset.part, 3, 3), code_of(dataset.read, len(dataset)),
        code_of(dataset.read, 0, "sound"),
        *(code_of(stripepack.Loader, dataset, **wrong) for wrong in (
            {"state": "x"}, {"state": state.replace(dataset.content_id, "1" * 32)},
            {"state": state.replace("state/1", "state/9")}, {"fields": ["sound"]},
            {"lanes": 1 << 21}, {"engine": "steam"}))])
    broken = stripepack.open(damaged)
    loader = stripepack.Loader(broken, batch=16, skip_damaged=True)
    told.append([code_of(broken.read, 60), code_of(broken.read_many, [1, 60])[0],
                 code_of(list, stripepack.Loader(broken, order="sequential")),
                 [batch.ids.tolist() for batch in loader], loader.stats["skipped"]])
    return told


class PureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pack = TestPack()

    @classmethod
    def tearDownClass(cls):
        cls.pack.close()

    def test_the_same_answers(self):
        damaged = self.pack.root / "damaged"
        os.rename(self.pack.path, damaged)
        self.pack.path.symlink_to(damaged)
        other = TestPack()  # the same, but for the damage
        self.addCleanup(other.close)
        self.pack.flip(60)
        arguments = (str(other.path), str(self.pack.path))
        found = run_python(__file__, "--answers", *arguments)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("pure Python", found.stderr)
        self.assertTrue(stripepack.compiled)
        mine = json.loads(json.dumps(answers(*arguments)))
        theirs = json.loads(found.stdout)
        self.assertEqual(len(mine), len(theirs))
        for one, another in zip(mine, theirs):
            self.assertEqual(one, another)

    def test_the_hash(self):
        fast, xxh3._fast = xxh3._fast, None
        try:
            dice = random.Random(1)
            for size in [*range(300), 511, 512, 1023, 1024, 1025, 1088, 2048, 70000, 1 << 20]:
                data = dice.randbytes(size)
                self.assertEqual(xxh3.xxh3_64(data), oracle_hash.xxh3_64(data), size)
        finally:
            xxh3._fast = fast

    def test_a_damaged_index_is_an_error(self):
        index = (self.pack.path / "index.spki").read_bytes()
        dice = random.Random(3)
        places = {str(dice.randrange(len(index))) for _ in range(150)}
        found = run_python(__file__, "--damage", str(self.pack.path), *sorted(places))
        self.assertEqual(found.returncode, 0, found.stderr)


def hide_the_compiled_module():
    for name in [name for name in sys.modules if name.partition(".")[0] == "stripepack"]:
        del sys.modules[name]
    sys.modules["stripepack._stripepack"] = None
    global stripepack  # pylint: disable=global-statement
    import stripepack
    assert not stripepack.compiled


def main():
    if sys.argv[1:2] == ["--answers"]:
        hide_the_compiled_module()
        json.dump(answers(*sys.argv[2:]), sys.stdout)
    elif sys.argv[1:2] == ["--damage"]:
        hide_the_compiled_module()
        path = sys.argv[2]
        with open(os.path.join(path, "index.spki"), "rb") as file:
            index = file.read()
        for place in map(int, sys.argv[3:]):
            wrong = index[:place] + bytes([index[place] ^ 32]) + index[place + 1:]
            for data in (wrong, index[:place]):
                code = code_of(stripepack.open, path, index=data)
                assert code and code[0] in ("damaged", "not_this_format", "unsupported"), (place, code)
    else:
        unittest.main()


if __name__ == "__main__":
    main()

# ctest: timeout=300
"""LMDB environments that liblmdb itself wrote (python3-lmdb), Datum by protobuf's own encoder where
that is installed."""

import os
import random
import shutil
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import (DONE, FAILED, USAGE, PackTest, main, payloads, samples, snapshot,  # noqa: E402
                     SKIPPED)
import pictures  # noqa: E402
from messages import datum_class  # noqa: E402

try:
    import lmdb
except ImportError:
    print("python3-lmdb is not installed")
    sys.exit(SKIPPED)


class LmdbTest(PackTest):
    def make(self, pairs, database=None, **how):
        path = self.path("env")
        with lmdb.open(path, map_size=1 << 30, max_dbs=4, **how) as env:
            name = None if database is None else database.encode()
            db = env.open_db(name)
            keys = sorted(pairs)
            random.Random(5).shuffle(keys)  # so that pages split as they like
            for begin in range(0, len(keys), 100):
                with env.begin(write=True, db=db) as txn:
                    for key in keys[begin:begin + 100]:
                        txn.put(key, pairs[key])
        return path

    def compare(self, pairs, payload_of=lambda value: value):
        found = samples(self.out)
        self.assertEqual([one["key"] for one in found], sorted(pairs))
        stored = payloads(self.out)
        for one in found:
            self.assertEqual(stored["", one["key"], one["ordinal"]],
                             payload_of(pairs[one["key"]]))
        return found

    def test_plain_pictures_of_all_sizes(self):
        source = random.Random(1)
        pairs = {b"%s/%d" % (source.choice([b"cat", b"dog", b"a-b", b"a"]), number):
                 pictures.jpeg(number, source.choice([700, 1900, 2030, 4050, 9000, 100000]))
                 for number in range(1500)}
        path = self.make(pairs)
        before = snapshot(path)
        self.pack(path, self.out, "--no-shuffle")
        self.assertEqual(snapshot(path), before)
        found = self.compare(pairs)
        classes = sorted({key.split(b"/")[0] for key in pairs})
        self.assertEqual([one["labels"] for one in found],
                         [[classes.index(key.split(b"/")[0])] for key in sorted(pairs)])
        self.assert_verifies(self.out, "--against", path)

    def test_entries_that_were_deleted_and_overwritten_are_gone(self):
        pairs = {b"k/%04d" % number: pictures.jpeg(number, 3000) for number in range(300)}
        path = self.make(pairs)
        with lmdb.open(path, map_size=1 << 30) as env:
            for number in range(0, 300, 2):
                with env.begin(write=True) as txn:
                    txn.delete(b"k/%04d" % number)
                del pairs[b"k/%04d" % number]
            for number in range(1, 300, 6):
                pairs[b"k/%04d" % number] = pictures.jpeg(-number, 20000)
                with env.begin(write=True) as txn:
                    txn.put(b"k/%04d" % number, pairs[b"k/%04d" % number])
        self.pack(path, self.out)
        self.compare(pairs)

    def test_a_copy_without_a_folder_and_named_databases(self):
        pairs = {b"a/1": pictures.jpeg(1), b"b/2": pictures.jpeg(2)}
        path = self.make(pairs, "train")
        with lmdb.open(path, map_size=1 << 30, max_dbs=4) as env:
            with env.begin(write=True, db=env.open_db(b"val")) as txn:
                txn.put(b"x/1", pictures.jpeg(3))
        self.pack(path, self.out, code=USAGE, words=["train, val", "--db"])
        self.pack(path, self.out, "--db", "train")
        self.compare(pairs)
        shutil.rmtree(self.out)
        single = self.path("single.mdb")
        with lmdb.open(single, subdir=False, map_size=1 << 24) as env:
            with env.begin(write=True) as txn:
                for key, value in pairs.items():
                    txn.put(key, value)
        self.pack(single, self.out)
        self.compare(pairs)

    def test_datum_of_protobuf(self):
        datum = datum_class()
        if datum is None:
            self.skipTest("python3-protobuf is not installed")
        encoded = {b"%08d_x.jpg" % number:
                   datum(data=pictures.jpeg(number, 5000), label=number - 3, encoded=True)
                   for number in range(50)}
        self.pack(self.make({key: one.SerializeToString() for key, one in encoded.items()}),
                  self.out)
        found = self.compare({key: one.data for key, one in encoded.items()})
        self.assertEqual([one["labels"] for one in found],
                         [[encoded[one["key"]].label] for one in found])
        shutil.rmtree(self.path("env"))
        shutil.rmtree(self.out)
        # Pictures of 24 x 16, grey; what the message says beside them is counted where it differs.
        told = [{}, {"height": 24, "width": 16, "channels": 1}, {"height": 16, "width": 24},
                {"channels": 3}, {"width": 17}]
        values = {b"%08d" % number: datum(data=pictures.jpeg(number, 900), label=1, encoded=True,
                                          **sizes)
                  for number, sizes in enumerate(told)}
        path = self.make({key: one.SerializeToString() for key, one in values.items()})
        done = self.pack(path, self.out, "--json")
        kind = "a picture's size is not what the source tells of it"
        self.assertEqual(self.report(done)["warnings"][kind]["count"], 3)
        self.assertEqual([[one["height"], one["width"]] for one in samples(self.out)], [[24, 16]] * 5)
        shutil.rmtree(self.path("env"))
        shutil.rmtree(self.out)
        source = random.Random(2)
        raw = {}
        for number in range(20):
            height, width = source.randint(1, 40), source.randint(1, 40)
            raw[b"%08d" % number] = datum(channels=3, height=height, width=width, label=number,
                                          data=source.randbytes(3 * height * width))
        self.pack(self.make({key: one.SerializeToString() for key, one in raw.items()}), self.out)

        def pixels(one):
            plane = one.height * one.width
            return bytes(one.data[channel * plane + pixel]
                         for pixel in range(plane) for channel in (2, 1, 0))
        found = self.compare(raw, pixels)
        self.assertEqual([[one["height"], one["width"]] for one in found],
                         [[raw[one["key"]].height, raw[one["key"]].width] for one in found])

    def test_a_cut_file_and_several_values_a_key(self):
        path = self.make({b"a/%d" % number: pictures.jpeg(number, 6000) for number in range(50)})
        data = os.path.join(path, "data.mdb")
        os.truncate(data, os.path.getsize(data) * 2 // 3)
        self.pack(path, self.out, code=FAILED, words=["truncated"])
        self.assertFalse(os.path.exists(self.out))
        shutil.rmtree(path)
        with lmdb.open(path, map_size=1 << 24, max_dbs=2) as env:
            with env.begin(write=True, db=env.open_db(b"many", dupsort=True)) as txn:
                txn.put(b"a", b"1")
                txn.put(b"a", b"2")
        self.pack(path, self.out, "--db", "many", code=FAILED, words=["MDB_DUPSORT"])

    def test_a_database_that_changed_is_told(self):
        pairs = {b"a/%d" % number: pictures.jpeg(number) for number in range(5)}
        path = self.make(pairs)
        self.pack(path, self.out)
        self.assertEqual(self.expect(self.run_verify(path), DONE).code, DONE)
        with lmdb.open(path, map_size=1 << 30) as env:
            with env.begin(write=True) as txn:
                txn.put(b"a/2", pictures.jpeg(99))
        self.assertNotEqual(self.run_verify(path).code, DONE)

    def run_verify(self, path):
        from packing import run
        return run("verify", self.out, "--against", path)


if __name__ == "__main__":
    main()

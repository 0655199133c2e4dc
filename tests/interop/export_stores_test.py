# ctest: timeout=300
"""Exports to LMDB, HDF5, MDS, CIFAR and IDX, read by python3-lmdb with protobuf, by h5py, and, where
no package is at hand (MDS), by a reader that is written here from the format's description."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from messages import datum_class  # noqa: E402
from packing import (DONE, FAILED, PackTest, main, names, payloads, run, samples,  # noqa: E402
                     text)


class ExportStoresTest(PackTest):
    def setUp(self):
        super().setUp()
        self.dest = self.path("dest")
        self.made = pictures.make_folder(self.path("src"), {"cat": 21, "dog": 13})
        self.made["dog/big.jpg"] = pictures.jpeg("big", 2 << 20)
        pictures.write(self.path("src", "dog", "big.jpg"), self.made["dog/big.jpg"])
        self.pack(self.path("src"), self.out)

    def export(self, kind, *more, code=DONE, words=()):
        done = run("export", self.out, self.dest, "--to", kind, *more)
        if "this build cannot write" in text(done.err):
            self.skipTest(text(done.err))
        return self.expect(done, code, *words)

    def stored_keys(self):
        return [one["key"].decode() for one in samples(self.out, "id")]

    def test_lmdb(self):
        try:
            import lmdb
        except ImportError as error:
            self.skipTest(str(error))
        datum = datum_class()
        if datum is None:
            self.skipTest("python3-protobuf is not installed")
        self.export("lmdb")
        self.assertEqual(names(self.dest), ["data.mdb"])
        keys = self.stored_keys()
        with lmdb.open(self.dest, readonly=True, lock=False) as env:
            self.assertEqual(env.stat()["entries"], len(keys))
            with env.begin() as txn:
                for number, (key, value) in enumerate(txn.cursor()):
                    name = keys[number]
                    self.assertEqual(key, b"%08d_%s" % (number, name.encode()))
                    one = datum()
                    one.ParseFromString(value)
                    self.assertEqual(one.SerializeToString(), value)
                    self.assertEqual((one.channels, one.height, one.width, one.label, one.encoded),
                                     (1, pictures.HEIGHT, pictures.WIDTH, int(name[:3] == "dog"),
                                      True))
                    self.assertEqual(one.data, self.made[name])

    def test_a_full_disk_is_told_as_that(self):
        if os.geteuid() != 0:
            self.skipTest("mounting needs root")
        mounted = self.path("disk")
        os.mkdir(mounted)
        mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", mounted]
        if subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no mount here")
        try:
            self.dest = os.path.join(mounted, "dest")
            for kind in ("lmdb", "hdf5", "mds"):
                with self.subTest(kind=kind):
                    subprocess.run(["mount", "-o", "remount,size=200k", mounted], check=True)
                    self.export(kind, code=FAILED, words=["No space left on device"])
                    self.assertFalse(os.path.exists(self.dest))
                    subprocess.run(["mount", "-o", "remount,size=40m", mounted], check=True)
                    self.export(kind)
                    shutil.rmtree(self.dest)
        finally:
            subprocess.run(["umount", mounted], check=True)

    def test_lmdb_of_many_grows_its_map(self):
        try:
            import lmdb
        except ImportError as error:
            self.skipTest(str(error))
        for number in range(40):
            pictures.write(self.path("many", "a", "%d.jpg" % number),
                           pictures.jpeg(number, 3 << 20))
        for number in range(4000):
            pictures.write(self.path("many", "b", "%d.jpg" % number), pictures.jpeg(number, 700))
        self.pack(self.path("many"), self.path("manypack"))
        self.expect(run("export", self.path("manypack"), self.path("env"), "--to", "lmdb",
                        "--verify"), DONE)
        with lmdb.open(self.path("env"), readonly=True, lock=False) as env:
            self.assertEqual(env.stat()["entries"], 4040)
        # Full pages: little more than what is in it.
        self.assertLess(os.path.getsize(self.path("env", "data.mdb")), 40 * (3 << 20) * 1.1 + 5e6)

    def test_lmdb_refuses_long_keys(self):
        long = os.path.join("k" * 200, "k" * 200, "k" * 200 + ".jpg")
        pictures.write(self.path("src", "dog", long), pictures.jpeg(1))
        self.pack(self.path("src"), self.out, "--force")
        self.export("lmdb", code=FAILED, words=["LMDB takes 511"])
        self.assertFalse(os.path.exists(self.dest))

    def check_hdf5(self, file, picture_of):
        keys = self.stored_keys()
        self.assertEqual([key.decode() for key in file["keys"][:]], keys)
        self.assertEqual(list(file["labels"][:]), [int(key[:3] == "dog") for key in keys])
        self.assertEqual([name.decode() for name in file["class_names"][:]], ["cat", "dog"])
        self.assertEqual(list(file["labels"].attrs["class_names"]), ["cat", "dog"])
        for number, key in enumerate(keys):
            self.assertEqual(picture_of(number), self.made[key])

    def test_hdf5(self):
        try:
            import h5py
        except ImportError as error:
            self.skipTest(str(error))
        self.export("hdf5")
        with h5py.File(os.path.join(self.dest, "data.h5"), "r") as file:
            self.assertEqual(set(file), {"images", "labels", "keys", "class_names"})
            self.check_hdf5(file, lambda number: file["images"][number].tobytes())

    def test_hdf5_for_lbann(self):
        try:
            import h5py
        except ImportError as error:
            self.skipTest(str(error))
        self.export("hdf5", "--layout", "lbann", code=FAILED)
        pixels = self.path("pixels")
        self.expect(run("repack", self.out, pixels, "--resize", "12x9", "--resize-mode", "exact",
                        "--encode", "raw", "--color", "rgb"), DONE)
        target = self.path("lbann")
        self.expect(run("export", pixels, target, "--to", "hdf5", "--layout", "lbann",
                        "--source-order"), DONE)
        with open(os.path.join(target, "data.list"), encoding="ascii") as file:
            form, counts, folder, line = file.read().splitlines()
        name, *told = line.split()
        found = samples(pixels)
        self.assertEqual((form, counts, folder, name, told[:2]),
                         ("CONDUIT_HDF5_INCLUSION", "%d 0 1" % len(found), "./", "data.h5",
                          [str(len(found)), "0"]))
        stored = payloads(pixels)
        self.assertEqual(len(told[2:]), len(found))
        with h5py.File(os.path.join(target, name), "r") as file:
            for group, one in zip(told[2:], found):
                image = file[group]["image"]
                self.assertEqual(image.shape, (9, 12, 3))
                self.assertEqual(image[()].tobytes(), stored["", one["key"], one["ordinal"]])
                self.assertEqual(list(file[group]["label"][()]), one["labels"])

    def test_hdf5_flat(self):
        try:
            import h5py
        except ImportError as error:
            self.skipTest(str(error))
        self.export("hdf5", "--layout", "flat", "--prefix", "set", "--memory", "1MiB")
        with h5py.File(os.path.join(self.dest, "set.h5"), "r") as file:
            self.assertEqual(set(file), {"bytes", "offsets", "labels", "keys", "class_names"})
            offsets = file["offsets"][:]
            self.assertEqual((len(offsets), offsets[0], offsets[-1]),
                             (len(self.made) + 1, 0, len(file["bytes"])))
            self.check_hdf5(file, lambda number: file["bytes"][
                offsets[number]:offsets[number + 1]].tobytes())

    def test_same_bytes_each_time(self):
        for kind in ("lmdb", "hdf5", "mds"):
            self.export(kind, "--force")
            first = {name: pathlib.Path(self.dest, name).read_bytes() for name in names(self.dest)}
            self.export(kind, "--force", "--jobs", "7", "--memory", "3MiB")
            self.assertEqual({name: pathlib.Path(self.dest, name).read_bytes()
                              for name in names(self.dest)}, first)

    def mds(self):
        """Every sample as {column: bytes}, in order."""
        with open(os.path.join(self.dest, "index.json"), encoding="utf-8") as file:
            index = json.load(file)
        self.assertEqual(index["version"], 2)
        found = []
        for shard in index["shards"]:
            self.assertEqual((shard["format"], shard["version"], shard["compression"],
                              shard["zip_data"], shard["hashes"]), ("mds", 2, None, None, []))
            columns = list(zip(shard["column_names"], shard["column_encodings"],
                               shard["column_sizes"]))
            self.assertEqual([name for name, _, _ in columns], sorted(shard["column_names"]))
            whole = pathlib.Path(self.dest, shard["raw_data"]["basename"]).read_bytes()
            self.assertEqual(len(whole), shard["raw_data"]["bytes"])
            count, = struct.unpack_from("<I", whole)
            self.assertEqual(count, shard["samples"])
            offsets = struct.unpack_from("<%dI" % (count + 1), whole, 4)
            config = json.loads(whole[4 + 4 * (count + 1):offsets[0]])
            self.assertEqual(config["column_names"], shard["column_names"])
            self.assertEqual(offsets[-1], len(whole))
            for begin, end in zip(offsets, offsets[1:]):
                sizes, at = [], begin
                for _, _, size in columns:
                    if size is None:
                        size, = struct.unpack_from("<I", whole, at)
                        at += 4
                    sizes.append(size)
                sample = {}
                for (name, encoding, _), size in zip(columns, sizes):
                    sample[name] = whole[at:at + size]
                    sample[name + " is"] = encoding
                    at += size
                self.assertEqual(at, end)
                found.append(sample)
        return found, len(index["shards"])

    def test_mds(self):
        self.export("mds", "--shards", "3")
        found, shards = self.mds()
        self.assertEqual(shards, 3)
        self.assertEqual(names(self.dest), ["index.json"]
                         + ["shard.0000%d.mds" % number for number in range(3)])
        self.assertEqual([one["key"].decode() for one in found], self.stored_keys())
        for one in found:
            key = one["key"].decode()
            self.assertEqual(one, {
                "image": self.made[key], "image is": "jpeg", "key": key.encode(), "key is": "str",
                "label": struct.pack("<q", key[:3] == "dog"), "label is": "int"})


if __name__ == "__main__":
    main()

# ctest: timeout=600
"""pack, export, pack: the same payloads, labels and keys, for each format that this program reads
itself; `--verify` says so before anything is published. With generated pictures, with pixels, and
with real ones where STRIPEPACK_TEST_DATA has them."""

import os
import pathlib
import random
import signal
import struct
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NO, PackTest, faulty, main, names, payloads, run,  # noqa: E402
                     samples, text)

DATA = pathlib.Path(os.environ.get("STRIPEPACK_TEST_DATA",
                                   pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))

# What to pack of the export, and with which options, so that keys come back as well.
KINDS = {
    "folder": ("/manifest.tsv", ()),
    "tar": ("", ("--features", "key=json.key,label=cls")),
    "tfrecord": ("", ("--features", "image=image/encoded,label=image/class/label,"
                                    "key=image/filename")),
    "recordio": ("", ("--features", "key=lst")),
    "lmdb": ("", ("--features", "key=name")),
    "hdf5": ("/data.h5", ()),
    "hdf5 --layout flat": ("/data.h5", ()),
    "mds": ("", ()),
}


def facts(pack):
    return sorted((one["key"], one.get("labels", one.get("label"))) for one in samples(pack))


def by_key(pack):
    found = {}
    for (_, key, _), data in payloads(pack).items():
        found.setdefault(key, []).append(data)
    return {key: sorted(data) for key, data in found.items()}


class RoundTripTest(PackTest):
    def export(self, kind, dest, *more, code=DONE, words=()):
        done = run("export", self.out, dest, "--to", *kind.split(), "--verify", *more)
        if "this build cannot write" in text(done.err):
            self.skipTest(text(done.err))
        return self.expect(done, code, *words)

    def round_trip(self, kind, *more):
        dest = self.path("as-" + kind.replace(" ", ""))
        again = dest + ".pack"
        self.export(kind, dest, *more, words=["are as in the pack"])
        inner, options = KINDS[kind]
        self.pack(dest + inner, again, "--no-shuffle", *options)
        self.assertEqual(facts(again), facts(self.out))
        self.assertEqual(by_key(again), by_key(self.out))

    def test_generated_pictures(self):
        pictures.make_folder(self.path("src"), {"cat": 40, "dog": 30, "hen": 3})
        pictures.write(self.path("src", "cat", "big.jpg"), pictures.jpeg("big", 3 << 20))
        pictures.write(self.path("src", "cat", "t\u00e4st with. dots.JPEG"), pictures.jpeg("odd"))
        self.pack(self.path("src"), self.out)
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.round_trip(kind, "--memory", "8MiB")

    def test_without_labels(self):
        for number in range(5):
            pictures.write(self.path("src", "%d.jpg" % number), pictures.jpeg(number))
        self.pack(self.path("src"), self.out, "--labels", "none")
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.export(kind, self.path("as-" + kind.replace(" ", "")))

    def test_several_labels(self):
        pictures.make_folder(self.path("src"), {"cat": 2})
        with open(self.path("src", "list.lst"), "w", encoding="utf-8") as file:
            file.write("0\t1\t2\tcat/00000.jpg\n1\t3\t4\tcat/00001.jpg\n")
        self.pack(self.path("src", "list.lst"), self.out)
        for kind in ("folder", "tar", "tfrecord", "recordio", "hdf5"):
            with self.subTest(kind=kind):
                self.export(kind, self.path("as-" + kind))
        done = run("export", self.out, self.path("x"), "--to", "lmdb")
        self.assertEqual(done.code, FAILED)

    def test_filtered_and_in_the_order_of_the_source(self):
        pictures.make_folder(self.path("src"), {"cat": 8, "dog": 9})
        self.pack(self.path("src"), self.out)
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.export(kind, self.path("as-" + kind.replace(" ", "")), "--class", "dog",
                            "--source-order", words=["read back: 9 are as in the pack"])

    def test_splits(self):
        for split in ("train", "val"):
            pictures.make_folder(self.path("src", split), {"cat": 3, "dog": 2}, seed=split)
        self.pack(self.path("src"), self.out)
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.export(kind, self.path("as-" + kind.replace(" ", "")),
                            words=["read back: 10 are as in the pack"])

    def test_what_differs_is_not_published(self):
        made = pictures.make_folder(self.path("src"), {"cat": 8, "dog": 9})
        self.pack(self.path("src"), self.out)
        dest = self.path("dest")
        for kind, name in (("tar", "data-000000.tar"), ("tfrecord", "data-00000-of-00001"),
                           ("recordio", "data.rec"), ("lmdb", "data.mdb"), ("hdf5", "data.h5"),
                           ("mds", "shard.00000.mds"), ("folder", "cat/00003.jpg")):
            with self.subTest(kind=kind):
                # A run that dies before it publishes; then somebody changes a byte.
                arguments = ("export", self.out, dest, "--to", kind, "--jobs", "1")
                plan = "call=rename;path=%s.partial/files" % dest
                done = run(*arguments)
                if "this build cannot write" in text(done.err):
                    continue
                self.expect(done, DONE)
                os.rename(dest, self.path("first-" + kind))
                count = self.count_calls(plan, *arguments)
                os.rename(dest, self.path("older-" + kind))
                done = run(*arguments, env=faulty(plan + ";nth=%d;action=kill" % count))
                self.assertEqual(done.code, -signal.SIGKILL, str(done))
                path = os.path.join(dest + ".partial", "files", name)
                with open(path, "rb") as file:
                    whole = file.read()
                at = whole.find(made["cat/00003.jpg"]) + 100
                self.assertGreaterEqual(at, 100)
                with open(path, "r+b") as file:
                    file.seek(at)
                    file.write(bytes([whole[at] ^ 0x40]))
                done = run(*arguments, "--verify")
                self.expect(done, NO, "cat/00003.jpg", "not published", "--restart")
                self.assertFalse(os.path.exists(dest))
                self.expect(run(*arguments, "--verify", "--restart"), DONE, "read back: 17")
                os.rename(dest, self.path("last-" + kind))

    def test_what_cannot_be_read_back(self):
        pictures.make_folder(self.path("src"), {"cat": 2})
        self.pack(self.path("src"), self.out)
        self.export("csv", self.path("dest"), code=FAILED, words=["leave --verify off"])
        self.export("tar --layout folders", self.path("dest"), code=FAILED,
                    words=["leave --verify off"])
        self.assertEqual(names(self.dir), ["out", "src"])
        self.pack(self.path("src"), self.path("pixels"), "--resize", "8", "--resize-mode", "exact",
                  "--encode", "raw")
        self.out = self.path("pixels")
        for kind in ("folder", "tar", "tfrecord"):
            self.export(kind, self.path("dest"), code=FAILED, words=["leave --verify off"])
        self.assertEqual(names(self.dir), ["out", "pixels", "src"])

    def make_cifar(self, folder, count, record=3073):
        source = random.Random(record)
        os.mkdir(folder)
        batch = b"".join(bytes([source.randrange(10)] if record == 3073 else
                               [source.randrange(20), source.randrange(100)])
                         + source.randbytes(3072) for _ in range(count))
        with open(os.path.join(folder, "data_batch_1.bin" if record == 3073 else "train.bin"),
                  "wb") as file:
            file.write(batch)
        return batch

    def test_pixels(self):
        for record, name in ((3073, "data_batch_1.bin"), (3074, "train.bin")):
            with self.subTest(record=record):
                src = self.path("src%d" % record)
                batch = self.make_cifar(src, 50, record)
                if record == 3073:
                    with open(os.path.join(src, "batches.meta.txt"), "w", encoding="ascii") as file:
                        file.writelines("class %d\n" % number for number in range(10))
                self.out = self.path("pack%d" % record)
                self.pack(src, self.out, "--splits", "none")
                dest = self.path("cifar%d" % record)
                self.export("cifar", dest, "--source-order")
                # The very bytes that were packed.
                self.assertEqual(names(dest), names(src))
                for file in names(src):
                    with open(os.path.join(src, file), "rb") as one, \
                            open(os.path.join(dest, file), "rb") as other:
                        self.assertEqual(one.read(), other.read())
                self.assertEqual(len(batch), 50 * record)
                for kind in ("lmdb", "hdf5", "idx"):
                    self.export(kind, self.path("%s%d" % (kind, record)), "--source-order")
        dest = self.path("lmdb3073")
        if os.path.exists(dest):
            self.pack(dest, self.path("again"), "--features", "key=name")
            self.out = self.path("pack3073")
            self.assertEqual(facts(self.path("again")), facts(self.out))
            self.assertEqual(by_key(self.path("again")), by_key(self.out))

    def test_more_than_nine_batches_come_back_in_their_order(self):
        self.make_cifar(self.path("src"), 50, 3073)
        self.pack(self.path("src"), self.out, "--splits", "none")
        self.export("cifar", self.path("five"), "--shards", "5")
        self.assertEqual([name for name in names(self.path("five")) if name.startswith("data")],
                         ["data_batch_%d.bin" % number for number in range(1, 6)])
        self.export("cifar", self.path("many"), "--shards", "12")
        self.pack(self.path("many"), self.path("again"), "--no-shuffle", "--splits", "none")
        self.assertEqual(list(payloads(self.path("again")).values()),
                         list(payloads(self.out).values()))

    def test_idx(self):
        os.mkdir(self.path("src"))
        source = random.Random(3)
        images = struct.pack(">HBBIII", 0, 8, 3, 30, 28, 28) + source.randbytes(30 * 28 * 28)
        labels = struct.pack(">HBBI", 0, 8, 1, 30) + bytes(source.randrange(10) for _ in range(30))
        for name, data in (("train-images-idx3-ubyte", images), ("train-labels-idx1-ubyte", labels)):
            with open(self.path("src", name), "wb") as file:
                file.write(data)
        self.pack(self.path("src"), self.out, "--splits", "none")
        self.export("idx", self.path("dest"), "--source-order", "--prefix", "train")
        self.assertEqual(names(self.path("dest")), names(self.path("src")))
        for name, data in (("train-images-idx3-ubyte", images), ("train-labels-idx1-ubyte", labels)):
            with open(self.path("dest", name), "rb") as file:
                self.assertEqual(file.read(), data)
        self.export("cifar", self.path("cifar"), code=FAILED, words=["32 x 32 x 3"])

    def test_encoded_pictures_are_no_pixels(self):
        pictures.make_folder(self.path("src"), {"cat": 2})
        self.pack(self.path("src"), self.out)
        for kind in ("cifar", "idx"):
            self.expect(run("export", self.out, self.path("dest"), "--to", kind), FAILED,
                        "the pack holds encoded pictures")

    def real_data(self, name):
        if not (DATA / (name + ".tar")).exists():
            self.skipTest("no real pictures at %s; STRIPEPACK_TEST_DATA=DIR names them" % DATA)
        with tarfile.open(DATA / (name + ".tar")) as archive:
            archive.extractall(self.dir)
        self.pack(self.path(name), self.out)
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.round_trip(kind)

    def test_imagenet_sample(self):
        self.real_data("imagenet-sample")

    def test_cifar10_test(self):
        self.real_data("cifar10-test")


if __name__ == "__main__":
    main()

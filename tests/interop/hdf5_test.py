# ctest: timeout=600
"""HDF5 files that the HDF5 library itself wrote (python3-h5py), in every form that is read."""

import os
import pathlib
import random
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import (DONE, FAILED, USAGE, PackTest, main, payloads, run, samples,  # noqa: E402
                     snapshot, text, SANITIZED, SKIPPED)
import pictures  # noqa: E402

try:
    import h5py
    import numpy
except ImportError:
    print("python3-h5py is not installed")
    sys.exit(SKIPPED)

RANDOM = numpy.random.default_rng(5)


class Hdf5Test(PackTest):
    def setUp(self):
        super().setUp()
        self.file = self.path("in.h5")
        probe = run("pack", os.devnull, self.out, "--source", "hdf5")
        if b"which this build cannot read" in probe.err:
            self.skipTest("built without HDF5")

    def write(self, fill, **how):
        with h5py.File(self.file, "w", **how) as file:
            fill(file)

    def pack_file(self, *more, **how):
        if os.path.exists(self.out):
            shutil.rmtree(self.out)
        return self.pack(self.file, self.out, "--no-shuffle", *more, **how)

    def stored(self):
        found = payloads(self.out)
        return [found["", one["key"], one["ordinal"]] for one in samples(self.out)]

    def labels(self):
        return [one["labels"] for one in samples(self.out)]

    def compare(self, array, *more):
        """Packs; `array` is what must be stored, N x H x W (x C) bytes."""
        self.pack_file(*more)
        self.assertEqual(self.stored(), [one.tobytes() for one in array])
        one = samples(self.out)[0]
        shape = list(array.shape[1:]) + ([1] if array.ndim == 3 else [])
        self.assertEqual([one["height"], one["width"], one["channels"]], shape)
        self.assert_verifies(self.out, "--against", self.file, *more)

    def test_arrays_in_every_kind_of_storage(self):
        array = RANDOM.integers(0, 256, (37, 18, 11, 3), dtype=numpy.uint8)
        labels = numpy.arange(37) - 5
        for how in [{}, {"chunks": (1, 18, 11, 3)}, {"chunks": (5, 18, 11, 3)},
                    {"chunks": (4, 5, 3, 2)}, {"chunks": True, "compression": "gzip"},
                    {"chunks": (4, 18, 5, 3), "compression": "gzip", "shuffle": True,
                     "fletcher32": True},
                    {"chunks": (7, 18, 11, 3), "fletcher32": True},
                    {"chunks": (7, 18, 11, 3), "maxshape": (None, 18, 11, 3)}]:
            for layout in ("nhwc", "nchw"):
                with self.subTest(how=how, layout=layout):
                    def fill(file):
                        if layout == "nhwc":
                            file.create_dataset("images", data=array, **how)
                        else:
                            turned = dict(how)
                            for name in ("chunks", "maxshape"):
                                if isinstance(how.get(name), tuple):
                                    n, h, w, c = how[name]
                                    turned[name] = (n, c, h, w)
                            file.create_dataset("images", data=array.transpose(0, 3, 1, 2),
                                                **turned)
                        file.create_dataset("labels", data=labels)
                    # The chunks of newer files are found by other tables.
                    self.write(fill, libver="latest" if layout == "nchw" else None)
                    before = snapshot(self.file)
                    self.compare(array)
                    self.assertEqual(snapshot(self.file), before)
                    self.assertEqual(self.labels(), [[int(label)] for label in labels])

    def test_grey_and_names(self):
        array = RANDOM.integers(0, 256, (9, 5, 7), dtype=numpy.uint8)

        def fill(file):
            file["x_train"] = array
            file["y_train"] = numpy.arange(9, dtype=numpy.float32).reshape(9, 1)
            file["x_test"] = array[:2]
            file["y_test"] = numpy.arange(2)
        self.write(fill)
        self.pack_file(code=USAGE, words=["--images", "x_test (uint8 x 2 x 5 x 7)"])
        self.compare(array, "--images", "x_train")
        self.assertEqual(self.labels(), [[number] for number in range(9)])
        self.compare(array, "--images", "/x_train", "--labels", "none")
        self.assertEqual(self.labels(), [[]] * 9)

    def test_layout_and_scale_must_be_plain_or_said(self):
        both = RANDOM.integers(0, 256, (4, 3, 8, 3), dtype=numpy.uint8)
        self.write(lambda file: file.create_dataset("images", data=both))
        self.pack_file(code=USAGE, words=["--array-layout"])
        self.compare(both, "--array-layout", "nhwc")
        self.compare(both.transpose(0, 2, 3, 1), "--array-layout", "nchw")
        self.compare(both.transpose(0, 3, 2, 1), "--array-layout", "ncwh")
        self.pack_file("--array-layout", "hwcn", code=USAGE, words=["n first"])
        unit = RANDOM.random((6, 5, 4, 3)).astype(numpy.float32)
        for order in ("<f4", ">f4", "<f8"):
            self.write(lambda file: file.create_dataset("images", data=unit.astype(order)))
            self.pack_file(code=USAGE, words=["--array-scale"])
            self.compare(numpy.floor(unit.astype("f8") * 255 + .5).astype(numpy.uint8),
                         "--array-scale", "unit")
        self.write(lambda file: file.create_dataset("images", data=unit * 255))
        self.pack_file("--array-scale", "unit", code=USAGE, words=["does not allow"])
        word = RANDOM.integers(0, 65536, (6, 3, 5, 7), dtype=numpy.uint16)
        self.write(lambda file: file.create_dataset("images", data=word, compression="gzip"))
        self.compare(numpy.floor(word / 257 + .5).astype(numpy.uint8).transpose(0, 2, 3, 1),
                     "--array-scale", "word")

    def test_rows_of_jpeg(self):
        files = [pictures.jpeg(number, 600 + 400 * number) for number in range(60)]
        for how in ({}, {"chunks": (7,), "maxshape": (None,)},
                    {"chunks": (7,), "compression": "gzip"}):
            with self.subTest(how=how):
                def fill(file):
                    rows = file.create_dataset("images", (60,), h5py.vlen_dtype(numpy.uint8), **how)
                    for number, data in enumerate(files):
                        rows[number] = numpy.frombuffer(data, numpy.uint8)
                    file["label"] = numpy.arange(60, dtype=numpy.uint8)
                    file["keys"] = ["a/%d.jpg" % number for number in range(60)]
                self.write(fill)
                self.pack_file()
                self.assertEqual(self.stored(), files)
                self.assertEqual(self.labels(), [[number] for number in range(60)])
                self.assertEqual([one["key"] for one in samples(self.out)],
                                 [b"a/%d.jpg" % number for number in range(60)])

    def test_bytes_and_offsets(self):
        files = [pictures.jpeg(number, 600 + 100 * number) for number in range(40)]
        offsets = numpy.cumsum([0] + [len(data) for data in files])
        for how in ({}, {"chunks": (3000,)}, {"chunks": (3000,), "compression": "gzip"}):
            with self.subTest(how=how):
                def fill(file):
                    file.create_dataset("bytes", data=numpy.frombuffer(b"".join(files), numpy.uint8),
                                        **how)
                    file["offsets"] = offsets.astype(numpy.uint64)
                    file["label"] = numpy.arange(40)
                    file["class_names"] = ["one", "two"]
                self.write(fill)
                self.pack_file()
                self.assertEqual(self.stored(), files)

        def fill_wrong(file):
            file["bytes"] = numpy.frombuffer(b"".join(files), numpy.uint8)
            file["offsets"] = offsets[::-1].copy()
        self.write(fill_wrong)
        self.pack_file(code=FAILED, words=["offset 1 of 'offsets'"])

    def test_a_dataset_for_each_picture(self):
        files = {"dog/b": pictures.jpeg(1, 3000), "cat/a": pictures.jpeg(2, 900),
                 "cat/z": pictures.jpeg(3, 60000), "dog/a": pictures.jpeg(4, 700)}

        def fill(file):
            for number, (name, data) in enumerate(files.items()):
                if number % 2 == 0:
                    file.create_dataset(name, data=numpy.frombuffer(data, numpy.uint8),
                                        compression="gzip" if number == 2 else None)
                else:
                    file[name] = numpy.void(data)
        self.write(fill)
        self.pack_file()
        self.assertEqual([one["key"].decode() for one in samples(self.out)], sorted(files))
        self.assertEqual(self.stored(), [files[name] for name in sorted(files)])
        self.assertEqual(self.labels(), [[0], [0], [1], [1]])
        arrays = {name: RANDOM.integers(0, 256, (height, 9, 3), dtype=numpy.uint8)
                  for name, height in (("b/1", 5), ("a/2", 8))}

        def fill_arrays(file):
            for name, array in arrays.items():
                file[name] = array
        self.write(fill_arrays)
        self.pack_file()
        self.assertEqual(self.stored(), [arrays["a/2"].tobytes(), arrays["b/1"].tobytes()])

    def test_what_is_refused(self):
        array = RANDOM.integers(0, 256, (5, 8, 8, 3), dtype=numpy.uint8)

        def mismatch(file):
            file["images"] = array
            file["labels"] = numpy.arange(4)
        self.write(mismatch)
        self.pack_file(code=FAILED, words=["5 pictures", "4 labels"])

        def fraction(file):
            file["images"] = array
            file["labels"] = numpy.arange(5) / 2
        self.write(fraction)
        self.pack_file(code=USAGE, words=["row 1", "0.5"])
        self.pack_file("--labels", "float")
        self.assertEqual(self.labels(), [[0.0], [0.5], [1.0], [1.5], [2.0]])

        def lzf(file):
            file.create_dataset("images", data=array, compression="lzf")
        self.write(lzf)
        self.pack_file(code=FAILED, words=["filter 32000", "h5repack"])
        other = self.path("other.h5")
        with h5py.File(other, "w") as file:
            file["x"] = array

        def linked(file):
            file["images"] = h5py.ExternalLink(other, "/x")
        self.write(linked)
        self.pack_file(code=FAILED, words=["link to another file"])

        def virtual(file):
            layout = h5py.VirtualLayout(array.shape, "u1")
            layout[:] = h5py.VirtualSource(other, "x", array.shape)
            file.create_virtual_dataset("images", layout)
        self.write(virtual)
        self.pack_file(code=FAILED, words=["in other files"])

        def external(file):
            file.create_dataset("images", array.shape, "u1", external=[("/etc/passwd", 0, 960)])
        self.write(external)
        self.pack_file(code=FAILED, words=["in other files"])
        self.write(lambda file: file.create_dataset("images", data=array), userblock_size=512)
        self.assertNotEqual(run("pack", self.file, self.out).code, DONE)
        self.write(lambda file: file.create_dataset("images", data=array, compression="gzip"))
        os.truncate(self.file, os.path.getsize(self.file) - 100)
        self.pack_file(code=FAILED, words=["truncated"])
        self.assertFalse(os.path.exists(self.out))

    def test_flipped_bits_in_a_chunk_are_found(self):
        array = RANDOM.integers(0, 256, (20, 16, 16, 3), dtype=numpy.uint8)
        self.write(lambda file: file.create_dataset("images", data=array, fletcher32=True,
                                                    chunks=(5, 16, 16, 3)))
        with open(self.file, "r+b") as file:
            data = file.read()
            at = data.index(array[7].tobytes()[:200]) + 100
            file.seek(at)
            file.write(bytes([data[at] ^ 1]))
        self.pack_file(code=FAILED, words=["checksum"])

    def test_damage_never_crashes(self):
        source = random.Random(3)

        def fill(file):
            rows = file.create_dataset("images", (20,), h5py.vlen_dtype(numpy.uint8))
            for number in range(20):
                rows[number] = numpy.frombuffer(pictures.jpeg(number), numpy.uint8)
        self.write(fill)
        with open(self.file, "rb") as file:
            whole = file.read()
        for _ in range(15):
            data = bytearray(whole)
            for _ in range(4):
                # Not in the first half, where the library's own tables lie: it trusts them.
                data[source.randrange(len(data) // 2, len(data))] = source.randrange(256)
            with open(self.file, "wb") as file:
                file.write(data)
            done = run("pack", self.file, self.out, "--dry-run")
            self.assertIn(done.code, (DONE, USAGE, FAILED, 3), text(done.err))

    def test_texts_of_any_length_are_read_by_their_places(self):
        array = RANDOM.integers(0, 256, (5, 7, 6, 3), dtype=numpy.uint8)
        names = ["a", "", "long " * 300, "\u00e9", "e"]

        def fill(file, **how):
            file["images"] = array
            file["labels"] = numpy.array([1, 0, 1, 0, 1])
            file["class_names"] = numpy.array([b"cat", b"dog"])
            file.create_dataset("keys", data=numpy.array(names, object),
                                dtype=h5py.string_dtype(), **how)
        for how in [{}, {"chunks": (2,), "compression": "gzip"}]:
            with self.subTest(how=how):
                self.write(lambda file, how=how: fill(file, **how))
                self.pack_file()
                self.assertEqual([one["key"] for one in samples(self.out)],
                                 [name.encode() for name in ["a", "00000001"] + names[2:]])
        self.write(fill)
        with h5py.File(self.file, "r") as file:
            at = file["keys"].id.get_offset()
        with open(self.file, "rb") as file:
            whole = file.read()
        # An address of nothing, of another thing, and a text that is longer than what is stored.
        for where, what, words in [(4, b"\xff" * 7 + b"\x7f", "behind the end"),
                                   (4, b"\0" * 8, "where none are"),
                                   (0, b"\xff\xff\0\0", "longer than what is stored"),
                                   (12, b"\xff\xff\0\0", "missing")]:
            data = bytearray(whole)
            data[at + where:at + where + len(what)] = what
            with open(self.file, "wb") as file:
                file.write(data)
            self.pack_file(code=FAILED, words=["keys", words])

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_a_large_sparse_file_needs_little_memory(self):
        def fill(file):
            file.create_dataset("images", (10 << 10, 1024, 1024), numpy.uint8)
            file["images"][5, 7, :10] = 3
        self.write(fill, libver="latest")
        done = run("pack", self.file, self.out, "--dry-run", "--memory", "64MiB", "--json")
        self.expect(done, DONE)
        self.assertLess(done.max_rss_bytes, 200 << 20)


if __name__ == "__main__":
    main()

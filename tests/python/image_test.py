# ctest: timeout=240
"""stripepack.image: what Pillow makes of the same pictures, shapes, errors, and the rules for grey,
alpha, 16 bits and CMYK."""
import io
import json
import math
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import PROGRAM, SOURCE  # noqa: E402  (puts the package on the path)

try:
    import numpy
    from PIL import Image
    import stripepack
    from stripepack import Error
    from stripepack import image as images
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def photograph(width=150, height=107):
    """Slopes, an edge and noise: a Pillow image."""
    random = numpy.random.RandomState(7)
    y, x = numpy.mgrid[0:height, 0:width]
    pixels = numpy.stack([128 + 90 * numpy.sin(x / 17 + c) * numpy.cos(y / 23) for c in range(3)], 2)
    pixels[(x - 60) ** 2 + (y - 50) ** 2 < 900] = (250, 20, 90)
    pixels += random.uniform(-8, 8, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))


def encoded(picture, kind="JPEG", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def as_pillow(data):
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


class Pixels(unittest.TestCase):
    def same(self, data, wanted=None):
        got = images.decode(data, images.FullDecode())
        self.assertEqual(got.dtype, numpy.uint8)
        numpy.testing.assert_array_equal(got, as_pillow(data) if wanted is None else wanted)

    def test_jpeg(self):
        for options in ({}, {"subsampling": 0}, {"subsampling": 1}, {"progressive": True},
                        {"quality": 30, "optimize": True}):
            self.same(encoded(photograph(), quality=options.pop("quality", 90), **options))
        self.same(encoded(photograph().convert("L")))

    def test_png(self):
        if "png" not in images.formats():
            self.skipTest("no libpng")
        colour = photograph()
        self.same(encoded(colour, "PNG"))
        self.same(encoded(colour.convert("L"), "PNG"))
        self.same(encoded(colour.convert("1"), "PNG"))
        self.same(encoded(colour.convert("P", palette=Image.ADAPTIVE, colors=13), "PNG"))
        # Alpha is left out, and not mixed with anything.
        alpha = colour.copy()
        alpha.putalpha(colour.convert("L"))
        self.same(encoded(alpha, "PNG"), numpy.asarray(colour))
        grey = colour.convert("L")
        grey_alpha = grey.copy()
        grey_alpha.putalpha(7)
        self.same(encoded(grey_alpha, "PNG"), numpy.asarray(grey.convert("RGB")))

    def test_png_of_16_bits_is_scaled(self):
        if "png" not in images.formats():
            self.skipTest("no libpng")
        deep = numpy.arange(65536, dtype=numpy.uint16).reshape(256, 256)
        got = images.decode(encoded(Image.fromarray(deep), "PNG"), images.FullDecode())
        wanted = numpy.rint(deep / 257)
        self.assertLessEqual(numpy.abs(got[:, :, 0] - wanted).max(), 1)

    def test_webp(self):
        if "webp" not in images.formats():
            self.skipTest("no libwebp")
        for options in ({"lossless": True}, {"quality": 80}):
            self.same(encoded(photograph(), "WEBP", **options))
        alpha = photograph()
        alpha.putalpha(100)
        data = encoded(alpha, "WEBP", lossless=True, exact=True)
        self.same(data, numpy.asarray(photograph()))

    def test_parts_of_png_and_webp(self):
        kinds = [kind for kind in ("PNG", "WEBP") if kind.lower() in images.formats()]
        op = images.RandomResizedCrop((31, 40))
        for kind in kinds:
            data = encoded(photograph(), kind, lossless=True)
            for number in range(20):
                crop = op.crop(150, 107, id=number)
                box = [int(crop[side]) for side in ("left", "top", "right", "bottom")]
                wanted = numpy.asarray(photograph().crop(box).resize((40, 31), Image.BILINEAR))
                got = images.decode(data, op, id=number).astype(int)
                # Pillow rounds between its two passes.
                self.assertLessEqual(numpy.abs(got - wanted).max(), 2, (kind, number))

    def test_interlaced_png(self):
        if "png" not in images.formats():
            self.skipTest("no libpng")
        data = bytes.fromhex(INTERLACED)
        self.same(data)
        whole = images.decode(data, images.FullDecode())
        part = images.decode(data, images.RandomResizedCrop(3, scale=(1, 1), ratio=(1, 1)))
        self.assertEqual(part.shape, (3, 3, 3))
        self.assertLess(abs(part.mean() - whole[:, 1:-1].mean()), 40)

    def test_center_crop_is_what_torchvision_does(self):
        picture = photograph(300, 200)
        data = encoded(picture, "PNG") if "png" in images.formats() else None
        if data is None:
            self.skipTest("no libpng")
        resized = picture.resize((int(64 * 300 / 200), 64), Image.BILINEAR)
        left, top = round((96 - 56) / 2), round((64 - 56) / 2)
        wanted = numpy.asarray(resized.crop((left, top, left + 56, top + 56))).astype(int)
        got = images.decode(data, images.CenterCrop(56, resize=64)).astype(int)
        self.assertLessEqual(numpy.abs(got - wanted).max(), 2)

    def test_orientations_as_pillow_turns_them(self):
        from PIL import ImageOps
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = orientation
            for kind in ("JPEG", "PNG", "WEBP"):
                if kind.lower() not in images.formats():
                    continue
                options = {"lossless": True} if kind == "WEBP" else {}
                data = encoded(photograph(60, 44), kind, exif=exif.tobytes(), **options)
                self.assertEqual(images.info(data)["orientation"], orientation, kind)
                wanted = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
                got = images.decode(data, images.FullDecode(exif_orientation=True))
                numpy.testing.assert_array_equal(got, numpy.asarray(wanted), (kind, orientation))
                self.same(data, as_pillow(data))


class Plan(unittest.TestCase):
    """A second implementation of docs/IMAGES.md, "What is random", gives the same parts."""

    GOLDEN = 0x9e3779b97f4a7c15
    MASK = (1 << 64) - 1

    def mix64(self, x):
        x = (x + self.GOLDEN) & self.MASK
        x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & self.MASK
        x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & self.MASK
        return x ^ (x >> 31)

    def draws(self, seed, epoch, sample):
        state = 0x696d616765
        for number in (seed, epoch, sample):
            state = self.mix64(state) ^ number
        state = self.mix64(state)
        while True:
            yield self.mix64(state)
            state = (state + self.GOLDEN) & self.MASK

    def plan(self, width, height, op, seed, epoch, sample):
        draws = self.draws(seed, epoch, sample)

        def unit():
            return (next(draws) >> 11) * 2.0 ** -53

        def below(count):
            return ((next(draws) >> 32) * count) >> 32

        flipped = unit() < op.flip
        low, high = op.ratio
        for _ in range(10):
            area = float(width) * height * (op.scale[0] + unit() * (op.scale[1] - op.scale[0]))
            for _ in range(1000):
                ratio = low + unit() * (high - low)
                if unit() * ratio < low:
                    break
            wide, tall = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 1 <= wide <= width and 1 <= tall <= height:
                top = below(height - tall + 1)
                left = below(width - wide + 1)
                return left, top, left + wide, top + tall, flipped
        wide, tall = width, height
        if width / height < low:
            tall = min(max(round(width / low), 1), height)
        if width / height > high:
            wide = min(max(round(height * high), 1), width)
        left, top = (width - wide) // 2, (height - tall) // 2
        return left, top, left + wide, top + tall, flipped

    def check(self, width, height, op, *key):
        crop = op.crop(width, height, *key)
        got = [crop[name] for name in ("left", "top", "right", "bottom", "flipped")]
        self.assertEqual(tuple(got), self.plan(width, height, op, *key), (width, height, op, key))

    def test_many(self):
        random = numpy.random.RandomState(3)
        for _ in range(4000):
            width, height = (int(2 ** exponent) for exponent in random.uniform(0, 14, 2))
            low, high = sorted(2 ** random.uniform(-2, 2, 2))
            small, large = sorted(random.uniform(0.001, 1, 2))
            op = images.RandomResizedCrop(8, scale=(small, large), ratio=(low, high),
                                          flip=random.uniform())
            self.check(width, height, op, *(int(n) for n in random.randint(0, 1 << 62, 3)))

    def test_vectors_of_the_document(self):
        text = (SOURCE / "docs" / "IMAGES.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (\d+), (\d+), (\d+) \| (\d+) × (\d+) \| (\d+), (\d+), (\d+), (\d+) "
                          r"\| (yes|no) \|$", text, re.M)
        self.assertGreaterEqual(len(rows), 5)
        op = images.RandomResizedCrop(224, flip=0.5)
        for row in rows:
            seed, epoch, sample, width, height, *box = (int(number) for number in row[:9])
            wanted = (*box, row[9] == "yes")
            self.assertEqual(self.plan(width, height, op, seed, epoch, sample), wanted)
            self.check(width, height, op, seed, epoch, sample)


class Cases(unittest.TestCase):
    """The pictures that people really have, of tests/cases."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="stripepack-image-")
        wanted = ("f-cmyk/", "f-exif-", "f-gray-", "f-jpeg-", "f-png-depths/", "f-other-formats/",
                  "f-bomb-png/", "f-not-image/")
        with tarfile.open(SOURCE / "tests" / "cases" / "cases.tar.gz") as archive:
            for member in archive:
                name = member.name[2:] if member.name.startswith("./") else member.name
                if member.isfile() and name.startswith(wanted):
                    member.name = name
                    archive.extract(member, cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_picture(self):
        probed = decoded = refused = 0
        for expect in sorted(pathlib.Path(self.folder.name).glob("*/expect.json")):
            case = json.loads(expect.read_text())
            root = expect.parent / case["input"]
            rejected = {entry["name"] for entry in case.get("rejected", [])}
            may_pass = set(case.get("accept_if_supported", []))
            for name, dims in zip(case.get("names", []), case.get("dims", [])):
                data = (root / name).read_bytes()
                if data[:2] not in (b"\xff\xd8", b"\x89P"):
                    continue
                info = images.info(data)
                self.assertEqual([info["height"], info["width"]], dims[:2], name)
                pixels = images.decode(data, images.FullDecode())
                self.assertEqual(pixels.shape, (*dims[:2], 3), name)
                decoded += 1
                for probe in case.get("probes", {}).get(name, []):
                    apart = numpy.abs(pixels[probe["y"], probe["x"]].astype(int) - probe["rgb"])
                    self.assertLessEqual(apart.max(), probe["tol"], (name, probe))
                    probed += 1
            for name in rejected - may_pass:
                if not (root / name).is_file():
                    continue
                with self.assertRaises(Error, msg=name):
                    images.decode((root / name).read_bytes(), images.FullDecode())
                refused += 1
        self.assertGreaterEqual(probed, 12)
        self.assertGreaterEqual(decoded, 25)
        self.assertGreaterEqual(refused, 4)


class Interface(unittest.TestCase):
    def setUp(self):
        self.jpeg = encoded(photograph())

    def test_shapes(self):
        pictures = [self.jpeg] * 3
        self.assertEqual(images.decode_many(pictures, images.RandomResizedCrop(24)).shape,
                         (3, 24, 24, 3))
        self.assertEqual(images.decode_many(pictures, images.CenterCrop((24, 20))).shape,
                         (3, 24, 20, 3))
        self.assertEqual(images.decode_many(pictures, images.Resize((24, 20), layout="CHW")).shape,
                         (3, 3, 24, 20))
        each = images.decode_many(pictures, images.Resize(64))
        self.assertEqual([array.shape for array in each], [(64, 89, 3)] * 3)
        each = images.decode_many(pictures, images.FullDecode(layout="CHW"))
        self.assertEqual([array.shape for array in each], [(3, 107, 150)] * 3)
        self.assertEqual(images.RandomResizedCrop(8, layout="CHW").shape(5), (5, 3, 8, 8))
        self.assertEqual(images.decode_many([], images.CenterCrop(8)).shape, (0, 8, 8, 3))

    def test_only_ids_choose(self):
        op = images.RandomResizedCrop(24, flip=0.5)
        ids = numpy.arange(100, 140, dtype=numpy.uint64)
        one = images.decode_many([self.jpeg] * 40, op, seed=3, epoch=2, ids=ids)
        for threads in (1, 3):
            again = images.decode_many([self.jpeg] * 40, op, seed=3, epoch=2, ids=ids[::-1].copy(),
                                       pool=images.Pool(threads))
            numpy.testing.assert_array_equal(again[::-1], one)
        numpy.testing.assert_array_equal(images.decode(self.jpeg, op, seed=3, epoch=2, id=117),
                                         one[17])
        self.assertFalse((one[0] == one[1]).all())
        self.assertFalse((images.decode(self.jpeg, op, seed=3, epoch=3, id=117) == one[17]).all())

    def test_out_and_addresses(self):
        op = images.CenterCrop(24)
        wanted = images.decode_many([self.jpeg, memoryview(self.jpeg)], op)
        out = numpy.zeros((2, 24, 24, 3), numpy.uint8)
        bytes_ = numpy.frombuffer(self.jpeg, numpy.uint8)
        place = numpy.full(2, bytes_.ctypes.data, numpy.uint64)
        size = numpy.full(2, len(self.jpeg), numpy.uint64)
        self.assertIs(images.decode_many((place, size), op, out=out), out)
        numpy.testing.assert_array_equal(out, wanted)
        with self.assertRaisesRegex(ValueError, "shape"):
            images.decode_many([self.jpeg], op, out=out)
        with self.assertRaisesRegex(ValueError, "writable"):
            images.decode_many([self.jpeg] * 2, op, out=out[:, :, ::-1][:, :, ::-1].astype(float))

    def test_errors(self):
        op = images.CenterCrop(24)
        for data, code in ((b"", "not_this_format"), (b"GIF89a", "unsupported"),
                           (self.jpeg[:500], "damaged")):
            with self.assertRaises(Error) as raised:
                images.decode(data, op)
            self.assertEqual(raised.exception.code, code)
        pixels, codes = images.decode_many([self.jpeg, None, self.jpeg], op, codes=True)
        self.assertEqual(codes.tolist(), [0, 2, 0])
        self.assertEqual(pixels.shape, (3, 24, 24, 3))
        each, codes = images.decode_many([b"x", self.jpeg], images.FullDecode(), codes=True)
        self.assertEqual(codes.tolist(), [2, 0])
        self.assertIsNone(each[0])
        with self.assertRaisesRegex(Error, "first is number 1"):
            images.decode_many([self.jpeg, b"x"], op)
        for wrong in (lambda: images.CenterCrop(24, resize=20), lambda: images.Resize((0, 4)),
                      lambda: images.RandomResizedCrop(8, scale=(0.5, 0.1)),
                      lambda: images.FullDecode(flip=2), lambda: images.FullDecode(layout="WHC"),
                      lambda: images.FullDecode(max_pixels=0), lambda: images.Pool(99999)):
            self.assertRaises(ValueError, wrong)
        for wrong in (lambda: images.CenterCrop(2.5), lambda: images.CenterCrop("3"),
                      lambda: images.CenterCrop((1, 2, 3)), lambda: images.Resize(None),
                      lambda: images.RandomResizedCrop(8, ratio=1),
                      lambda: images.RandomResizedCrop(8, scale=("a", "b")),
                      lambda: images.FullDecode(max_pixels=2.5), lambda: images.FullDecode(seed=0.5),
                      lambda: images.FullDecode(pool=5), lambda: images.Pool("2")):
            self.assertRaises(TypeError, wrong)
        for wrong in (lambda: images.CenterCrop(-1), lambda: images.CenterCrop(8, resize=-1),
                      lambda: images.Resize((8, 1 << 40)), lambda: images.FullDecode(seed=-1),
                      lambda: images.FullDecode(max_pixels=1 << 64),
                      lambda: images.FullDecode(layout=[]), lambda: images.set_threads(-1)):
            self.assertRaises(ValueError, wrong)

    def test_batches(self):
        class Batch(dict):
            """As much of a batch as is looked at."""
            ids = numpy.array([5, 9], numpy.uint64)

        op = images.RandomResizedCrop(24)
        batch = Batch(label=numpy.zeros(2), image=[memoryview(self.jpeg), memoryview(self.jpeg)])
        pixels = op.decode_batch(batch, epoch=4, seed=2)
        numpy.testing.assert_array_equal(pixels[1], images.decode(self.jpeg, op, 2, 4, 9))
        own = images.RandomResizedCrop(24, seed=8)
        numpy.testing.assert_array_equal(own.decode_batch(batch, 4, seed=2)[1],
                                         images.decode(self.jpeg, op, 8, 4, 9))
        batch["image"][1] = None
        with self.assertRaisesRegex(Error, "sample 9: .*no picture"):
            op.decode_batch(batch)
        pixels = images.RandomResizedCrop(24, bad="zeros").decode_batch(batch)
        self.assertEqual(batch.undecoded.tolist(), [1])
        self.assertEqual(pixels[1].max(), 0)
        self.assertGreater(pixels[0].max(), 0)

    def test_arrays_that_nobody_holds_are_used_again(self):
        class Batch(dict):
            """As much of a batch as is looked at."""
            ids = numpy.array([5, 9], numpy.uint64)

        op = images.RandomResizedCrop(24)
        batch = Batch(image=[memoryview(self.jpeg), memoryview(self.jpeg)])
        addresses = set()
        for epoch in range(9):  # one at a time
            addresses.add(op.decode_batch(batch, epoch).ctypes.data)
        self.assertEqual(len(addresses), 1)
        # What is held in any way keeps its pixels.
        whole = op.decode_batch(batch, 1)
        row = op.decode_batch(batch, 2)[1]
        view = memoryview(op.decode_batch(batch, 3))
        told = [whole.tobytes(), row.tobytes(), view.tobytes()]
        for epoch in range(10, 20):
            op.decode_batch(batch, epoch)
        self.assertEqual([whole.tobytes(), row.tobytes(), view.tobytes()], told)
        held = [op.decode_batch(batch, epoch) for epoch in range(12)]
        self.assertEqual(len({array.ctypes.data for array in held}), 12)
        for epoch, array in enumerate(held):
            numpy.testing.assert_array_equal(array[0], images.decode(self.jpeg, op, 0, epoch, 5))
        copy = pickle.loads(pickle.dumps(op))
        self.assertFalse(numpy.shares_memory(copy.decode_batch(batch), op.decode_batch(batch)))

    def test_operations_are_values(self):
        op = images.RandomResizedCrop((20, 30), flip=0.5)
        self.assertEqual(op, images.RandomResizedCrop((20, 30), flip=0.5))
        self.assertNotEqual(op, images.RandomResizedCrop((20, 30)))
        op.shape(1)
        op.crop(10, 10)
        self.assertEqual(pickle.loads(pickle.dumps(op)), op)
        self.assertIn("flip=0.5", repr(op))


class Loading(unittest.TestCase):
    """Loader(decode=...): the same pictures on any number of ranks."""

    def test_ranks_see_the_same_pictures(self):
        with tempfile.TemporaryDirectory(prefix="stripepack-image-") as name:
            root = pathlib.Path(name)
            for number in range(30):
                folder = root / "pictures" / ("cat" if number % 2 else "dog")
                folder.mkdir(parents=True, exist_ok=True)
                picture = photograph(60 + number, 90 - number)
                (folder / f"{number}.jpg").write_bytes(encoded(picture))
            subprocess.run([PROGRAM, "pack", root / "pictures", root / "pack"], check=True,
                           capture_output=True)
            dataset = stripepack.open(root / "pack")
            op = images.RandomResizedCrop(24, flip=0.5)
            seen = {}
            for world in (1, 2, 3):
                for rank in range(world):
                    with stripepack.Loader(dataset, batch=4, rank=rank, world=world, seed=5, epoch=2,
                                           tail="exact", decode=op) as loader:
                        for batch in loader:
                            self.assertEqual(batch.pixels.shape, (len(batch), 24, 24, 3))
                            for sample, pixels in zip(batch.ids.tolist(), batch.pixels):
                                seen.setdefault(sample, []).append(pixels.tobytes())
            self.assertEqual(sorted(seen), list(range(30)))
            for sample, found in seen.items():
                wanted = images.decode(dataset.read(sample), op, 5, 2, sample).tobytes()
                self.assertEqual(found, [wanted] * 3)


# 10 x 6 pixels, RGB, Adam7: a slope each way.
INTERLACED = (
    "89504e470d0a1a0a0000000d494844520000000a0000000608020000010295a807000000ad4944415478da158e"
    "210ec2401045bfc3e19ab0491d6652c7aa26883acc9a113d0159535739667b021cc9ea91757b021c623427600f"
    "814350c4132f79e201806dc40d28a2cea66f78206feeb5cfba020ccf6de43ef3683cc30101484001ea9639de07"
    "ee125f0a5f2b2f70da061d93de8a3eab7e0182a39da77da026529be898a92b7432ea2b0d80c049e3a50b324419"
    "934c5996227793b5cae3bfe7ece8ed126c8a764b56b2bd8a7dcc0ed5ce3fcc1042442f3c16e90000000049454e"
    "44ae426082")

if __name__ == "__main__":
    unittest.main()

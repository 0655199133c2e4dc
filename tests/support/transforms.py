"""What the tests of transforms share: pictures, colour profiles, and packs made with options."""

import io
import itertools
import math
import os
import struct
import sys

import packing
from packing import PackTest, payloads, samples

try:
    from PIL import Image, ImageCms
except ImportError:
    print("Python's PIL is missing: apt install python3-pil")
    sys.exit(packing.SKIPPED)


def photograph(width, height, mode="RGB", seed=1):
    """Slopes and some texture, so that sizes and colours can be told from wrong ones."""
    small = Image.new("RGB", (8, 8))
    for y in range(8):
        for x in range(8):
            value = (x * 37 + y * 91 + seed * 53) % 256
            small.putpixel((x, y), (value, x * 32, 255 - y * 32))
    return small.resize((width, height), Image.BICUBIC).convert(mode)


def encoded(picture, kind="JPEG", **how):
    out = io.BytesIO()
    picture.save(out, kind, **how)
    return out.getvalue()


def icc_profile(kind, space, pcs, tags):
    """An ICC profile of version 2 from {signature: bytes}."""
    table = struct.pack(">I", len(tags))
    at = 128 + 4 + 12 * len(tags)
    body = b""
    for name, data in tags.items():
        table += name + struct.pack(">II", at + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    white = struct.pack(">III", 0xf6d6, 0x10000, 0xd32d)
    head = (struct.pack(">I4sI4s4s4s", 128 + len(table) + len(body), b"", 0x02400000, kind, space, pcs) +
            struct.pack(">6H", 2020, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + white + bytes(48))
    return head + table + body


def xyz(*values):
    return b"XYZ " + bytes(4) + struct.pack(">3i", *(round(value * 65536) for value in values))


def gamma(value):
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(value * 256))


def wide_profile():
    """Like Adobe RGB's."""
    curve = gamma(2.2)
    return icc_profile(b"mntr", b"RGB ", b"XYZ ", {
        b"wtpt": xyz(0.9642, 1, 0.8249), b"rXYZ": xyz(0.60974, 0.31111, 0.01947),
        b"gXYZ": xyz(0.20528, 0.62567, 0.06087), b"bXYZ": xyz(0.14919, 0.06322, 0.74457),
        b"rTRC": curve, b"gTRC": curve, b"bTRC": curve})


def grey_profile():
    return icc_profile(b"mntr", b"GRAY", b"XYZ ",
                       {b"wtpt": xyz(0.9642, 1, 0.8249), b"kTRC": gamma(1.4)})


def ink_profile():
    """CMYK to Lab by a table of the 16 corners."""
    corners = []
    for cyan, magenta, yellow, black in itertools.product((0, 1), repeat=4):
        light = 255 * (4 - cyan - magenta - 0.3 * yellow) / 4 * (1 - 0.9 * black)
        corners += [round(light), 128 - 40 * cyan + 50 * magenta, 128 - 40 * cyan + 70 * yellow]
    line = bytes(range(256))
    table = (b"mft1" + bytes(4) + bytes((4, 3, 2, 0)) +
             struct.pack(">9i", *(0x10000 if i % 4 == 0 else 0 for i in range(9))) +
             4 * line + bytes(corners) + 3 * line)
    return icc_profile(b"prtr", b"CMYK", b"Lab ",
                       {b"wtpt": xyz(0.9642, 1, 0.8249), b"A2B0": table})


def as_srgb(picture, profile, mode="RGB"):
    """What Pillow, by the same library, makes of it."""
    return ImageCms.profileToProfile(
        picture, ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.INTENT_PERCEPTUAL, outputMode=mode)


def psnr(a, b):
    one, two = a.tobytes(), b.tobytes()
    error = sum((x - y) ** 2 for x, y in zip(one, two)) / len(one)
    return 99.0 if error == 0 else 10 * math.log10(255 * 255 / error)


class TransformTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")

    def add(self, name, data):
        path = os.path.join(self.src, "a", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)

    def made(self, *options, out=None, **how):
        """{name: stored bytes} of a pack made with these options; it must verify."""
        out = out or self.path("p%d" % len(os.listdir(self.dir)))
        self.pack(self.src, out, *options, **how)
        self.assert_verifies(out, "--decode")
        self.last = out
        return {key.decode().split("/")[-1]: data for (_, key, _), data in payloads(out).items()}

    def facts(self):
        return {one["key"].decode().split("/")[-1]: one for one in samples(self.last)}

    def picture(self, data):
        picture = Image.open(io.BytesIO(data))
        picture.load()
        return picture

    def make_many(self, count=160):
        for i in range(count):
            kind = ("JPEG", "PNG", "WEBP")[i % 3]
            self.add("%03d.%s" % (i, kind.lower()),
                     encoded(photograph(150 + 7 * (i % 30), 140 + 5 * (i % 17), seed=i), kind))

    def assert_near(self, a, b, most=1):
        self.assertEqual(len(a), len(b))
        self.assertLessEqual(max(abs(x - y) for x, y in zip(a, b)), most)

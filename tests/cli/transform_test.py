"""pack and repack that make pictures anew: sizes, colours, formats, and that nothing else decides."""
# ctest: timeout=600

import io
import itertools
import os
import pathlib
import signal
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import packing  # noqa: E402
from packing import (DONE, FAILED, REJECTS, USAGE, PackTest, finish, main, payloads, rejects, run,  # noqa: E402
                     samples, start, text)

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
    return 99.0 if error == 0 else 10 * __import__("math").log10(255 * 255 / error)


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

    def test_sizes_of_all_modes(self):
        self.add("wide.jpg", encoded(photograph(301, 200)))
        self.add("high.png", encoded(photograph(100, 333), "PNG"))
        wanted = {
            "keep_ratio": ((96, 64), (64, 213)),
            "keep_ratio_largest": ((64, 43), (19, 64)),
            "center_crop": ((64, 64), (64, 64)),
            "border": ((64, 64), (64, 64)),
            "exact": ((64, 64), (64, 64)),
        }
        for mode, (wide, high) in wanted.items():
            for filter_name in ("area", "lanczos", "bilinear"):
                made = self.made("--resize", "64", "--resize-mode", mode, "--interpolation", filter_name)
                self.assertEqual(self.picture(made["wide.jpg"]).size, wide, mode)
                self.assertEqual(self.picture(made["wide.jpg"]).format, "JPEG")
                self.assertEqual(self.picture(made["high.png"]).size, high, mode)
                self.assertEqual(self.picture(made["high.png"]).format, "PNG")
                one = self.facts()["wide.jpg"]
                self.assertEqual((one["width"], one["height"]), wide)
        made = self.made("--resize", "50x20")
        self.assertEqual(self.picture(made["wide.jpg"]).size, (50, 20))
        self.assertEqual(self.picture(made["high.png"]).size, (50, 20))

    def test_pixels_are_what_another_program_makes_of_them(self):
        picture = photograph(600, 400)
        self.add("one.png", encoded(picture, "PNG"))
        for name, theirs in (("area", Image.BOX), ("lanczos", Image.LANCZOS),
                             ("bilinear", Image.BILINEAR)):
            made = self.picture(self.made("--resize", "100", "--interpolation", name)["one.png"])
            self.assertGreater(psnr(made, picture.resize((150, 100), theirs)), 45, name)
        # Where it enlarges as well; area is then bilinear.
        for name, theirs in (("area", Image.BILINEAR), ("lanczos", Image.LANCZOS)):
            made = self.picture(self.made("--resize", "700x500", "--interpolation", name)["one.png"])
            self.assertGreater(psnr(made, picture.resize((700, 500), theirs)), 45, name)

    def test_border_and_background(self):
        self.add("wide.png", encoded(Image.new("RGB", (80, 40), (10, 20, 30)), "PNG"))
        made = self.picture(self.made("--resize", "40", "--resize-mode", "border")["wide.png"])
        self.assertEqual([made.getpixel((20, y)) for y in (0, 9, 10, 29, 30, 39)],
                         [(255, 255, 255)] * 2 + [(10, 20, 30)] * 2 + [(255, 255, 255)] * 2)
        made = self.picture(self.made("--resize", "40", "--resize-mode", "border", "--background",
                                      "ff8000")["wide.png"])
        self.assertEqual(made.getpixel((0, 0)), (255, 128, 0))

    def test_what_fits_passes_unchanged(self):
        small = encoded(photograph(40, 30))
        self.add("small.jpg", small)
        exact = encoded(photograph(90, 64), quality=33)
        self.add("exact.jpg", exact)
        self.add("large.jpg", encoded(photograph(200, 150)))
        made = self.made("--resize", "64", "--only-if-bigger")
        self.assertEqual(made["small.jpg"], small)
        self.assertEqual(made["exact.jpg"], exact)
        self.assertEqual(self.picture(made["large.jpg"]).size, (85, 64))
        made = self.made("--resize", "64")
        self.assertEqual(self.picture(made["small.jpg"]).size, (85, 64))
        self.assertEqual(made["exact.jpg"], exact)
        self.assertEqual(self.made("--encode", "jpeg")["small.jpg"], small)
        self.assertEqual(self.picture(self.made("--encode", "png")["small.jpg"]).format, "PNG")
        self.assertEqual(self.made("--color", "rgb")["small.jpg"], small)
        self.assertEqual(self.made("--orient", "--strip-metadata")["small.jpg"], small)

    def test_formats_and_colours(self):
        self.add("one.png", encoded(photograph(120, 90), "PNG"))
        self.add("grey.jpg", encoded(photograph(120, 90, "L")))
        for encode, name in (("jpeg", "JPEG"), ("png", "PNG"), ("webp", "WEBP")):
            made = self.made("--encode", encode, "--resize", "60")
            self.assertEqual(self.picture(made["one.png"]).format, name)
            self.assertEqual(self.picture(made["one.png"]).mode, "RGB")
            self.assertEqual(self.picture(made["grey.jpg"]).mode, "RGB" if encode == "webp" else "L")
        made = self.made("--color", "gray")
        self.assertEqual(self.picture(made["one.png"]).mode, "L")
        self.assertGreater(psnr(self.picture(made["one.png"]), photograph(120, 90, "L")), 50)
        made = self.made("--color", "rgb")
        self.assertEqual(self.picture(made["grey.jpg"]).mode, "RGB")
        low = len(self.made("--encode", "jpeg", "--quality", "20")["one.png"])
        self.assertLess(low, len(self.made("--encode", "jpeg", "--quality", "90")["one.png"]))

    def test_odd_pictures(self):
        cmyk = photograph(90, 60).convert("CMYK")
        self.add("cmyk.jpg", encoded(cmyk))
        deep = Image.new("I;16", (50, 40))
        deep.putdata([(x * 1300) % 65536 for x in range(50 * 40)])
        self.add("deep.png", encoded(deep, "PNG"))
        self.add("palette.png", encoded(photograph(80, 60).quantize(16), "PNG"))
        made = self.made("--encode", "png", "--resize", "40x30")
        self.assertEqual(self.picture(made["cmyk.jpg"]).mode, "RGB")
        self.assertEqual(self.picture(made["deep.png"]).mode, "L")
        self.assertEqual(self.picture(made["palette.png"]).mode, "RGB")
        made = self.made("--encode", "raw")
        wanted = bytes((value * 255 + 32895) >> 16 for value in deep.getdata())
        self.assertEqual(made["deep.png"], wanted)
        self.assertGreater(psnr(Image.frombytes("RGB", (90, 60), made["cmyk.jpg"]),
                                self.picture(encoded(cmyk)).convert("RGB")), 30)

    def test_alpha(self):
        clear = Image.new("RGBA", (20, 10), (200, 100, 0, 0))
        clear.paste((200, 100, 0, 255), (0, 0, 10, 10))
        clear.putpixel((19, 9), (100, 100, 100, 128))
        self.add("clear.png", encoded(clear, "PNG"))
        self.add("clear.webp", encoded(clear, "WEBP", lossless=True, exact=True))
        for name in ("clear.png", "clear.webp"):
            dropped = Image.frombytes("RGB", (20, 10), self.made("--encode", "raw")[name])
            self.assertEqual(dropped.getpixel((15, 5)), (200, 100, 0))
            laid = Image.frombytes(
                "RGB", (20, 10), self.made("--encode", "raw", "--background", "0000ff")[name])
            self.assertEqual(laid.getpixel((5, 5)), (200, 100, 0))
            self.assertEqual(laid.getpixel((15, 5)), (0, 0, 255))
            self.assertEqual(laid.getpixel((19, 9)), (50, 50, 177))
        made = self.made("--background", "ffffff")
        self.assertEqual(self.picture(made["clear.png"]).mode, "RGB")
        self.assertEqual(self.picture(made["clear.png"]).getpixel((15, 5)), (255, 255, 255))

    def test_exif(self):
        picture = photograph(60, 40)
        exif = Image.Exif()
        exif[0x0112] = 6
        exif[0x010e] = "a description"
        turned = encoded(picture, exif=exif, quality=95)
        self.add("turned.jpg", turned)
        # As stored; what says how to show it goes with it.
        made = self.picture(self.made("--resize", "20")["turned.jpg"])
        self.assertEqual((made.size, made.getexif().get(0x0112)), ((30, 20), 6))
        made = self.made("--resize", "20", "--encode", "png")["turned.jpg"]
        self.assertEqual(self.picture(made).getexif().get(0x0112), 6)
        made = self.made("--resize", "20", "--encode", "webp")["turned.jpg"]
        self.assertEqual(self.picture(made).getexif().get(0x0112), 6)
        made = self.picture(self.made("--resize", "20", "--orient")["turned.jpg"])
        self.assertEqual((made.size, made.getexif().get(0x0112)), ((20, 30), None))
        made = self.picture(self.made("--orient")["turned.jpg"])
        self.assertEqual(made.size, (40, 60))
        self.assertGreater(psnr(made, picture.transpose(Image.ROTATE_270)), 33)
        # Without a new encoding nothing of the pixels changes.
        stripped = self.made("--strip-metadata")["turned.jpg"]
        self.assertLess(len(stripped), len(turned))
        self.assertEqual(dict(self.picture(stripped).getexif()), {})
        self.assertEqual(self.picture(stripped).tobytes(), self.picture(turned).tobytes())

    def test_colour_profiles(self):
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        self.add("one.jpg", encoded(photograph(80, 60), icc_profile=profile))
        self.add("two.png", encoded(photograph(80, 60), "PNG", icc_profile=profile))
        for encode in ("jpeg", "png", "webp"):
            made = self.made("--resize", "30", "--encode", encode)
            for name in ("one.jpg", "two.png"):
                self.assertEqual(self.picture(made[name]).info.get("icc_profile"), profile, encode)
        made = self.made("--resize", "30", "--strip-metadata")
        self.assertIsNone(self.picture(made["one.jpg"]).info.get("icc_profile"))
        made = self.made("--resize", "30", "--color", "gray")
        self.assertIsNone(self.picture(made["one.jpg"]).info.get("icc_profile"))

    def assert_near(self, a, b, most=1):
        self.assertEqual(len(a), len(b))
        self.assertLessEqual(max(abs(x - y) for x, y in zip(a, b)), most)

    def made_srgb(self, *options):
        out = self.path("icc%d" % len(os.listdir(self.dir)))
        done = run("pack", self.src, out, "--icc", "srgb", *options)
        if b"Little CMS" in done.err:
            self.expect(done, USAGE, "liblcms2-dev")
            self.skipTest("this build has no Little CMS")
        self.expect(done, DONE)
        self.assert_verifies(out, "--decode")
        self.last, self.said = out, text(done.err + done.out)
        return {key.decode().split("/")[-1]: data for (_, key, _), data in payloads(out).items()}

    def test_colour_profiles_made_srgb(self):
        picture = photograph(80, 60)
        grey = photograph(80, 60, "L")
        wide = wide_profile()
        for name, kind in (("one.png", "PNG"), ("two.tif", "TIFF")):
            self.add(name, encoded(picture, kind, icc_profile=wide))
        self.add("three.webp", encoded(picture, "WEBP", lossless=True, icc_profile=wide))
        self.add("grey.png", encoded(grey, "PNG", icc_profile=grey_profile()))
        self.add("none.png", encoded(picture, "PNG"))
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        tagged = encoded(picture, "PNG", icc_profile=srgb)
        self.add("srgb.png", tagged)
        self.add("broken.png", encoded(picture, "PNG", icc_profile=wide[:160] + bytes(400)))
        wanted = as_srgb(picture, wide).tobytes()
        self.assertLess(psnr(picture, as_srgb(picture, wide)), 35)
        made = self.made_srgb()
        for name in ("one.png", "two.tif", "three.webp"):
            shown = self.picture(made[name])
            self.assertIsNone(shown.info.get("icc_profile"), name)
            if name != "three.webp":  # which is lossy again
                self.assert_near(shown.tobytes(), wanted)
        self.assertEqual(self.picture(made["grey.png"]).mode, "L")
        self.assert_near(self.picture(made["grey.png"]).tobytes(),
                         as_srgb(grey, grey_profile()).convert("L").tobytes())
        self.assertEqual(made["none.png"], encoded(picture, "PNG"))
        self.assertEqual(made["srgb.png"], tagged)
        self.assertIn("colour profile cannot be used", self.said)
        info = text(self.expect(run("info", self.last), DONE).out)
        self.assertRegex(info, r"icc +srgb")
        self.assertRegex(info, r"lcms2 +2\.\d+")
        # Kept, they go with the pixels, TIFF's as well.
        made = self.made("--encode", "png")
        self.assertEqual(self.picture(made["two.tif"]).info.get("icc_profile"), wide)
        self.assertEqual(self.picture(made["two.tif"]).tobytes(), picture.tobytes())
        self.assertNotIn("lcms2", text(run("info", self.last).out))

    def test_cmyk_by_its_profile(self):
        ink = photograph(90, 60).convert("CMYK")
        self.add("one.jpg", encoded(ink, quality=95, icc_profile=ink_profile()))
        self.add("two.tif", encoded(ink, "TIFF", icc_profile=ink_profile()))
        self.add("none.jpg", encoded(ink, quality=95))
        made = self.made_srgb("--encode", "raw")
        for name in ("one.jpg", "two.tif"):
            theirs = as_srgb(Image.open(os.path.join(self.src, "a", name)), ink_profile())
            self.assert_near(made[name], theirs.tobytes())
        plain = self.made("--encode", "raw")
        self.assertEqual(plain["none.jpg"], made["none.jpg"])
        self.assertNotEqual(plain["one.jpg"], made["one.jpg"])
        self.pack(self.src, self.path("told"), "--encode", "png",
                  words=["CMYK was made RGB without its colour profile"])

    def add_mask(self, name, picture, **how):
        path = os.path.join(self.path("masks"), "a", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(encoded(picture, "PNG", **how))

    def masks(self, *options, **how):
        """{name: mask} of a pack made with these options."""
        out = self.path("m%d" % len(os.listdir(self.dir)))
        self.pack(self.src, out, "--field", "mask=masks/{key}.png", "--mask-field", "mask", *options,
                  cwd=self.dir, **how)
        self.assert_verifies(out, "--decode")
        self.last = out
        return {one["key"].decode().split("/")[-1]: self.picture(
            self.expect(run("cat", out, one["key"].decode(), "--field", "mask"), DONE).out)
            for one in samples(out)}

    def test_masks_go_where_the_picture_goes(self):
        self.add("one.png", encoded(photograph(80, 60), "PNG"))
        labels = Image.new("P", (80, 60))
        labels.putpalette([value for i in range(256) for value in (i, 255 - i, 7 * i % 256)])
        labels.putdata([(x // 8 + 10 * (y // 6)) % 200 for y in range(60) for x in range(80)])
        self.add_mask("one.png", labels)
        for mode, size in (("exact", (40, 30)), ("exact", (120, 90)), ("center_crop", (40, 40)),
                           ("keep_ratio", (20, 30))):
            mask = self.masks("--resize", "%dx%d" % size, "--resize-mode", mode)["one.png"]
            self.assertEqual(mask.mode, "P")
            self.assertEqual(mask.getpalette()[:600], labels.getpalette()[:600])
            shown = self.picture(self.made("--resize", "%dx%d" % size, "--resize-mode", mode)["one.png"])
            self.assertEqual(mask.size, shown.size)
            self.assertLessEqual(set(mask.getdata()), set(labels.getdata()))
            if mode == "exact":
                wanted = [labels.getpixel((int((x + 0.5) * 80 / size[0]), int((y + 0.5) * 60 / size[1])))
                          for y in range(size[1]) for x in range(size[0])]
                self.assertEqual(list(mask.getdata()), wanted)
        # Half of the size, of which the middle.
        mask = self.masks("--resize", "30", "--resize-mode", "center_crop")["one.png"]
        self.assertEqual(list(mask.getdata()), [labels.getpixel((2 * (x + 5) + 1, 2 * y + 1))
                                                for y in range(30) for x in range(30)])
        mask = self.masks("--resize", "40", "--resize-mode", "border")["one.png"]
        self.assertEqual((mask.size, mask.getpixel((20, 4)), mask.getpixel((20, 5)), mask.getpixel((20, 35))),
                         ((40, 40), 0, labels.getpixel((41, 1)), 0))
        info = text(self.expect(run("info", self.last), DONE).out)
        self.assertRegex(info, "mask_fields +mask")
        # Where the picture stays, so does the mask, byte for byte.
        out = self.path("same")
        self.pack(self.src, out, "--field", "mask=masks/{key}.png", "--mask-field", "mask", "--resize",
                  "60", cwd=self.dir)
        self.assertEqual(run("cat", out, "a/one.png", "--field", "mask").out, encoded(labels, "PNG"))

    def test_masks_of_every_kind_and_turn(self):
        kinds = {"bits": "1", "grey": "L", "rgb": "RGB", "rgba": "RGBA"}
        exif = Image.Exif()
        for turn in range(1, 9):
            exif[0x0112] = turn
            for name, mode in kinds.items():
                self.add("%s%d.jpg" % (name, turn), encoded(photograph(40, 20), exif=exif))
                self.add_mask("%s%d.png" % (name, turn), photograph(40, 20, mode, turn))
        deep = Image.new("I;16", (40, 20))
        deep.putdata([(x * 977) % 65536 for x in range(800)])
        self.add("deep1.jpg", encoded(photograph(40, 20)))
        self.add_mask("deep1.png", deep)
        turns = (None, None, Image.FLIP_LEFT_RIGHT, Image.ROTATE_180, Image.FLIP_TOP_BOTTOM,
                 Image.TRANSPOSE, Image.ROTATE_270, Image.TRANSVERSE, Image.ROTATE_90)
        masks = self.masks("--orient", "--resize", "20")
        self.assertEqual(len(masks), 33)
        for name, mask in masks.items():
            if name == "deep1.jpg":
                self.assertEqual(list(mask.getdata()), list(deep.getdata()))
                continue
            turn = int(name[-5])
            before = photograph(40, 20, kinds[name[:-5]], turn)
            wanted = before if turn == 1 else before.transpose(turns[turn])
            self.assertEqual((mask.mode, mask.size), (wanted.mode, wanted.size), name)
            self.assertEqual(mask.tobytes(), wanted.tobytes(), name)

    def test_masks_that_do_not_fit(self):
        for name in ("good", "small", "jpeg", "cut", "none"):
            self.add(name + ".jpg", encoded(photograph(80, 60)))
        self.add_mask("good.png", photograph(80, 60, "L"))
        self.add_mask("small.png", photograph(40, 30, "L"))
        self.add_mask("jpeg.png", photograph(80, 60, "L"))
        with open(os.path.join(self.path("masks"), "a", "jpeg.png"), "wb") as file:
            file.write(encoded(photograph(80, 60, "L")))
        with open(os.path.join(self.path("masks"), "a", "cut.png"), "wb") as file:
            file.write(encoded(photograph(80, 60, "L"), "PNG")[:300])
        out = self.path("p")
        self.pack(self.src, out, "--field", "mask=masks/{key}.png", "--mask-field", "mask",
                  "--resize", "30", "--max-rejects", "9", "--check", "none", cwd=self.dir)
        found = {key.decode().split("/")[-1]: why for key, why in rejects(out)}
        self.assertEqual(found.pop("small.jpg"), "cannot be transformed: it has 40 x 30 pixels, the "
                                                 "picture 80 x 60 (field mask)")
        self.assertEqual(found.pop("jpeg.jpg"), "cannot be transformed: masks must be PNG (field mask)")
        self.assertEqual(found.pop("cut.jpg"),
                         "cannot be decoded: libpng: the file ends within a chunk (field mask)")
        self.assertEqual(found, {})
        self.pack(self.src, self.path("q"), "--field", "mask=masks/{key}.png", "--mask-field", "msk",
                  "--resize", "30", cwd=self.dir, code=USAGE, words=["there are: mask"])

    def test_masks_of_a_pack(self):
        for i in range(3):
            self.add("%d.png" % i, encoded(photograph(80, 60, seed=i), "PNG"))
            self.add_mask("%d.png" % i, photograph(80, 60, "L", i))
        whole = self.path("whole")
        self.pack(self.src, whole, "--field", "mask=masks/{key}.png", "--resize", "60", "--encode", "raw",
                  cwd=self.dir)
        small = self.path("small")
        done = self.expect(run("repack", whole, small, "--mask-field", "mask", "--resize", "15x20",
                               "--encode", "png"), DONE)
        self.assertNotIn("fields beside", text(done.err + done.out))
        self.assert_verifies(small, "--decode")
        for one in samples(small):
            mask = self.picture(run("cat", small, one["key"].decode(), "--field", "mask").out)
            self.assertEqual((mask.size, one["width"], one["height"]), ((15, 20), 15, 20))

    def test_masks_of_tar_members(self):
        import tarfile
        os.makedirs(self.path("shards"))
        with tarfile.open(os.path.join(self.path("shards"), "s-000000.tar"), "w") as shard:
            for i in range(4):
                for name, data in (("%d.jpg" % i, encoded(photograph(60, 40, seed=i))),
                                   ("%d.mask.png" % i, encoded(photograph(60, 40, "L", i), "PNG")),
                                   ("%d.cls" % i, b"3")):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    shard.addfile(member, io.BytesIO(data))
        out = self.path("p")
        self.pack(self.path("shards"), out, "--mask-field", "mask.png", "--resize", "20x20")
        for one in samples(out):
            mask = self.picture(run("cat", out, one["key"].decode(), "--field", "mask.png").out)
            self.assertEqual((mask.size, mask.mode), ((20, 20), "L"))

    def test_raw_pixels(self):
        picture = photograph(64, 48)
        self.add("one.png", encoded(picture, "PNG"))
        self.add("two.jpg", encoded(photograph(90, 50)))
        made = self.made("--encode", "raw", "--color", "rgb")
        self.assertEqual(made["one.png"], picture.tobytes())
        one = self.facts()["one.png"]
        self.assertEqual((one["height"], one["width"], one["channels"]), (48, 64, 3))
        done = self.expect(run("cat", self.last, one["key"].decode()), DONE)
        self.assertEqual(done.out, picture.tobytes())
        self.expect(run("info", self.last), DONE)
        done = self.expect(run("pack", self.src, self.path("none"), "--encode", "raw", "--resize", "32",
                               "--resize-mode", "center_crop", "--dry-run", "--json"), DONE)
        split = done.objects[-1]["splits"][0]
        self.assertEqual((split["made_anew"], split["payload_bytes"]), (True, 2 * 32 * 32 * 3))
        # And back.
        back = self.path("back")
        self.expect(run("repack", self.last, back, "--encode", "png", "--resize", "24"), DONE)
        self.assert_verifies(back, "--decode")
        data = {key: data for (_, key, _), data in payloads(back).items()}[one["key"]]
        self.assertEqual(self.picture(data).size, (32, 24))
        self.assertGreater(psnr(self.picture(data), picture.resize((32, 24), Image.BOX)), 45)
        small = self.path("small")
        self.expect(run("repack", self.last, small, "--resize", "16x16"), DONE)
        self.assertEqual({len(data) for data in payloads(small).values()}, {16 * 16 * 3})

    def make_many(self, count=160):
        for i in range(count):
            kind = ("JPEG", "PNG", "WEBP")[i % 3]
            self.add("%03d.%s" % (i, kind.lower()),
                     encoded(photograph(150 + 7 * (i % 30), 140 + 5 * (i % 17), seed=i), kind))

    def test_bytes_depend_on_neither_threads_nor_memory(self):
        self.make_many()
        for i in range(0, 160, 3):
            self.add("%03d.jpeg" % i, encoded(
                photograph(150 + 7 * (i % 30), 140 + 5 * (i % 17), seed=i), "JPEG",
                icc_profile=wide_profile()))
        for i in range(20):
            kind = ("GIF", "BMP", "TIFF")[i % 3]
            picture = photograph(150, 140 + i, seed=i)
            self.add("x%02d.%s" % (i, kind.lower()),
                     encoded(picture.quantize(16) if kind == "GIF" else picture, kind))
        every = ["--resize", "70x60", "--resize-mode", "border", "--interpolation", "lanczos",
                 "--only-if-bigger", "--orient", "--background", "102030", "--color", "rgb",
                 "--quality", "80", "--encode", "webp"]
        if b"Little CMS" not in run("pack", self.src, self.path("try"), "--icc", "srgb", "--dry-run").err:
            every = ["--icc", "srgb"] + every
        for options in (["--resize", "64", "--encode", "jpeg"], ["--resize", "96", "--encode", "raw"], every):
            first = self.path("first-" + options[-1])
            self.pack(self.src, first, *options, "--shards", "3", "--jobs", "1")
            for i, more in enumerate((["--jobs", "7"], ["--memory", "64MiB", "--jobs", "2"],
                                      ["--io-threads", "1"])):
                other = self.path("other-%s-%d" % (options[-1], i))
                self.pack(self.src, other, *options, "--shards", "3", *more)
                self.assert_same_pack(first, other)
            self.pack(self.src, first, *options, "--shards", "3", words=["complete"])
        # All that decides is in the pack.
        info = text(self.expect(run("info", first), DONE).out)
        for name, value in (("resize", "70x60"), ("resize_mode", "border"), ("only_if_bigger", "yes"),
                            ("interpolation", "lanczos"), ("encode", "webp"), ("quality", "80"),
                            ("color", "rgb"), ("orient", "yes"), ("strip_metadata", "no"),
                            ("background", "102030"), ("icc", "srgb" if "--icc" in every else "keep"),
                            ("libjpeg", r"\S+"), ("libpng", r"\d\S+"), ("zlib", r"\d\S+"),
                            ("libwebp", r"\d\S+"), ("giflib", r"\d\S+"), ("libtiff", r"\d\S+")):
            self.assertRegex(info, r"(?m)^\s*(settings +)?%s +%s" % (name, value))

    def test_what_did_not_fit_in_memory_is_made_again(self):
        for i in range(40):
            self.add("%03d.jpg" % i, encoded(photograph(300, 200, seed=i)))
        options = ["--resize", "700", "--encode", "raw"]
        first = self.path("first")
        self.pack(self.src, first, *options, "--memory", "512MiB")
        other = self.path("other")
        self.pack(self.src, other, *options, "--memory", "56MiB", "--jobs", "2")
        self.assert_same_pack(first, other)

    def test_kill_and_continue(self):
        self.make_many(240)
        options = ["--resize", "200", "--encode", "png", "--chunk-size", "64KiB", "--jobs", "2"]
        whole = self.path("whole")
        self.pack(self.src, whole, *options)
        for wait in (0.1, 0.3, 0.5):
            process = start("pack", self.src, self.out, *options)
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
            finish(process)
        self.pack(self.src, self.out, *options)
        self.assert_same_pack(whole, self.out)

    def test_another_transform_is_another_plan(self):
        self.add("one.jpg", encoded(photograph(80, 60)))
        self.pack(self.src, self.out, "--resize", "30")
        self.pack(self.src, self.out, "--resize", "31", code=FAILED, words=["resize"])
        self.pack(self.src, self.out, code=FAILED)
        info = text(self.expect(run("info", self.out), DONE).out)
        for word in ("resize", "resize 30", "keep_ratio", "area", "libjpeg"):
            self.assertIn(word, info)
        self.expect(run("verify", self.out, "--against", self.src), FAILED, "made anew")

    def test_a_box_with_every_mode(self):
        self.add("wide.png", encoded(photograph(300, 200), "PNG"))
        self.add("high.png", encoded(photograph(100, 333), "PNG"))
        self.add("small.png", encoded(photograph(40, 10), "PNG"))
        wanted = {  # of 90x45: wide, high, small
            "keep_ratio": ((68, 45), (14, 45), (90, 23)),
            "keep_ratio_largest": ((90, 60), (90, 300), (180, 45)),
            "center_crop": ((90, 45), (90, 45), (90, 45)),
            "border": ((90, 45), (90, 45), (90, 45)),
            "exact": ((90, 45), (90, 45), (90, 45)),
        }
        for mode, sizes in wanted.items():
            made = self.made("--resize-mode", mode, "--resize", "90x45")
            found = tuple(self.picture(made[name + ".png"]).size for name in ("wide", "high", "small"))
            self.assertEqual(found, sizes, mode)
            made = self.made("--resize-mode", mode, "--resize", "90x45", "--only-if-bigger")
            self.assertEqual(self.picture(made["small.png"]).size, (40, 10), mode)
            if mode != "keep_ratio_largest":
                self.assertEqual(self.picture(made["wide.png"]).size, sizes[0], mode)
        self.assertEqual(self.picture(self.made("--resize", "90x45")["wide.png"]).size, (90, 45))
        # 100 wide is wider than 90, 333 high than 45; 300 x 200 covers 90 x 45, 40 x 10 does not.
        made = self.made("--resize-mode", "keep_ratio_largest", "--resize", "90x45", "--only-if-bigger")
        self.assertEqual([self.picture(made[name + ".png"]).size for name in ("wide", "high")],
                         [(90, 60), (90, 300)])
        # One number is another thing than a square.
        made = self.made("--resize", "60x60", "--resize-mode", "keep_ratio")
        self.assertEqual(self.picture(made["wide.png"]).size, (60, 40))
        made = self.made("--resize", "60", "--resize-mode", "keep_ratio")
        self.assertEqual(self.picture(made["wide.png"]).size, (90, 60))
        info = text(self.expect(run("info", self.last), DONE).out)
        self.assertNotIn("60x60", info)

    def test_where_a_box_crops_and_pads(self):
        # Columns tell where they come from: 0, 2, 4 ... 238.
        picture = Image.new("L", (120, 40))
        picture.putdata([2 * (i % 120) for i in range(120 * 40)])
        self.add("one.png", encoded(picture, "PNG"))
        made = self.picture(self.made("--resize", "60x40", "--resize-mode", "center_crop")["one.png"])
        self.assertEqual(list(made.crop((0, 0, 60, 1)).getdata()), [2 * x for x in range(30, 90)])
        made = self.picture(self.made("--resize", "30x20", "--resize-mode", "center_crop")["one.png"])
        self.assertEqual(list(made.crop((0, 0, 30, 1)).getdata()),
                         [4 * x + 1 for x in range(15, 45)])
        made = self.picture(self.made("--resize", "120x60", "--resize-mode", "border", "--background",
                                      "070707")["one.png"])
        self.assertEqual(made.size, (120, 60))
        self.assertEqual([made.getpixel((50, y)) for y in (0, 9, 10, 49, 50, 59)],
                         [7, 7, 100, 100, 7, 7])
        fits = encoded(photograph(60, 40), "PNG")
        self.add("one.png", fits)
        for mode in ("exact", "center_crop", "border", "keep_ratio", "keep_ratio_largest"):
            self.assertEqual(self.made("--resize", "60x40", "--resize-mode", mode)["one.png"], fits)

    def test_sizes_that_no_picture_can_get(self):
        self.add("one.jpg", encoded(photograph(80, 60)))
        for words, why in (
                (["--resize", "0"], "0"),
                (["--resize", "0x5"], "0x5"),
                (["--resize", "65536"], "a side may have 65535"),
                (["--resize", "65535x65535"], "--max-pixels allows"),
                (["--resize", "65501x10", "--encode", "jpeg"], "a JPEG side may have 65500"),
                (["--resize", "10x16384", "--encode", "webp"], "a WebP side may have 16383"),
                (["--resize", "16384", "--encode", "webp", "--resize-mode", "keep_ratio_largest"],
                 "a WebP side may have 16383"),
                (["--resize", "101x100", "--max-pixels", "10000"], "--max-pixels allows 10,000"),
                (["--resize", "12000x12000"], "--memory allows 512"),
                (["--resize", "5000", "--memory", "100MiB"], "--memory allows 100"),
        ):
            self.pack(self.src, self.out, *words, code=USAGE, words=[why])
            self.assertFalse(os.path.exists(self.out) or os.path.exists(self.out + ".partial"))
        # What one picture becomes and another does not is told of that one.
        self.add("long.png", encoded(photograph(3000, 3, "L"), "PNG"))
        self.pack(self.src, self.out, "--resize", "200", "--max-rejects", "1", words=["rejected"])
        self.assertEqual([why for _, why in rejects(self.out)],
                         ["cannot be transformed: it would have 200000 x 200 pixels"])

    def test_gif_bmp_and_tiff(self):
        picture = photograph(90, 60)
        grey = photograph(90, 60, "L")
        few = picture.quantize(16)
        for name, one, kind, how in (
                ("rgb.bmp", picture, "BMP", {}), ("grey.bmp", grey, "BMP", {}),
                ("few.bmp", few, "BMP", {}), ("bits.bmp", grey.convert("1"), "BMP", {}),
                ("alpha.bmp", picture.convert("RGBA"), "BMP", {}),
                ("few.gif", few, "GIF", {}), ("rows.gif", few, "GIF", {"interlace": 1}),
                ("rgb.tif", picture, "TIFF", {}), ("grey.tif", grey, "TIFF", {}),
                ("few.tif", few, "TIFF", {}), ("bits.tif", grey.convert("1"), "TIFF", {}),
                ("lzw.tif", picture, "TIFF", {"compression": "tiff_lzw"}),
                ("deflate.tif", grey, "TIFF", {"compression": "tiff_adobe_deflate"}),
                ("cmyk.tif", picture.convert("CMYK"), "TIFF", {})):
            self.add(name, encoded(one, kind, **how))
        made = self.made("--encode", "png")
        for name, data in made.items():
            shown = self.picture(data)
            theirs = Image.open(os.path.join(self.src, "a", name))
            mode = "L" if name in ("grey.tif", "bits.tif", "deflate.tif") else "RGB"
            self.assertEqual((shown.size, shown.mode), ((90, 60), mode), name)
            if "alpha" in name:
                theirs = theirs.convert("RGBA")
            if name == "cmyk.tif":  # Pillow rounds elsewhere
                self.assertGreater(psnr(shown, theirs.convert("RGB")), 45, name)
            else:
                self.assertEqual(shown.tobytes(), theirs.convert(mode).tobytes(), name)
        self.assertEqual(len(made), 14)
        # Without --encode as well they become PNG, but for those that fit already.
        made = self.made("--resize", "30")
        for name, data in made.items():
            self.assertEqual((self.picture(data).size, self.picture(data).format), ((45, 30), "PNG"))
            one = self.facts()[name]
            self.assertEqual((one["width"], one["height"]), (45, 30))
        self.assertGreater(psnr(self.picture(made["rgb.tif"]), picture.resize((45, 30), Image.BOX)), 45)
        made = self.made("--resize", "60")
        for name, data in made.items():
            with open(os.path.join(self.src, "a", name), "rb") as file:
                self.assertEqual(data, file.read())

    def test_tiff_of_jpeg_and_of_16_bits(self):
        try:
            self.add("jpeg.tif", encoded(photograph(90, 60), "TIFF", compression="jpeg", quality=95))
        except (OSError, ValueError):
            self.skipTest("this Pillow writes no JPEG into TIFF")
        deep = Image.new("I;16", (50, 40))
        deep.putdata([(x * 1300) % 65536 for x in range(50 * 40)])
        self.add("deep.tif", encoded(deep, "TIFF"))
        made = self.made("--encode", "raw")
        self.assertGreater(psnr(Image.frombytes("RGB", (90, 60), made["jpeg.tif"]),
                                photograph(90, 60)), 35)
        self.assertEqual(made["deep.tif"],
                         bytes((value * 255 + 32895) >> 16 for value in deep.getdata()))

    def test_first_frame_and_first_page(self):
        frames = [photograph(40, 30, seed=i).quantize(8) for i in range(3)]
        self.add("one.gif", encoded(frames[0], "GIF"))
        self.add("many.gif", encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]))
        self.add("many.tif", encoded(photograph(40, 30), "TIFF", save_all=True,
                                     append_images=[photograph(20, 10)]))
        out = self.path("p")
        self.pack(self.src, out, "--encode", "raw",
                  words=["only the first frame was taken", "only the first page was taken"])
        made = {key.decode().split("/")[-1]: data for (_, key, _), data in payloads(out).items()}
        self.assertEqual(made["many.gif"], made["one.gif"])
        self.assertEqual(made["one.gif"], frames[0].convert("RGB").tobytes())
        self.assertEqual(made["many.tif"], photograph(40, 30).tobytes())

    def test_transparency_and_turns_of_gif_and_tiff(self):
        clear = Image.new("P", (20, 10), 1)
        clear.putpalette([9, 9, 9, 200, 100, 0])
        clear.paste(0, (10, 0, 20, 10))
        self.add("clear.gif", encoded(clear, "GIF", transparency=0))
        rgba = Image.new("RGBA", (20, 10), (200, 100, 0, 0))
        rgba.paste((200, 100, 0, 255), (0, 0, 10, 10))
        self.add("clear.tif", encoded(rgba, "TIFF"))
        dropped = self.made("--encode", "raw")
        laid = self.made("--encode", "raw", "--background", "0000ff")
        for name, below in (("clear.gif", (9, 9, 9)), ("clear.tif", (200, 100, 0))):
            self.assertEqual(Image.frombytes("RGB", (20, 10), dropped[name]).getpixel((15, 5)), below)
            shown = Image.frombytes("RGB", (20, 10), laid[name])
            self.assertEqual((shown.getpixel((5, 5)), shown.getpixel((15, 5))),
                             ((200, 100, 0), (0, 0, 255)))
        turned = photograph(60, 40)
        self.add("turned.tif", encoded(turned, "TIFF", tiffinfo={274: 6}))
        made = self.picture(self.made("--orient")["turned.tif"])
        self.assertEqual(made.tobytes(), turned.transpose(Image.ROTATE_270).tobytes())
        made = self.picture(self.made("--encode", "png")["turned.tif"])
        self.assertEqual((made.size, made.getexif().get(0x0112)), ((60, 40), 6))
        self.pack(self.src, self.path("kept"), "--strip-metadata",
                  words=["metadata of GIF, BMP and TIFF stays where they are kept"])

    def test_kinds_that_are_not_read_are_named(self):
        floats = Image.new("F", (20, 10), 0.5)
        self.add("floats.tif", encoded(floats, "TIFF"))
        lab = ImageCms.applyTransform(
            photograph(20, 10), ImageCms.buildTransform(
                ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB"))
        self.add("lab.tif", encoded(lab, "TIFF"))
        good = encoded(photograph(40, 30), "BMP")
        self.add("cut.bmp", good[:-100])
        runs = bytearray(encoded(photograph(40, 30).quantize(8), "BMP"))
        runs[30] = 1  # compression
        self.add("runs.bmp", bytes(runs))
        self.add("cut.gif", encoded(photograph(40, 30).quantize(8), "GIF")[:200])
        self.add("good.bmp", good)
        out = self.path("p")
        self.pack(self.src, out, "--resize", "10", "--check", "none", "--max-rejects", "9")
        found = {key.decode().split("/")[-1]: why for key, why in rejects(out)}
        self.assertEqual(found["floats.tif"], "cannot be transformed: tiff: samples that are floats")
        self.assertEqual(found["lab.tif"], "cannot be transformed: tiff: Lab colours")
        self.assertEqual(found["runs.bmp"], "cannot be transformed: bmp: run lengths")
        self.assertEqual(found["cut.bmp"], "cannot be decoded: bmp: the pixels at offset 54 need 3600 "
                                           "bytes, the file ends at 3554")
        self.assertTrue(found["cut.gif"].startswith("cannot be decoded: giflib: "), found["cut.gif"])

    def test_damaged_pictures_are_rejected(self):
        good = encoded(photograph(200, 160))
        self.add("good.jpg", good)
        self.add("cut.jpg", good[:len(good) // 2])
        self.add("cut.png", encoded(photograph(200, 160), "PNG")[:3000])
        broken = bytearray(encoded(photograph(200, 160), "PNG"))
        broken[len(broken) // 2] ^= 0xff
        self.add("broken.png", bytes(broken))
        for check in ("none", "structure", "decode"):
            out = self.path("out-" + check)
            self.pack(self.src, out, "--resize", "50", "--check", check, "--max-rejects", "9",
                      words=["rejected"])
            self.assertEqual({key.decode().split("/")[-1] for key, _ in rejects(out)},
                             {"cut.jpg", "cut.png", "broken.png"}, check)
        self.pack(self.src, self.path("strict"), "--resize", "50", code=REJECTS)

    def test_other_fields_stay(self):
        for i in range(3):
            self.add("%d.jpg" % i, encoded(photograph(80, 60, seed=i)))
            path = os.path.join(self.path("masks"), "a", "%d.png" % i)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(encoded(photograph(80, 60, "L", i), "PNG"))
        done = self.pack(self.src, self.out, "--field", "mask=masks/{key}.png",
                         "--resize", "30", cwd=self.dir,
                         words=["fields beside the picture are kept as they are"])
        self.assertIn("3", text(done.err + done.out))
        self.assert_verifies(self.out, "--decode")

    def test_options_that_contradict_each_other(self):
        self.add("one.jpg", encoded(photograph(80, 60)))
        for words in (["--resize", "0"], ["--resize", "1x"], ["--resize", "axb"], ["--resize", "-5"],
                      ["--resize", "70000"], ["--resize-mode", "border"], ["--only-if-bigger"],
                      ["--interpolation", "area"], ["--quality", "90"],
                      ["--encode", "jpeg", "--quality", "0"],
                      ["--encode", "gif"], ["--background", "white"], ["--color", "cmyk"],
                      ["--icc", "p3"], ["--mask-field", "mask"],
                      ["--mask-field", "mask", "--encode", "png"],
                      ["--mask-field", "mask", "--resize", "30"],
                      ["--mask-field", "image", "--resize", "30"]):
            self.pack(self.src, self.out, *words, code=USAGE)


if __name__ == "__main__":
    main()

"""pack and repack that make pictures anew: sizes, colours, formats, and that nothing else decides."""
# ctest: timeout=600

import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import (DONE, FAILED, REJECTS, USAGE, finish, main, payloads, rejects, run,  # noqa: E402
                     start, text)
from transforms import TransformTest, encoded, photograph, psnr, wide_profile  # noqa: E402

from PIL import Image, ImageCms  # noqa: E402


class TransformsTest(TransformTest):
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

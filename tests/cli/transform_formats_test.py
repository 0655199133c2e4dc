"""GIF, BMP and TIFF pictures made anew."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import main, payloads, rejects  # noqa: E402
from transforms import TransformTest, encoded, photograph, psnr  # noqa: E402

from PIL import Image, ImageCms  # noqa: E402


class FormatsTest(TransformTest):
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


if __name__ == "__main__":
    main()

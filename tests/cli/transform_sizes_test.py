"""pack --resize WxH with every mode, and sizes that no picture can get."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import DONE, USAGE, main, rejects, run, text  # noqa: E402
from transforms import TransformTest, encoded, photograph  # noqa: E402

from PIL import Image  # noqa: E402


class SizesTest(TransformTest):
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


if __name__ == "__main__":
    main()

"""pack --icc srgb: colours by their profile, beside what Pillow makes of them."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import DONE, USAGE, main, payloads, run, text  # noqa: E402
from transforms import (TransformTest, as_srgb, encoded, grey_profile, ink_profile, photograph, psnr,  # noqa: E402
                        wide_profile)

from PIL import Image, ImageCms  # noqa: E402


class ColoursTest(TransformTest):
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


if __name__ == "__main__":
    main()

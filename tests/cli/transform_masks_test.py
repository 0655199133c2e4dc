"""pack --mask-field: masks go where the picture goes."""

import io
import os
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import DONE, USAGE, main, rejects, run, samples, text  # noqa: E402
from transforms import TransformTest, encoded, photograph  # noqa: E402

from PIL import Image  # noqa: E402


class MasksTest(TransformTest):
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


if __name__ == "__main__":
    main()

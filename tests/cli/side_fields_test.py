# ctest: timeout=300
"""`pack --field NAME=PATTERN` and `pack --accept any`."""

import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import DONE, REJECTS, USAGE, PackTest, main, rejects, run, samples, text  # noqa: E402
import pictures  # noqa: E402


def npy(dtype, shape, data, fortran=False, version=1):
    head = str({"descr": dtype, "fortran_order": fortran, "shape": tuple(shape)}).encode() + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes([version, 0]) + length + head + data


class SideFieldsTest(PackTest):
    def setUp(self):
        super().setUp()
        self.made = pictures.make_folder(self.path("src"), {"cat": 4, "dog": 3})
        self.masks = {}
        for key in self.made:
            name = key[:-len(".jpg")]
            self.masks[key] = pictures.jpeg("mask " + key, 900)
            pictures.write(self.path("masks", name + ".jpg"), self.masks[key])
            pictures.write(self.path("texts", name + ".txt"), ("a " + name).encode())

    def field(self, key, name):
        done = run("cat", self.out, key, "--field", name)
        return self.expect(done, DONE).out

    def test_files_beside_become_fields(self):
        options = ("--field", "mask=masks/{key}.jpg", "--field", "caption=texts/{path}.txt")
        self.pack("src", "out", *options, cwd=self.dir)
        for key, picture in self.made.items():
            self.assertEqual(self.field(key, "image"), picture)
            self.assertEqual(self.field(key, "mask"), self.masks[key])
            self.assertEqual(text(self.field(key, "caption")), "a " + key[:-len(".jpg")])
        self.assertEqual([one["labels"] for one in samples(self.out)], [[0]] * 4 + [[1]] * 3)
        self.assert_verifies(self.out)
        self.expect(run("verify", "out", "--against", "src", *options, cwd=self.dir), DONE)
        # A mask that was changed is no longer that of the pack.
        pictures.write(self.path("masks", "cat", "00000.jpg"), pictures.jpeg("other", 900))
        done = run("verify", "out", "--against", "src", *options, cwd=self.dir)
        self.assertNotEqual(done.code, DONE)

    def test_lists_and_splits_have_them_too(self):
        with open(self.path("list.txt"), "w", encoding="utf-8") as file:
            for key in sorted(self.made, reverse=True):
                file.write("src/%s 7\n" % key)
        self.pack(self.path("list.txt"), self.out, "--field",
                  "mask=%s/{key}.jpg" % self.path("masks", "..", "masks"), code=DONE)
        self.assertEqual([one["labels"] for one in samples(self.out)], [[7]] * 7)

    def test_a_file_that_is_missing(self):
        os.remove(self.path("masks", "cat", "00001.jpg"))
        option = "mask=%s/{key}.jpg" % self.path("masks")
        done = self.pack(self.path("src"), self.out, "--field", option, "--json")
        self.assertEqual(self.report(done)["warnings"]["no file for a field"]["count"], 1)
        self.assertEqual(len(samples(self.out)), 7)
        self.assertNotEqual(run("cat", self.out, "cat/00001.jpg", "--field", "mask").code, DONE)
        other = self.path("other")
        self.pack(self.path("src"), other, "--field", option, "--require-fields", code=REJECTS)
        found = rejects(other + ".partial")
        self.assertEqual([key for key, _ in found], [b"cat/00001.jpg"])
        self.assertIn("no field mask: ", found[0][1])
        self.assertIn("not found", found[0][1])

    def test_a_mask_must_be_whole(self):
        pictures.write(self.path("masks", "cat", "00001.jpg"), pictures.cut_jpeg(1))
        self.pack(self.path("src"), self.out, "--field",
                  "mask=%s/{key}.jpg" % self.path("masks"), code=REJECTS)
        self.assertIn("(field mask)", rejects(self.partial)[0][1])

    def test_wrong_options(self):
        for wrong in ("mask", "=a/{key}", "mask=a/b", "image={key}", "label={key}"):
            self.pack(self.path("src"), self.out, "--field", wrong, code=USAGE, words=["--field"])
        self.pack(self.path("src"), self.out, "--field", "m={key}.a", "--field", "m={key}.b",
                  code=USAGE, words=["already"])
        self.pack(self.path("src"), self.out, "--require-fields", code=USAGE, words=["--field"])
        self.pack(self.path("src"), self.out, "--source", "lmdb", "--accept", "any", code=USAGE)

    def test_any_file_is_taken(self):
        data = {"a/one.npy": npy("<f4", (2, 3), bytes(24)),
                "a/two.npy": npy("<f4", (5,), bytes(20), version=2),
                "b/none.npy": npy("<f4", (), bytes(4)),
                "b/film.mp4": os.urandom(5000), "b/empty": b"", "b/picture.jpg": pictures.jpeg(1)}
        for name, content in data.items():
            pictures.write(self.path("any", name), content)
        self.pack(self.path("any"), self.out, "--accept", "any")
        for name, content in data.items():
            self.assertEqual(self.field(name, "image"), content)
        found = {text(one["key"]): one for one in samples(self.out)}
        self.assertEqual(set(found), set(data))
        self.assertEqual(found["b/film.mp4"]["labels"], [1])
        self.assertEqual(found["b/picture.jpg"]["height"], pictures.HEIGHT)
        said = text(self.expect(run("info", self.out), DONE).out)
        self.assertIn("shape int64", said)
        self.assertRegex(said, r"dtype +<f4")
        self.assert_verifies(self.out, "--against", self.path("any"), "--accept", "any")
        pictures.write(self.path("any", "a/cut.npy"), npy("<f8", (100,), bytes(799)))
        pictures.write(self.path("any", "a/odd.npy"), b"\x93NUMPY\1\0\xff\xff{")
        self.pack(self.path("any"), self.out + "2", "--accept", "any", code=REJECTS)
        self.assertEqual(sorted(rejects(self.out + "2.partial")),
                         [(b"a/cut.npy", "truncated: a NumPy array of 800 bytes, 799 are there"),
                          (b"a/odd.npy", "truncated within the head of a NumPy array")])


if __name__ == "__main__":
    main()

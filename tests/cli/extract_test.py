"""extract: the source comes back byte for byte, and nothing hostile gets out of the folder."""

import json
import os
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NO, USAGE, PackTest, all_names, main, names, run,  # noqa: E402
                     text)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class ExtractTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"cat": 30, "dog": 20, "empty": 0})
        self.pack(self.src, self.out, "--chunk-size", "64KiB", "--shards", "3")
        self.back = self.path("back")

    def assert_same_tree(self, folder, source=None):
        source = source or self.src
        self.assertEqual(all_names(folder), all_names(source))
        for name in all_names(source):
            self.assertEqual(read(os.path.join(folder, name)), read(os.path.join(source, name)), name)

    def damage(self, key):
        rows = run("ls", self.out, "--json", "--glob", key).objects
        with open(os.path.join(self.out, "shard-%05d.spks" % rows[0]["shard"]), "r+b") as file:
            file.seek(rows[0]["offset"])
            byte = file.read(1)[0]
            file.seek(rows[0]["offset"])
            file.write(bytes([byte ^ 0x80]))

    def test_a_folder_comes_back(self):
        for jobs in ("1", "2", "7"):
            folder = self.path("back" + jobs)
            done = self.expect(run("extract", self.out, folder, "--jobs", jobs), DONE)
            self.assertRegex(text(done.out), r"^extracted 50 of 50 samples, [0-9.]+ KiB\n$")
            self.assertEqual(done.err, b"")
            self.assert_same_tree(folder)
            self.assertEqual(names(folder), ["cat", "dog", "empty"])

    def test_packing_again_gives_the_same_pack(self):
        self.expect(run("extract", self.out, self.back), DONE)
        self.pack(self.back, self.path("again"), "--chunk-size", "64KiB", "--shards", "3")
        self.assert_same_pack(self.out, self.path("again"))

    def test_splits_go_to_folders_of_their_own(self):
        for split in ("train", "val"):
            pictures.make_folder(self.path("both", split), {"cat": 3, "dog": 2}, seed=split)
        self.pack(self.path("both"), self.path("packs"))
        self.expect(run("extract", self.path("packs"), self.back), DONE, "10 of 10")
        self.assert_same_tree(self.back, self.path("both"))

    def test_filters_and_manifest(self):
        listing = self.path("list.tsv")
        self.expect(run("extract", self.out, self.back, "--class", "dog", "--manifest", listing),
                    DONE, "20 of 20")
        self.assertEqual(names(self.back), ["dog"])
        keys = [key for key in sorted(self.made) if key.startswith("dog/")]
        self.assertEqual(read(listing).decode(),
                         "path\tlabel\n" + "".join("%s\t1\n" % key for key in keys))
        # The list packs by itself, and keeps keys and labels.
        self.pack(listing, self.path("again"), "--root", self.back)
        done = self.expect(run("ls", self.path("again"), "--sort", "ordinal", "--json"), DONE)
        self.assertEqual([(one["key"], one["labels"]) for one in done.objects[:-1]],
                         [(key, [1]) for key in keys])
        done = run("extract", self.out, self.path("none"), "--glob", "x*")
        self.assertEqual(done.code, NO)
        self.assertIn("no sample matches", text(done.err))
        self.assertFalse(os.path.exists(self.path("none")))

    def test_existing_files_are_kept_unless_forced(self):
        pictures.write(os.path.join(self.back, "cat/00003.jpg"), b"mine")
        done = self.expect(run("extract", self.out, self.back), FAILED,
                           "not extracted: cat/00003.jpg: %s/cat/00003.jpg: is there already\n" % self.back,
                           "extracted 49 of 50",
                           "1 file was in the way and kept; --force")
        self.assertNotIn(b"renamed", done.out + done.err)
        self.assertEqual(read(os.path.join(self.back, "cat/00003.jpg")), b"mine")
        self.expect(run("extract", self.out, self.back, "--force"), DONE)
        self.assert_same_tree(self.back)

    def test_links_are_never_followed(self):
        outside = self.path("outside")
        os.mkdir(outside)
        os.mkdir(self.back)
        os.symlink(outside, os.path.join(self.back, "cat"))
        os.mkdir(os.path.join(self.back, "dog"))
        pictures.write(self.path("outside.jpg"), b"mine")
        os.symlink(self.path("outside.jpg"), os.path.join(self.back, "dog/00000.jpg"))
        self.expect(run("extract", self.out, self.back), FAILED, "links are not followed",
                    "31 files were in the way")
        self.assertEqual(names(outside), [])
        # With --force a link is replaced, not written through; one to a folder stays.
        self.expect(run("extract", self.out, self.back, "--force"), FAILED, "30 files")
        self.assertEqual(names(outside), [])
        self.assertEqual(read(self.path("outside.jpg")), b"mine")
        self.assertEqual(read(os.path.join(self.back, "dog/00000.jpg")), self.made["dog/00000.jpg"])

    def test_a_folder_in_the_way_stays(self):
        os.makedirs(os.path.join(self.back, "cat/00001.jpg"))
        for force in ([], ["--force"]):
            self.expect(run("extract", self.out, self.back, *force), FAILED, "cat/00001.jpg")
            self.assertTrue(os.path.isdir(os.path.join(self.back, "cat/00001.jpg")))
        self.assertNotIn(".stripepack", " ".join(all_names(self.back)))

    def test_damage_costs_only_its_sample(self):
        self.damage("cat/00007.jpg")
        listing = self.path("list.tsv")
        self.expect(run("extract", self.out, self.back, "--manifest", listing), NO,
                    "not extracted: cat/00007.jpg: ", "extracted 49 of 50",
                    "1 sample could not be read")
        self.assertFalse(os.path.exists(os.path.join(self.back, "cat/00007.jpg")))
        del self.made["cat/00007.jpg"]
        for key, data in self.made.items():
            self.assertEqual(read(os.path.join(self.back, key)), data)
        self.assertEqual(read(listing).count(b"\n"), 50)
        self.assertNotIn(b"cat/00007", read(listing))

    def test_damage_as_json(self):
        self.damage("cat/00007.jpg")
        done = self.expect(run("extract", self.out, self.back, "--json"), NO)
        failed, summary = done.objects
        self.assertEqual((failed["type"], failed["key"], failed["code"]),
                         ("failed", "cat/00007.jpg", "damaged"))
        self.assertEqual((summary["type"], summary["written"], summary["damaged"],
                          summary["existing"], summary["renamed"]), ("summary", 49, 1, 0, 0))
        error = json.loads(done.err)
        self.assertEqual((error["type"], error["exit"]), ("error", NO))

    def test_hostile_keys_stay_inside(self):
        picture = self.path("victim.jpg")
        pictures.write(picture, pictures.jpeg(1))
        folder = self.path("list")
        os.makedirs(os.path.join(folder, "sub"))
        pictures.write(os.path.join(folder, "a.jpg"), pictures.jpeg(2))
        keys = ["../victim.jpg", picture, "sub/../a.jpg", "./a.jpg", "a.jpg", "a.jpg",
                "sub//../a.jpg"]
        with open(os.path.join(folder, "list.txt"), "w", encoding="utf-8") as file:
            file.writelines("%s 0\n" % key for key in keys)
        self.pack(os.path.join(folder, "list.txt"), self.path("hostile"), "--no-shuffle")
        stored = run("ls", self.path("hostile"), "--keys").out.decode().splitlines()
        before = set(all_names(self.dir))
        inner = self.path("deep", "er", "back")
        os.makedirs(os.path.dirname(inner))
        self.expect(run("extract", self.path("hostile"), inner, "--jobs", "2"), DONE,
                    "extracted %d of %d" % (len(stored), len(stored)))
        new = set(all_names(self.dir)) - before
        self.assertEqual(len(new), len(stored))
        for name in new:
            self.assertTrue(name.startswith("deep/er/back/"), name)
        self.assertIn("deep/er/back/%0_..%2fvictim.jpg", new)
        self.assertIn("deep/er/back/sub/%2_..%2fa.jpg", new)
        self.assertEqual(read(picture), pictures.jpeg(1))

    def test_refusals(self):
        self.expect(run("extract", self.out, self.out), USAGE, "is a pack itself")
        self.expect(run("extract", self.out, self.path("no", "parent")), FAILED, "cannot make")
        for inside in ("manifest.json", "new", os.path.join("new", "deeper", "..", "")):
            self.expect(run("extract", self.out, self.path("out", inside)), USAGE,
                        "this is inside a pack, which holds nothing but its own files")
        self.assertNotIn("new", os.listdir(self.out))
        pathlib.Path(self.path("file")).touch()
        self.expect(run("extract", self.out, self.path("file")), FAILED, "not a directory")

    def test_a_full_disk_stops_it(self):
        done = run("extract", self.out, self.back, limits=[(resource.RLIMIT_FSIZE, 2000)])
        self.expect(done, FAILED, "File too large; raise the file size limit (ulimit -f), or write "
                    "where larger files are allowed\n")
        self.assertNotIn("--shard-size", str(done))
        self.assertNotIn(".stripepack", " ".join(all_names(self.back)))
        for name in all_names(self.back):
            self.assertEqual(read(os.path.join(self.back, name)), self.made[name])


if __name__ == "__main__":
    main()

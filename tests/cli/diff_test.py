"""diff: what is added, removed, relabelled, changed; and what only lies elsewhere."""

import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, FAILED, NO, PackTest, main, run, text  # noqa: E402

CLEAN = {"fields_differ": False, "classes_differ": False, "order_differs": False,
         "geometry_differs": False, "settings_differ": False}


class DiffTest(PackTest):
    def setUp(self):
        super().setUp()
        self.made = pictures.make_folder(self.path("src"), {"cat": 5, "dog": 4})
        self.pack(self.path("src"), self.out)
        self.other = self.path("other")

    def pack_other(self, *options, change=None):
        shutil.copytree(self.path("src"), self.path("src2"))
        if change is not None:
            change(self.path("src2"))
        self.pack(self.path("src2"), self.other, *options)

    def diff(self, code, *options):
        return text(self.expect(run("diff", self.out, self.other, *options), code).out)

    def test_identical(self):
        self.pack_other("--jobs", "1")
        self.assertEqual(self.diff(DONE), "identical: 9 samples\n")
        self.assertEqual(self.diff(DONE, "--exact"), "identical: 9 samples\n")
        done = self.expect(run("diff", self.out, self.other, "--json"), DONE)
        self.assertEqual(done.objects, [{
            "type": "summary", "v": 1, "identical": True, "same_data": True, "same": 9, "added": 0,
            "removed": 0, "relabelled": 0, "changed": 0, **CLEAN}])

    def test_another_order(self):
        self.pack_other("--seed", "99")
        expected = ("9 same, 0 added, 0 removed, 0 relabelled, 0 changed\n"
                    "also different: order, settings\n")
        self.assertEqual(self.diff(DONE), expected)
        self.assertEqual(self.diff(NO, "--exact"), expected)

    def test_another_geometry(self):
        self.pack_other("--no-shuffle", "--shards", "2", "--chunk-size", "64KiB")
        said = self.diff(DONE)
        self.assertTrue(said.startswith("9 same, 0 added"), said)
        self.assertIn("geometry (chunks, shards)", said)

    def test_all_kinds(self):
        def change(folder):
            os.remove(os.path.join(folder, "cat/00001.jpg"))
            pictures.write(os.path.join(folder, "dog/new.jpg"), pictures.jpeg("new", 900))
            pictures.write(os.path.join(folder, "cat/00002.jpg"), pictures.jpeg("changed", 800))
        self.pack_other("--no-shuffle", change=change)
        lines = self.diff(NO).splitlines()
        self.assertEqual(lines[-2], "7 same, 1 added, 1 removed, 0 relabelled, 1 changed")
        self.assertCountEqual([line.split("\t")[:2] for line in lines[:-2]],
                              [["removed", "cat/00001.jpg"], ["added", "dog/new.jpg"],
                               ["changed", "cat/00002.jpg"]])
        changed = next(line for line in lines if line.startswith("changed"))
        self.assertRegex(changed, r"\t%d bytes [0-9a-f]{16} -> 800 bytes [0-9a-f]{16}$"
                         % len(self.made["cat/00002.jpg"]))
        summary = self.diff(NO, "--summary").splitlines()
        self.assertEqual(summary, lines[-2:])
        # The other way round.
        back = text(run("diff", self.other, self.out, "--summary").out)
        self.assertTrue(back.startswith("7 same, 1 added, 1 removed"), back)

    def test_relabelled(self):
        def listing(path, labels):
            with open(path, "w", encoding="utf-8") as file:
                for key, label in labels.items():
                    file.write("%s %d\n" % (key, label))
        labels = {key: 0 for key in self.made}
        listing(self.path("src", "one.txt"), labels)
        labels["dog/00003.jpg"] = 5
        listing(self.path("src", "two.txt"), labels)
        self.pack(self.path("src", "one.txt"), self.path("one"))
        self.pack(self.path("src", "two.txt"), self.path("two"))
        done = self.expect(run("diff", self.path("one"), self.path("two")), NO)
        self.assertEqual(text(done.out).splitlines(), [
            "relabelled\tdog/00003.jpg\t0 -> 5",
            "8 same, 0 added, 0 removed, 1 relabelled, 0 changed"])
        done = self.expect(run("diff", self.path("one"), self.path("two"), "--json"), NO)
        difference, summary = done.objects
        self.assertEqual((difference["kind"], difference["key"], difference["a"]["labels"],
                          difference["b"]["labels"]), ("relabelled", "dog/00003.jpg", [0], [5]))
        self.assertEqual((summary["relabelled"], summary["same_data"]), (1, False))

    def test_repeated_keys_are_matched_in_their_order(self):
        for name, count in (("one", 3), ("two", 2)):
            with open(self.path("src", name + ".txt"), "w", encoding="utf-8") as file:
                file.writelines("cat/00000.jpg %d\n" % label for label in range(count))
            self.pack(self.path("src", name + ".txt"), self.path(name))
        done = self.expect(run("diff", self.path("one"), self.path("two"), "--summary"), NO)
        self.assertTrue(text(done.out).startswith(
            "2 same, 0 added, 1 removed, 0 relabelled, 0 changed\n"), str(done))

    def test_class_names_count(self):
        def change(folder):
            os.rename(os.path.join(folder, "dog"), os.path.join(folder, "duck"))
        self.pack_other(change=change)
        self.assertIn("class names", self.diff(NO))

    def test_splits(self):
        for split in ("train", "val"):
            pictures.make_folder(self.path("both", split), {"cat": 3}, seed=split)
        self.pack(self.path("both"), self.path("packs"))
        shutil.rmtree(self.path("both", "val"))
        os.makedirs(self.path("both", "test"))
        pictures.make_folder(self.path("both", "test"), {"cat": 3})
        self.pack(self.path("both"), self.path("packs2"))
        done = self.expect(run("diff", self.path("packs"), self.path("packs")), DONE)
        self.assertEqual(text(done.out), "train: identical: 3 samples\nval: identical: 3 samples\n")
        done = self.expect(run("diff", self.path("packs"), self.path("packs2")), NO)
        said = text(done.out)
        self.assertIn("split test is only in B\n", said)
        self.assertIn("split val is only in A\n", said)
        self.expect(run("diff", self.path("packs"), self.out), FAILED, "folder of splits")


if __name__ == "__main__":
    main()

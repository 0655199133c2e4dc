"""repack: packs become another pack; payloads, keys and labels stay."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NO, NOT_A_PACK, USAGE, PackTest, main, payloads,  # noqa: E402
                     run, samples, text)


def facts(pack):
    """What must stay of each sample, in the order of the source."""
    found = []
    for one in samples(pack):
        found.append((one.get("split", ""), one["key"], tuple(one.get("labels", [])), one.get("class"),
                      one.get("width"), one.get("height"), one["bytes"], one["checksum"]))
    return found


def by_key(pack):
    return {(split, key): data for (split, key, _), data in payloads(pack).items()}


class RepackTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"cat": 30, "dog": 20, "eel": 10})
        self.pack(self.src, self.out)
        self.new = self.path("new")

    def repack(self, *arguments, code=DONE, words=()):
        return self.expect(run("repack", *arguments), code, *words)

    def test_a_cut_shard_is_told_as_damage(self):
        shard = os.path.join(self.out, "shard-00000.spks")
        os.truncate(shard, os.path.getsize(shard) - 4096)
        self.repack(self.out, self.new, code=FAILED,
                    words=["shard-00000.spks: the shard is damaged", "stripepack verify"])
        self.assertEqual(os.listdir(self.dir).count("new.partial"), 0)

    def test_what_is_no_pack_is_told_by_its_exit_code(self):
        self.repack(self.src, self.new, code=NOT_A_PACK, words=["not a pack"])
        self.expect(run("pack", self.src, self.new, "--source", "pack"), FAILED, "not a pack")

    def test_another_shape_has_the_same_samples(self):
        self.repack(self.out, self.new, "--chunk-size", "64KiB", "--shards", "3", "--seed", "5")
        self.assert_verifies(self.new, "--decode", "--against", self.src)
        self.assertEqual(facts(self.new), facts(self.out))
        self.assertEqual(by_key(self.new), by_key(self.out))
        self.expect(run("diff", self.out, self.new, "--summary"), DONE)
        done = self.repack(self.out, self.new, "--chunk-size", "64KiB", "--shards", "3", "--seed", "5")
        self.assertIn("complete", text(done.out))

    def test_bytes_do_not_depend_on_threads_or_on_how_often(self):
        self.repack(self.out, self.new, "--jobs", "1")
        self.repack(self.out, self.path("two"), "--jobs", "7", "--memory", "64MiB")
        self.assert_same_pack(self.new, self.path("two"))
        # Repacking with the same options again changes nothing.
        self.repack(self.new, self.path("three"))
        self.assert_same_pack(self.new, self.path("three"))

    def test_selections(self):
        def keys(*select):
            out = self.path("s%d" % len(os.listdir(self.dir)))
            words = [word for one in select for word in ("--select", one)]
            self.repack(self.out, out, *words)
            self.assertEqual(run("info", out).code, DONE)
            # Labels and class names keep their numbers.
            every = {one[1]: one for one in facts(self.out)}
            for one in facts(out):
                self.assertEqual(one, every[one[1]])
            return {one[1] for one in facts(out)}

        everything = {one[1] for one in facts(self.out)}
        dogs = {key for key in everything if key.startswith(b"dog/")}
        self.assertEqual(keys("class=dog"), dogs)
        self.assertEqual(keys("label=1"), dogs)
        self.assertEqual(keys("class=dog", "class=eel"),
                         {key for key in everything if not key.startswith(b"cat/")})
        self.assertEqual(keys("glob=*1.*", "class=dog"), {key for key in dogs if b"1." in key})
        wanted = sorted(everything)[3:9]
        with open(self.path("keys"), "wb") as file:
            file.write(b"\r\n".join(wanted) + b"\n\nno/such.jpg\n")
        self.assertEqual(keys("keys=" + self.path("keys")), set(wanted))
        half = keys("share=0.5:3")
        self.assertEqual(keys("share=0.5:3"), half)
        self.assertLess(keys("share=0.25:3"), half)
        self.assertNotEqual(keys("share=0.5:4"), half)
        self.assertTrue(15 <= len(half) <= 45, len(half))
        self.assertEqual(keys("share=1"), everything)

    def test_wrong_selections_name_the_option(self):
        for word in ("dog", "class", "labels=1", "label=x", "share=2", "share=0.5:x", "share=nan"):
            with self.subTest(word=word):
                self.repack(self.out, self.new, "--select", word, code=USAGE, words=["--select"])
        self.repack(self.out, self.new, "--select", "class=cow", code=FAILED,
                    words=["no class 'cow'"])
        self.repack(self.out, self.new, "--select", "glob=nothing", code=USAGE,
                    words=["no sample is selected", "60 not selected"])
        self.expect(run("pack", self.src, self.new, "--select", "class=cat"), USAGE,
                    "--select goes with packs")
        self.assert_no_leftovers("out", "src")

    def test_packs_become_one(self):
        self.repack(self.out, self.path("dogs"), "--select", "class=dog")
        self.repack(self.out, self.path("rest"), "--select", "class=cat", "--select", "class=eel")
        self.repack(self.path("rest"), self.path("dogs"), self.new)
        self.assertEqual(sorted(facts(self.new)), sorted(facts(self.out)))
        self.assertEqual(by_key(self.new), by_key(self.out))
        # The same sample twice is told.
        done = self.repack(self.out, self.path("dogs"), self.path("twice"))
        self.assertIn("20", text(done.out + done.err))
        self.assertEqual(len(facts(self.path("twice"))), 80)

    def test_classes_are_merged_by_name(self):
        other = self.path("other-src")
        pictures.make_folder(other, {"ant": 4, "dog": 5})
        self.pack(other, self.path("other"))
        done = self.repack(self.out, self.path("other"), self.new)
        self.assertIn("class lists differ", text(done.out + done.err))
        classes = {one[1]: (one[2], one[3]) for one in facts(self.new)}
        for key, (label, name) in classes.items():
            self.assertEqual(name, key.split(b"/")[0].decode())
            self.assertEqual(label[0], ["ant", "cat", "dog", "eel"].index(name))

    def test_splits_stay_or_become_one(self):
        src = self.path("splits-src")
        pictures.make_folder(os.path.join(src, "train"), {"cat": 5, "dog": 6})
        pictures.make_folder(os.path.join(src, "val"), {"cat": 2, "dog": 3})
        self.pack(src, self.path("splits"))
        self.repack(self.path("splits"), self.new, "--chunk-size", "64KiB")
        self.assertEqual(facts(self.new), facts(self.path("splits")))
        self.assert_verifies(self.new, "--against", src)
        self.repack(self.path("splits"), self.path("one"), "--splits", "none")
        self.assertEqual(len(facts(self.path("one"))), 16)

    def test_keys_of_splits_are_taken_as_they_are_printed(self):
        src = self.path("splits-src")
        for split in ("train", "val"):
            pictures.make_folder(os.path.join(src, split), {"cat": 5, "dog": 6}, seed=split)
        splits = self.path("splits")
        self.pack(src, splits)
        printed = run("ls", splits, "--keys", "--glob", "val/cat/*").out.decode().splitlines()
        self.assertEqual(len(printed), 5)
        self.assertEqual(len(run("ls", splits, "--keys", "--glob", "cat/*").out.splitlines()), 10)
        self.expect(run("extract", splits, self.path("back"), "--glob", "val/cat/*"), DONE, "extracted 5 of 5")
        chosen = printed + run("ls", splits, "--keys", "--glob", "train/dog/*").out.decode().splitlines()
        with open(self.path("keys"), "w", encoding="utf-8") as file:
            file.write("\n".join(chosen) + "\n")
        self.repack(splits, self.new, "--select", "keys=" + self.path("keys"))
        self.assertEqual(sorted(run("ls", self.new, "--keys").out.decode().splitlines()), sorted(chosen))
        self.repack(splits, self.path("again"), "--select", "glob=val/cat/*", "--select",
                    "glob=train/dog/*")
        self.assertEqual(facts(self.path("again")), facts(self.new))
        self.repack(splits, self.path("none"), "--select", "glob=val/cat/*", code=USAGE,
                    words=["nothing is selected in split 'train'"])

    def test_damage_is_never_packed_anew(self):
        one = samples(self.out)[7]
        with open(os.path.join(self.out, "shard-%05d.spks" % one["shard"]), "r+b") as file:
            file.seek(one["offset"] + one["bytes"] // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
        self.repack(self.out, self.new, code=FAILED,
                    words=["contradicts its checksum", one["key"].decode(), "repair"])
        self.assertFalse(os.path.exists(self.new))

    def test_other_fields_are_refused(self):
        with open(self.path("list"), "w", encoding="ascii") as file:
            for one in samples(self.out):
                file.write("%s 0.5\n" % one["key"].decode())
        self.pack(self.path("list"), self.path("floats"), "--root", self.src, "--labels", "float")
        self.repack(self.out, self.path("floats"), self.new, code=FAILED, words=["other fields"])

    def test_out_inside_a_pack_is_refused(self):
        self.repack(self.out, os.path.join(self.out, "x"), code=USAGE, words=["inside"])
        self.expect(run("repack", self.out), USAGE)
        self.expect(run("repack", self.path("none"), self.new), FAILED)


if __name__ == "__main__":
    main()

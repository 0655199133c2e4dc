"""verify and repair as a user types them."""

import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, PackTest, identity, main, rejects, run, samples, text  # noqa: E402

NO = 1
FAILED = 4
NOT_A_PACK = 5


class ProofTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"a": 12, "b": 10})
        self.pack(self.src, self.out, "--shards", "2", "--chunk-size", "64KiB")

    def flip(self, name, offset):
        with open(os.path.join(self.out, name), "r+b") as file:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 1]))

    def test_a_whole_pack(self):
        self.expect(run("verify", self.out), DONE, "ok: 22 samples")
        self.expect(run("verify", self.out, "--quick"), DONE, "ok: 22 samples", "quick")
        self.expect(run("verify", self.out, "--decode", "--against", self.src), DONE,
                    "decode: ok", "against: ok")
        self.expect(run("repair", self.out), DONE, "nothing to do")

    def test_a_damaged_sample_is_named_and_mended_from_a_copy(self):
        copy = self.path("copy")
        shutil.copytree(self.out, copy)
        whole = identity(self.out)
        victim = samples(self.out, "id")[3]
        file = "shard-%05d.spks" % victim["shard"]
        self.flip(file, victim["offset"] + 7)
        done = run("verify", self.out, "--json")
        self.assertEqual(done.code, NO)
        damage = [json.loads(line) for line in done.out.splitlines()][0]
        self.assertEqual((damage["type"], damage["kind"], damage["file"], damage["offset"],
                          damage["key"], damage["samples_lost"]),
                         ("damage", "sample", file, victim["offset"], victim["key"].decode(), 1))
        self.expect(run("repair", self.out), NO, "nothing was changed", "--from", "--drop-damaged")
        self.expect(run("repair", self.out, "--from", copy), DONE, "repaired: 22 samples")
        self.assertEqual(identity(self.out), whole)

    def test_a_damaged_sample_is_dropped_when_asked(self):
        victim = samples(self.out, "id")[3]
        self.flip("shard-%05d.spks" % victim["shard"], victim["offset"] + 7)
        self.expect(run("repair", self.out, "--drop-damaged"), DONE, "21 samples", "another pack")
        (key, reason), = rejects(self.out)
        self.assertEqual(key, victim["key"])
        self.assertIn("dropped by repair", reason)
        self.assert_verifies(self.out)

    def test_what_was_dropped_is_not_complete(self):
        victim = samples(self.out, "id")[3]
        self.flip("shard-%05d.spks" % victim["shard"], victim["offset"] + 7)
        self.expect(run("repair", self.out, "--drop-damaged"), DONE, "21 samples")
        line = [self.src, self.out, "--shards", "2", "--chunk-size", "64KiB"]
        self.expect(run("pack", *line), FAILED,
                    "1 sample was damaged, and dropped by `stripepack repair`", "--force")
        self.expect(run("verify", self.out, "--against", self.src), NO,
                    "'%s' is in the source, and was dropped from the pack by repair" % text(victim["key"]))
        self.expect(run("pack", *line, "--force"), DONE)
        self.assert_verifies(self.out)

    def test_a_shard_that_may_not_be_read(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be somebody else")
        shard = os.path.join(self.out, "shard-00001.spks")
        for folder in (self.dir, self.out):
            os.chmod(folder, 0o777)
        for name in os.listdir(self.out):
            os.chown(os.path.join(self.out, name), 65534, 65534)
        os.chmod(shard, 0)
        before = identity(self.out)
        someone = {"user": 65534, "group": 65534}
        self.expect(run("verify", self.out, **someone), FAILED, "Permission denied", "NOT PROVEN")
        for more in ([], ["--drop-damaged"]):
            self.expect(run("repair", self.out, *more, **someone), FAILED,
                        "cannot be read, which is no damage", "nothing was changed")
        self.assertEqual(identity(self.out), before)
        os.chmod(shard, 0o644)
        self.assert_verifies(self.out)

    def test_lost_index_and_manifest_come_back(self):
        whole = identity(self.out)
        os.unlink(os.path.join(self.out, "index.spki"))
        self.expect(run("verify", self.out), NO, "index.spki")
        self.expect(run("repair", self.out), DONE, "repaired")
        self.assertEqual(identity(self.out), whole)

    def test_missing_and_extra_shards(self):
        shard = os.path.join(self.out, "shard-00001.spks")
        shutil.copy(shard, os.path.join(self.out, "shard-00002.spks"))
        self.expect(run("verify", self.out, "--quick"), NO, "shard-00002.spks")
        os.unlink(os.path.join(self.out, "shard-00002.spks"))
        os.unlink(shard)
        self.expect(run("verify", self.out), NO, "shard-00001.spks")

    def test_a_source_that_differs(self):
        with open(os.path.join(self.src, "a", "new.jpg"), "wb") as file:
            file.write(pictures.jpeg(99))
        gone = sorted(os.listdir(os.path.join(self.src, "b")))[0]
        os.unlink(os.path.join(self.src, "b", gone))
        changed = sorted(os.listdir(os.path.join(self.src, "a")))[0]
        with open(os.path.join(self.src, "a", changed), "r+b") as file:
            file.seek(10)
            file.write(b"?")
        done = run("verify", self.out, "--against", self.src)
        self.expect(done, NO, "'a/new.jpg' is in the source but not in the pack",
                    "'b/%s' is in the pack but not in the source" % gone,
                    "'a/%s' differs from the source at byte 10" % changed, "FAULTS: 3")

    def test_a_sample_that_does_not_decode(self):
        src = self.path("cut")
        pictures.write(os.path.join(src, "a", "1.jpg"), pictures.jpeg(1))
        pictures.write(os.path.join(src, "a", "2.jpg"), pictures.cut_jpeg(2))
        out = self.path("cut.pack")
        self.pack(src, out, "--check", "none")
        self.expect(run("verify", out), DONE)
        self.expect(run("verify", out, "--decode"), NO, "'a/2.jpg' does not decode", "FAULTS: 1")

    def test_splits(self):
        src = self.path("sets")
        pictures.make_folder(os.path.join(src, "train"), {"a": 4, "b": 4})
        pictures.make_folder(os.path.join(src, "val"), {"a": 2})
        out = self.path("sets.pack")
        self.pack(src, out)
        done = run("verify", out, "--against", src)
        self.expect(done, DONE, "train: ok: 8 samples", "val: ok: 2 samples", "against: ok")

    def test_what_is_no_pack(self):
        self.expect(run("verify", self.src), NOT_A_PACK, "not a pack")
        self.expect(run("verify", self.path("nothing")), FAILED)
        self.assertEqual(run("repair", self.src).code, NOT_A_PACK)
        self.assertIn("--quick", text(run("verify", self.out, "--quick", "--decode").err))


if __name__ == "__main__":
    main()

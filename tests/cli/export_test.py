# ctest: timeout=900
"""export: what all formats share. Same bytes for any number of threads; nothing wrong or half made
is ever published; a run that died is continued. What is in the files is for tests/interop."""

import csv
import io
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (BUILD, DONE, FAILED, NO, NOT_A_PACK, USAGE, PackTest, all_names,  # noqa: E402
                     faulty, finish, main, names, payloads, run, samples, sha256, start, text)

KINDS = ["folder", "tar", "tfrecord", "recordio", "mds", "csv"]
SINGLE = ("csv", "lmdb", "hdf5")
SEED = int(os.environ.get("STRIPEPACK_TEST_SEED", "0") or "0") or random.randrange(1, 1 << 30)


def shards_of(kind, count):
    """So many samples a file, where a format has several."""
    return () if kind in SINGLE else ("--shard-samples", str(count))


def can_write(kind):
    """Whether the program was built with what it takes."""
    with tempfile.TemporaryDirectory(prefix="spk-can-") as folder:
        pictures.make_folder(os.path.join(folder, "src"), {"a": 1})
        run("pack", os.path.join(folder, "src"), os.path.join(folder, "pack"))
        done = run("export", os.path.join(folder, "pack"), os.path.join(folder, "dest"),
                   "--to", kind)
    return done.code == DONE


def contents(folder):
    return {name: sha256(os.path.join(folder, name)) for name in all_names(folder)}


def read(path):
    with open(path, "rb") as file:
        return file.read()


class ExportTest(PackTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for kind in ("lmdb", "hdf5"):  # which need a library
            if kind not in KINDS and can_write(kind):
                KINDS.append(kind)

    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"cat": 30, "dog": 20})
        self.pack(self.src, self.out, "--chunk-size", "64KiB", "--shards", "3")
        self.dest = self.path("dest")

    def export(self, kind, *more, code=DONE, words=(), pack=None, dest=None, **how):
        done = run("export", pack or self.out, dest or self.dest, "--to", kind, *more, **how)
        return self.expect(done, code, *words)

    def damage(self, key):
        row = run("ls", self.out, "--json", "--glob", key).objects[0]
        with open(os.path.join(self.out, "shard-%05d.spks" % row["shard"]), "r+b") as file:
            file.seek(row["offset"])
            byte = file.read(1)[0]
            file.seek(row["offset"])
            file.write(bytes([byte ^ 0x80]))
        return row

    def test_more_than_ten_files_come_back_in_their_order(self):
        self.expect(run("export", self.out, self.dest, "--to", "recordio", "--shards", "11",
                        "--verify"), DONE)
        self.assertIn("data_00.rec", names(self.dest))

    def test_what_is_verified_may_have_a_key_twice_or_have_been_made_anew(self):
        src = self.path("some")
        pictures.make_folder(src, {"cat": 12, "dog": 9})
        self.pack(src, self.path("one"))
        self.expect(run("repack", self.path("one"), self.path("one"), self.path("twice")), DONE)
        self.pack(src, self.path("anew"), "--resize", "24", "--encode", "jpeg")
        for pack in ("twice", "anew"):
            for kind in ("folder", "tar", "tfrecord"):
                with self.subTest(pack=pack, kind=kind):
                    dest = self.path("%s-%s" % (pack, kind))
                    self.expect(run("export", self.path(pack), dest, "--to", kind, "--verify"),
                                DONE)

    def test_same_bytes_for_any_number_of_threads(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                made = []
                for jobs in ("1", "7"):
                    dest = self.path(kind + jobs)
                    done = self.export(kind, "--jobs", jobs, *shards_of(kind, 6), dest=dest)
                    self.assertEqual(done.err, b"")
                    self.assertRegex(text(done.out), r"^exported 50 samples to .*: %s, "
                                     r"\d+ files?, [0-9.]+ (KiB|MiB)\n$" % kind)
                    made.append(contents(dest))
                self.assertEqual(*made)
        self.assert_no_leftovers("out", "src", *(kind + jobs for kind in KINDS for jobs in "17"))

    def test_memory_does_not_shape_bytes(self):
        for kind in ("tar", "tfrecord", "recordio"):
            self.export(kind, dest=self.path(kind))
            self.export(kind, "--memory", "4KiB", dest=self.path(kind + "-small"))
            self.assertEqual(contents(self.path(kind)), contents(self.path(kind + "-small")))

    def test_a_folder_comes_back(self):
        self.export("folder", "--shard-samples", "7", "--jobs", "3")
        self.assertEqual(set(all_names(self.dest)), set(self.made) | {"manifest.tsv"})
        for key, data in self.made.items():
            self.assertEqual(read(os.path.join(self.dest, key)), data)
        # In the order of the export: as stored, or of the source.
        stored = [one["key"].decode() for one in samples(self.out, "id")]
        rows = [line.split("\t") for line in
                read(os.path.join(self.dest, "manifest.tsv")).decode().splitlines()]
        self.assertEqual(rows[0], ["path", "label"])
        self.assertEqual([row[0] for row in rows[1:]], stored)
        self.export("folder", "--source-order", dest=self.path("ordered"))
        self.assertEqual(read(self.path("ordered", "manifest.tsv")).decode(),
                         "path\tlabel\n" + "".join("%s\t%d\n" % (key, key.startswith("dog"))
                                                   for key in sorted(self.made)))
        # The list packs by itself, with the same keys, labels and payloads.
        self.pack(self.path("ordered", "manifest.tsv"), self.path("again"))
        self.assertEqual(payloads(self.path("again")), payloads(self.out))
        self.assertEqual([(one["key"], one["labels"]) for one in samples(self.path("again"))],
                         [(one["key"], one["labels"]) for one in samples(self.out)])

    def test_csv(self):
        self.export("csv", "--source-order")
        self.assertEqual(names(self.dest), ["data.csv"])
        rows = list(csv.DictReader(io.StringIO(read(os.path.join(self.dest, "data.csv")).decode())))
        self.assertEqual(rows, [
            {"key": key, "ordinal": str(number), "class": key[:3], "image_bytes": str(len(data)),
             "label": str(int(key.startswith("dog"))), "height": str(pictures.HEIGHT),
             "width": str(pictures.WIDTH), "channels": "1"}
            for number, (key, data) in enumerate(sorted(self.made.items()))])

    def test_filters(self):
        for arguments, keys in ((["--class", "dog"], [k for k in self.made if k[:3] == "dog"]),
                                (["--label", "0"], [k for k in self.made if k[:3] == "cat"]),
                                (["--glob", "*/0000[12].jpg"],
                                 [k for k in self.made if k[-9:] in ("00001.jpg", "00002.jpg")])):
            self.export("folder", *arguments, "--force")
            self.assertEqual(set(all_names(self.dest)), set(keys) | {"manifest.tsv"})
        self.export("csv", "--range", "10:15", dest=self.path("range"))
        self.assertEqual(
            [row["key"] for row in csv.DictReader(read(self.path("range", "data.csv")).decode()
                                                  .splitlines())],
            [one["key"].decode() for one in samples(self.out, "id")[10:15]])
        self.export("tar", "--class", "hen", dest=self.path("none"), code=USAGE)
        self.export("tar", "--glob", "x*", dest=self.path("none"), code=NO,
                    words=["no sample matches"])
        self.assertNotIn("none", " ".join(names(self.dir)))

    def test_splits(self):
        for split in ("train", "val"):
            pictures.make_folder(self.path("both", split), {"cat": 3, "dog": 2}, seed=split)
        self.pack(self.path("both"), self.path("packs"))
        self.export("csv", "--range", "0:1", words=["exported 1 sample to "])
        shutil.rmtree(self.dest)
        for kind, names_of in (("folder", lambda s: "manifest.tsv"),
                               ("tar", lambda s: s + "-000000.tar"),
                               ("tfrecord", lambda s: s + "-00000-of-00001"),
                               ("recordio", lambda s: s + ".rec"),
                               ("csv", lambda s: s + ".csv")):
            dest = self.path("of-" + kind)
            self.export(kind, pack=self.path("packs"), dest=dest, words=["exported 10 samples"])
            self.assertEqual(names(dest), ["train", "val"])
            for split in ("train", "val"):
                self.assertIn(names_of(split), names(os.path.join(dest, split)))
        self.pack(self.path("of-folder"), self.path("again"))

    def test_dest_is_taken(self):
        pictures.write(os.path.join(self.dest, "mine"), b"mine")
        self.export("tar", code=FAILED, words=["DEST is there already", "--force"])
        self.assertEqual(names(self.dest), ["mine"])
        done = self.export("tar", "--force", "--json")
        old = done.objects[-1]["old"]
        self.assertEqual(names(old), ["mine"])
        self.assertIn("data-000000.tar", names(self.dest))
        self.assertEqual(len(names(self.dir)), 4)
        # A file, or a link to nothing, is as much in the way.
        os.symlink("nowhere", self.path("link"))
        self.export("tar", dest=self.path("link"), code=FAILED, words=["DEST is there already"])
        self.export("tar", dest=self.path("link"), code=FAILED, words=["DEST is there already"])

    def test_dest_is_not_in_the_pack_nor_the_pack_in_dest(self):
        os.symlink(self.out, self.path("link"))
        before = contents(self.out)
        for dest, words in ((os.path.join(self.out, "tar"), "DEST lies in the pack"),
                            (os.path.join(self.path("link"), "a"), "DEST lies in the pack"),
                            (self.out + "/", "DEST lies in the pack"),
                            (self.dir, "DEST holds the pack")):
            with self.subTest(dest=dest):
                self.export("tar", "--force", dest=dest, code=USAGE, words=[words])
                self.assertEqual(contents(self.out), before)
                self.assertFalse(os.path.exists(dest.rstrip("/") + ".partial"))

    def test_a_foreign_partial_is_left_alone(self):
        pictures.write(os.path.join(self.dest + ".partial", "mine"), b"mine")
        for more in ((), ("--restart",), ("--force",)):
            self.export("tar", *more, code=FAILED, words=["is no unfinished export"])
            self.assertEqual(names(self.dest + ".partial"), ["mine"])
        shutil.rmtree(self.dest + ".partial")
        os.mkdir(self.dest + ".partial")  # an empty one is nobody's
        self.export("tar")

    def stop_in_the_middle(self, kind, *more):
        """A run that dies at the last file but one that it finishes."""
        arguments = ("export", self.out, self.dest, "--to", kind, "--jobs", "1", *more)
        plan = "call=rename;path=%s.partial/stripepack-export/all/file-" % self.dest
        count = self.count_calls(plan, *arguments)
        whole = contents(self.dest)
        shutil.rmtree(self.dest)
        done = run(*arguments, env=faulty(plan + ";nth=%d;action=kill" % count))
        self.assertEqual(done.code, -signal.SIGKILL, str(done))
        self.assertFalse(os.path.exists(self.dest))
        return arguments, whole, count

    def test_another_unfinished_export_is_told(self):
        arguments, whole, _ = self.stop_in_the_middle("tar", "--shards", "4")
        self.export("tar", "--shards", "5", code=FAILED,
                    words=["an unfinished export lies here", "--shards 4", "--shards 5",
                           "--restart"])
        self.export("tfrecord", "--shards", "4", code=FAILED, words=["to tar", "to tfrecord"])
        # What does not shape bytes may differ.
        done = self.expect(run(*arguments, "--memory", "64MiB", "--json"), DONE)
        self.assertEqual(done.objects[-1]["files_kept"], 3)
        self.assertEqual(contents(self.dest), whole)
        self.assertEqual(names(self.dir), ["dest", "out", "src"])

    def test_restart(self):
        self.stop_in_the_middle("tar", "--shards", "4")
        done = self.export("tfrecord", "--restart", "--json")
        self.assertEqual(done.objects[-1]["files_kept"], 0)
        self.assertEqual(names(self.dest), ["data-00000-of-00001", "data-00000-of-00001.idx"])

    def test_two_at_once(self):
        os.mkdir(self.dest + ".partial")
        holder = subprocess.Popen(["flock", "--exclusive", self.dest + ".partial", "sleep", "60"])
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        for _ in range(200):
            probe = subprocess.run(["flock", "--nonblock", self.dest + ".partial", "true"])
            if probe.returncode != 0:
                break
            time.sleep(0.02)
        self.export("tar", code=FAILED, words=["another export is at work here"])

    def test_killed_at_every_call_that_changes_the_disk(self):
        """One thread, so that the calls always come in the same order."""
        shutil.rmtree(self.out)
        shutil.rmtree(self.src)
        pictures.make_folder(self.src, {"a": 4, "b": 3})
        self.pack(self.src, self.out, "--chunk-size", "64KiB")
        for kind in KINDS:
            arguments = ("export", self.out, self.dest, "--to", kind, "--jobs", "1",
                         *shards_of(kind, 3))
            plan = ("call=pwrite,pwritev,write,sync,rename,unlink,mkdir,openat,truncate;path=%s"
                    % self.dest)
            count = self.count_calls(plan, *arguments)
            whole = contents(self.dest)
            shutil.rmtree(self.dest)
            self.assertGreater(count, 10)
            for nth in range(1, count + 1):
                action = ("kill", "kill-after")[nth % 2]
                with self.subTest(kind=kind, nth=nth, action=action):
                    done = run(*arguments, env=faulty(plan + ";nth=%d;action=%s" % (nth, action)))
                    self.assertEqual(done.code, -signal.SIGKILL, str(done))
                    if os.path.exists(self.dest):  # published: only our own folder is left
                        self.assertEqual(contents(self.dest), whole)
                        self.expect(run(*arguments), FAILED, "DEST is there already")
                        shutil.rmtree(self.dest)
                    self.expect(run(*arguments), DONE)
                    self.assertEqual(contents(self.dest), whole)
                    self.assertEqual(names(self.dir), ["dest", "out", "src"])
                shutil.rmtree(self.dest)
                shutil.rmtree(self.dest + ".partial", ignore_errors=True)

    def test_random_kills(self):
        print("seed %d (STRIPEPACK_TEST_SEED)" % SEED)
        source = random.Random(SEED)
        for kind in KINDS:
            arguments = ("export", self.out, self.dest, "--to", kind, "--jobs", "3",
                         *shards_of(kind, 2))
            seconds = self.expect(run(*arguments), DONE).seconds
            whole = contents(self.dest)
            shutil.rmtree(self.dest)
            for _ in range(5):
                process = start(*arguments)
                time.sleep(source.uniform(0, 1.1) * seconds)
                process.send_signal(signal.SIGKILL)
                finish(process)
                if os.path.exists(self.dest):
                    self.assertEqual(contents(self.dest), whole)
                    shutil.rmtree(self.dest)
            self.expect(run(*arguments), DONE)
            self.assertEqual(contents(self.dest), whole)
            self.assertEqual(names(self.dir), ["dest", "out", "src"])
            shutil.rmtree(self.dest)

    def test_interrupted_by_the_user(self):
        process = start("export", self.out, self.dest, "--to", "folder", "--jobs", "1",
                        "--shard-samples", "5")
        while process.poll() is None and not os.path.exists(self.dest + ".partial"):
            time.sleep(0.0005)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        done = finish(process)
        self.assertIn(done.code, (DONE, 130), str(done))
        if done.code == 130:
            self.assertIn("the same command line continues", text(done.err))
            self.export("folder", "--shard-samples", "5")

    def test_a_full_disk(self):
        for kind in KINDS:
            arguments = ("export", self.out, self.dest, "--to", kind, "--jobs", "1",
                         *shards_of(kind, 10))
            plan = "call=pwrite,pwritev;path=%s;errno=ENOSPC" % self.dest
            count = self.count_calls(plan, *arguments)
            whole = contents(self.dest)
            shutil.rmtree(self.dest)
            for nth in sorted({1, count // 2, count - 1, count} - {0}):
                shutil.rmtree(self.dest + ".partial", ignore_errors=True)
                done = run(*arguments, env=faulty(plan + ";nth=%d" % nth))
                self.expect(done, FAILED, "No space left on device")
                self.assertFalse(os.path.exists(self.dest))
            self.expect(run(*arguments), DONE)
            self.assertEqual(contents(self.dest), whole)
            self.assertEqual(names(self.dir), ["dest", "out", "src"])
            shutil.rmtree(self.dest)

    def test_a_file_size_limit(self):
        done = run("export", self.out, self.dest, "--to", "tar",
                   limits=[(resource.RLIMIT_FSIZE, 20000)])
        self.expect(done, FAILED, "File too large")
        self.assertFalse(os.path.exists(self.dest))
        self.export("tar")

    def test_nothing_damaged_is_published(self):
        row = self.damage("cat/00007.jpg")
        for kind in ("folder", "tar", "tfrecord", "recordio"):
            with self.subTest(kind=kind):
                done = self.export(kind, code=FAILED, dest=self.path(kind))
                said = text(done.err)
                self.assertIn("shard-%05d.spks" % row["shard"], said)
                self.assertIn("checksum", said)
                self.assertIn(str(row["offset"]), said)
                self.assertIn("`stripepack verify` lists all damage", said)
                self.assertFalse(os.path.exists(self.path(kind)))
                # Without the damaged sample it goes.
                self.export(kind, "--class", "dog", "--restart", dest=self.path(kind))

    def test_damage_found_while_a_large_sample_streams(self):
        big = pictures.jpeg("big", 3 << 20)
        pictures.write(self.path("large", "a", "big.jpg"), big)
        self.pack(self.path("large"), self.path("largepack"))
        self.export("folder", "--memory", "1MiB", pack=self.path("largepack"))
        self.assertEqual(read(os.path.join(self.dest, "a", "big.jpg")), big)
        shard = self.path("largepack", "shard-00000.spks")
        row = run("ls", self.path("largepack"), "--json").objects[0]
        with open(shard, "r+b") as file:
            file.seek(row["offset"] + row["bytes"] - 1)
            byte = file.read(1)[0]
            file.seek(row["offset"] + row["bytes"] - 1)
            file.write(bytes([byte ^ 1]))
        for kind in ("folder", "tar", "tfrecord", "recordio"):
            self.export(kind, "--memory", "1MiB", pack=self.path("largepack"),
                        dest=self.path("of-" + kind), code=FAILED, words=["checksum"])
            self.assertFalse(os.path.exists(self.path("of-" + kind)))

    def hostile_pack(self):
        pictures.write(self.path("victim.jpg"), pictures.jpeg(1))
        folder = self.path("list")
        os.makedirs(os.path.join(folder, "sub"))
        pictures.write(os.path.join(folder, "a.jpg"), pictures.jpeg(2))
        pictures.write(os.path.join(folder, "manifest.tsv"), pictures.jpeg(3))
        pictures.write(os.path.join(folder, ".stripepack-x.tmp"), pictures.jpeg(4))
        pictures.write(os.path.join(folder, ".stripepack-x", "b.jpg"), pictures.jpeg(5))
        keys = ["../victim.jpg", self.path("victim.jpg"), "sub/../a.jpg", "./a.jpg", "a.jpg",
                "a.jpg", "sub//../a.jpg", "manifest.tsv", ".stripepack-x.tmp",
                ".stripepack-x/b.jpg"]
        with open(os.path.join(folder, "list.txt"), "w", encoding="utf-8") as file:
            file.writelines("%s 0\n" % key for key in keys)
        self.pack(os.path.join(folder, "list.txt"), self.path("hostile"), "--no-shuffle")
        return self.path("hostile")

    def test_hostile_keys_stay_inside(self):
        pack = self.hostile_pack()
        stored = samples(pack)
        before = set(all_names(self.dir))
        self.export("folder", pack=pack)
        new = set(all_names(self.dir)) - before
        self.assertEqual(len(new), len(stored) + 1)
        for name in new:
            self.assertTrue(name.startswith("dest/"), name)
        rows = [line.split("\t")[0] for line in
                read(os.path.join(self.dest, "manifest.tsv")).decode().splitlines()[1:]]
        self.assertEqual(len(set(rows)), len(stored))
        bytes_of = payloads(pack)
        for path, one in zip(rows, stored):
            self.assertEqual(read(os.path.join(self.dest, path)),
                             bytes_of["", one["key"], one["ordinal"]])
        for layout in ("webdataset", "folders"):
            dest = self.path("tar-" + layout)
            self.export("tar", "--layout", layout, pack=pack, dest=dest)
            with tarfile.open(os.path.join(dest, "data-000000.tar")) as archive:
                members = archive.getnames()
            self.assertEqual(len(set(members)), len(members))
            for member in members:
                self.assertFalse(member.startswith("/"), member)
                self.assertTrue({"", ".", ".."}.isdisjoint(member.split("/")), member)
                if layout == "webdataset":
                    self.assertIn(member.rsplit("/", 1)[-1].split(".", 1)[1],
                                  ("jpg", "cls", "json"))

    def test_absent_fields_and_empty_blobs(self):
        """Packs of the format's own random tests: any schema, absent values, blobs of no bytes."""
        maker = os.path.join(BUILD, "tests", "spk_make_pack")
        if not os.access(maker, os.X_OK):
            self.skipTest("spk_make_pack is not built")
        exported = 0
        for seed in range(1, 25):
            folder = self.path("random-%d" % seed)
            subprocess.run([maker, "random", str(seed), folder], check=True)
            pack = os.path.join(folder, "pack")
            count = run("info", pack, "--json").objects[0]["samples"]
            for kind in KINDS:
                with self.subTest(kind=kind, seed=seed):
                    dest = self.path("%s-%d" % (kind, seed))
                    done = run("export", pack, dest, "--to", kind,
                               *(() if kind in SINGLE else ("--shards", "2")))
                    if count == 0:
                        self.expect(done, NO, "no sample matches")
                        continue
                    # What a format cannot hold is refused; nothing is left out in silence.
                    self.assertIn(done.code, (DONE, FAILED), str(done))
                    if done.code == FAILED:
                        self.assertRegex(text(done.err), "has no field of bytes|has no picture|"
                                         "32-bit floats|which the pack's field|absent values|"
                                         "File name too long|LMDB takes 511|32 bits|"
                                         "one whole number|NUL in its key|"
                                         "different numbers of labels")
                        self.assertFalse(os.path.exists(dest))
                        continue
                    self.assertIn("exported %s sample" % format(count, ","), text(done.out))
                    exported += 1
        self.assertGreater(exported, 30)

    def test_usage(self):
        self.export("hdf6", code=USAGE, words=["--to"])
        self.export("tar", "--layout", "x", code=USAGE, words=["--layout"])
        self.export("tar", "--shards", "2", "--shard-size", "1MiB", code=USAGE)
        self.export("tar", "--prefix", "a/b", code=USAGE)
        for more in (("--shards", "2"), ("--shard-samples", "9"), ("--shard-size", "1MiB")):
            self.export("csv", *more, code=USAGE, words=["csv makes one file"])
        self.export("tar", dest=self.path("no", "parent"), code=FAILED, words=["no"])
        self.export("tar", pack=self.src, code=NOT_A_PACK)
        done = run("export", self.src, self.dest, "--to", "tar", "--json")
        self.assertEqual(done.code, NOT_A_PACK)

    def test_shards(self):
        self.export("tfrecord", "--shards", "4", "--prefix", "train", dest=self.path("a"))
        self.assertEqual([name for name in names(self.path("a")) if not name.endswith(".idx")],
                         ["train-%05d-of-00004" % number for number in range(4)])
        self.export("tfrecord", "--shard-samples", "20", dest=self.path("b"))
        self.assertEqual(len(names(self.path("b"))), 6)
        size = sum(len(data) for data in self.made.values())
        self.export("tfrecord", "--shard-size", str(size // 2), dest=self.path("c"))
        self.assertEqual(len(names(self.path("c"))), 6)
        self.export("tfrecord", "--shards", "60", dest=self.path("d"))  # some stay empty
        self.assertEqual(len(names(self.path("d"))), 120)


if __name__ == "__main__":
    main()

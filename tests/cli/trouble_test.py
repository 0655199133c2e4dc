# ctest: timeout=120
"""Trouble around a run: few threads and descriptors, files that are asked for by name, packs that lost
parts. Each is told in the right way, and nothing that was there is harmed."""

import os
import pathlib
import re
import resource
import shutil
import stat
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, IDENTITY, NO, NOT_A_PACK, PROGRAM, SANITIZED, USAGE,  # noqa: E402
                     PackTest, identity, main, names, run, sha256, snapshot, text)

SHA256 = os.access(PROGRAM, os.X_OK) and re.search(rb"^built with:.* sha256\b", run("--version").out,
                                                   re.MULTILINE) is not None

# A number that no user here should have, so that the limit of processes counts the test's alone.
NOBODY = 54311


class TroubleTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"a": 40, "b": 30})

    def packed(self, *options):
        self.pack(self.src, self.out, *options)
        return identity(self.out)


class FewThreadsTest(TroubleTest):
    def test_the_work_is_done_by_the_threads_that_there_are(self):
        if os.geteuid() != 0 or SANITIZED:
            self.skipTest("needs root; sanitizers need threads of their own")
        whole = self.packed("--shards", "3", "--chunk-size", "64KiB")
        os.chmod(self.dir, 0o777)
        for most in (1, 2, 3, 5, 8, 14):
            with self.subTest(processes=most):
                how = {"user": NOBODY, "group": NOBODY,
                       "limits": ((resource.RLIMIT_NPROC, most),)}
                other = self.path("other")
                done = run("pack", self.src, other, "--shards", "3", "--chunk-size", "64KiB",
                           "--jobs", "4", "--io-threads", "8", **how)
                if done.code == 126:
                    self.skipTest("another user cannot run " + PROGRAM)
                self.expect(done, DONE)
                self.assert_same_pack(other, whole)
                self.expect(run("verify", other, "--jobs", "4", **how), DONE)
                self.expect(run("verify", other, "--decode", "--against", self.src, "--jobs", "4",
                                **how), DONE, "decode: ok", "against: ok")
                self.expect(run("extract", other, self.path("files"), "--jobs", "4", **how), DONE)
                shutil.rmtree(self.path("files"))
                shutil.rmtree(other)

    def test_few_descriptors_are_no_difference_from_the_source(self):
        if SANITIZED:
            self.skipTest("sanitizers need descriptors of their own")
        self.packed()
        seen = set()
        for most in range(6, 14):
            done = run("verify", self.out, "--against", self.src, "--jobs", "2",
                       limits=((resource.RLIMIT_NOFILE, most),))
            self.assertIn(done.code, (DONE, FAILED), str(done))
            seen.add(done.code)
        self.assertEqual(seen, {DONE, FAILED})

    def test_more_folders_than_descriptors(self):
        if SANITIZED:
            self.skipTest("sanitizers need descriptors of their own")
        source = self.path("many")
        pictures.make_folder(source, {"class%03d" % i: 1 for i in range(300)})
        self.pack(source, self.out, "--splits", "none")
        for most in (24, 64, 256):
            for how in (("extract", self.out, self.path("x"), "--jobs", "2"),
                        ("export", self.out, self.path("x"), "--to", "folder", "--jobs", "2")):
                self.expect(run(*how, limits=((resource.RLIMIT_NOFILE, most),)), DONE)
                self.assertEqual(len([name for name in names(self.path("x")) if name.startswith("class")]), 300)
                shutil.rmtree(self.path("x"))

    def test_the_limit_of_descriptors_is_named(self):
        if SANITIZED:
            self.skipTest("sanitizers need descriptors of their own")
        for most in range(6, 20):
            shutil.rmtree(self.partial, ignore_errors=True)
            done = run("pack", self.src, self.out, "--jobs", "2", limits=((resource.RLIMIT_NOFILE, most),))
            if done.code == DONE:
                break
            if b"Too many open files" in done.err:
                self.assertIn(b"raise the limit of open files (ulimit -n)", done.err)
        self.assertEqual(done.code, DONE, str(done))


class SumsTest(TroubleTest):
    def check_sums(self, folder):
        with open(os.path.join(folder, "SHA256SUMS"), encoding="ascii") as file:
            listed = dict(reversed(line.split("  ")) for line in file.read().splitlines())
        self.assertEqual(listed, {name: sha256(os.path.join(folder, name)) for name in
                                  os.listdir(folder) if name.startswith(IDENTITY)})

    def test_a_complete_pack_gets_them(self):
        whole = self.packed("--shards", "2")
        again = ("--shards", "2", "--sha256")
        done = self.pack(self.src, self.out, *again, code=(DONE if SHA256 else USAGE))
        if not SHA256:
            self.skipTest("no libcrypto")
        self.assertEqual(text(done.out),
                         "complete: %s is what this command line makes; SHA256SUMS was missing and is "
                         "written, of the files as they are (`stripepack verify` proves them)\n"
                         % self.out)
        self.check_sums(self.out)
        self.assertEqual(identity(self.out), whole)
        self.assertEqual(names(self.dir), ["out", "src"])
        self.assert_verifies(self.out)
        # What is there stays.
        pictures.write(self.path("out", "SHA256SUMS"), b"mine")
        done = self.pack(self.src, self.out, *again)
        self.assertIn("nothing to do", text(done.out))
        self.assertEqual(os.path.getsize(self.path("out", "SHA256SUMS")), 4)

    def test_so_do_splits(self):
        if not SHA256:
            self.skipTest("no libcrypto")
        splits = self.path("splits")
        for name in ("train", "val"):
            shutil.copytree(self.src, os.path.join(splits, name))
        self.pack(splits, self.out)
        report = self.report(self.pack(splits, self.out, "--sha256", "--json"))
        self.assertEqual((report["result"], report["wrote_sha256"]), ("complete", True))
        for name in ("train", "val"):
            self.check_sums(self.path("out", name))
        self.assertNotIn("wrote_sha256", self.report(self.pack(splits, self.out, "--sha256", "--json")))


class NamedFileTest(TroubleTest):
    """--report of pack and --manifest of extract."""

    def pack_report(self, file, code=DONE, words=()):
        shutil.rmtree(self.out, ignore_errors=True)
        return self.pack(self.src, self.out, "--report", file, code=code, words=words)

    def test_a_device_stays_one(self):
        if os.geteuid() != 0:
            self.skipTest("needs mknod")
        null = self.path("null")
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        full = self.path("full")
        os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        self.pack_report(null)
        self.pack_report(full, FAILED, ("published", "No space left on device", full))
        self.assert_verifies(self.out)
        self.expect(run("extract", self.out, self.path("x"), "--manifest", null), DONE)
        for device in (null, full):
            self.assertTrue(stat.S_ISCHR(os.lstat(device).st_mode))
        self.assertEqual(names(self.dir), ["full", "null", "out", "src", "x"])

    def test_standard_output(self):
        done = self.pack_report("/dev/stdout")  # here a file
        summary, report = done.out.split(b"{", 1)
        self.assertIn(b"content id", summary)
        self.assertIn(b'"result": "published"', report)
        self.assertEqual(names(self.dir), ["out", "src"])

    def test_a_link_stays_one(self):
        file, link = self.path("file.json"), self.path("link.json")
        with open(file, "w", encoding="ascii") as old:
            old.write("old")
        os.symlink("file.json", link)
        self.pack_report(link)
        self.assertTrue(os.path.islink(link))
        with open(file, encoding="utf-8") as new:
            self.assertIn("published", new.read())
        os.unlink(file)
        self.pack_report(link, USAGE, ("leads nowhere",))
        self.assertEqual(names(self.dir), ["link.json", "src"])

    def test_the_source_is_never_replaced(self):
        listing, table, tar = self.path("list.txt"), self.path("table.csv"), self.path("a.tar")
        picture = os.path.join(self.src, "a", "00000.jpg")
        pictures.write(listing, b"a/00000.jpg 1\n")
        pictures.write(table, b"key,more\na/00000.jpg,1\n")
        with tarfile.open(tar, "w") as made:
            made.add(picture, "a/00000.jpg")
        os.link(listing, self.path("link.txt"))
        pictures.write(os.path.join(self.src, "a", "notes.txt"), b"mine")
        os.symlink("src/a/notes.txt", self.path("link.json"))
        before = snapshot(self.dir, times=False)
        inside, same = "lies inside SRC", "is a file of the source"
        for source, report, why, *more in (
                (self.src, picture, "this is a picture"), (self.src, os.path.join(self.src, "new.json"), inside),
                (self.src, os.path.join(self.src, "a", "..", "b", "new.json"), inside),
                (self.src, self.path("link.json"), inside),
                (self.src, table, same, "--join", table),
                (listing, listing, same, "--root", self.src), (listing, picture, "this is a picture", "--root", self.src),
                (listing, self.path("link.txt"), same, "--root", self.src),
                (tar, tar, same), (self.path("{a,}.tar"), tar, same), (self.path("*.tar"), tar, same),
                (self.src, "", "names a folder")):
            self.pack(source, self.out, "--report", report, *more, code=USAGE, words=("--report: ", why))
        for report in (self.out, self.partial):
            self.pack(self.src, self.out, "--report", report, code=USAGE, words=("OUT or OUT.partial",))
            os.mkdir(report)
            self.pack(self.src, self.out, "--report", os.path.join(report, "r.json"), code=USAGE,
                      words=("OUT or OUT.partial",))
            os.rmdir(report)
        self.assertEqual(snapshot(self.dir, times=False), before)
        # A report may be replaced, wherever it stands beside sources.
        for _ in range(2):
            self.pack(listing, self.out, "--root", self.src, "--report", self.path("report.json"))

    def test_no_sample_is_replaced_by_the_list_of_them(self):
        self.packed()
        target = self.path("x")
        os.makedirs(os.path.join(target, "a"))
        for path in ("a/00000.jpg", "b"):
            self.expect(run("extract", self.out, target, "--manifest", os.path.join(target, path)), USAGE,
                        "--manifest: a sample is extracted to this path; choose another name")
        self.expect(run("extract", self.out, target, "--manifest", ""), USAGE, "names a folder")
        self.assertEqual(names(target), ["a"])
        # One that is not extracted leaves its path free.
        self.expect(run("extract", self.out, target, "--class", "b", "--manifest",
                        os.path.join(target, "a", "00000.jpg")), DONE)
        self.expect(run("extract", self.out, target, "--class", "b", "--force", "--manifest",
                        os.path.join(target, "a", "..", "list.tsv")), DONE)
        self.assertEqual(names(target), ["a", "b", "list.tsv"])

    def test_what_cannot_be_written_shows_before_the_work(self):
        self.pack_report(self.src, USAGE, ("names a folder",))
        self.pack_report(self.path("none", "file"), FAILED, ("make the folder",))
        self.pack_report(self.path("out", "file"), FAILED, ("make the folder",))
        self.assertEqual(names(self.dir), ["src"])
        self.pack(self.src, self.out, "--report", self.path("file"), "--dry-run", code=USAGE)
        whole = self.packed()
        inside = os.path.join(self.out, "manifest.json")
        self.pack(self.src, self.out, "--report", inside, code=USAGE, words=("inside a pack",))
        target = self.path("x")
        for file, code in ((inside, USAGE), (self.src, USAGE), (self.path("none", "f"), FAILED)):
            self.expect(run("extract", self.out, target, "--manifest", file), code)
            self.assertEqual(names(target), [])
        self.assertEqual(identity(self.out), whole)


class LostPartsTest(TroubleTest):
    def test_what_lacks_a_shard_is_not_complete(self):
        self.packed("--shards", "2")
        shard = os.path.join(self.out, "shard-00001.spks")
        size = os.path.getsize(shard)
        os.truncate(shard, size - 1)
        self.pack(self.src, self.out, "--shards", "2", code=FAILED,
                  words=("shard has %d bytes, expected %d" % (size - 1, size), "--force"))
        os.unlink(shard)
        self.pack(self.src, self.out, "--shards", "2", code=FAILED, words=("shard-00001", "--force"))
        self.assertEqual(names(self.dir), ["out", "src"])

    def test_an_index_that_is_none_is_damage(self):
        self.packed()
        index = os.path.join(self.out, "index.spki")
        for make in (lambda: pictures.write(index, b"x" * 5000), lambda: os.mkfifo(index)):
            os.unlink(index)
            make()
            for command in (("info",), ("ls",), ("cat", "--id", "0"), ("diff", self.out)):
                done = run(command[0], self.out, *command[1:])
                self.expect(done, FAILED, "index.spki", "stripepack repair")
            self.expect(run("verify", self.out), NO)
        self.expect(run("repair", self.out), DONE)
        self.assert_verifies(self.out)

    def test_a_folder_in_a_files_place_stops_repair_before_it_writes(self):
        for name in ("index.spki", "manifest.json", "rejects.tsv", "shard-00000.spks"):
            with self.subTest(name=name):
                self.packed("--shards", "2")
                place = self.path("out", name)
                os.unlink(place)
                os.mkdir(place)
                pictures.write(os.path.join(place, "mine"), b"x")
                before = snapshot(self.out)
                done = run("repair", self.out, "--drop-damaged")
                self.expect(done, FAILED, "%s: a folder stands where a file of the pack belongs; nothing "
                            "was changed; move the folder away, then repair again" % place)
                self.assertEqual(snapshot(self.out), before)
                shutil.rmtree(self.out)

    def test_a_split_that_lost_its_manifest_is_told(self):
        splits = self.path("splits")
        for name in ("train", "val"):
            shutil.copytree(self.src, os.path.join(splits, name))
        self.pack(splits, self.out)
        os.mkdir(self.path("out", "later.partial"))
        shutil.copy(self.path("out", "train", "shard-00000.spks"), self.path("out", "later.partial"))
        self.assert_verifies(self.out)
        os.unlink(self.path("out", "val", "manifest.json"))
        for command in ("verify", "info", "ls"):
            self.expect(run(command, self.out), NOT_A_PACK, "val", "lost its manifest.json")
        self.expect(run("repair", self.out), DONE)
        self.assert_verifies(self.out, "--against", splits)

    def test_a_source_that_is_none_is_not_the_packs_fault(self):
        self.packed()
        torn = self.path("torn")
        os.mkdir(torn)
        shutil.copy(os.path.join(self.out, "index.spki"), torn)
        self.expect(run("verify", self.out, "--against", torn), FAILED, "index.spki", "manifest.json")


class StaleListTest(TroubleTest):
    def test_the_list_is_named(self):
        stale = self.path("stale.txt")
        file = os.path.join(self.src, "a", "00000.jpg")
        size, seconds = os.path.getsize(file), int(os.path.getmtime(file))
        help_text = "; the list %s is older than the file; write the list anew, then --restart" % stale
        for line, what in (("77 %d.0 a/00000.jpg" % seconds, "has %d bytes; 77 when it was listed" % size),
                           ("%d 1234567890.5 a/00000.jpg" % size, "was written to since it was listed")):
            pictures.write(stale, line.encode() + b"\n")
            done = self.pack(stale, self.out, "--root", self.src, "--restart", code=FAILED)
            self.assertEqual(text(done.err),
                             "stripepack pack: a/00000.jpg: " + what + help_text + "\n")


class LimitedFilesTest(TroubleTest):
    def test_pack_names_its_own_option(self):
        done = self.pack(self.src, self.out, code=FAILED, limits=((resource.RLIMIT_FSIZE, 65536),))
        self.assertTrue(text(done.err).endswith(
            ": File too large; raise the file size limit (ulimit -f), or write where larger files are "
            "allowed, or pack with a smaller --shard-size\n"), str(done))


class NumbersTest(TroubleTest):
    def test_sizes_have_a_least(self):
        for option in ("--chunk-size", "--shard-size", "--memory"):
            self.pack(self.src, self.out, option, "0", code=USAGE, words=(option + ": must not be 0",))
        for size in ("1MiB", "16MiB", "54525952B"):
            for more in ((), ("--dry-run",)):
                done = self.pack(self.src, self.out, "--memory", size, *more, code=USAGE)
                shown = {"1MiB": "1 MiB", "16MiB": "16 MiB", "54525952B": "52 MiB"}[size]
                self.assertEqual(text(done.err), "stripepack pack: --memory %s is too little: it takes at "
                                 "least 53 MiB; allow more --memory; the default is 512 MiB\n" % shown)
        self.assertEqual(names(self.dir), ["src"])
        self.pack(self.src, self.out, "--memory", "53MiB")

    def test_only_whole_numbers_are_numbers(self):
        self.packed()
        for value in ("-1", "0x1", "18446744073709551616", "1.5"):
            self.expect(run("cat", self.out, "--id=" + value), USAGE, "--id")
        for value in ("0x1", "9223372036854775808", "1.5", "one"):
            self.expect(run("ls", self.out, "--label=" + value), USAGE, "--label")
        self.expect(run("ls", self.out, "--label=-1", "--label", "1"), DONE, "b/00000.jpg")

    def test_so_are_numbers_of_threads(self):
        for option in ("--jobs", "--io-threads"):
            for value in ("0x10", "-1", "1.5", "4097", "010x", ""):
                self.pack(self.src, self.out, "%s=%s" % (option, value), code=USAGE, words=(option,))
        self.pack(self.src, self.out, "--io-threads", "0", code=USAGE,
                  words=("--io-threads: '0' is not a whole number from 1 to 4096",))
        self.packed("-j", "010", "--io-threads", "016")
        self.expect(run("stage", self.out, self.path("x"), "--jobs", "0x10"), USAGE,
                    "--jobs: '0x10' is not a whole number from 0 to 4096")

    def test_the_name_of_what_is_unfinished_is_no_name_for_a_pack(self):
        self.pack(self.src, self.partial, code=USAGE, words=("ends in '.partial'",))
        self.assertEqual(names(self.dir), ["src"])


if __name__ == "__main__":
    main()

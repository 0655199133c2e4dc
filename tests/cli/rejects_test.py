# ctest: timeout=120
"""Nothing vanishes without consent: samples that cannot be packed are listed with reasons while the
run goes on; it publishes only within the limit that was typed. Trouble of the machine rejects nothing."""

import json
import os
import pathlib
import resource
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, REJECTS, PackTest, main, names, payloads, rejects, run,  # noqa: E402
                     samples)

SHARDS = ["--shards", "3", "--chunk-size", "64KiB"]


class RejectsTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")

    def write(self, key, data):
        pictures.write(os.path.join(self.src, key), data)

    def make_source(self):
        self.made = pictures.make_folder(self.src, {"a": 30, "b": 30})
        for number in range(5):
            self.write("b/bad%d.jpg" % number, pictures.cut_jpeg(number))

    def test_too_many_then_consent(self):
        self.make_source()
        for limit in ([], ["--max-rejects", "4"]):
            done = self.pack(self.src, self.out, *SHARDS, *limit, code=REJECTS,
                             words=("not published: 5 samples were rejected",
                                    "out.partial/rejects.tsv", "--max-rejects 5", "truncated"))
            self.assertFalse(os.path.exists(self.out))
            listed = rejects(self.partial)
            self.assertEqual(sorted(key for key, _ in listed),
                             [b"b/bad%d.jpg" % number for number in range(5)])
            self.assertEqual({reason.split(":")[0] for _, reason in listed}, {"truncated"})
            report = self.report(run("pack", self.src, self.out, *SHARDS, *limit, "--json"))
            self.assertEqual((report["result"], report["rejects"]), ("not_published", 5))
            self.assertEqual(report["reject_reasons"], {"truncated": 5})
            self.assertEqual(report["packs"][0]["shards_found_complete"], 3)
        done = self.pack(self.src, self.out, *SHARDS, "--max-rejects", "5", "--json")
        report = self.report(done)
        self.assertEqual((report["result"], report["packs"][0]["samples"]), ("published", 60))
        self.assertEqual(rejects(self.out), listed)
        # Whoever types no limit is told what is missing all the same.
        self.pack(self.src, self.out, *SHARDS, words=("complete", "published without 5 samples"))
        report = self.report(run("pack", self.src, self.out, *SHARDS, "--json"))
        self.assertEqual((report["result"], report["rejects"]), ("complete", 5))
        fresh = self.path("fresh")
        self.pack(self.src, fresh, *SHARDS, "--max-rejects", "1000")
        self.assert_same_pack(self.out, fresh)
        self.assertEqual(names(self.dir), ["fresh", "out", "src"])

    def test_consent_publishes_what_was_built(self):
        """No picture is read again: what the files hold by now no longer matters."""
        self.make_source()
        self.pack(self.src, self.out, *SHARDS, code=REJECTS)
        for key, data in self.made.items():
            path = os.path.join(self.src, key)
            info = os.stat(path)
            with open(path, "r+b") as file:
                file.write(bytes(len(data)))
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
        self.pack(self.src, self.out, *SHARDS, "--max-rejects", "5")
        found = {key.decode(): data for (_, key, _), data in payloads(self.out).items()}
        self.assertEqual(found, self.made)

    def test_what_is_no_file(self):
        self.write("a/good.jpg", pictures.jpeg(1))
        os.mkfifo(os.path.join(self.src, "a", "fifo.jpg"))
        os.symlink("nowhere", os.path.join(self.src, "a", "gone.jpg"))
        os.symlink("self.jpg", os.path.join(self.src, "a", "self.jpg"))
        os.symlink("/dev/null", os.path.join(self.src, "a", "null.jpg"))
        here = os.getcwd()
        os.chdir(os.path.join(self.src, "a"))
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket.jpg")
        os.chdir(here)
        self.pack(self.src, self.out, "--max-rejects", "5", timeout=20)
        self.assertEqual(sorted(rejects(self.out)), [
            (b"a/fifo.jpg", "not a regular file"), (b"a/gone.jpg", "not found"),
            (b"a/null.jpg", "not a regular file"), (b"a/self.jpg", "not found"),
            (b"a/socket.jpg", "not a regular file")])
        self.assertEqual([one["key"] for one in samples(self.out)], [b"a/good.jpg"])

    def list_with_sizes(self, **changes):
        """A list as `find -printf '%s %T@ %p\\n'` writes it; nothing in it is looked at again."""
        with open(self.path("list.txt"), "w", encoding="ascii") as file:
            for key in sorted(os.listdir(os.path.join(self.src, "a"))):
                info = os.stat(os.path.join(self.src, "a", key))
                size = changes.get("size", {}).get(key, info.st_size)
                mtime = changes.get("mtime", {}).get(key, info.st_mtime_ns)
                file.write("%d %d.%09d a/%s\n" % (size, mtime // 10**9, mtime % 10**9, key))
        return self.path("list.txt")

    def test_absence_rejects_and_change_fails(self):
        made = pictures.make_folder(self.src, {"a": 8})
        listed = self.list_with_sizes()
        os.rename(os.path.join(self.src, "a", "00003.jpg"), self.path("away"))
        self.pack(listed, self.out, "--root", self.src, code=REJECTS)
        self.pack(listed, self.out, "--root", self.src, "--max-rejects", "1")
        self.assertEqual(rejects(self.out), [(b"a/00003.jpg", "not found")])
        os.rename(self.path("away"), os.path.join(self.src, "a", "00003.jpg"))

        size = len(made["a/00005.jpg"])
        for changes, words in (
                ({"size": {"00005.jpg": size - 1}}, "has %d bytes; %d when it was" % (size, size - 1)),
                ({"size": {"00005.jpg": size + 1}}, "has %d bytes; %d when it was" % (size, size + 1)),
                ({"mtime": {"00005.jpg": 10**18 + 1}}, "was written to since it was listed")):
            out = self.path("changed")
            done = run("pack", self.list_with_sizes(**changes), out, "--root", self.src,
                       "--max-rejects", "8")
            self.expect(done, FAILED, "a/00005.jpg", words)
            self.assertFalse(os.path.exists(out))
            done = run("pack", self.list_with_sizes(), out, "--root", self.src, "--restart")
            self.expect(done, DONE)
            self.pack(listed, self.path("again"), "--root", self.src)
            for name in ("changed", "again"):
                os.rename(self.path(name), self.path("old-%s-%d" % (name, len(os.listdir(self.dir)))))

    def test_trouble_of_the_machine_rejects_nothing(self):
        """Too few descriptors is no fault of a picture."""
        self.make_source()
        done = run("pack", self.src, self.out, "--io-threads", "64", "--jobs", "1",
                   "--max-rejects", "1000", limits=[(resource.RLIMIT_NOFILE, 12)])
        if done.code != DONE:  # else they sufficed
            self.expect(done, FAILED, "Too many open files")
            self.assertFalse(os.path.exists(self.out))
        self.pack(self.src, self.out, "--max-rejects", "5", "--force")
        self.assertEqual(len(rejects(self.out)), 5)

    def test_all_bad(self):
        for number in range(20):
            self.write("a/%d.jpg" % number, b"<html>no</html>")
        self.pack(self.src, self.out, "--max-rejects", "100", code=FAILED,
                  words=("no sample is left: 20 samples were rejected", ".partial/rejects.tsv names each"))
        self.assertFalse(os.path.exists(self.out))
        self.assertEqual(sorted(key for key, _ in rejects(self.out + ".partial")),
                         sorted(b"a/%d.jpg" % number for number in range(20)))

    def test_the_first_thousand_all_bad(self):
        for number in range(1200):
            self.write("a/%04d.jpg" % number, b"<html>no</html>")
        self.pack(self.src, self.out, "--max-rejects", "10000", code=FAILED,
                  words=("samples were all rejected, most as 'not an image", "look at the source"))
        self.assertFalse(os.path.exists(self.out))

    def test_bad_ones_behind_a_good_one_do_not_stop_it(self):
        for number in range(1200):
            self.write("a/%04d.jpg" % number, b"<html>no</html>")
        self.write("a/.jpg", b"hidden")
        self.write("a/-.jpg", pictures.jpeg(1))  # the first in order
        self.pack(self.src, self.out, "--no-shuffle", "--shards", "1", "--max-rejects", "1200")
        self.assertEqual([one["key"] for one in samples(self.out)], [b"a/-.jpg"])
        self.assertEqual(len(rejects(self.out)), 1200)

    def test_names_of_any_bytes_in_the_list(self):
        os.makedirs(os.path.join(os.fsencode(self.src), b"c\xff"))
        bad = b"c\xff/tab\there\nand\\there.jpg"
        for key, data in ((b"c\xff/good.jpg", pictures.jpeg(1)), (bad, b"")):
            with open(os.path.join(os.fsencode(self.src), key), "wb") as file:
                file.write(data)
        self.pack(self.src, self.out, "--max-rejects", "1")
        self.assertEqual(rejects(self.out), [(bad, "empty file")])

    def test_the_report(self):
        self.make_source()
        self.write("a/tail.jpg", pictures.jpeg("tail") + b"more behind the end")
        self.write("a/.hidden.jpg", b"")
        self.write("a/notes.txt", b"")
        file = self.path("report.json")
        self.pack(self.src, self.out, *SHARDS, "--max-rejects", "5", "--report", file)
        with open(file, encoding="utf-8") as opened:
            report = json.load(opened)
        self.assertEqual((report["type"], report["result"], report["rejects"]),
                         ("pack", "published", 5))
        self.assertEqual(report["reject_reasons"], {"truncated": 5})
        self.assertEqual(sum(report["ignored"].values()), 2)
        self.assertEqual([(kind["count"], kind["examples"]) for kind in report["warnings"].values()],
                         [(1, ["a/tail.jpg"])])
        one, = report["packs"]
        self.assertEqual((one["listed"], one["samples"], one["rejects"], one["shards"]),
                         (66, 61, 5, 3))
        self.assertEqual(one["payload_bytes"], sum(one["bytes"] for one in samples(self.out)))


if __name__ == "__main__":
    main()

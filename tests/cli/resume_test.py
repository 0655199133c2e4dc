# ctest: timeout=300
"""A command line that is given again: it continues, finds the pack complete, or is refused with what
differs. One OUT.partial belongs to one run at a time."""

import os
import pathlib
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, SHIM, USAGE, PackTest, all_names, faulty, finish,  # noqa: E402
                     identity, main, names, run, snapshot, start)

TWO_SHARDS = ["--shards", "2", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]


@unittest.skipUnless(os.path.exists(SHIM), "needs libfaulty_io.so")
class UnfinishedTest(PackTest):
    """Over what a run left that died after its first shard."""

    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"a": 12, "b": 12})

    def die_in_the_middle(self, *arguments, source=None):
        plan = "call=pwrite,pwritev;path=shard-00001;nth=1;action=kill"
        done = run("pack", source or self.src, self.out, *TWO_SHARDS, *arguments,
                   env=faulty(plan))
        self.assertEqual(done.code, -signal.SIGKILL, str(done))
        self.assertIn("shard-00000.spks", names(self.partial))

    def refused(self, *words, options=(), source=None):
        before = snapshot(self.partial)
        done = self.pack(source or self.src, self.out, *TWO_SHARDS, *options, code=FAILED,
                         words=("unfinished run of another plan",) + words)
        self.assertIn("--restart", done.err.decode())
        self.assertFalse(os.path.exists(self.out))
        after = snapshot(self.partial)
        for found in (before, after):
            found.pop(b".")  # its mtime
            found.pop(b"owner", None)  # who holds it, while somebody does
        self.assertEqual(after, before)

    def test_other_options(self):
        self.die_in_the_middle("--seed", "3")
        self.refused("seed: 3 before, 4 now", options=["--seed", "4"])
        self.refused("shuffle: full before, none now", options=["--no-shuffle"])
        self.refused("check: structure before, decode now",
                     options=["--seed", "3", "--check", "decode"])
        self.refused("max_pixels: 178956970 before, 1000 now",
                     options=["--seed", "3", "--max-pixels", "1000"])
        self.refused("labels: int before, none now", options=["--seed", "3", "--labels", "none"])
        done = run("pack", self.src, self.out, "--seed", "3", "--shards", "3", "--chunk-size",
                   "128KiB")
        self.expect(done, FAILED, "shard_count: 2 before, 3 now",
                    "chunk_bytes: 65536 before, 131072 now")
        # And the right ones, with others that shape no byte.
        self.pack(self.src, self.out, "--shards", "2", "--chunk-size", "64KiB", "--seed", "3",
                  "--jobs", "3", "--memory", "128MiB", "--max-rejects", "5")

    def test_added_and_removed_files(self):
        self.die_in_the_middle()
        pictures.write(os.path.join(self.src, "a", "more.jpg"), pictures.jpeg("more"))
        self.refused("samples added: 1 (a/more.jpg)")
        os.unlink(os.path.join(self.src, "a", "more.jpg"))
        os.rename(os.path.join(self.src, "b", "00003.jpg"), self.path("away"))
        self.refused("samples removed: 1 (b/00003.jpg)")
        os.rename(self.path("away"), os.path.join(self.src, "b", "00003.jpg"))
        os.mkdir(os.path.join(self.src, "c"))
        self.refused("classes added: 1 (c)")
        os.rmdir(os.path.join(self.src, "c"))
        self.pack(self.src, self.out, *TWO_SHARDS)

    def test_changed_files(self):
        self.die_in_the_middle()
        path = os.path.join(self.src, "a", "00005.jpg")
        times = os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns
        pictures.write(path, self.made["a/00005.jpg"] + b"x")
        size = len(self.made["a/00005.jpg"])
        self.refused("samples changed in size: 1 (a/00005.jpg: %d bytes before, %d bytes now)"
                     % (size, size + 1))
        pictures.write(path, self.made["a/00005.jpg"])
        os.utime(path, ns=(times[0], times[1] + 1000))
        self.refused("samples changed in mtime: 1 (a/00005.jpg)")
        os.utime(path, ns=times)
        self.pack(self.src, self.out, *TWO_SHARDS)

    def test_changed_label_in_a_list(self):
        listed = self.path("list.txt")

        def write_list(label):
            with open(listed, "w", encoding="ascii") as file:
                for number, key in enumerate(sorted(self.made)):
                    file.write("%s %d\n" % (key, label if number == 7 else number % 3))

        write_list(1)
        self.die_in_the_middle("--root", self.src, source=listed)
        write_list(2)
        self.refused("samples changed in label: 1 (a/00007.jpg: 1 before, 2 now)",
                     options=["--root", self.src], source=listed)
        write_list(1)
        self.pack(listed, self.out, *TWO_SHARDS, "--root", self.src)

    def test_restart_begins_anew(self):
        self.die_in_the_middle("--seed", "3")
        pictures.write(os.path.join(self.src, "a", "more.jpg"), pictures.jpeg("more"))
        done = self.pack(self.src, self.out, *TWO_SHARDS, "--seed", "4", "--restart", "--json")
        report = self.report(done)["packs"][0]
        self.assertEqual((report["samples"], report["shards_found_complete"],
                          report["samples_kept"]), (25, 0, 0))
        self.pack(self.src, self.path("fresh"), *TWO_SHARDS, "--seed", "4")
        self.assert_same_pack(self.out, self.path("fresh"))
        self.assertEqual(all_names(self.out), all_names(self.path("fresh")))

    def test_other_splits(self):
        tree = self.path("tree")
        for split in ("train", "val"):
            shutil.copytree(self.src, os.path.join(tree, split))
        plan = "call=pwrite,pwritev;path=shard-00001;nth=1;action=kill"
        run("pack", tree, self.out, *TWO_SHARDS, env=faulty(plan))
        done = run("pack", tree, self.out, *TWO_SHARDS, "--splits", "none")
        self.expect(done, FAILED, "an unfinished run with other splits lies here", "--restart")
        self.pack(tree, self.out, *TWO_SHARDS)
        self.assertEqual(names(self.out), ["train", "val"])

    def test_a_file_that_changes_while_it_is_packed(self):
        """Between listing and reading: the shard fails, nothing is published."""
        self.die_in_the_middle()
        path = os.path.join(self.src, "a", "00001.jpg")
        # Stopped in the middle of a first shard, then changed in a way that listing notices.
        shutil.rmtree(self.partial)
        process = start("pack", self.src, self.out, *TWO_SHARDS,
                        env=faulty("call=rename;path=plan.spkp;nth=1;action=fail"))
        done = finish(process)
        self.expect(done, FAILED)
        self.assertFalse(os.path.exists(self.out))
        os.utime(path)
        self.pack(self.src, self.out, *TWO_SHARDS)


class CompleteTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"a": 5, "b": 5})

    def test_nothing_to_do(self):
        self.pack(self.src, self.out)
        before = snapshot(self.out)
        self.pack(self.src, self.out, words=("complete",))
        done = self.pack(self.src, self.out, "--json", "--jobs", "3", "--memory", "100MiB")
        self.assertEqual(self.report(done)["result"], "complete")
        self.assertEqual(snapshot(self.out), before)
        self.assert_no_leftovers("out", "src")

    def test_another_plan_or_source(self):
        self.pack(self.src, self.out)
        before = snapshot(self.out)
        for options, words in ((["--seed", "1"], "seed: 0 before, 1 now"),
                               (["--check", "none"], "check: structure before, none now")):
            self.pack(self.src, self.out, *options, code=FAILED,
                      words=("OUT is another pack than this line makes", words, "--force"))
        pictures.write(os.path.join(self.src, "a", "new.jpg"), pictures.jpeg("new"))
        self.pack(self.src, self.out, code=FAILED, words=("10 samples before, 11 now",))
        self.assertEqual(snapshot(self.out), before)
        self.assert_no_leftovers("out", "src")

    def test_force_keeps_the_old_pack_aside(self):
        self.pack(self.src, self.out, "--seed", "1")
        old = snapshot(self.out)
        done = self.pack(self.src, self.out, "--seed", "2", "--force", "--json")
        aside = self.report(done)["old_pack"]
        kept = snapshot(aside)
        self.assertEqual(kept, old)
        self.pack(self.src, self.path("fresh"), "--seed", "2")
        self.assert_same_pack(self.out, self.path("fresh"))
        self.assertEqual(names(self.dir),
                         sorted(["fresh", "out", os.path.basename(aside), "src"]))


class BusyTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"a": 400}, smallest=20000, largest=40000)
        self.arguments = ["--shards", "6", "--chunk-size", "64KiB", "--jobs", "1",
                          "--io-threads", "1"]

    def test_two_runs_at_once(self):
        """The second is refused and leaves the first in peace."""
        first = start("pack", self.src, self.out, *self.arguments)
        try:
            deadline = time.monotonic() + 60
            while not os.path.exists(os.path.join(self.partial, "owner")):
                self.assertIsNone(first.poll())
                self.assertLess(time.monotonic(), deadline)
            first.send_signal(signal.SIGSTOP)
            for options in ([], ["--restart"], ["--force"]):
                done = run("pack", self.src, self.out, *self.arguments, *options)
                self.expect(done, FAILED, "another run is packing here",
                            "process %d on " % first.pid)
            done = run("pack", self.src, self.out, "--json")
            self.expect(done, FAILED, '"code": "busy"')
        finally:
            first.send_signal(signal.SIGCONT)
        self.expect(finish(first), DONE)
        self.pack(self.src, self.path("alone"), *self.arguments)
        self.assert_same_pack(self.out, self.path("alone"))
        self.assertEqual(all_names(self.out), all_names(self.path("alone")))

    def test_many_at_once_make_one_pack(self):
        runs = [start("pack", self.src, self.out, *self.arguments) for _ in range(5)]
        done = [finish(one) for one in runs]
        self.assertIn(DONE, [one.code for one in done])
        for one in done:
            self.assertIn(one.code, (DONE, FAILED), str(one))
            if one.code == FAILED:
                self.assertIn(b"another run is packing here", one.err)
        self.pack(self.src, self.path("alone"), *self.arguments)
        self.assert_same_pack(self.out, self.path("alone"))
        self.assertEqual(names(self.dir), ["alone", "out", "src"])


class ForeignPartialTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"a": 3})

    def test_somebodys_folder_of_that_name_is_left_alone(self):
        pictures.write(os.path.join(self.partial, "thesis.txt"), b"years of work")
        before = snapshot(self.partial)
        for options in ([], ["--restart"], ["--force"]):
            self.pack(self.src, self.out, *options, code=FAILED,
                      words=("'thesis.txt'", "left alone"))
        os.rename(os.path.join(self.partial, "thesis.txt"), self.path("thesis.txt"))
        os.rmdir(self.partial)
        shutil.copytree(self.src, self.partial)
        self.pack(self.src, self.out, "--restart", code=FAILED, words=("'a/00000.jpg'",))
        self.assertEqual(len(before), 2)

    def test_the_source_is_never_built_in(self):
        source = self.partial
        os.rename(self.src, source)
        before = snapshot(source)
        for options in ([], ["--restart"]):
            self.pack(source, self.out, *options, code=USAGE, words=("OUT.partial",))
        self.assertEqual(snapshot(source), before)

    def test_an_empty_one_is_used(self):
        """Made beforehand to give it a layout, say."""
        os.mkdir(self.partial)
        self.pack(self.src, self.out)
        self.assertEqual(sorted(identity(self.out)),
                         ["index.spki", "manifest.json", "rejects.tsv", "shard-00000.spks"])


if __name__ == "__main__":
    main()

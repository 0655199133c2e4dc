# ctest: timeout=900
"""`mpirun -n N stripepack pack` and `verify`: the same bytes as one process makes, one message of an
error, the same exit code of all ranks. With each MPI that a plugin was built for and whose mpirun is
installed."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (BUILD, DONE, FAILED, NO, PROGRAM, REJECTS, SHIM, USAGE, Done,  # noqa: E402
                     PackTest, all_names, faulty, for_mpi, main, remove_tree, run, samples, sha256,
                     text)

SHAPE = ["--shards", "7", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]
LAUNCHERS = {
    "mpich": ["mpirun.mpich"],
    "openmpi": ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"],
}


def available():
    return [name for name, words in LAUNCHERS.items()
            if shutil.which(words[0])
            and os.path.exists(os.path.join(BUILD, "plugins", "stripepack-%s.so" % name))]


def own_lines(done):
    """What the program said of its error; launchers have words of their own."""
    return [line for line in text(done.err).splitlines() if line.startswith("stripepack ")]


def own_report(done):
    """What the program printed, without what Open MPI adds where ranks end with an error."""
    return text(done.out).split("-" * 60)[0].splitlines()


class MpiTest(PackTest):
    def setUp(self):
        super().setUp()
        self.mpis = available()
        if not self.mpis:
            self.skipTest("no mpirun with a plugin that was built for it")
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"a": 40, "b": 30})

    def launch(self, mpi, ranks, *arguments, env=None):
        environment = for_mpi(dict(os.environ, PYTHONDONTWRITEBYTECODE="1") | (env or {}))
        return subprocess.Popen([*LAUNCHERS[mpi], "-n", str(ranks), PROGRAM, *arguments],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment)

    def end(self, process, timeout=120):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            for rank in self.stopped_ranks():
                os.kill(rank, signal.SIGKILL)
            out, err = process.communicate()
            self.fail("still running: %s%s" % (text(out), text(err)))
        return Done(process.returncode, out, err, 0, 0)

    def mpirun(self, mpi, ranks, *arguments, **how):
        return self.end(self.launch(mpi, ranks, *arguments, **how))

    def test_same_bytes(self):
        alone = self.path("alone")
        self.pack(self.src, alone, *SHAPE)
        for mpi in self.mpis:
            for ranks in (1, 2, 4):
                with self.subTest(mpi=mpi, ranks=ranks):
                    done = self.mpirun(mpi, ranks, "pack", self.src, self.out, *SHAPE)
                    self.expect(done, DONE, "packed 70 samples", "published " + self.out)
                    self.assertEqual(done.out.count(b"published"), 1)
                    self.assert_same_pack(self.out, alone)
                    self.assertEqual(all_names(self.out), all_names(alone))
                    done = self.mpirun(mpi, ranks, "pack", self.src, self.out, *SHAPE)
                    self.expect(done, DONE, "complete")
                    self.assertEqual(done.out.count(b"complete"), 1)
                    remove_tree(self.out)

    def test_splits_and_more_ranks_than_shards(self):
        sets = self.path("sets")
        for split, count in (("train", 9), ("val", 4)):
            pictures.make_folder(os.path.join(sets, split), {"a": count, "b": count})
        self.pack(sets, self.path("alone"))
        for mpi in self.mpis:
            self.expect(self.mpirun(mpi, 4, "pack", sets, self.out), DONE, "train: packed")
            self.assert_same_pack(self.out, self.path("alone"))
            remove_tree(self.out)

    def test_rejects_are_told_once(self):
        for number in (2, 3, 30):
            pictures.write(os.path.join(self.src, "a", "%05d.jpg" % number),
                           pictures.cut_jpeg(number))
        for mpi in self.mpis:
            done = self.mpirun(mpi, 3, "pack", self.src, self.out, *SHAPE)
            self.expect(done, REJECTS, "3 samples were rejected", "--max-rejects 3")
            self.assertEqual(done.out.count(b"not published"), 1)
            done = self.mpirun(mpi, 2, "pack", self.src, self.out, *SHAPE, "--max-rejects", "3",
                               "--json")
            self.expect(done, DONE)
            report = [one for one in done.objects if one.get("type") == "pack"]
            self.assertEqual(len(report), 1)
            self.assertEqual((report[0]["packs"][0]["samples"], report[0]["rejects"]), (67, 3))
            self.assertEqual(report[0]["packs"][0]["shards_found_complete"], 7)
            remove_tree(self.out)

    def test_bench(self):
        self.pack(self.src, self.out, *SHAPE)
        for mpi in self.mpis:
            for more, ranks in (((), 3), (("--ranks", "7"), 7), (("--ranks", "4", "--share"), 4)):
                with self.subTest(mpi=mpi, ranks=ranks):
                    done = self.mpirun(mpi, 3, "bench", self.out, "--json", "--batch", "4",
                                       "--epochs", "2", "--step-ms", "1", *more)
                    self.expect(done, DONE)
                    head, *epochs, summary = done.objects
                    self.assertEqual((head["ranks"], head["processes"]), (ranks, 3))
                    self.assertEqual([epoch["epoch"] for epoch in epochs], [0, 1])
                    for epoch in epochs:
                        self.assertEqual(epoch["samples"], 70)
                        self.assertEqual(epoch["steps"], -(-70 // (4 * ranks)))
                        self.assertLessEqual(epoch["wait_median_ms"], epoch["wait_most_ms"])
                        self.assertGreater(epoch["accelerator_busy"], 0)
                    self.assertEqual(len({epoch["payload_bytes"] for epoch in epochs}), 1)
                    self.assertEqual(summary["type"], "summary")
                    self.assertGreater(head["memory_limit_bytes"], 0)
            done = self.mpirun(mpi, 3, "bench", self.out, "--ranks", "2")
            self.assertEqual(done.code, USAGE, str(done))
            self.assertIn("--ranks 2: for 3 processes from 3 to 3072", text(done.err))

    def test_errors_are_told_once_and_all_ranks_end(self):
        for mpi in self.mpis:
            with self.subTest(mpi=mpi):
                done = self.mpirun(mpi, 3, "pack", self.path("nothing"), self.out)
                self.assertEqual(done.code, FAILED, str(done))
                self.assertEqual(len(own_lines(done)), 1, str(done))
                done = self.mpirun(mpi, 3, "pack", self.src, self.out, "--nonsense")
                self.assertEqual(done.code, USAGE, str(done))
                # Open MPI ends all when one ends with an error, and may lose what another said.
                self.assertLessEqual(len(own_lines(done)), 1, str(done))

    @unittest.skipUnless(os.path.exists(SHIM), "needs libfaulty_io.so")
    def test_a_full_disk_on_one_rank(self):
        """Shard 4 of 7 is rank 1's, of three."""
        self.pack(self.src, self.path("alone"), *SHAPE)
        for mpi in self.mpis:
            with self.subTest(mpi=mpi):
                done = self.mpirun(mpi, 3, "pack", self.src, self.out, *SHAPE, env=faulty(
                    "call=pwrite,pwritev;path=shard-00004;nth=1;errno=ENOSPC"))
                self.assertEqual(done.code, FAILED, str(done))
                self.assertEqual(len(own_lines(done)), 1, str(done))
                self.assertIn("shard-00004", own_lines(done)[0])
                self.assertIn("No space left on device", own_lines(done)[0])
                # Two at once: that of the lower shard.
                done = self.mpirun(mpi, 3, "pack", self.src, self.out, *SHAPE, env=faulty(
                    "call=fsync;path=.spks;nth=1;errno=EIO"))
                self.assertEqual(done.code, FAILED, str(done))
                self.assertEqual(len(own_lines(done)), 1, str(done))
                self.expect(self.mpirun(mpi, 2, "pack", self.src, self.out, *SHAPE), DONE,
                            "published")
                self.assert_same_pack(self.out, self.path("alone"))
                remove_tree(self.out)

    def stopped_ranks(self):
        """{process number: whether SIGTERM waits for it} of those that have stopped themselves."""
        found = {}
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                words = status.read_text()
                command = (status.parent / "cmdline").read_bytes()
                if "State:\tT" in words and command.startswith(
                        os.fsencode(PROGRAM)) and os.fsencode(self.out) in command:
                    pending = int(re.search(r"ShdPnd:\t([0-9a-f]+)", words).group(1), 16)
                    found[int(status.parent.name)] = bool(pending >> (signal.SIGTERM - 1) & 1)
        return found

    @unittest.skipUnless(os.path.exists(SHIM), "needs libfaulty_io.so")
    def test_a_signal_stops_all(self):
        self.pack(self.src, self.path("alone"), *SHAPE)
        for mpi in self.mpis:
            with self.subTest(mpi=mpi):
                # Ranks stop at each write, and go on once SIGTERM has come to them.
                process = self.launch(mpi, 2, "pack", self.src, self.out, *SHAPE, env=faulty(
                    "call=pwrite,pwritev;path=shard-;action=stop"))
                limit = time.monotonic() + 60
                while len(self.stopped_ranks()) < 2 and time.monotonic() < limit:
                    self.assertIsNone(process.poll())
                process.send_signal(signal.SIGTERM)
                told = set()
                while process.poll() is None and time.monotonic() < limit:
                    for rank, signalled in self.stopped_ranks().items():
                        if signalled or rank in told:
                            told.add(rank)  # it may come to one more write
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(rank, signal.SIGCONT)
                done = self.end(process)
                # The launcher's own code: MPICH's is 0 after a signal, whatever the ranks' was.
                self.assertTrue(done.code != 0 or mpi == "mpich", str(done))
                self.assertFalse(os.path.exists(self.out), str(done))
                self.assertIn(own_lines(done), (
                    [], ["stripepack pack: stopped by SIGTERM; the same command line continues"]))
                self.expect(self.mpirun(mpi, 3, "pack", self.src, self.out, *SHAPE), DONE,
                            "published")
                self.assert_same_pack(self.out, self.path("alone"))
                remove_tree(self.out)

    @unittest.skipUnless(os.path.exists(SHIM), "needs libfaulty_io.so")
    def test_a_rank_is_killed(self):
        self.pack(self.src, self.path("alone"), *SHAPE)
        for mpi in self.mpis:
            with self.subTest(mpi=mpi):
                done = self.mpirun(mpi, 3, "pack", self.src, self.out, *SHAPE, env=faulty(
                    "call=pwrite,pwritev;path=shard-00004;nth=1;action=kill"))
                self.assertNotEqual(done.code, 0, str(done))
                self.assertFalse(os.path.exists(self.out), str(done))
                self.expect(self.mpirun(mpi, 2, "pack", self.src, self.out, *SHAPE), DONE,
                            "published")
                self.assert_same_pack(self.out, self.path("alone"))
                remove_tree(self.out)

    def test_verify(self):
        self.pack(self.src, self.out, *SHAPE)
        alone = run("verify", self.out, "--decode", "--against", self.src)
        for mpi in self.mpis:
            done = self.mpirun(mpi, 3, "verify", self.out, "--decode", "--against", self.src)
            self.expect(done, DONE)
            self.assertEqual(done.out, alone.out)
        for shard, offset in ((1, 3000), (4, 900), (5, 70)):
            with open(os.path.join(self.out, "shard-%05d.spks" % shard), "r+b") as file:
                file.seek(offset)
                file.write(b"damage")
        os.unlink(os.path.join(self.out, "rejects.tsv"))
        for options in ([], ["--json"], ["--quick"], ["--decode"]):
            alone = run("verify", self.out, *options)
            self.assertEqual(alone.code, NO)
            for mpi in self.mpis:
                with self.subTest(mpi=mpi, options=options):
                    done = self.mpirun(mpi, 4, "verify", self.out, *options)
                    self.assertEqual(done.code, NO, str(done))
                    mine = [line for line in done.out.splitlines() if line in
                            alone.out.splitlines()]
                    self.assertEqual(mine, alone.out.splitlines(), str(done))

    def assert_verified_as_by_one(self, code, *arguments, ranks=(1, 2, 3), words=()):
        """The same report and the same message, whatever the number of ranks and of threads."""
        alone = run("verify", *arguments, "--jobs", "1")
        self.expect(alone, code, *words)
        for mpi in self.mpis:
            for count in ranks:
                with self.subTest(mpi=mpi, ranks=count, arguments=arguments):
                    done = self.mpirun(mpi, count, "verify", *arguments, "--jobs", "3")
                    self.assertEqual(done.code, code, str(done))
                    self.assertEqual(own_report(done), text(alone.out).splitlines(), str(done))
                    self.assertEqual(own_lines(done), own_lines(alone))

    def change(self, key):
        with open(os.path.join(self.src, text(key)), "r+b") as file:
            file.seek(10)
            file.write(b"?")

    def test_verify_against(self):
        self.pack(self.src, self.out, *SHAPE)
        against = (self.out, "--against", self.src)
        self.assert_verified_as_by_one(DONE, *against, ranks=(3, 9), words=("against: ok",))
        packed = samples(self.out, "id")
        # A shard is a chunk here; number 5 is that of the last of 2 and of 3 ranks.
        fifth = [one for one in packed if one["shard"] == 5]
        for one in (packed[0], packed[1], *fifth, packed[-1]):
            self.change(one["key"])
        gone = text(packed[30]["key"])
        os.unlink(os.path.join(self.src, gone))
        for name in ("new", "newer"):
            pictures.write(os.path.join(self.src, "b", name + ".jpg"), pictures.jpeg(99))
        with open(os.path.join(self.out, "shard-00005.spks"), "r+b") as file:
            file.seek(fifth[-1]["offset"] + 20)
            file.write(b"damage")
        last = "'%s' differs from the source at byte 10" % text(fifth[-1]["key"])
        self.assert_verified_as_by_one(
            NO, *against, words=("DAMAGED: 1 place", "'b/new.jpg' is in the source but not", last,
                                 "'%s' is in the pack but not in the source" % gone))
        self.assert_verified_as_by_one(NO, *against, "--json", ranks=(3, 9))
        self.assert_verified_as_by_one(NO, *against, "--decode", ranks=(2,))
        self.assert_verified_as_by_one(FAILED, self.out, "--against", self.path("nothing"),
                                       ranks=(3,), words=("No such file",))

    def test_verify_against_more_ranks_than_chunks_and_splits(self):
        sets = self.path("sets")
        for split in ("train", "val", "test"):
            pictures.make_folder(os.path.join(sets, split), {"a": 2, "b": 1})
        self.pack(sets, self.out)
        against = (self.out, "--against", sets)
        self.assert_verified_as_by_one(DONE, *against, ranks=(4,))
        remove_tree(os.path.join(self.out, "test"))
        remove_tree(os.path.join(sets, "val"))
        pictures.write(os.path.join(sets, "train", "b", "00000.jpg"), pictures.jpeg(7))
        self.assert_verified_as_by_one(
            NO, *against, ranks=(1, 2, 4),
            words=("is a split that has no pack", "is a pack that the source has no split for"))

    def test_verify_against_lists_and_archives(self):
        keys = sorted(self.made)

        def write_list(name, line):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.writelines(line(number, key) + "\n" for number, key in enumerate(keys))
            return self.path(name), "--root", self.src

        labels = write_list("labels", lambda number, key: "%s %d" % (key, number % 5))
        self.pack(*labels[:1], self.out, *labels[1:], *SHAPE)
        write_list("labels", lambda number, key: "%s %d" % (key, number // 35 + number % 5))
        self.assert_verified_as_by_one(NO, self.out, "--against", *labels, ranks=(3,),
                                       words=("has label 4 in the pack, 5 in the source",))
        remove_tree(self.out)
        # The list is older than a file: each rank knows that it was the list that told.
        def found(_, key):
            facts = os.stat(os.path.join(self.src, key))
            return "%d %d.%09d %s" % (facts.st_size, *divmod(facts.st_mtime_ns, 10**9), key)

        sizes = write_list("sizes", found)
        self.pack(*sizes[:1], self.out, *sizes[1:], *SHAPE)
        for key in keys:
            with open(os.path.join(self.src, key), "ab") as file:
                file.write(b"?")
        self.assert_verified_as_by_one(NO, self.out, "--against", *sizes, ranks=(3,),
                                       words=("sizes is older than the file", "FAULTS: 70"))
        remove_tree(self.out)
        archive = self.path("all.tar.gz")
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(self.src, arcname=".")
        self.pack(archive, self.out, *SHAPE)
        self.assert_verified_as_by_one(DONE, self.out, "--against", archive, ranks=(3,))

    def test_verify_layout(self):
        self.pack(self.src, self.out, *SHAPE)
        self.assert_verified_as_by_one(DONE, self.out, "--layout", ranks=(3,),
                                       words=("layout: ok",))
        # As if it had been copied from a Lustre, where some shards lay on it.
        path = pathlib.Path(self.out, "layout.json")
        record = json.loads(path.read_text())
        striped = {"system": "lustre", "components": [
            {"stripe_bytes": 65536, "stripe_count": 1, "targets": [3]}]}
        plain = {"system": "none", "components": []}
        record["maps"][0]["shards"] = [plain] * 4 + [striped] * 3
        path.write_text(json.dumps(record))
        for more, ranks in (((), (1, 2, 3, 9)), (("--json",), (3,))):
            self.assert_verified_as_by_one(NO, self.out, "--layout", *more, ranks=ranks,
                                           words=("3 shards (the first: shard-00004.spks) lie",))
        path.write_text("{")
        self.assert_verified_as_by_one(NO, self.out, "--layout", ranks=(3,),
                                       words=("layout.json",))

    def test_export(self):
        self.pack(self.src, self.path("pack"), *SHAPE)
        kinds = [name for name in ("folder", "tar", "tfrecord", "csv")]
        for kind in kinds:
            alone = self.path("alone-" + kind)
            options = [] if kind in ("csv", "folder") else ["--shards", "5"]
            self.expect(run("export", self.path("pack"), alone, "--to", kind, *options), DONE)
            for mpi in self.mpis:
                with self.subTest(mpi=mpi, kind=kind):
                    done = self.mpirun(mpi, 3, "export", self.path("pack"), self.out, "--to", kind,
                                       *options)
                    self.expect(done, DONE, "exported 70 samples")
                    self.assertEqual(done.out.count(b"exported"), 1)
                    self.assertEqual(all_names(self.out), all_names(alone))
                    for name in all_names(alone):
                        self.assertEqual(sha256(os.path.join(self.out, name)),
                                         sha256(os.path.join(alone, name)), name)
                    done = self.mpirun(mpi, 2, "export", self.path("pack"), self.out, "--to", kind)
                    self.assertEqual(done.code, FAILED, str(done))
                    self.assertEqual(len(own_lines(done)), 1, str(done))
                    remove_tree(self.out)

    def test_extract(self):
        self.pack(self.src, self.path("pack"), *SHAPE)
        with open(self.path("pack", "shard-00002.spks"), "r+b") as file:
            file.seek(20000)
            file.write(b"damage")
        alone = run("extract", self.path("pack"), self.path("alone"), "--manifest",
                    self.path("alone.tsv"))
        self.expect(alone, NO, "could not be read")
        for mpi in self.mpis:
            with self.subTest(mpi=mpi):
                done = self.mpirun(mpi, 3, "extract", self.path("pack"), self.out, "--manifest",
                                   self.path("list.tsv"))
                self.assertEqual(done.code, NO, str(done))
                self.assertEqual([line for line in done.out.splitlines()
                                  if line.startswith(b"extracted")], alone.out.splitlines())
                self.assertEqual(sorted(line for line in done.err.splitlines()
                                        if line.startswith(b"not extracted")),
                                 sorted(line for line in alone.err.splitlines()
                                        if line.startswith(b"not extracted")))
                self.assertEqual(all_names(self.out), all_names(self.path("alone")))
                self.assertEqual(sha256(self.path("list.tsv")), sha256(self.path("alone.tsv")))
                remove_tree(self.out)

    def test_a_launcher_that_no_plugin_fits(self):
        away = self.path("bin")
        os.mkdir(away)
        shutil.copy(PROGRAM, os.path.join(away, "stripepack"))
        environment = dict(os.environ, PMI_RANK="0", PMI_SIZE="4")
        done = subprocess.run([os.path.join(away, "stripepack"), "pack", self.src, self.out],
                              env=environment, capture_output=True)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b"started 4 times by MPICH's mpirun", done.stderr)
        self.assertIn(b"--part I/N", done.stderr)
        environment["PMI_RANK"] = "1"
        done = subprocess.run([os.path.join(away, "stripepack"), "pack", self.src, self.out],
                              env=environment, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (USAGE, b""))
        self.assertFalse(os.path.exists(self.out))

    def test_srun_without_mpi(self):
        environment = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}
        done = run("pack", self.src, self.out, env=environment)
        self.expect(done, USAGE, "started 4 times by srun, but without MPI", "--part slurm")


if __name__ == "__main__":
    main()

# ctest: timeout=600
"""A disk that fails: whatever call fails, and however, the run ends with exit code 4, nothing is
published, and a run without faults then makes the bytes of an undisturbed one."""

import os
import pathlib
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, SHIM, PackTest, all_names, faulty, identity, main,  # noqa: E402
                     names, run, text)

# One thread, so that the calls always come in the same order.
ARGUMENTS = ["--shards", "2", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]


class FaultTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"a": 9, "b": 8}, largest=20000)
        self.pack(self.src, self.out, *ARGUMENTS)
        self.whole = identity(self.out), all_names(self.out)
        shutil.rmtree(self.out)

    def every(self, calls, errno, published=0, action="fail"):
        """Makes each of these calls fail, one at a time. The last `published` of them come when the
        pack has its name already. Returns how many there were."""
        plan = "call=%s" % calls
        count = self.count_calls(plan, "pack", self.src, self.out, *ARGUMENTS)
        shutil.rmtree(self.out)
        self.assertGreater(count, 0)
        for nth in range(1, count + 1):
            with self.subTest(calls=calls, errno=errno, nth=nth, of=count):
                one = "%s;nth=%d;errno=%s;action=%s" % (plan, nth, errno, action)
                done = run("pack", self.src, self.out, *ARGUMENTS, env=faulty(one))
                self.assertEqual(done.code, FAILED, str(done))
                self.assertEqual(os.path.exists(self.out), nth > count - published, str(done))
                self.assertLessEqual(set(names(self.dir)), {"src", "out", "out.partial"})
                self.after_a_fault(done)
                self.finish_and_compare()
        return count

    def after_a_fault(self, done):
        self.assertIn(b"stripepack pack: ", done.err)

    def finish_and_compare(self):
        self.pack(self.src, self.out, *ARGUMENTS)
        self.assertEqual((identity(self.out), all_names(self.out)), self.whole)
        self.assertEqual(names(self.dir), ["out", "src"])
        shutil.rmtree(self.out)

    def test_failed_sync_of_shards(self):
        """What a failed write-back left looks clean in memory: the file must go."""

        def gone(done):
            self.assertIn(b"cannot sync", done.err)
            left = [name for name in names(self.partial) if name.endswith(".tmp")]
            self.assertEqual(left, [])

        self.after_a_fault = gone
        self.assertEqual(self.every("fsync;path=shard-", "EIO"), 2)
        self.assertEqual(self.every("fsync;path=shard-", "ENOSPC"), 2)

    def test_failed_sync_of_a_shard_that_is_continued(self):
        """The first thing that a continued shard gets is a sync; if that fails, the file goes."""
        plan = "call=pwrite,pwritev;path=shard-00001;nth=2;action=kill"
        run("pack", self.src, self.out, *ARGUMENTS, env=faulty(plan))
        self.assertEqual(len([n for n in names(self.partial) if n.endswith(".tmp")]), 1)
        plan = "call=fsync;path=shard-00001;nth=1;errno=EIO"
        self.expect(run("pack", self.src, self.out, *ARGUMENTS, env=faulty(plan)), FAILED,
                    "cannot sync")
        self.assertEqual([n for n in names(self.partial) if n.endswith(".tmp")], [])
        self.finish_and_compare()

    def test_failed_sync_anywhere(self):
        # The last one is that of the folder in which OUT stands, when OUT has its name.
        self.assertGreater(self.every("sync", "EIO", published=1), 10)

    def test_failed_writes(self):
        self.assertGreater(self.every("write,pwrite,pwritev;path=/out.partial", "EIO"), 8)

    def test_full_disk(self):
        def says_so(done):
            self.assertIn("No space left on device", text(done.err))

        self.after_a_fault = says_so
        self.every("write,pwrite,pwritev;path=/out.partial", "ENOSPC")

    def test_exhausted_quota(self):
        def says_so(done):
            self.assertIn("uota", text(done.err))

        self.after_a_fault = says_so
        self.every("write,pwrite,pwritev;path=/out.partial/shard-", "EDQUOT")

    def test_failed_close(self):
        """Where writes are only accepted, close tells (NFS): heeded for every file written."""
        # Only what was written: a shard that is read again may close as it likes.
        for name in (".spks.", "index.spki.tmp", "rejects.tsv.tmp",
                     "manifest.json.tmp", "run.json.tmp", "layout.json.tmp", "owner.tmp"):
            self.every("close;path=" + name, "EIO")

    def test_failed_rename(self):
        self.assertGreater(self.every("rename;path=/out.partial", "EIO"), 6)

    def test_failed_creation(self):
        self.every("mkdir;path=/out.partial", "ENOSPC")
        plan = "call=openat;path=/out.partial/shard-;nth=1;errno=EMFILE"
        done = run("pack", self.src, self.out, *ARGUMENTS, env=faulty(plan))
        self.expect(done, FAILED, "ulimit -n")
        self.finish_and_compare()

    def test_failed_truncate(self):
        self.assertEqual(self.every("truncate;path=/out.partial/shard-", "EIO"), 2)

    def test_a_disk_that_refuses_direct_writes(self):
        """Some file systems take O_DIRECT and refuse the writes: they are done by the page cache."""
        if self.count_calls("call=pwritev;path=shard-", "pack", self.src, self.out, *ARGUMENTS):
            self.skipTest("writes go through the page cache here")
        shutil.rmtree(self.out)
        done = run("pack", self.src, self.out, *ARGUMENTS,
                   env=faulty("call=pwrite;nth=1;errno=EINVAL;path=shard-"))
        self.expect(done, DONE)
        self.assertEqual((identity(self.out), all_names(self.out)), self.whole)

    def test_short_writes_are_completed(self):
        done = run("pack", self.src, self.out, *ARGUMENTS,
                   env=faulty("call=write,pwrite,pwritev;path=/out.partial;action=short"))
        self.expect(done, DONE)
        self.assertEqual((identity(self.out), all_names(self.out)), self.whole)


class FullDiskTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"a": 30}, smallest=10000, largest=10000)

    def test_file_size_limit(self):
        done = run("pack", self.src, self.out, *ARGUMENTS,
                   limits=[(resource.RLIMIT_FSIZE, 65536)])
        self.expect(done, FAILED, "ulimit -f")
        self.assertFalse(os.path.exists(self.out))
        self.pack(self.src, self.out, *ARGUMENTS)
        self.pack(self.src, self.path("fresh"), *ARGUMENTS)
        self.assert_same_pack(self.out, self.path("fresh"))

    def test_a_small_file_system(self):
        if os.geteuid() != 0:
            self.skipTest("mounting needs root")
        mounted = self.path("disk")
        os.mkdir(mounted)
        mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", mounted]
        if subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no mount here")
        try:
            out = os.path.join(mounted, "out")
            self.pack(self.src, out, *ARGUMENTS, code=FAILED, words=("No space left on device",))
            self.assertFalse(os.path.exists(out))
            subprocess.run(["mount", "-o", "remount,size=2m", mounted], check=True)
            report = self.report(self.pack(self.src, out, *ARGUMENTS, "--json"))["packs"][0]
            self.assertGreater(report["shards_found_complete"] + report["samples_kept"], 0)
            self.pack(self.src, self.path("fresh"), *ARGUMENTS)
            self.assert_same_pack(out, self.path("fresh"))
        finally:
            subprocess.run(["umount", mounted], check=True)


if __name__ == "__main__":
    if not os.path.exists(SHIM):
        print("no libfaulty_io.so at " + SHIM)
        sys.exit(77)
    main()

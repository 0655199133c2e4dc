# ctest: timeout=600
"""Whenever a run dies, nothing unfinished has the final name, and the same command line finishes it
to the bytes of a run that nobody disturbed."""

import os
import pathlib
import random
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, SHIM, PackTest, all_names, faulty, finish, identity, main,  # noqa: E402
                     names, rejects, run, start)

ROUNDS = int(os.environ.get("STRIPEPACK_TEST_ROUNDS", "50"))
SEED = int(os.environ.get("STRIPEPACK_TEST_SEED", "0") or "0") or random.randrange(1, 1 << 30)


class KillTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.clean = self.path("clean")

    def undisturbed(self, arguments):
        """What the command line makes when nothing happens to it, and how long that takes."""
        done = self.pack(self.src, self.clean, *arguments)
        made = identity(self.clean), all_names(self.clean)
        shutil.rmtree(self.clean)
        return made, done.seconds

    def assert_not_taken_for_finished(self):
        """After a death: either nothing has the final name, or it is the whole pack."""
        self.assertLessEqual(set(names(self.dir)), {"src", "out", "out.partial"})
        if os.path.lexists(self.out):
            self.assertEqual(identity(self.out), self.whole[0])

    def finish_and_compare(self, arguments, *more):
        done = self.pack(self.src, self.out, *arguments, "--json", *more)
        self.assertEqual(identity(self.out), self.whole[0])
        self.assertEqual(all_names(self.out), self.whole[1])  # nothing temporary either
        self.assertEqual(names(self.dir), ["out", "src"])
        return self.report(done)

    def test_fifty_random_kills(self):
        print("seed %d (STRIPEPACK_TEST_SEED), %d rounds" % (SEED, ROUNDS))
        pictures.make_folder(self.src, {"a": 150, "b": 150, "c": 100})
        with open(os.path.join(self.src, "b", "cut.jpg"), "wb") as file:
            file.write(pictures.cut_jpeg(1))
        arguments = ["--shards", "5", "--chunk-size", "64KiB", "--max-rejects", "1", "--jobs", "2"]
        self.whole, seconds = self.undisturbed(arguments)
        source = random.Random(SEED)
        killed = 0
        for _ in range(ROUNDS):
            # Up to three deaths before the run that is left alone.
            for _ in range(source.randint(1, 3)):
                process = start("pack", self.src, self.out, *arguments)
                time.sleep(source.uniform(0, 1.1) * seconds)
                process.send_signal(signal.SIGKILL)
                done = finish(process)
                self.assertIn(done.code, (DONE, -signal.SIGKILL), str(done))
                killed += done.code != DONE
                self.assert_not_taken_for_finished()
            self.finish_and_compare(arguments)
            (key, reason), = rejects(self.out)
            self.assertEqual((key, reason.split(":")[0]), (b"b/cut.jpg", "truncated"))
            shutil.rmtree(self.out)
        self.assertGreater(killed, ROUNDS // 2)

    def test_killed_at_every_call_that_changes_the_disk(self):
        """One thread, so that the calls always come in the same order."""
        pictures.make_folder(self.src, {"a": 9, "b": 8}, largest=20000)
        arguments = ["--shards", "2", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]
        self.whole, _ = self.undisturbed(arguments)
        calls = "call=pwrite,pwritev,write,sync,rename,unlink,mkdir,openat,truncate;path=%s" % self.dir
        count = self.count_calls(calls, "pack", self.src, self.out, *arguments)
        shutil.rmtree(self.out)
        self.assertGreater(count, 30)
        published = 0
        for nth in range(1, count + 1):
            for action in ("kill", "kill-after"):
                with self.subTest(nth=nth, action=action):
                    plan = "%s;nth=%d;action=%s" % (calls, nth, action)
                    done = run("pack", self.src, self.out, *arguments, env=faulty(plan))
                    self.assertEqual(done.code, -signal.SIGKILL, str(done))
                    self.assert_not_taken_for_finished()
                    published += os.path.exists(self.out)
                    report = self.finish_and_compare(arguments)
                    self.assertIn(report["result"], ("published", "complete"))
                    shutil.rmtree(self.out)
        self.assertGreater(published, 0)
        self.assertLess(published, 10)

    def test_killed_with_a_source_that_is_unpacked_first(self):
        """At every call that changes the spool, and some of those behind it."""
        pictures.make_folder(self.path("folder"), {"a": 60, "b": 40}, smallest=6000)
        for make in (self.packed_tar, self.deflated_zip):
            make()
            arguments = ["--shards", "2", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads",
                         "1"]
            self.whole, _ = self.undisturbed(arguments)
            for path, most in (("out.partial/spool", 40), ("shard-", 6)):
                calls = "call=pwrite,pwritev,write,sync,rename,unlink,mkdir,openat;path=" + path
                count = self.count_calls(calls, "pack", self.src, self.out, *arguments)
                shutil.rmtree(self.out)
                self.assertGreater(count, 3)
                for nth in range(1, count + 1, max(1, count // most)):
                    with self.subTest(source=make.__name__, path=path, nth=nth):
                        plan = "%s;nth=%d;action=kill" % (calls, nth)
                        done = run("pack", self.src, self.out, *arguments, env=faulty(plan))
                        self.assertEqual(done.code, -signal.SIGKILL, str(done))
                        self.assertFalse(os.path.exists(self.out))
                        self.finish_and_compare(arguments)
                        shutil.rmtree(self.out)
            os.remove(self.src)

    def packed_tar(self):
        with tarfile.open(self.src, "w:gz", compresslevel=1) as tar:
            tar.add(self.path("folder"), ".")
        self.keep_only_the_source()

    def deflated_zip(self):
        with zipfile.ZipFile(self.src, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            for folder, _, found in os.walk(self.kept):
                for name in found:
                    path = os.path.join(folder, name)
                    file.write(path, os.path.relpath(path, self.kept))

    def keep_only_the_source(self):
        aside = tempfile.mkdtemp(prefix="spk-")
        self.addCleanup(shutil.rmtree, aside)
        self.kept = os.path.join(aside, "folder")
        shutil.move(self.path("folder"), self.kept)

    def test_redoes_at_most_what_was_in_flight(self):
        pictures.make_folder(self.src, {"a": 200}, smallest=15000, largest=15000)
        arguments = ["--shards", "2", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]
        self.whole, _ = self.undisturbed(arguments)
        # Four pictures fill a chunk; the first shard is finished (25 chunks and a footer), of the second
        # ten chunks are there.
        for nth, found in ((6, (0, 20)), (25 + 1 + 11, (1, 40))):
            plan = "call=pwrite,pwritev;path=shard-;nth=%d;action=kill" % nth
            done = run("pack", self.src, self.out, *arguments, env=faulty(plan))
            self.assertEqual(done.code, -signal.SIGKILL, str(done))
            report = self.finish_and_compare(arguments)["packs"][0]
            self.assertEqual((report["shards_found_complete"], report["samples_kept"]), found)
            shutil.rmtree(self.out)

    def test_what_is_kept_is_checked_first(self):
        """Bytes that went bad in the unfinished shard are written again."""
        pictures.make_folder(self.src, {"a": 100}, smallest=15000, largest=15000)
        arguments = ["--shards", "1", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]
        self.whole, _ = self.undisturbed(arguments)
        plan = "call=pwrite,pwritev;path=shard-;nth=21;action=kill"
        run("pack", self.src, self.out, *arguments, env=faulty(plan))
        shard, = (name for name in names(self.partial) if name.startswith("shard-"))
        with open(os.path.join(self.partial, shard), "r+b") as file:
            file.seek(5 * 65536 + 30000)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        report = self.finish_and_compare(arguments)["packs"][0]
        self.assertEqual(report["samples_kept"], 5 * 4)

    def test_killed_while_the_old_pack_is_replaced(self):
        pictures.make_folder(self.src, {"a": 6})
        self.pack(self.src, self.out, "--seed", "1")
        old = identity(self.out)
        self.whole, _ = self.undisturbed(["--seed", "2"])
        for action, nth in (("kill", 1), ("kill-after", 1), ("kill", 2), ("kill-after", 2)):
            plan = "call=rename;path=/out;nth=%d;action=%s" % (self.renames_before() + nth, action)
            done = run("pack", self.src, self.out, "--seed", "2", "--force", env=faulty(plan))
            self.assertEqual(done.code, -signal.SIGKILL, str(done))
            aside = [name for name in names(self.dir) if name.startswith("out.old-")]
            # The old pack is never lost: it is at OUT or beside it.
            kept = [name for name in ["out"] + aside
                    if os.path.exists(self.path(name)) and identity(self.path(name)) == old]
            self.assertEqual(len(kept), 1)
            self.pack(self.src, self.out, "--seed", "2", "--force")
            self.assertEqual(identity(self.out), self.whole[0])
            shutil.rmtree(self.out)
            for name in names(self.dir):
                if name.startswith("out.old-") and identity(self.path(name)) == old:
                    os.rename(self.path(name), self.out)
                elif name != "src" and name != "out":
                    shutil.rmtree(self.path(name))

    def renames_before(self):
        """Renames of a --force run before the two that swap the packs."""
        other = self.path("out-other")
        count = self.count_calls("call=rename;path=/out", "pack", self.src, other, "--seed", "2")
        shutil.rmtree(other)
        return count - 1


class StopTest(PackTest):
    """Signals that ask for a stop."""

    def setUp(self):
        super().setUp()
        self.src = self.path("src")

    def test_signals_stop_within_seconds_and_the_same_line_continues(self):
        pictures.make_folder(self.src, {"a": 200, "b": 200}, smallest=250000, largest=500000)
        arguments = ["--shards", "6", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]
        self.pack(self.src, self.path("clean"), *arguments)
        for number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM"),
                             (signal.SIGUSR1, "SIGUSR1")):
            process = self.start_and_catch_at_work(arguments)
            begin = time.monotonic()
            process.send_signal(number)
            done = finish(process, timeout=30)
            self.expect(done, 128 + number, "stopped by " + name, "the same command line continues")
            self.assertLess(time.monotonic() - begin, 10)
            self.assertFalse(os.path.exists(self.out))
            self.assertNotIn("owner", names(self.partial))
            if number != signal.SIGUSR1:
                shutil.rmtree(self.partial)  # so that the next run has all of the work again
        self.pack(self.src, self.out, *arguments)
        self.assert_same_pack(self.out, self.path("clean"))

    def test_a_stop_while_listing(self):
        """Long lists are many lines: the stop comes in the middle of them."""
        picture = os.path.join(self.src, "p.jpg")
        pictures.write(picture, pictures.jpeg(1))
        list_file = os.path.join(self.src, "list.txt")
        with open(list_file, "w", encoding="ascii") as file:
            for number in range(1_000_000):
                file.write("p.jpg %d\n" % (number % 1000))
        for options in ([], ["--dry-run"]):
            process = start("pack", list_file, self.out, *options)
            self.wait_until_it_reads(process)
            begin = time.monotonic()
            process.send_signal(signal.SIGTERM)
            self.expect(finish(process, timeout=30), 143, "stopped by SIGTERM")
            self.assertLess(time.monotonic() - begin, 5)
            self.assertEqual(names(self.dir), ["src"])

    def start_and_catch_at_work(self, arguments):
        """A run that has begun a shard and has not finished. On a machine that is slow to
        come back to this test it may have: then it is tried again."""
        for _ in range(10):
            process = start("pack", self.src, self.out, *arguments)
            self.wait_until(process, lambda: os.path.isdir(self.partial) and any(
                name.startswith("shard-") for name in names(self.partial)))
            if process.poll() is None and not os.path.exists(self.out):
                return process
            finish(process, timeout=30)
            shutil.rmtree(self.out)
        self.fail("it always ended before it could be stopped")

    def wait_until_it_reads(self, process):
        """Until it has read some of the list, and heeds signals."""
        def has_opened_it():
            folder = "/proc/%d/fd" % process.pid
            try:
                links = [os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)]
            except FileNotFoundError:  # closed while we looked
                return False
            return any(link.endswith("/list.txt") for link in links)

        def reads():
            with open("/proc/%d/io" % process.pid, encoding="ascii") as file:
                counters = dict(line.split(": ") for line in file.read().splitlines())
            return int(counters["rchar"]) > 300_000 and has_opened_it()

        self.wait_until(process, reads)

    def wait_until(self, process, condition):
        deadline = time.monotonic() + 60
        while process.poll() is None and not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)


if __name__ == "__main__":
    if not os.path.exists(SHIM):
        print("no libfaulty_io.so at " + SHIM)
        sys.exit(77)
    main()

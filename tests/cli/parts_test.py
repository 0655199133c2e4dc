# ctest: timeout=600
"""`stripepack pack --part I/N` and `stripepack seal`: the same bytes however many processes build a
pack, in which order, with whatever happening to some of them."""

import json
import os
import pathlib
import re
import signal
import sys
import tarfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, REJECTS, SHIM, USAGE, PackTest, all_names, faulty, finish,  # noqa: E402
                     identity, main, names, rejects, remove_tree, run, start, text)

SHAPE = ["--shards", "9", "--chunk-size", "64KiB"]
CALM = ["--jobs", "1", "--io-threads", "1"]


def wait_until_stopped(test, process):
    """Until it has stopped itself; it must not end before."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        process.returncode = os.waitstatus_to_exitcode(status)
        test.fail("ended with %s before it came so far: %s" % (process.returncode, finish(process)))


class PartsTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        # Some chunks in each shard.
        self.made = pictures.make_folder(self.src, {"a": 40, "b": 40}, smallest=12000,
                                         largest=32000)
        self.alone = self.path("alone")
        self.shape = list(SHAPE)

    def pack_alone(self, *options):
        self.pack(self.src, self.alone, *self.shape, *options)

    def arguments(self, index, count, *options):
        return ["pack", self.src, self.out, *self.shape, *CALM, "--part",
                "%d/%d" % (index, count), *options]

    def part(self, index, count, *options, code=DONE, words=(), **how):
        return self.expect(run(*self.arguments(index, count, *options), **how), code, *words)

    def start_part(self, index, count, *options, **how):
        return start(*self.arguments(index, count, *options), **how)

    def assert_published(self):
        self.assert_same_pack(self.out, self.alone)
        self.assertEqual(all_names(self.out), all_names(self.alone))
        self.assertFalse(os.path.exists(self.partial))
        self.assert_verifies(self.out)

    def again(self):
        remove_tree(self.out)


class SameBytesTest(PartsTest):
    def test_one_two_four_and_seven_parts_one_after_another(self):
        self.pack_alone()
        for count in (1, 2, 4, 7, 12):
            with self.subTest(count=count):
                for index in range(count):
                    done = self.part(index, count)
                    last = min(count, 9) - 1  # there are nine shards
                    if index < last:
                        self.assertIn(b"not finished yet; the last part to end publishes", done.out)
                    else:
                        self.assertIn(b"published" if index == last else b"complete", done.out)
                self.assert_published()
                self.again()

    def test_other_orders(self):
        self.pack_alone()
        for order in ([0, 3, 2, 1], [0, 2, 3, 1], [0, 1, 3, 2]):
            for index in order[:-1]:
                self.assertIn(b"not finished yet", self.part(index, 4).out)
            self.assertIn(b"published " + self.out.encode(), self.part(order[-1], 4).out)
            self.assert_published()
            self.again()

    def test_all_at_once_the_first_one_last(self):
        self.pack_alone()
        for count in (2, 5):
            running = [self.start_part(index, count) for index in range(1, count)]
            running.append(self.start_part(0, count))
            for one in running:
                self.expect(finish(one), DONE)
            self.assert_published()
            self.again()

    def test_splits(self):
        self.src = self.path("sets")
        for split, count in (("train", 20), ("val", 6), ("test", 3)):
            pictures.make_folder(os.path.join(self.src, split), {"a": count, "b": count})
        self.shape = ["--shards", "2", "--chunk-size", "64KiB"]
        self.pack_alone()
        for index in range(4):
            self.part(index, 4)
        self.assert_published()
        self.again()
        # Six shards over all splits: each of six parts has one.
        for index in range(6):
            done = self.part(index, 6, "--json")
            report = done.objects[-1]
            self.assertEqual(report["part"], "%d/6" % index)
            if index < 5:
                self.assertEqual((report["result"], report["shards_missing"]),
                                 ("part_built", 5 - index))
        self.assert_published()

    def test_a_job_that_is_run_once_more_is_complete(self):
        self.pack_alone()
        for index in range(3):
            self.part(index, 3)
        before = {name: os.stat(os.path.join(self.out, name)).st_ino for name in names(self.out)}
        for index in (1, 0, 2):
            self.part(index, 3, words=("complete",))
        # Also as another number of parts.
        self.part(4, 8, words=("complete",))
        after = {name: os.stat(os.path.join(self.out, name)).st_ino for name in names(self.out)}
        self.assertEqual(before, after)
        self.assert_published()

    def test_an_ordinary_run_continues_what_parts_left_and_the_other_way_round(self):
        self.pack_alone()
        self.part(0, 3)
        self.part(2, 3)
        self.pack(self.src, self.out, *self.shape, words=("continued: 6 shards",))
        self.assert_published()
        self.again()
        if not os.path.exists(SHIM):
            return
        done = run("pack", self.src, self.out, *self.shape, *CALM,
                   env=faulty("call=rename;path=shard-00004;nth=1;action=kill"))
        self.assertEqual(done.code, -signal.SIGKILL)
        self.part(0, 2)
        self.part(1, 2)
        self.assert_published()

    def test_another_number_of_parts_goes_on(self):
        self.pack_alone()
        self.part(0, 3)
        for index in range(4):
            self.part(index, 4)
        self.assert_published()


class SourcesTest(PartsTest):
    """Parts that did not list a source read from it all the same."""

    def assert_parts_equal_one(self, source, *options, command="pack"):
        alone, out = self.path("one"), self.path("parts")
        self.expect(run(command, source, alone, *self.shape, *options), DONE)
        for index in range(3):
            self.expect(run(command, source, out, *self.shape, *options, "--part",
                            "%d/3" % index), DONE)
        self.assert_same_pack(out, alone)
        self.assertEqual(all_names(out), all_names(alone))
        remove_tree(alone)
        remove_tree(out)

    def test_what_export_writes(self):
        self.pack(self.src, self.path("pack"))
        done = run("export", "--help")
        kinds = re.search(r"--to ([a-z0-9|]+)", text(done.out)).group(1).split("|")
        self.assertIn("tar", kinds)
        tried = []
        for kind in kinds:
            exported = self.path("as-" + kind)
            if run("export", self.path("pack"), exported, "--to", kind).code != DONE:
                continue  # it takes no such pictures, or needs a library
            with self.subTest(kind=kind):
                looked = run("pack", exported, self.path("look"), "--dry-run")
                if looked.code != DONE:
                    continue  # a table alone
                self.assert_parts_equal_one(exported)
                tried.append(kind)
        self.assertIn("tfrecord", tried)

    def test_packs(self):
        self.pack(self.src, self.path("pack"))
        self.assert_parts_equal_one(self.path("pack"), command="repack")

    def test_a_compressed_archive(self):
        """Part 0 unpacks it beside the plan."""
        archive = self.path("all.tar.gz")
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(self.src, arcname=".")
        self.assert_parts_equal_one(archive)

    def test_a_list(self):
        listed = self.path("list.txt")
        with open(listed, "w", encoding="ascii") as file:
            for number, key in enumerate(sorted(self.made)):
                file.write("%s %d\n" % (key, number % 3))
        self.assert_parts_equal_one(listed, "--root", self.src)


class WaitingTest(PartsTest):
    def test_no_plan_comes(self):
        begin = time.monotonic()
        self.part(1, 3, "--wait", "1", code=FAILED,
                  words=("part 1/3 waits for the plan of part 0",
                         "the first part has published no plan within 1 s", "--part 0/3"))
        self.assertGreaterEqual(time.monotonic() - begin, 1)
        self.assertEqual(names(self.dir), ["src"])

    def test_a_signal_ends_the_waiting(self):
        waiting = self.start_part(1, 2)
        line = waiting.stderr.readline()
        self.assertIn(b"waits for the plan", line)
        waiting.send_signal(signal.SIGTERM)
        self.assertEqual(finish(waiting).code, 128 + signal.SIGTERM)

    def test_a_plan_that_cannot_be_made_ends_the_waiting(self):
        waiting = [self.start_part(index, 3) for index in (1, 2)]
        for one in waiting:
            self.assertIn(b"waits for the plan", one.stderr.readline())
        self.part(0, 3, "--expect", "7", code=FAILED, words=("7",))
        for one in waiting:
            self.expect(finish(one), FAILED, "the first part could not plan", "80 samples")
        # The failure is remembered by nobody who comes later.
        self.pack_alone()
        late = self.start_part(1, 2)
        self.assertIn(b"waits for the plan", late.stderr.readline())
        self.part(0, 2)
        self.expect(finish(late), DONE)
        self.assert_published()


class RefusedTest(PartsTest):
    def test_other_options(self):
        self.part(0, 3, "--seed", "3")
        for options, words in ((["--seed", "4"], "--seed: 3 before, 4 now"),
                               ([], "--seed: 3 before, not given now"),
                               (["--seed", "3", "--check", "none"],
                                "--check: not given before, none now")):
            for index in (0, 1):
                self.part(index, 3, *options, code=FAILED,
                          words=("an unfinished run of another command line", words))
        self.part(1, 3, "--seed", "3", "--memory", "100MiB", "--max-rejects", "4")

    def test_a_pack_of_another_command_line(self):
        self.pack(self.src, self.out, *self.shape, "--seed", "2")
        for index in (0, 1):
            self.part(index, 2, code=FAILED,
                      words=("OUT is a pack that another command line made",
                             "--seed: 2 before, not given now"))
        self.part(1, 2, "--seed", "2", words=("complete",))

    def test_force_and_restart(self):
        for option in ("--force", "--restart"):
            self.part(1, 2, option, code=USAGE, words=(option + " does not go with --part",))

    def test_words_that_are_no_part(self):
        for word, what in (("2/2", "numbered from 0 to 1"), ("0/0", "0 parts"), ("1", "neither"),
                           ("-1/2", "neither"), ("a/b", "neither"), ("0/4294967297", "parts")):
            self.pack(self.src, self.out, "--part", word, code=USAGE, words=(what,))

    def test_an_ordinary_run_beside_parts(self):
        if not os.path.exists(SHIM):
            self.skipTest("needs libfaulty_io.so")
        part = self.start_part(0, 2, env=faulty("call=rename;path=shard-00002;nth=1;action=stop"))
        wait_until_stopped(self, part)
        self.pack(self.src, self.out, *self.shape, code=FAILED,
                  words=("another run is packing here",))
        part.send_signal(signal.SIGCONT)
        self.expect(finish(part), DONE)


class SlurmVariablesTest(PartsTest):
    def slurm(self, code=FAILED, words=(), **variables):
        environment = {"SLURM_" + name: str(value) for name, value in variables.items()}
        return self.pack(self.src, self.out, *self.shape, "--part", "slurm", "--wait", "1",
                         env=environment, code=code, words=words)

    def test_arrays_and_tasks(self):
        """Each tells which part it is while it waits for a plan that does not come."""
        self.pack(self.src, self.out, *self.shape, "--part", "slurm",
                  env={"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, words=("published",))
        remove_tree(self.out)
        self.slurm(ARRAY_TASK_ID=15, ARRAY_TASK_MIN=10, ARRAY_TASK_MAX=20, ARRAY_TASK_STEP=5,
                   ARRAY_TASK_COUNT=3, PROCID=0, NTASKS=8, words=("part 1/3",))
        self.slurm(ARRAY_TASK_ID=20, ARRAY_TASK_MIN=10, ARRAY_TASK_MAX=20, ARRAY_TASK_STEP=5,
                   ARRAY_TASK_COUNT=3, words=("part 2/3",))
        self.slurm(PROCID=3, NTASKS=4, STEP_ID=0, words=("part 3/4",))
        self.slurm(PROCID=1, NTASKS=8, STEP_NUM_TASKS=4, STEP_ID=0, words=("part 1/4",))
        self.slurm(ARRAY_TASK_ID=1, ARRAY_TASK_MIN=0, ARRAY_TASK_COUNT=2, PROCID=2, STEP_ID=0,
                   STEP_NUM_TASKS=4, words=("part 6/8",))

    def test_what_is_missing(self):
        self.slurm(code=USAGE, words=("SLURM_PROCID is not set", "SLURM_ARRAY_TASK_ID"))
        self.slurm(PROCID=1, code=USAGE, words=("SLURM_NTASKS is not set",))
        self.slurm(ARRAY_TASK_ID=1, code=USAGE, words=("SLURM_ARRAY_TASK_MIN is not set",))
        self.slurm(ARRAY_TASK_ID=7, ARRAY_TASK_MIN=1, ARRAY_TASK_MAX=8, ARRAY_TASK_COUNT=3,
                   code=USAGE, words=("without gaps",))
        self.slurm(PROCID="one", NTASKS=2, code=USAGE, words=("'one'",))
        self.slurm(PROCID=0, NTASKS=3, code=USAGE, words=("start stripepack with srun",))


class SealTest(PartsTest):
    def seal(self, *options, code=DONE, words=()):
        return self.expect(run("seal", self.out, *options), code, *words)

    def test_tells_what_is_missing(self):
        self.seal(code=FAILED, words=("out.partial",))
        self.part(0, 4)
        self.part(2, 4)
        self.seal(code=FAILED,
                  words=("4 shards are missing: shard-00001.spks (part 1/4), "
                         "shard-00003.spks (part 3/4), shard-00005.spks (part 1/4), "
                         "shard-00007.spks (part 3/4)",))
        self.assertIn("plans.json", names(self.partial))
        self.part(1, 4)
        self.seal("--json", code=FAILED, words=('"code": "not_found"',))
        self.pack_alone()
        self.part(3, 4)
        self.seal(words=("complete",))
        self.assert_published()

    def test_rejects(self):
        for number in (3, 17):
            pictures.write(os.path.join(self.src, "a", "%05d.jpg" % number),
                           pictures.cut_jpeg(number))
        self.pack_alone("--max-rejects", "2")
        self.part(0, 2)
        self.part(1, 2, code=REJECTS,
                  words=("not published: 2 samples were rejected",
                         "stripepack seal %s --max-rejects 2" % self.out))
        self.assertEqual([key for key, _ in rejects(self.partial)], [b"a/00003.jpg", b"a/00017.jpg"])
        self.seal(code=REJECTS, words=("not published",))
        self.seal("--max-rejects", "1", code=REJECTS)
        self.seal("--max-rejects", "2", words=("published",))
        self.assert_published()
        with open(os.path.join(self.out, "run.json"), encoding="utf-8") as file:
            record = json.load(file)
        self.assertEqual(record["source"], self.src)
        self.assertIn("--part 0/2", record["command"])
        self.part(1, 2, words=("complete",))

    def test_what_an_ordinary_run_left(self):
        if not os.path.exists(SHIM):
            self.skipTest("needs libfaulty_io.so")
        self.pack_alone()
        done = run("pack", self.src, self.out, *self.shape, *CALM,
                   env=faulty("call=openat;path=index.spki;nth=1;action=kill"))
        self.assertEqual(done.code, -signal.SIGKILL)
        self.seal(words=("published",))
        self.assert_published()

    def test_no_sample_is_left(self):
        for key in self.made:
            pictures.write(os.path.join(self.src, key), b"no picture")
        self.part(0, 2, "--max-rejects", "80")
        self.part(1, 2, "--max-rejects", "80", code=FAILED, words=("no sample is left",))


@unittest.skipUnless(os.path.exists(SHIM), "needs libfaulty_io.so")
class TroubleTest(PartsTest):
    def test_a_part_is_killed_and_run_again(self):
        self.pack_alone()
        for plan in ("call=pwrite,pwritev;path=shard-00004;nth=2;action=kill",
                     "call=fsync;path=shard-00004;nth=1;action=kill",
                     "call=rename;path=shard-00004;nth=1;action=kill",
                     "call=rename;path=shard-00004;nth=1;action=kill-after"):
            with self.subTest(plan=plan):
                self.part(0, 3)
                done = run(*self.arguments(1, 3), env=faulty(plan))
                self.assertEqual(done.code, -signal.SIGKILL, str(done))
                self.part(2, 3, words=("not finished yet",))
                self.part(1, 3, words=("published",))
                self.assert_published()
                self.again()

    def test_the_first_part_is_killed_and_run_again(self):
        self.pack_alone()
        for plan in ("call=rename;path=plan.spkp;nth=1;action=kill",
                     "call=rename;path=plan.spkp;nth=2;action=kill-after",
                     "call=rename;path=plans.json;nth=1;action=kill",
                     "call=rename;path=plans.json;nth=1;action=kill-after",
                     "call=rename;path=shard-00003;nth=1;action=kill"):
            with self.subTest(plan=plan):
                other = self.start_part(1, 2)
                self.assertIn(b"waits for the plan", other.stderr.readline())
                done = run(*self.arguments(0, 2), env=faulty(plan))
                self.assertIn(done.code, (-signal.SIGKILL, DONE), str(done))
                self.part(0, 2)
                self.expect(finish(other), DONE)
                self.assert_published()
                self.again()

    def test_a_twin_that_only_seemed_dead(self):
        """It is stopped, its part is run again and the pack published; then it goes on."""
        self.pack_alone()
        for plan in ("call=pwrite,pwritev;path=shard-00004;nth=1;action=stop",
                     "call=pwrite,pwritev;path=shard-00004;nth=2;action=stop",
                     "call=pwrite;path=shard-00004;nth=1;action=stop",
                     "call=truncate;path=shard-00004;nth=1;action=stop",
                     "call=fsync;path=shard-00004;nth=1;action=stop",
                     "call=rename;path=shard-00004;nth=1;action=stop",
                     "call=rename;path=shard-00004;nth=1;action=stop-after",
                     "call=openat;path=shard-00007;nth=1;action=stop"):
            with self.subTest(plan=plan):
                self.part(0, 3)
                self.part(2, 3)
                twin = self.start_part(1, 3, env=faulty(plan))
                wait_until_stopped(self, twin)
                self.part(1, 3, words=("published",))
                self.assert_published()
                twin.send_signal(signal.SIGCONT)
                self.expect(finish(twin), DONE, "another part has published")
                self.assert_published()
                self.again()

    def test_a_twin_takes_over_while_the_first_goes_on(self):
        self.pack_alone()
        self.part(0, 2)
        twin = self.start_part(1, 2, env=faulty("call=pwrite,pwritev;path=shard-00003;nth=1;action=stop"))
        wait_until_stopped(self, twin)
        second = self.start_part(
            1, 2, env=faulty("call=rename;path=shard-00003.spks;nth=2;action=stop"))
        wait_until_stopped(self, second)  # has taken shard 3 over and written it
        twin.send_signal(signal.SIGCONT)
        self.expect(finish(twin), DONE, "not finished yet")
        second.send_signal(signal.SIGCONT)
        self.expect(finish(second), DONE, "published")
        self.assert_published()

    def test_a_resumed_twin_cuts_nothing_off(self):
        """One that continues a shard is stopped; another one takes it over and finishes it."""
        self.pack_alone()
        self.part(0, 2)
        done = run(*self.arguments(1, 2),
                   env=faulty("call=pwrite,pwritev;path=shard-00003;nth=3;action=kill"))
        self.assertEqual(done.code, -signal.SIGKILL)
        for plan in ("call=fsync;path=shard-00003;nth=1;action=stop",
                     "call=pwrite,pwritev;path=shard-00003;nth=1;action=stop"):
            twin = self.start_part(1, 2, env=faulty(plan))
            wait_until_stopped(self, twin)
            self.addCleanup(twin.kill)
            if plan.startswith("call=fsync"):
                first = twin
        self.part(1, 2, words=("published",))
        for one in (first, twin):
            one.send_signal(signal.SIGCONT)
            self.expect(finish(one), DONE, "another part has published")
            self.assert_published()

    def test_two_parts_end_at_once(self):
        """One stops at each step of its publishing; the other publishes; the first goes on."""
        self.pack_alone()
        calls = "rename,unlink,openat"
        points = 0
        for nth in range(1, 60):
            self.part(0, 2)
            self.part(1, 2, env=faulty("call=openat;path=index.spki;nth=1;action=kill"),
                      code=-signal.SIGKILL)
            late = self.start_part(1, 2, env=faulty(
                "call=%s;path=out;nth=%d;action=stop" % (calls, nth)))
            _, status = os.waitpid(late.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                late.returncode = os.waitstatus_to_exitcode(status)
                self.expect(finish(late), DONE)
                self.assert_published()
                break
            points += 1
            with self.subTest(nth=nth):
                done = self.part(0, 2)
                self.assertTrue(re.search("published|complete", text(done.out)), str(done))
                self.assert_same_pack(self.out, self.alone)
                late.send_signal(signal.SIGCONT)
                self.expect(finish(late), DONE, "published")
                self.assert_published()
            self.again()
        self.assertGreater(points, 8)

    def test_an_error_is_told_by_its_part_alone(self):
        self.part(0, 2)
        self.part(1, 2, env=faulty("call=pwrite,pwritev;path=shard-00003;nth=1;errno=ENOSPC"), code=FAILED,
                  words=("No space left",))
        self.pack_alone()
        self.part(1, 2, words=("published",))
        self.assert_published()


if __name__ == "__main__":
    main()

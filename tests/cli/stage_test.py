# ctest: timeout=600
"""stage as a user types it: packs and shares of them on a node's own disk."""

import json
import os
import pathlib
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NO, NOT_A_PACK, USAGE, PackTest, all_names, faulty,  # noqa: E402
                     finish, identity, main, names, run, samples, sha256, snapshot, start)

SHARDS = 7


def shard(number):
    return "shard-%05d.spks" % number


class StageTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"cat": 60, "dog": 50, "hen": 40}, 2000, 9000)
        self.pack(self.src, self.out, "--shards", str(SHARDS), "--chunk-size", "64KiB", "--sha256")
        self.before = snapshot(self.out)
        self.to = self.path("disk", "copy")

    def tearDown(self):
        # Whatever was done, the pack was only read.
        if self.before is not None:
            self.assertEqual(snapshot(self.out), self.before)

    def stage(self, *options, code=DONE, words=(), **how):
        return self.expect(run("stage", self.out, self.to, *options, **how), code, *words)

    def facts(self, *options, code=DONE, **how):
        return self.stage("--json", *options, code=code, **how).objects[-1]

    def bench(self, *options, code=DONE, words=()):
        return self.expect(run("bench", self.out, "--cache", self.to, *options), code, *words)

    def flip(self, path, offset):
        with open(path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 1]))

    def hide(self, *numbers):
        """Takes shards away from the pack, so that only copies can be read."""
        self.before = None
        for number in numbers:
            os.rename(os.path.join(self.out, shard(number)), self.path("hidden-%d" % number))

    # ---- whole packs

    def test_a_whole_pack_is_a_pack(self):
        self.stage(words=["copied 7 shards", "is a pack, and a cache of this one"])
        self.assertEqual(names(self.to), names(self.out))
        for name in names(self.to):
            self.assertEqual(sha256(os.path.join(self.to, name)),
                             sha256(os.path.join(self.out, name)), name)
        self.assert_verifies(self.to)
        self.assertEqual(samples(self.to), samples(self.out))
        told = self.facts()
        self.assertEqual((told["shards"], told["shards_copied"], told["bytes_copied"],
                          told["is_pack"], told["pack_shards"]), (7, 0, 0, True, 7))
        self.stage(words=["copied 0 shards", "7 shards were there before"])
        # The record of stripes, on which the order rests, may have grown.
        with open(os.path.join(self.out, "layout.json"), "a", encoding="ascii") as file:
            file.write("\n")
        self.before = snapshot(self.out)
        self.stage(words=["copied 0 shards"])
        self.assertEqual(sha256(os.path.join(self.to, "layout.json")),
                         sha256(os.path.join(self.out, "layout.json")))

    def test_files_are_made_as_the_umask_says(self):
        self.stage(umask=0o027)
        self.assertEqual(os.stat(self.to).st_mode & 0o777, 0o750)
        for name in names(self.to):
            self.assertEqual(os.stat(os.path.join(self.to, name)).st_mode & 0o777, 0o640, name)

    def test_samples_larger_than_chunks(self):
        self.before = None
        source = self.path("large")
        pictures.make_folder(source, {"a": 6}, 150_000, 300_000)
        shutil.rmtree(self.out)
        self.pack(source, self.out, "--shards", "2", "--chunk-size", "64KiB")
        self.before = snapshot(self.out)
        self.stage()
        self.assertEqual(identity(self.to), identity(self.out))
        victim = samples(self.out, "id")[1]
        path = os.path.join(self.out, shard(victim["shard"]))
        self.flip(path, victim["offset"] + victim["bytes"] // 2)
        self.before = snapshot(self.out)
        shutil.rmtree(self.to)
        self.stage(code=NO, words=["checksum", "stripepack repair"])
        self.assertEqual(names(self.to), [shard(1 - victim["shard"])])

    def test_splits(self):
        self.before = None
        source = self.path("splits")
        pictures.make_folder(os.path.join(source, "train"), {"cat": 20, "dog": 20})
        pictures.make_folder(os.path.join(source, "val"), {"cat": 5, "dog": 5})
        packs = self.path("packs")
        self.pack(source, packs, "--shards", "3", "--chunk-size", "64KiB")
        self.expect(run("stage", packs, self.to), DONE, "train: copied 3 shards",
                    "val: copied 3 shards")
        self.assertEqual(identity(self.to), identity(packs))
        self.assertEqual(names(self.to), ["train", "val"])
        shutil.rmtree(self.to)
        seen = []
        for node in range(4):
            to = self.path("node%d" % node)
            self.expect(run("stage", packs, to, "--node", "%d/4" % node), DONE)
            seen += all_names(to)
        # Numbered through: 6 shards, the first two nodes have two each.
        self.assertEqual(sorted(seen), sorted(name for name in all_names(packs)
                                              if name.endswith(".spks")))
        self.assertEqual(len(all_names(self.path("node0"))), 2)
        self.expect(run("bench", os.path.join(packs, "train"), "--cache",
                        self.path("node0", "train")), DONE)

    # ---- shares

    def test_shares_cover_every_shard_once(self):
        seen = []
        for node in range(3):
            self.to = self.path("node%d" % node)
            told = self.facts("--node", "%d/3" % node)
            self.assertEqual((told["shards"], told["is_pack"]), (3 if node == 0 else 2, False))
            self.assertEqual(names(self.to),
                             [shard(number) for number in range(node, SHARDS, 3)])
            seen += names(self.to)
            for name in names(self.to):
                self.assertEqual(sha256(os.path.join(self.to, name)),
                                 sha256(os.path.join(self.out, name)))
        self.assertEqual(sorted(seen), [shard(number) for number in range(SHARDS)])
        self.expect(run("verify", self.to), NOT_A_PACK)

    def test_a_share_grows_into_a_pack(self):
        self.stage("--node", "1/2")
        told = self.facts()
        self.assertEqual((told["shards_copied"], told["is_pack"]), (4, True))
        self.assertEqual(identity(self.to), identity(self.out))

    def test_nodes_as_slurm_numbers_them(self):
        step = {"SLURM_NODEID": "2", "SLURM_NNODES": "9", "SLURM_STEP_NUM_NODES": "4",
                "SLURM_STEP_ID": "0"}
        self.stage("--node", "slurm", env=step)
        self.assertEqual(names(self.to), [shard(2), shard(6)])
        self.stage("--node", "slurm", env={"SLURM_NODEID": "0", "SLURM_NNODES": "4"}, code=USAGE,
                   words=["start stripepack with srun"])
        self.stage("--node", "slurm", code=USAGE, words=["--node slurm: SLURM_NODEID is not set"])
        for wrong in ("4/4", "x", "1", "-1/3", "0/0"):
            self.stage("--node=" + wrong, code=USAGE, words=["--node"])

    def test_as_much_as_fits(self):
        sizes = [os.path.getsize(os.path.join(self.out, shard(number))) for number in range(SHARDS)]
        told = self.facts("--at-most", str(sum(sizes[:3]) + 1))
        self.assertEqual((told["shards"], told["is_pack"]), (3, False))
        self.assertEqual(names(self.to), [shard(number) for number in range(3)])
        self.bench()
        self.assertTrue(self.facts("--at-most", "1G")["is_pack"])

    # ---- reading

    def test_copies_are_what_is_read(self):
        self.stage("--node", "0/2")
        self.hide(*range(0, SHARDS, 2))
        for engine in ("auto", "pool", "uring", "mmap"):
            for direct in ("off", "on"):
                if (engine, direct) != ("mmap", "on"):
                    done = self.bench("--engine", engine, "--direct", direct, "--json")
                    self.assertEqual(done.objects[-2]["samples"], 150)
        self.expect(run("bench", self.out), FAILED, "this shard is missing")
        os.remove(os.path.join(self.to, shard(2)))
        self.bench(code=FAILED, words=["this shard is missing", self.out])
        self.to = os.path.join(self.out, "index.spki")
        self.bench(code=USAGE, words=["a cache is a directory"])

    def test_what_is_damaged_there_is_named(self):
        self.stage()
        victim = samples(self.out, "id")[30]
        copy = os.path.join(self.to, shard(victim["shard"]))
        self.flip(copy, victim["offset"] + 3)
        self.bench(code=FAILED, words=[copy, "this is the cache's copy"])
        # Its size and its footer are right: that alone is looked at.
        self.assertEqual(self.facts()["shards_copied"], 0)
        told = self.facts("--verify")
        self.assertEqual((told["shards_copied"], told["shards_mended"]), (1, 1))
        self.assertEqual(identity(self.to), identity(self.out))
        self.bench()
        self.assertEqual(self.facts("--verify")["shards_copied"], 0)

    # ---- trouble

    def test_a_damaged_shard_is_not_staged(self):
        victim = samples(self.out, "id")[30]
        number = victim["shard"]
        self.flip(os.path.join(self.out, shard(number)), victim["offset"] + 3)
        self.before = snapshot(self.out)
        done = self.stage("--json", code=NO)
        damage, told = done.objects
        self.assertEqual((damage["type"], damage["shard"], damage["offset"], damage["key"]),
                         ("damage", number, victim["offset"], victim["key"].decode()))
        self.assertEqual((told["damages"], told["shards_copied"], told["is_pack"]),
                         (1, SHARDS - 1, False))
        self.assertEqual(names(self.to), [shard(i) for i in range(SHARDS) if i != number])
        self.stage(code=NO, words=["stripepack verify", "stripepack repair"])
        # A node whose share is whole has nothing to tell.
        self.to = self.path("other")
        self.stage("--node", "%d/%d" % ((number + 1) % SHARDS, SHARDS))
        self.flip(os.path.join(self.out, shard(number)), victim["offset"] + 3)
        self.before = snapshot(self.out)
        self.to = self.path("disk", "copy")
        self.assertEqual(self.facts()["shards_copied"], 1)
        self.assertEqual(identity(self.to), identity(self.out))

    def test_other_damage_of_the_pack(self):
        footer = os.path.join(self.out, shard(3))
        places = {footer: os.path.getsize(footer) - 40,
                  os.path.join(self.out, "rejects.tsv"): 2,
                  os.path.join(self.out, "manifest.json"): 5}
        for path, offset in places.items():
            with self.subTest(path=path):
                self.flip(path, offset)
                self.before = snapshot(self.out)
                self.stage(code=NO, words=[os.path.basename(path)])
                self.assertNotIn("manifest.json", names(self.to))
                self.flip(path, offset)
                shutil.rmtree(self.to)
        self.before = snapshot(self.out)
        self.hide(5)
        self.stage(code=NO, words=["shard is missing"])

    def test_what_is_of_another_pack(self):
        other = self.path("other")
        self.pack(self.src, other, "--shards", "9", "--chunk-size", "64KiB", "--seed", "5")
        self.expect(run("stage", other, self.to), DONE)
        theirs = snapshot(self.to)
        for options in ((), ("--node", "0/2"), ("--verify",), ("--at-most", "100KiB")):
            self.stage(*options, code=FAILED, words=["in the way", "--force"])
        self.assertEqual(snapshot(self.to), theirs)
        self.stage("--force")
        self.assertEqual(identity(self.to), identity(self.out))
        self.assert_verifies(self.to)
        self.expect(run("stage", other, self.to, "--force", "--node", "0/3"), DONE)
        self.assertEqual(names(self.to), [shard(0), shard(3), shard(6)])

    def test_a_cut_copy_is_told(self):
        self.stage("--node", "0/2")
        os.truncate(os.path.join(self.to, shard(2)), 4096)
        self.stage(code=FAILED, words=[shard(2), "has 4096 bytes", "--force"])
        self.stage("--force")
        self.assertEqual(identity(self.to), identity(self.out))

    def test_places_that_are_refused(self):
        for place, words in ((self.out, "the pack itself"), (self.out + "/", "the pack itself"),
                             (os.path.join(self.out, "in", "it"), "within the pack")):
            self.to = place
            self.stage(code=USAGE, words=[words])
        os.symlink(self.out, self.path("link"))
        self.to = self.path("link")
        self.stage(code=USAGE, words=["the pack itself"])
        self.to = os.path.join(self.src, names(self.src)[0], "file")
        open(self.to, "w").close()
        self.stage(code=FAILED, words=["no directory"])
        self.expect(run("stage", self.src, self.path("x")), NOT_A_PACK)
        self.expect(run("stage", self.path("nowhere"), self.path("x")), FAILED)
        self.assertFalse(os.path.exists(self.path("x")))

    def test_a_full_disk_and_on_from_there(self):
        for call in ("pwrite,pwritev", "fsync"):
            with self.subTest(call=call):
                plan = "call=%s;path=%s;errno=ENOSPC" % (call, shard(4))
                done = self.stage("--jobs", "1", code=FAILED, env=faulty(plan),
                                  words=["run the same command again"])
                self.assertNotIn("is a pack", str(done))
                self.assertEqual(names(self.to), [shard(number) for number in range(4)])
                told = self.facts()
                self.assertEqual((told["shards_copied"], told["is_pack"]), (3, True))
                self.assertEqual(identity(self.to), identity(self.out))
                shutil.rmtree(self.to)

    def test_every_failing_call_leaves_nothing_wrong(self):
        plan = "call=any;path=disk"
        calls = self.count_calls(plan, "stage", self.out, self.to, "--jobs", "1")
        shutil.rmtree(self.path("disk"))
        for nth in range(1, calls + 1, max(1, calls // 40)):
            with self.subTest(nth=nth):
                done = run("stage", self.out, self.to, "--jobs", "1",
                           env=faulty(plan + ";nth=%d;errno=EIO" % nth))
                self.assertIn(done.code, (DONE, FAILED), str(done))
                self.check_and_go_on()

    def test_killed_anywhere_it_goes_on(self):
        plan = "call=any;path=disk"
        calls = self.count_calls(plan, "stage", self.out, self.to, "--jobs", "1")
        shutil.rmtree(self.path("disk"))
        for action in ("kill", "kill-after"):
            for nth in range(1, calls + 1, max(1, calls // 25)):
                with self.subTest(nth=nth, action=action):
                    done = run("stage", self.out, self.to, "--jobs", "1",
                               env=faulty(plan + ";nth=%d;action=%s" % (nth, action)))
                    self.assertEqual(done.code, -signal.SIGKILL, str(done))
                    self.check_and_go_on()

    def check_and_go_on(self):
        """Whatever is there is right; and the same command ends with a pack."""
        there = names(self.to) if os.path.isdir(self.to) else []
        for name in there:
            if not name.endswith(".staging"):
                self.assertEqual(sha256(os.path.join(self.to, name)),
                                 sha256(os.path.join(self.out, name)))
        if "manifest.json" in there:
            self.assert_verifies(self.to)
        elif there:
            self.bench()
        self.stage()
        self.assertEqual(identity(self.to), identity(self.out))
        self.assertEqual([name for name in names(self.to) if "staging" in name], [])
        shutil.rmtree(self.path("disk"))

    def test_a_signal_ends_it_soon(self):
        plan = "call=pwrite,pwritev;path=%s;nth=1;action=stop" % shard(2)
        process = start("stage", self.out, self.to, "--jobs", "1", env=faulty(plan))
        self.wait_stopped(process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        done = finish(process)
        self.expect(done, 130, "the same command line continues")
        self.assertLess(done.seconds, 10)
        self.assertEqual(names(self.to), [shard(0), shard(1)])
        self.assertEqual(self.facts()["shards_copied"], 5)

    def wait_stopped(self, process):
        limit = time.monotonic() + 60
        while True:
            with open("/proc/%d/stat" % process.pid, encoding="ascii") as file:
                if file.read().rsplit(")", 1)[1].split()[0] in "Tt":
                    return
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)

    # ---- several at once

    def test_two_at_once_share_the_work(self):
        processes = [start("stage", self.out, self.to, "--json", "--jobs", "2") for _ in range(4)]
        dones = [finish(process) for process in processes]
        for done in dones:
            self.expect(done, DONE)
        told = [done.objects[-1] for done in dones]
        self.assertEqual(sum(one["shards_copied"] for one in told), SHARDS, told)
        self.assertTrue(all(one["is_pack"] for one in told))
        self.assertEqual(identity(self.to), identity(self.out))
        self.assertEqual(names(self.to), names(self.out))

    def test_one_waits_for_what_another_is_at(self):
        plan = "call=fsync;path=%s;nth=1;action=stop" % shard(1)
        first = start("stage", self.out, self.to, "--jobs", "1", "--json", env=faulty(plan))
        self.wait_stopped(first)
        second = start("stage", self.out, self.to, "--json")
        limit = time.monotonic() + 60
        others = {shard(number) for number in range(SHARDS) if number != 1}
        while not others <= set(names(self.to)):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.02)
        self.assertIsNone(second.poll())
        self.assertIn(shard(1) + ".staging", names(self.to))
        first.send_signal(signal.SIGCONT)
        ends = [finish(first), finish(second)]
        for done in ends:
            self.expect(done, DONE)
        told = [done.objects[-1] for done in ends]
        self.assertEqual([one["shards_copied"] for one in told], [2, 5])
        self.assertEqual(identity(self.to), identity(self.out))

    def test_one_takes_over_from_one_that_died(self):
        plan = "call=fsync;path=%s;nth=1;action=stop" % shard(1)
        first = start("stage", self.out, self.to, "--jobs", "1", env=faulty(plan))
        self.wait_stopped(first)
        second = start("stage", self.out, self.to, "--json")
        time.sleep(0.3)
        first.kill()
        finish(first)
        done = self.expect(finish(second), DONE)
        self.assertEqual(done.objects[-1]["shards_copied"], 6)
        self.assertEqual(identity(self.to), identity(self.out))

    def test_where_there_are_no_locks(self):
        unlocked = faulty("call=flock;path=disk;errno=ENOSYS")
        processes = [start("stage", self.out, self.to, env=unlocked) for _ in range(3)]
        for process in processes:
            self.expect(finish(process), DONE)
        self.assertEqual(identity(self.to), identity(self.out))
        self.assertEqual([name for name in names(self.to) if "staging" in name], [])
        os.remove(os.path.join(self.to, shard(3)))
        left = os.path.join(self.to, shard(3) + ".staging-host-1-0-1")
        shutil.copy(os.path.join(self.out, shard(1)), left)
        self.stage(env=unlocked)
        os.remove(left)  # still there: another run might be at it
        self.assertEqual(identity(self.to), identity(self.out))

    # ---- what is told before

    def test_a_dry_run(self):
        told = self.facts("--dry-run")
        self.assertFalse(os.path.exists(self.path("disk")))
        sizes = [os.path.getsize(os.path.join(self.out, shard(number))) for number in range(SHARDS)]
        self.assertEqual((told["type"], told["shards"], told["shards_there"], told["bytes"],
                          told["whole"], told["fits"]),
                         ("stage_dry_run", SHARDS, 0, sum(sizes), True, True))
        self.assertGreater(told["bytes_needed"], sum(sizes))
        self.assertGreater(told["free_bytes"], 0)
        self.stage("--node", "0/2")
        told = self.facts("--dry-run")
        self.assertEqual((told["shards_there"], told["bytes_there"]), (4, sum(sizes[::2])))
        self.stage("--dry-run", words=["wanted: 7 shards of 7", "there: 4 shards", "free: "])

    def test_without_room_nothing_is_begun(self):
        small = self.path("small")
        os.mkdir(small)
        if os.geteuid() != 0 or os.system("mount -t tmpfs -o size=300k tmpfs %s 2>/dev/null"
                                          % small) != 0:
            self.skipTest("cannot mount a small file system")
        self.addCleanup(os.system, "umount " + small)
        self.to = os.path.join(small, "copy")
        self.stage(code=FAILED, words=["are to be copied", "are free", "--at-most"])
        self.assertEqual(names(small), [])
        self.stage("--dry-run", code=NO, words=["NOT ENOUGH"])
        self.assertFalse(self.facts("--dry-run", code=NO)["fits"])
        self.stage("--node", "0/%d" % SHARDS)
        self.bench()

    def test_progress_and_json_lines(self):
        done = self.stage("--json", "--progress", "always")
        self.assertEqual([one["type"] for one in done.objects], ["stage"])
        for line in done.err.splitlines():
            json.loads(line)


if __name__ == "__main__":
    main()

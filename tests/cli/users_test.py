# ctest: timeout=120
"""Modes, groups and users: umask, setgid and default ACLs rule what a pack may be read and written by;
one user of a group finishes what another began; what may not be read is rejected, or refused."""

import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NO, PROGRAM, REJECTS, SHIM, PackTest, faulty, identity, main,  # noqa: E402
                     names, rejects, run, samples)

# Numbers that no user here should have; names are not needed.
ALICE, BOB, GROUP = 54301, 54302, 54399
SHARDS = ["--shards", "2", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]


def others_can_run_it():
    """Whether a user who is not root gets at the program and the shim."""
    if os.geteuid() != 0:
        return False
    test = subprocess.run(["setpriv", "--reuid=%d" % ALICE, "--clear-groups", "test", "-x", PROGRAM,
                           "-a", "-r", SHIM], check=False)
    return test.returncode == 0


class ModesTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"a": 4})

    def modes(self):
        """Of everything in the pack, and of the pack itself."""
        found = {name: stat.S_IMODE(os.stat(os.path.join(self.out, name)).st_mode)
                 for name in names(self.out)}
        return set(found.values()), stat.S_IMODE(os.stat(self.out).st_mode)

    def test_umask_rules(self):
        for umask, file_mode, folder_mode in ((0o022, 0o644, 0o755), (0o002, 0o664, 0o775),
                                              (0o077, 0o600, 0o700), (0o000, 0o666, 0o777)):
            self.pack(self.src, self.out, "--sha256", "--report", self.path("report"), umask=umask)
            self.assertEqual(self.modes(), ({file_mode}, folder_mode))
            self.assertEqual(stat.S_IMODE(os.stat(self.path("report")).st_mode), file_mode)
            shutil.rmtree(self.out)

    def test_a_folder_that_hands_on_its_group(self):
        group = GROUP if os.geteuid() == 0 else os.getgid()
        shared = self.path("shared")
        os.mkdir(shared)
        os.chown(shared, -1, group)
        os.chmod(shared, 0o2775)
        self.out = os.path.join(shared, "out")
        self.pack(self.src, self.out, umask=0o002)
        self.assertEqual(self.modes(), ({0o664}, 0o2775))
        for name in [""] + names(self.out):
            self.assertEqual(os.stat(os.path.join(self.out, name)).st_gid, group, name)

    def test_default_acls_rule(self):
        """Where a folder has a default ACL, that and not the umask says who may what."""
        if shutil.which("setfacl") is None:
            self.skipTest("no setfacl")
        shared = self.path("shared")
        os.mkdir(shared)
        rule = ["setfacl", "-d", "-m", "u::rwx,g::rwx,o::---,u:%d:rwx" % BOB, shared]
        if subprocess.run(rule, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no ACLs here")
        self.out = os.path.join(shared, "out")
        self.pack(self.src, self.out, umask=0o077)
        for name in names(self.out):
            shown = subprocess.run(["getfacl", "-cpn", os.path.join(self.out, name)],
                                   stdout=subprocess.PIPE, check=True, text=True).stdout
            self.assertIn("user:%d:rwx" % BOB, shown)
            self.assertIn("mask::rw-", shown)
            self.assertIn("other::---", shown)


@unittest.skipUnless(others_can_run_it(), "needs root, setpriv, and a program that others can run")
class UsersTest(PackTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"a": 12, "b": 12})
        self.shared = self.path("shared")
        os.mkdir(self.shared)
        os.chown(self.shared, ALICE, GROUP)
        os.chmod(self.shared, 0o2775)
        self.out = os.path.join(self.shared, "out")
        self.partial = self.out + ".partial"

    def run_as(self, user, *arguments, umask=0o002, group=GROUP, env=None):
        return run(*arguments, user=user, group=group, umask=umask, env=env)

    def test_another_user_of_the_group_finishes_and_reads(self):
        for shard in range(2):
            plan = "call=pwrite,pwritev;path=shard-0000%d;nth=1;action=kill-after" % shard
            done = self.run_as(ALICE, "pack", self.src, self.out, *SHARDS, env=faulty(plan))
            self.assertEqual(done.code, -signal.SIGKILL, str(done))
            done = self.run_as(BOB, "pack", self.src, self.out, *SHARDS)
            self.expect(done, DONE)
            self.expect(self.run_as(BOB, "verify", self.out), DONE)
            self.expect(self.run_as(ALICE, "pack", self.src, self.out, *SHARDS), DONE, "complete")
            self.expect(self.run_as(BOB, "pack", self.src, self.out, *SHARDS, "--seed", "1",
                                    "--force"), DONE)
            for name in names(self.shared):
                shutil.rmtree(os.path.join(self.shared, name))

    def test_what_may_not_be_read_is_no_damage(self):
        self.expect(self.run_as(ALICE, "pack", self.src, self.out, *SHARDS), DONE)
        os.chmod(os.path.join(self.out, "shard-00001.spks"), 0o600)
        self.expect(self.run_as(BOB, "verify", self.out), FAILED, "shard-00001.spks",
                    "cannot be read")
        with open(os.path.join(self.out, "manifest.json"), "a") as file:
            file.write("more")
        self.expect(self.run_as(BOB, "verify", self.out), NO, "manifest.json")

    def test_nobody_else_finishes_it(self):
        plan = "call=pwrite,pwritev;path=shard-00001;nth=1;action=kill"
        self.run_as(ALICE, "pack", self.src, self.out, *SHARDS, umask=0o022, env=faulty(plan))
        before = identity(self.partial)
        done = self.run_as(BOB, "pack", self.src, self.out, *SHARDS)
        self.expect(done, FAILED, "Permission denied")
        self.assertEqual(identity(self.partial), before)
        self.expect(self.run_as(ALICE, "pack", self.src, self.out, *SHARDS), DONE)

    def test_files_that_may_not_be_read_are_rejected(self):
        os.chmod(os.path.join(self.src, "a", "00003.jpg"), 0)
        os.chmod(os.path.join(self.src, "b", "00005.jpg"), 0o600)  # root's
        done = self.run_as(ALICE, "pack", self.src, self.out)
        self.expect(done, REJECTS, "permission denied")
        done = self.run_as(ALICE, "pack", self.src, self.out, "--max-rejects", "2")
        self.expect(done, DONE)
        self.assertEqual(sorted(rejects(self.out)), [(b"a/00003.jpg", "permission denied"),
                                                     (b"b/00005.jpg", "permission denied")])
        self.assertEqual(len(samples(self.out)), 22)

    def test_folders_that_may_not_be_read_fail_the_run(self):
        """What they hold is not known, so it cannot be listed as rejected."""
        os.chmod(os.path.join(self.src, "b"), 0o700)
        done = self.run_as(ALICE, "pack", self.src, self.out, "--max-rejects", "100")
        self.expect(done, FAILED, "Permission denied", "/b")
        self.assertEqual(names(self.shared), [])

    def test_a_source_that_others_own_is_packed_by_reading_alone(self):
        for where, _, files in os.walk(self.src):
            os.chmod(where, 0o555)
            for name in files:
                os.chmod(os.path.join(where, name), 0o444)
        self.expect(self.run_as(ALICE, "pack", self.src, self.out), DONE)
        # And the pack by those who may only read it.
        self.expect(self.run_as(BOB, "verify", self.out, group=BOB), DONE)
        self.expect(self.run_as(BOB, "cat", self.out, "a/00001.jpg", group=BOB), DONE)

    def test_out_in_a_folder_that_may_not_be_written(self):
        done = self.run_as(BOB, "pack", self.src, self.out, group=BOB)
        self.expect(done, FAILED, "Permission denied", self.shared)
        self.assertEqual(names(self.shared), [])


if __name__ == "__main__":
    main()

"""Packs on a real CephFS: layouts as getfattr reads them and objects as the cluster maps them, not as
the program says. Skipped where the lab cannot be had, saying what is missing."""

# ctest: timeout=900 serial
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ceph_lab  # noqa: E402
import pictures  # noqa: E402
from lab import LabTest, run_tests  # noqa: E402
from packing import (BUILD, DONE, FAILED, NO, PROGRAM, USAGE, finish, for_mpi,  # noqa: E402
                     identity, run, start)

MIB = 1 << 20
PICTURES = {"cat": 60, "dog": 50}


class CephTest(LabTest):
    make_lab = ceph_lab.CephLab

    def setUp(self):
        super().setUp()
        self.here = os.path.join(self.lab.mount, self.id().rsplit(".", 1)[1])
        os.mkdir(self.here)
        self.source = self.path("src")
        pictures.make_folder(self.source, PICTURES)
        self.pack_path = os.path.join(self.here, "pack")

    def tearDown(self):
        shutil.rmtree(self.here, ignore_errors=True)
        super().tearDown()

    def set_folder_layout(self, unit, count, size):
        subprocess.run(["setfattr", "-n", "ceph.dir.layout", "-v",
                        "stripe_unit=%d stripe_count=%d object_size=%d" % (unit, count, size),
                        self.here], check=True)

    def shards(self, pack):
        return sorted(str(path) for path in pathlib.Path(pack).glob("shard-*.spks"))

    def sizes(self, path):
        layout = self.lab.layout(path)
        return layout["stripe_unit"], layout["stripe_count"], layout["object_size"]

    def record(self):
        return json.loads(pathlib.Path(self.pack_path, "layout.json").read_text())["maps"][-1]

    def test_default_pack_equals_that_of_a_local_disk(self):
        self.pack(self.source, self.pack_path)
        self.pack(self.source, self.out)
        self.assertEqual(identity(self.pack_path), identity(self.out))
        for shard in self.shards(self.pack_path):
            self.assertEqual(self.sizes(shard), (4 * MIB, 1, 4 * MIB))
        self.assertEqual(self.record()["file_system"], "fuse.ceph-fuse")
        self.assertEqual(self.record()["asked"], "the folder's own")
        self.assertEqual(run("verify", "--layout", self.pack_path).code, DONE)

    def test_asked_layout_is_what_getfattr_reads(self):
        self.pack(self.source, self.pack_path, "--shards", "3", "--stripe-size", "1MiB",
                  "--stripe-count", "2")
        for shard in self.shards(self.pack_path):
            self.assertEqual(self.sizes(shard), (MIB, 2, MIB))
        got = self.record()["shards"]
        self.assertEqual([one["components"][0]["stripe_bytes"] for one in got], [MIB] * 3)
        self.assertEqual(self.record()["asked"], "stripe_size=1048576 stripe_count=2")

    def test_chunks_lie_on_single_objects(self):
        # Objects of 1 MiB in the folder, where a chunk is 4 MiB: the shards get larger ones.
        self.set_folder_layout(MIB, 1, MIB)
        big = self.path("big")
        os.makedirs(os.path.join(big, "class"))
        for number in range(40):
            with open(os.path.join(big, "class", "%02d.bin" % number), "wb") as file:
                file.write(os.urandom(MIB // 2))
        self.pack(big, self.pack_path, "--accept", "any", "--chunk-size", "4MiB", "--shards", "2")
        for shard in self.shards(self.pack_path):
            self.assertEqual(self.sizes(shard), (4 * MIB, 1, 4 * MIB))
            size = os.path.getsize(shard)
            subprocess.run(["sync", shard], check=True)
            # One object a chunk, and one for what the footer adds.
            self.assertEqual(sorted(self.lab.objects(shard)), list(range(-(-size // (4 * MIB)))))

    def test_keep_respects_the_folders_layout(self):
        self.set_folder_layout(MIB, 2, 8 * MIB)
        self.pack(self.source, self.pack_path, "--stripe", "keep")
        for shard in self.shards(self.pack_path):
            self.assertEqual(self.sizes(shard), (MIB, 2, 8 * MIB))
        self.assertEqual(run("fs", self.here).out.decode().splitlines()[-1].split("here: ")[1],
                         "stripes of 1 MiB, 2 a file, objects of 8 MiB, pool data")

    def test_too_large_objects_are_refused_before_anything_is_written(self):
        done = run("pack", self.source, self.pack_path, "--stripe-size", "256MiB")
        self.assertEqual(done.code, USAGE, done)
        self.assertIn(b"objects of 256 MiB are more than a Ceph cluster takes (128 MiB)", done.err)
        self.assertEqual([name for name in os.listdir(self.here) if "shard" in name], [])

    def test_unknown_pool_is_warned_about_once_and_packed_all_the_same(self):
        done = run("pack", self.source, self.pack_path, "--shards", "3", "--pool", "nosuch")
        self.assertEqual(done.code, DONE, done)
        self.assertEqual((done.out + done.err).count(b"stripe layout not set"), 1, done)
        self.assertIn("did not take the layout", self.record()["refused"])
        checked = run("verify", "--layout", self.pack_path)
        self.assertEqual(checked.code, NO, checked)
        self.assertIn(b"asked for", checked.out)

    def test_verify_tells_a_plain_copy_and_refresh_records_it(self):
        self.pack(self.source, self.pack_path, "--stripe-size", "1MiB")
        copy = self.pack_path + ".copy"
        shutil.copytree(self.pack_path, copy)
        done = run("verify", "--layout", copy)
        self.assertEqual(done.code, NO, done)
        self.assertIn(b"lie otherwise than is recorded", done.out)
        self.assertIn(b"stripepack layout PACK --refresh", done.out)
        self.assertEqual(run("layout", copy, "--refresh").code, DONE)
        self.assertEqual(run("verify", "--layout", copy).code, DONE)
        maps = json.loads(pathlib.Path(copy, "layout.json").read_text())["maps"]
        self.assertEqual(len(maps), 2)

    def test_ranks_tell_what_one_process_tells(self):
        if shutil.which("mpirun.mpich") is None or not os.path.exists(
                os.path.join(BUILD, "plugins", "stripepack-mpich.so")):
            self.skipTest("no mpirun.mpich with a plugin that was built for it")
        self.pack(self.source, self.pack_path, "--shards", "5", "--stripe-size", "1MiB")
        last = os.path.join(self.pack_path, "shard-00004.spks")
        shutil.copyfile(last, last + ".copy")
        os.rename(last + ".copy", last)
        alone = run("verify", "--layout", self.pack_path)
        self.assertEqual(alone.code, NO, alone)
        self.assertIn(b"shard-00004.spks lie otherwise than is recorded", alone.out)
        for ranks in (2, 5, 7):
            done = subprocess.run(["mpirun.mpich", "-n", str(ranks), PROGRAM, "verify", "--layout",
                                   self.pack_path], env=for_mpi(dict(os.environ)),
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
            self.assertEqual((done.returncode, done.stdout), (NO, alone.out), done)

    def test_osd_killed_in_the_midst_of_packing(self):
        big = self.path("big")
        os.makedirs(os.path.join(big, "class"))
        for number in range(160):
            with open(os.path.join(big, "class", "%03d.bin" % number), "wb") as file:
                file.write(bytes([number]) * (MIB // 2))
        self.pack(big, self.out, "--accept", "any", "--shards", "4")
        packing = start("pack", big, self.pack_path, "--accept", "any", "--shards", "4")
        while not list(pathlib.Path(self.here).glob("pack.partial/shard-*")):
            self.assertIsNone(packing.poll())
        self.lab.kill("osd.1")
        self.lab.start_osd(1)
        done = finish(packing, timeout=300)
        self.assertIn(done.code, (DONE, FAILED), done)
        if done.code == FAILED:
            self.pack(big, self.pack_path, "--accept", "any", "--shards", "4")
        self.assertEqual(identity(self.pack_path), identity(self.out))


if __name__ == "__main__":
    run_tests(ceph_lab.why_not())

# ctest: timeout=900 labels=pfs serial
"""Packs made by jobs of a real Slurm: arrays of parts, tasks of srun, ranks of MPI; killed and
requeued. Skipped where the lab cannot be had, saying what is missing."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import pictures  # noqa: E402
import slurm_lab  # noqa: E402
from lab import LabTest, run_tests  # noqa: E402
from packing import (BUILD, DONE, PROGRAM, SOURCE, all_names, names, remove_tree, run,  # noqa: E402
                     text)

SHAPE = ["--shards", "6", "--chunk-size", "64KiB", "--jobs", "1", "--io-threads", "1"]
SCRIPTS = SOURCE / "samples" / "slurm"


class SlurmTest(LabTest):
    make_lab = slurm_lab.SlurmLab

    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        pictures.make_folder(self.src, {"a": 40, "b": 30})
        self.alone = self.path("alone")
        self.pack(self.src, self.alone, *SHAPE)
        self.log = self.path("log-%A_%a")

    def submit(self, *words, **variables):
        """The job's number."""
        environment = dict(SRC=self.src, OUT=self.out, OPTIONS=" ".join(SHAPE), STRIPEPACK=PROGRAM,
                           **variables)
        return self.lab.run("sbatch", "--parsable", "--export",
                            ",".join(["ALL"] + ["%s=%s" % pair for pair in environment.items()]),
                            *words).strip()

    def logs(self):
        return "".join("--- %s\n%s" % (name, pathlib.Path(self.path(name)).read_text())
                       for name in names(self.dir) if name.startswith("log"))

    def assert_completed(self, job):
        states = self.lab.wait_for_jobs(job)
        self.assertEqual(set(states.values()), {"COMPLETED"}, "%s %s" % (states, self.logs()))

    def assert_published(self):
        self.assert_same_pack(self.out, self.alone)
        self.assertEqual(all_names(self.out), all_names(self.alone))
        self.assertFalse(os.path.exists(self.partial))

    def test_an_array_that_publishes_by_itself(self):
        for array in ("0-3", "5-20:5"):
            job = self.submit("--array=" + array, "-o", self.log, SCRIPTS / "pack_array.sbatch")
            self.assert_completed(job)
            self.assert_published()
            self.assertIn("published", self.logs())
            remove_tree(self.out)

    def test_the_printed_script(self):
        done = self.pack(self.src, self.out, *SHAPE, "--print-sbatch", "--nodes", "3", "--time",
                         "0:10:00", cwd=self.dir)
        self.assertFalse(os.path.exists(self.partial))
        script = self.path("job.sbatch")
        # On one node its jobs follow each other: the first one plans.
        pathlib.Path(script).write_bytes(done.out)
        subprocess.run(["bash", "-n", script], check=True)
        job = self.submit("-o", self.log, script)
        self.assert_completed(job)
        self.assert_published()

    def test_tasks_of_srun(self):
        job = self.submit("-n", "4", "--ntasks-per-node=4", "-N", "1", "-o", self.path("log"),
                          SCRIPTS / "pack_srun.sbatch")
        self.assert_completed(job)
        self.assert_published()

    def test_tasks_of_an_arrays_jobs(self):
        script = self.path("job.sh")
        pathlib.Path(script).write_text(
            "#!/bin/sh\nexec srun --mpi=none \"$STRIPEPACK\" pack \"$SRC\" \"$OUT\" $OPTIONS "
            "--part slurm\n")
        job = self.submit("--array=0-1", "-n", "2", "-o", self.log, script)
        self.assert_completed(job)
        self.assert_published()
        self.assertIn("/4: ", self.logs())

    def test_mpi(self):
        ran = []
        for plugin, mpi in (("mpich", "pmi2"), ("openmpi", "pmix")):
            if not os.path.exists(os.path.join(BUILD, "plugins", "stripepack-%s.so" % plugin)):
                continue
            if mpi == "pmix" and "pmix" not in self.lab.run("srun", "--mpi=list"):
                continue
            job = self.submit("-n", "3", "--ntasks-per-node=3", "-N", "1", "-o", self.path("log"),
                              SCRIPTS / "pack_srun.sbatch", MPI=mpi)
            self.assert_completed(job)
            self.assert_published()
            self.assertEqual(self.logs().count("published"), 1, self.logs())
            remove_tree(self.out)
            os.unlink(self.path("log"))
            ran.append(mpi)
        if not ran:
            self.skipTest("no plugin for an MPI that srun starts")

    def big_source(self):
        remove_tree(self.alone)
        pictures.make_folder(self.src, {"c": 1500}, smallest=20000, largest=40000)
        self.pack(self.src, self.alone, *SHAPE)

    def wait_for_shards(self, job):
        """Until some are being written."""
        limit = time.monotonic() + 60
        while not os.path.exists(self.partial) or not any(
                name.startswith("shard-") for name in names(self.partial)):
            self.assertLess(time.monotonic(), limit, self.logs())
            self.assertTrue(self.lab.state_of(job))

    def test_requeued_while_at_work(self):
        self.big_source()
        job = self.submit("--array=0-1", "-o", self.log, SCRIPTS / "pack_array.sbatch")
        self.wait_for_shards(job)
        self.lab.run("scontrol", "requeue", job + "_0", check=False)
        self.assert_completed(job)
        self.assert_published()

    def test_the_signal_before_the_time_is_up(self):
        """What --signal sends; the job puts itself into the queue again and goes on."""
        self.big_source()
        job = self.submit("--array=0-1", "-o", self.log, SCRIPTS / "pack_array.sbatch")
        self.wait_for_shards(job)
        self.lab.run("scancel", "--batch", "--signal=USR1", job, check=False)
        self.assert_completed(job)
        self.assert_published()

    def test_killed_and_submitted_again(self):
        self.big_source()
        job = self.submit("--array=0-1", "-o", self.log, SCRIPTS / "pack_array.sbatch")
        self.wait_for_shards(job)
        self.lab.run("scancel", "--full", "--signal=KILL", job)
        self.lab.wait_for_jobs(job)
        job = self.submit("--array=0-2", "-o", self.log, SCRIPTS / "pack_array.sbatch")
        self.assert_completed(job)
        self.assert_published()

    def test_training_goes_on_when_it_is_requeued(self):
        """By a stand-in for the trainer, which tells what it was started with."""
        trainer = self.path("trainer.py")
        pathlib.Path(trainer).write_text(TRAINER)
        checkpoint = self.path("checkpoint")
        job = self.submit("-n", "2", "--ntasks-per-node=2", "-N", "1", "--cpus-per-task=1", "-o",
                          self.path("log"), SCRIPTS / "train_ddp.sbatch", PACK=self.alone,
                          TRAINER=trainer, CHECKPOINT=checkpoint)
        limit = time.monotonic() + 60
        while not os.path.exists(checkpoint):
            self.assertLess(time.monotonic(), limit, self.logs())
        self.lab.run("scancel", "--batch", "--signal=USR1", job)
        self.assert_completed(job)
        said = self.logs()
        for rank in (0, 1):
            self.assertEqual(said.count("began %d of 2 at" % rank), 1, said)
            self.assertEqual(said.count("went on %d of 2 with %s" % (rank, self.alone)), 1, said)

    def test_a_sample_that_stages_and_trains(self):
        trainer = self.path("reader.py")
        pathlib.Path(trainer).write_text(READER)
        local = self.path("local")
        variables = {"PACK": self.alone, "TRAINER": trainer, "CHECKPOINT": self.path("checkpoint")}
        job = self.submit("-n", "2", "--ntasks-per-node=2", "-N", "1", "--cpus-per-task=1", "-o",
                          self.path("log"), SCRIPTS / "stage_and_train.sbatch", LOCAL=local,
                          **variables)
        self.assert_completed(job)
        said = self.logs()
        self.assertIn("copied 6 shards", said)
        for rank in (0, 1):
            self.assertIn("rank %d of 2 reads %s by %s" % (rank, self.alone, local), said)
        self.assert_same_pack(local, self.alone)
        # Once more, where all is there; and in a directory of the job's own, which goes with it.
        job = self.submit("-n", "2", "--ntasks-per-node=2", "-N", "1", "--cpus-per-task=1", "-o",
                          self.path("log2"), SCRIPTS / "stage_and_train.sbatch", LOCAL=local,
                          **variables)
        self.assert_completed(job)
        self.assertIn("copied 0 shards", pathlib.Path(self.path("log2")).read_text())
        temporary = self.path("tmp")
        os.mkdir(temporary)
        job = self.submit("-n", "2", "--ntasks-per-node=2", "-N", "1", "--cpus-per-task=1", "-o",
                          self.path("log3"), SCRIPTS / "stage_and_train.sbatch",
                          TMPDIR=temporary, LOCAL="", **variables)
        self.assert_completed(job)
        self.assertIn("reads %s by %s/stripepack-%s" % (self.alone, temporary, job),
                      pathlib.Path(self.path("log3")).read_text())
        self.assertEqual(names(temporary), [])


# Reads the pack's shards from the copy alone: the pack that it opens has none. Each process by
# itself, which bench must not take for ranks of MPI.
READER = """
import os, subprocess, sys, tempfile
pack, cache = sys.argv[1], sys.argv[sys.argv.index("--cache") + 1]
with tempfile.TemporaryDirectory() as folder:
    for name in os.listdir(pack):
        if not name.endswith(".spks"):
            os.symlink(os.path.join(pack, name), os.path.join(folder, name))
    alone = {key: value for key, value in os.environ.items()
             if not key.startswith(("SLURM", "PMI"))}
    subprocess.run([os.environ["stripepack"], "bench", folder, "--cache", cache], check=True,
                   env=alone)
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "reads", pack, "by", cache,
      flush=True)
"""

TRAINER = """
import os, signal, sys, time
rank, world = os.environ["RANK"], os.environ["WORLD_SIZE"]
checkpoint = sys.argv[sys.argv.index("--checkpoint") + 1]
if os.path.exists(checkpoint):
    print("went on", rank, "of", world, "with", sys.argv[1], flush=True)
    sys.exit()
print("began", rank, "of", world, "at", os.environ["MASTER_ADDR"], flush=True)
open(checkpoint + rank, "w").close()
if rank == "0":
    while not os.path.exists(checkpoint + "1"):
        pass
    os.rename(checkpoint + "0", checkpoint)
signal.pause()
"""

if __name__ == "__main__":
    run_tests(slurm_lab.why_not())

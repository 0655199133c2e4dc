"""The samples that load batches, in C, C++ and with MPI: every picture once an epoch, with any number of
ranks, also where a run stops in the midst of an epoch and goes on."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import BUILD, FAILED, SOURCE, PackTest, for_mpi, main  # noqa: E402

PICTURES = {"cat": 41, "dog": 30}
EPOCHS = 2


def program(test, name):
    path = os.path.join(BUILD, "samples", name)
    if not os.path.exists(path):
        test.skipTest(name + " is not built")
    return path


def output(*command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    if done.returncode != 0:
        raise AssertionError("%s\nexit %d\n%s" % (command, done.returncode, done.stderr))
    return done.stdout


class SampleLoadersTest(PackTest):
    def make(self):
        source = self.path("src")
        pictures.make_folder(source, PICTURES)
        self.bytes = sum(path.stat().st_size for path in pathlib.Path(source).rglob("*.*"))
        self.count = sum(PICTURES.values())
        self.pack(source, self.out)

    def totals(self, text):
        last = re.fullmatch(r"(\d+) pictures, (\d+) bytes, labels (\d+)", text.splitlines()[-1])
        return [int(group) for group in last.groups()]

    def check_loader(self, name):
        trainer = program(self, name)
        self.make()
        due = [EPOCHS * self.count, EPOCHS * self.bytes, EPOCHS * PICTURES["dog"]]
        alone = output(trainer, self.out)
        self.assertEqual(self.totals(alone), due)
        for world in (2, 3):
            ranks = [output(trainer, self.out, str(rank), str(world)) for rank in range(world)]
            self.assertEqual([sum(column) for column in zip(*map(self.totals, ranks))], due)
        # What is left at the checkpoint: as much for four ranks as for one.
        state = alone.splitlines()[0]
        consumed = int(state.rsplit("consumed=", 1)[1])
        self.assertIn(" epoch=1 ", state)
        self.assertTrue(0 < consumed < self.count)
        left = self.totals(output(trainer, self.out, "0", "1", state))
        self.assertEqual(left[0], self.count - consumed)
        ranks = [self.totals(output(trainer, self.out, str(rank), "4", state)) for rank in range(4)]
        self.assertEqual([sum(column) for column in zip(*ranks)], left)
        # Errors are a line.
        done = subprocess.run([trainer, self.path("src")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))
        self.check_numbers(trainer)

    def check_numbers(self, trainer):
        name = os.path.basename(trainer).rsplit("_", 1)[0]
        self.assertTrue(output(trainer, "--help").startswith("usage: %s PACK [RANK WORLD" % name))
        done = subprocess.run([trainer], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", output(trainer, "--help")))
        for rank, world, bad in (("x", "1", "x"), ("0", "two", "two"), ("", "1", ""), ("0", " 1", " 1"),
                                 ("-1", "2", "-1"), ("0", "2x", "2x"), ("0", "9" * 30, "9" * 30)):
            done = subprocess.run([trainer, self.out, rank, world], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", "%s: '%s' is not a whole number\n" % (name, bad)))

    def test_numbers_are_refused_where_they_are_none(self):
        self.make()
        for name in ("train_c", "train_cc"):
            trainer = program(self, name)
            self.assertIn("rank 0", output(trainer, self.out, "0", "1"))
            self.check_numbers(trainer)
        done = subprocess.run([sys.executable, str(SOURCE / "samples" / "train.py"), self.out],
                              capture_output=True, text=True, env=dict(
                                  os.environ, RANK="x", PYTHONPATH=os.path.join(BUILD, "python")))
        if "ModuleNotFoundError" not in done.stderr:
            self.assertEqual(done.returncode, 2)
            self.assertIn("argument --rank: invalid int value: 'x'", done.stderr)

    def test_tour_looks_for_its_source_before_it_removes_anything(self):
        tour = self.path("tour")
        os.makedirs(os.path.join(tour, "pack"))
        done = subprocess.run(["sh", str(SOURCE / "samples" / "tour.sh"), os.path.relpath(BUILD, SOURCE),
                               tour, self.path("nosuch")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "tour.sh: SRC '%s' is not there, or may not be read; nothing was "
                         "changed\n" % self.path("nosuch"))
        self.assertEqual(os.listdir(tour), ["pack"])

    def test_tour_of_own_pictures_after_drawn_ones(self):
        program(self, "train_c")
        source = self.path("src")
        pictures.make_folder(source, PICTURES)

        def tour(*more):
            return subprocess.run(["sh", str(SOURCE / "samples" / "tour.sh"), os.path.relpath(BUILD, SOURCE),
                                   self.path("tour"), *more], capture_output=True, text=True, timeout=240)
        drawn = tour()
        if "No module named" in drawn.stderr:
            self.skipTest("no Pillow to draw pictures with")
        self.assertEqual(drawn.returncode, 0, drawn.stderr)
        own = tour(source)
        self.assertEqual(own.returncode, 0, own.stderr)
        self.assertIn("packed %d samples" % sum(PICTURES.values()), own.stdout)
        pictures.write(os.path.join(source, "cat", "new.jpg"), pictures.jpeg(77))
        more = tour(source)
        self.assertEqual(more.returncode, FAILED)
        self.assertIn("OPTIONS=--force", more.stderr)
        # A pack of the user's own is not thrown away for drawn pictures.
        refused = tour()
        self.assertEqual((refused.returncode, refused.stdout.count("\n")), (2, 1))
        self.assertIn("was made of '%s'; move it away" % source, refused.stderr)

    def test_c(self):
        self.check_loader("train_loader_c")

    def test_cpp(self):
        self.check_loader("train_loader_cc")

    def test_mpi(self):
        trainer = program(self, "train_mpi")
        # Of the MPI that it was built with, where the system has several.
        linked = subprocess.run(["ldd", trainer], capture_output=True, text=True).stdout
        name = "mpirun.mpich" if "libmpich" in linked else "mpirun.openmpi"
        mpirun = shutil.which(name) or shutil.which("mpirun")
        if mpirun is None:
            self.skipTest("no mpirun")
        # Open MPI's: more ranks than CPUs, and as root, as in containers.
        env = for_mpi(dict(os.environ, OMPI_MCA_rmaps_base_oversubscribe="1",
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
        self.make()
        for world in (1, 2, 3):
            said = output(mpirun, "-n", str(world), trainer, self.out, env=env)
            steps = -(-self.count // (8 * world))
            self.assertEqual(said.splitlines(), [
                "epoch %d: %d ranks, %d steps, %d pictures, %d bytes"
                % (epoch, world, steps, self.count, self.bytes) for epoch in range(EPOCHS)])
        done = subprocess.run([mpirun, "-n", "2", trainer, self.path("src")], capture_output=True,
                              text=True, timeout=120, env=env)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("train_mpi: cannot read the index: %s/index.spki\n" % self.path("src"), done.stderr)


if __name__ == "__main__":
    main()

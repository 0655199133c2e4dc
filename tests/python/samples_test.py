# ctest: timeout=900
"""The PyTorch samples, run: they learn, and a run that is stopped ends as one that is not."""
import concurrent.futures
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import PROGRAM, SOURCE, run_python, skip  # noqa: E402

try:
    import PIL  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    skip(f"{error} (Debian: apt install python3-torch python3-pil)")

ONE_THREAD = {"OMP_NUM_THREADS": "1"}


class SamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stripepack-samples-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        pictures = os.path.join(cls.folder, "pictures")
        cls.packs = os.path.join(cls.folder, "packs")
        run_python(SOURCE / "samples" / "make_pictures.py", pictures, "--per-class", "40")
        subprocess.run([PROGRAM, "pack", pictures, cls.packs], check=True, capture_output=True)
        cls.train = os.path.join(cls.packs, "train")

    def ddp(self, processes, *arguments):
        """What rank 0 says on standard output."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**ONE_THREAD, "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(port)}
        command = (SOURCE / "samples" / "torch_ddp.py", self.train, "--val",
                   os.path.join(self.packs, "val"), "--epochs", 4, *arguments)
        with concurrent.futures.ThreadPoolExecutor(processes) as pool:
            runs = list(pool.map(lambda rank: run_python(
                *command, env={**environment, "RANK": str(rank)}), range(processes)))
        for done in runs:
            self.assertEqual(done.returncode, 0, done.stderr)
        told = [[line for line in done.stderr.splitlines() if line.startswith("stripepack")]
                for done in runs]
        self.assertIn(f"rank 0 of {processes} (torch.distributed)", told[0][0])
        self.assertFalse(any(told[1:]))
        return runs[0].stdout

    def result(self, said):
        """(weights, percent right) of a run that came to its end."""
        found = re.search(r"weights ([0-9.]+); (\d+) % of the val pack right", said)
        self.assertIsNotNone(found, said)
        return float(found[1]), int(found[2])

    def test_ddp_stops_and_goes_on_with_other_numbers_of_processes(self):
        weights, right = self.result(self.ddp(2))
        self.assertGreaterEqual(right, 60)  # of eight classes
        checkpoint = os.path.join(self.folder, "checkpoint")
        said = self.ddp(2, "--checkpoint", checkpoint, "--stop-after", 27)
        self.assertIn("stopped in epoch 1 after 27 steps", said)
        for processes in (1, 4):
            copy = f"{checkpoint}-{processes}"
            shutil.copy(checkpoint, copy)
            again, still_right = self.result(self.ddp(processes, "--checkpoint", copy))
            self.assertAlmostEqual(again, weights, delta=1e-3 * weights)
            self.assertAlmostEqual(still_right, right, delta=3)

    def test_the_torchvision_script(self):
        done = run_python(SOURCE / "samples" / "torchvision_style.py", self.train, "--epochs", 6,
                          env=ONE_THREAD)
        self.assertEqual(done.returncode, 0, done.stderr)
        last = done.stdout.splitlines()[-1]
        self.assertGreaterEqual(int(re.search(r"(\d+) % of 8 classes right", last)[1]), 60, last)


if __name__ == "__main__":
    unittest.main()

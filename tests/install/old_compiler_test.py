"""A compiler that is too old is told so at once, with what to load instead."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ["STRIPEPACK_SOURCE"]


class OldCompiler(unittest.TestCase):
    def configure(self, compiler, version):
        """Configures with a compiler that passes itself off as VERSION; returns the run."""
        real = shutil.which(compiler)
        if not real:
            self.skipTest(f"no {compiler}")
        macro = "__clang_major__" if compiler.startswith("clang") else "__GNUC__"
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder) / compiler
            fake.write_text(f'#!/bin/sh\nexec {real} -w -U{macro} -D{macro}={version} "$@"\n')
            fake.chmod(0o755)
            run = subprocess.run(
                ["cmake", "-S", SOURCE, "-B", folder + "/build", f"-DCMAKE_CXX_COMPILER={fake}"],
                capture_output=True, text=True)
            # CMake wraps messages at spaces.
            run.stderr = " ".join(run.stderr.split())
            return run

    def test_gcc_9(self):
        run = self.configure("g++", 9)
        self.assertEqual(run.returncode, 1)
        self.assertIn("stripepack needs GCC 12 or Clang 14 or newer; found GNU 9.", run.stderr)
        self.assertIn("module load gcc/12", run.stderr)
        self.assertIn("apt install g++-12", run.stderr)

    def test_clang_11(self):
        run = self.configure("clang++", 11)
        self.assertEqual(run.returncode, 1)
        self.assertIn("stripepack needs GCC 12 or Clang 14 or newer; found Clang 11.", run.stderr)


if __name__ == "__main__":
    unittest.main()

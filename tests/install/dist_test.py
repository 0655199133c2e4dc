# ctest: timeout=1800 labels=slow
"""The source tarball is complete: it configures and builds the library by itself."""
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

SOURCE = os.environ["STRIPEPACK_SOURCE"]


class Dist(unittest.TestCase):
    def make(self, folder):
        run = subprocess.run(["make", "-s", "-f", "Makefile.dist", "dist", f"DIST_DIR={folder}"],
                             cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True)
        return pathlib.Path(run.stdout.splitlines()[-1])

    def test_tarball_builds_by_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            tarball = self.make(folder)
            self.assertRegex(tarball.name, r"^stripepack-\d+\.\d+\.\d+\.tar\.gz$")
            with tarfile.open(tarball) as archive:
                archive.extractall(folder)
            source = pathlib.Path(folder) / tarball.name.removesuffix(".tar.gz")
            for name in ("Makefile.dist", "LICENSE", "CHANGELOG.md", ".ci/run"):
                self.assertTrue((source / name).exists(), name)
            self.assertFalse((source / "build").exists())
            build = source / "build"
            for command in (
                    ["cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Debug",
                     "-DCMAKE_CXX_FLAGS=-O0 -g0", "-DSPK_BUILD_TOOLS=OFF", "-DSPK_BUILD_TESTS=OFF",
                     "-DSPK_BUILD_PYTHON=OFF"],
                    ["cmake", "--build", build, "-j", "2", "--target", "spk_shared"]):
                run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True)
                self.assertEqual(run.returncode, 0, run.stdout[-8000:])
            self.assertTrue((build / "lib/libstripepack.so").exists())

            # A tarball made from the unpacked one, where there is no git, holds the same files.
            again = subprocess.run(
                ["make", "-s", "-f", "Makefile.dist", "dist", f"DIST_DIR={folder}/again"],
                cwd=source, stdout=subprocess.PIPE, text=True, check=True)
            with tarfile.open(tarball) as first, \
                    tarfile.open(again.stdout.splitlines()[-1]) as second:
                files = [sorted(member.name for member in archive if member.isfile())
                         for archive in (first, second)]
            self.assertEqual(files[0], files[1])

    def test_same_source_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            one = self.make(folder + "/one").read_bytes()
            two = self.make(folder + "/two").read_bytes()
        self.assertEqual(one, two)


if __name__ == "__main__":
    unittest.main()

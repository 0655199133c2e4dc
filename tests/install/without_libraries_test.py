# ctest: timeout=3600 labels=slow
"""With every optional library off, the program and the tests still build and the tests pass."""
import os
import pathlib
import subprocess
import unittest

SOURCE = os.environ["STRIPEPACK_SOURCE"]
# Kept between runs, so that only what changed is compiled again.
BUILD = pathlib.Path(os.environ["STRIPEPACK_BUILD"]) / "without-libraries"
LIBRARIES = ["XXHASH", "URING", "JPEG", "PNG", "WEBP", "TIFF", "GIF", "LCMS", "OPENSSL", "ZLIB",
             "ZSTD", "HDF5", "LMDB"]


def cache():
    """Entries of the outer build's CMakeCache.txt."""
    entries = {}
    for line in (BUILD.parent / "CMakeCache.txt").read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "//")):
            entries[name.partition(":")[0]] = value
    return entries


class WithoutLibraries(unittest.TestCase):
    def run_step(self, *command):
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(run.returncode, 0, run.stdout[-8000:])
        return run.stdout

    def test_all_off(self):
        outer = cache()
        arguments = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O0 -g0",
                     "-DSPK_BUILD_PYTHON=OFF", "-DSPK_BUILD_SAMPLES=OFF", "-DSPK_BUILD_TESTS=ON"]
        arguments += [f"-DSPK_WITH_{library}=OFF" for library in LIBRARIES]
        for name in ("CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER_LAUNCHER"):
            if outer.get(name):
                arguments.append(f"-D{name}={outer[name]}")
        said = self.run_step("cmake", "-S", SOURCE, "-B", str(BUILD),
                             "-G", outer["CMAKE_GENERATOR"], *arguments)
        for library in LIBRARIES:
            self.assertRegex(said, rf"-- {library}: off \(.+\)")
        jobs = str(len(os.sched_getaffinity(0)))
        targets = ["spk_shared", "spk_test_unit"]
        if pathlib.Path(SOURCE, "tools/main.cc").exists():
            targets.append("stripepack")
        self.run_step("cmake", "--build", str(BUILD), "-j", jobs, "--target", *targets)
        self.run_step(str(BUILD / "tests/spk_test_unit"), "--gtest_brief=1")


if __name__ == "__main__":
    unittest.main()

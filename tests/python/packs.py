"""What the tests of the Python package share: finding it, and a pack to read."""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
BUILD = pathlib.Path(os.environ["STRIPEPACK_BUILD"])
PROGRAM = os.environ["STRIPEPACK"]
PACKAGE = str(BUILD / "python")
sys.path[:0] = [PACKAGE, str(SOURCE / "tests" / "support"), str(SOURCE / "tests" / "oracle")]

import pictures  # noqa: E402

SKIPPED = 77


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


try:
    import numpy  # noqa: F401
    import stripepack  # exists in the build tree only where the module was built
except ImportError as error:
    skip(error)


class TestPack:
    """A pack of about 40 chunks of 64 KiB, of three classes, and what is in it."""

    def __init__(self, counts=None, smallest=2000, largest=9000, shuffle=True):
        self._folder = tempfile.TemporaryDirectory(prefix="stripepack-python-")
        root = pathlib.Path(self._folder.name)
        self.root = root
        self.files = pictures.make_folder(root / "pictures",
                                          counts or {"cat": 150, "dog": 170, "hen": 80},
                                          smallest, largest)
        self.path = root / "pack"
        done = subprocess.run([PROGRAM, "pack", root / "pictures", self.path, "--shards", "3",
                               "--chunk-size", "64KiB", *([] if shuffle else ["--no-shuffle"])],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def open(self, **options):
        return stripepack.open(self.path, **options)

    def flip(self, sample):
        """Damages a sample; the returned function undoes it."""
        shard, offset, _ = self.open().locate(sample)
        path = self.path / f"shard-{shard:05}.spks"
        with open(path, "r+b") as file:
            file.seek(offset + 5)
            good = file.read(1)
            file.seek(offset + 5)
            file.write(bytes([good[0] ^ 255]))

        def undo():
            with open(path, "r+b") as file:
                file.seek(offset + 5)
                file.write(good)
        return undo

    def close(self):
        self._folder.cleanup()


def run_python(*arguments, timeout=300, env=None, **how):
    """Another Python with the package at hand."""
    environment = dict(os.environ, PYTHONPATH=PACKAGE, **(env or {}))
    return subprocess.run([sys.executable, "-B", *map(str, arguments)], capture_output=True,
                          text=True, timeout=timeout, env=environment, **how)

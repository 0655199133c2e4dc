# ctest: timeout=120
"""The shim that makes calls fail does what its head says: tried on Python's own calls."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).with_name("faulty_io.c")

# Writes, syncs, renames; prints the names of errors met, in order.
PROGRAM = r"""
import errno, os, sys
def attempt(what, *arguments):
    try:
        return what(*arguments)
    except OSError as error:
        print(errno.errorcode[error.errno])
os.chdir(sys.argv[1])
here = os.open(".", os.O_RDONLY)
for name in ("shard-0", "other", "shard-1"):
    fd = attempt(os.open, name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    if fd is None:
        continue
    print(attempt(os.write, fd, b"12345678"))
    print(attempt(os.pwrite, fd, b"abcd", 8))
    print(attempt(os.pwritev, fd, [b"ef", b"gh"], 12))
    attempt(os.fsync, fd)
    attempt(os.fdatasync, fd)
    attempt(os.close, fd)
    os.stat(name)
    attempt(lambda: os.rename(name, name + ".done", src_dir_fd=here, dst_dir_fd=here))
print("end")
"""
UNHARMED = ["8", "4", "4"] * 3 + ["end"]


class FaultyIoTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.shim = os.path.join(cls.folder.name, "faulty_io.so")
        subprocess.run(
            [COMPILER, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
             str(SOURCE), "-o", cls.shim, "-ldl"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.out = tempfile.mkdtemp(dir=self.folder.name)

    def run_program(self, plan, count_file=None):
        environment = dict(os.environ, LD_PRELOAD=self.shim, FAULTY_IO=plan)
        if count_file:
            environment["FAULTY_IO_COUNT"] = count_file
        done = subprocess.run([sys.executable, "-I", "-S", "-c", PROGRAM, self.out],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
        return done.returncode, done.stdout.split(), done.stderr

    def names(self):
        return sorted(os.listdir(self.out))

    def count(self, plan):
        file = os.path.join(self.folder.name, "count")
        code, lines, _ = self.run_program(plan, file)
        self.assertEqual((code, lines), (0, UNHARMED))
        shutil.rmtree(self.out)
        os.mkdir(self.out)
        with open(file, encoding="ascii") as text:
            return int(text.read())

    def test_counts_what_matches(self):
        self.assertEqual(self.count("call=fsync"), 3)
        self.assertEqual(self.count("call=fsync;path=shard-"), 2)
        self.assertEqual(self.count("call=sync;path=shard-"), 4)
        self.assertEqual(self.count("call=pwrite"), 3)
        self.assertEqual(self.count("call=write,pwrite,pwritev;path=shard-"), 6)
        self.assertEqual(self.count("call=rename;path=.done"), 3)
        self.assertEqual(self.count("call=rename;path=shard-1"), 1)
        self.assertEqual(self.count("call=close;path=other"), 1)
        self.assertEqual(self.count("call=openat;path=shard-"), 2)
        # Relative names are seen with their directory, but for those relative to the working one.
        self.assertEqual(self.count("call=rename;path=" + os.path.basename(self.out)), 3)
        self.assertEqual(self.count("call=any;path=shard-"), 2 * 8)

    def test_fails_the_nth_only(self):
        code, lines, _ = self.run_program("call=fsync;nth=2;errno=ENOSPC;path=shard-")
        self.assertEqual(code, 0)
        self.assertEqual(lines, UNHARMED[:9] + ["ENOSPC", "end"])
        self.assertEqual(self.names(), ["other.done", "shard-0.done", "shard-1.done"])

    def test_fails_every_one_without_nth(self):
        code, lines, _ = self.run_program("call=rename")
        self.assertEqual((code, lines), (0, ["8", "4", "4", "EIO"] * 3 + ["end"]))
        self.assertEqual(self.names(), ["other", "shard-0", "shard-1"])

    def test_failed_open_makes_nothing(self):
        code, lines, _ = self.run_program("call=openat;nth=1;errno=EACCES;path=shard-")
        self.assertEqual((code, lines), (0, ["EACCES"] + UNHARMED[3:]))
        self.assertEqual(self.names(), ["other.done", "shard-1.done"])

    def test_failed_close_has_closed(self):
        code, lines, _ = self.run_program("call=close;nth=1;errno=EDQUOT;path=shard-")
        self.assertEqual((code, lines), (0, UNHARMED[:3] + ["EDQUOT"] + UNHARMED[3:]))

    def test_short_writes(self):
        code, lines, _ = self.run_program("call=write,pwrite,pwritev;action=short;path=other")
        self.assertEqual((code, lines), (0, ["8", "4", "4", "4", "2", "2", "8", "4", "4", "end"]))

    def test_kill_comes_before_the_call_or_after(self):
        code, _, _ = self.run_program("call=rename;nth=2;action=kill")
        self.assertEqual(code, -9)
        self.assertEqual(self.names(), ["other", "shard-0.done"])
        shutil.rmtree(self.out)
        os.mkdir(self.out)
        code, _, _ = self.run_program("call=rename;nth=2;action=kill-after")
        self.assertEqual(code, -9)
        self.assertEqual(self.names(), ["other.done", "shard-0.done"])

    def test_a_misspelt_plan_stops_the_program(self):
        for plan in ("call=fsync;errno=EWHAT", "fsync", "nth=3", "call=fsync;when=3",
                     "call=fsync;action=explode"):
            code, lines, errors = self.run_program(plan)
            self.assertEqual((code, lines), (99, []), plan)
            self.assertIn("faulty_io: bad FAULTY_IO", errors)


if __name__ == "__main__":
    COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if COMPILER is None:
        print("no C compiler at hand")
        sys.exit(77)
    unittest.main()

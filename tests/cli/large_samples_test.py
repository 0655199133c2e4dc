# ctest: timeout=1800 labels=slow serial
"""Samples of 3 GiB, and an array of 10 GiB that is read to its end, within the memory that is the
default; and a table of as many rows as STRIPEPACK_TEST_ROWS says. The files have holes, so that
sources take no room."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, SANITIZED, SKIPPED, PackTest, main, run, samples  # noqa: E402

GIB = 1 << 30
MIB = 1 << 20
DEFAULT_MEMORY = 512 * MIB
LARGE = 3 * GIB + 7
ROWS = int(os.environ.get("STRIPEPACK_TEST_ROWS", "1000000"))

SPARSE_ARRAY = """
import sys
try:
    import h5py
except ImportError:
    sys.exit(77)
with h5py.File(sys.argv[1], "w", libver="latest") as file:
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    shape = tuple(int(size) for size in sys.argv[2:])
    h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE, h5py.h5s.create_simple(shape), how)
"""


class LargeSamplesTest(PackTest):
    def packed(self, source, *more, memory=DEFAULT_MEMORY):
        done = self.pack(source, self.out, *more, "--progress", "never", timeout=1200)
        print("%s: %.1f s, %d MiB" % (self.id().split(".")[-1], done.seconds,
                                      done.max_rss_bytes // MIB))
        self.assertLessEqual(done.max_rss_bytes, memory)
        return samples(self.out)

    def room(self, wanted):
        if os.statvfs(self.dir).f_bavail * os.statvfs(self.dir).f_frsize < wanted:
            self.skipTest("needs %d GiB of free space" % (wanted // GIB))

    def test_from_tar(self):
        self.room(5 * GIB)
        archive = self.path("large.tar")
        with open(archive, "wb") as file:
            for name, size in (("a/small.jpg", 5), ("a/large.jpg", LARGE), ("b/last.jpg", 6)):
                member = tarfile.TarInfo(name)
                member.size = size
                file.write(member.tobuf())
                file.seek(-(-size // 512) * 512, os.SEEK_CUR)
            file.seek(1023, os.SEEK_CUR)
            file.write(b"\0")
        found = self.packed(archive, "--check", "none")
        self.assertEqual([one["bytes"] for one in found], [5, LARGE, 6])

    def test_from_files(self):
        self.room(5 * GIB)
        src = self.path("src")
        pictures.write(os.path.join(src, "volume.raw"), b"")
        with open(os.path.join(src, "volume.raw"), "wb") as file:
            file.truncate(LARGE)
        found = self.packed(src, "--accept", "any")
        self.assertEqual([one["bytes"] for one in found], [LARGE])

    def sparse_array(self, shape):
        path = self.path("array.h5")
        # By another process: a child's peak begins with what its parent had.
        made = subprocess.run([sys.executable, "-c", SPARSE_ARRAY, path, *map(str, shape)])
        if made.returncode == SKIPPED:
            self.skipTest("python3-h5py is not installed")
        self.assertEqual(made.returncode, 0)
        return path

    def test_from_hdf5(self):
        self.room(5 * GIB)
        array = self.sparse_array((1, 32768, 32768, 3))
        found = self.packed(array, "--max-pixels", str(1 << 31))
        self.assertEqual([one["bytes"] for one in found], [3 << 30])

    def test_a_large_array_to_its_end(self):
        array = self.sparse_array((10 << 10, 1024, 1024))
        found = self.packed(array, "--resize", "8", "--encode", "raw")
        self.assertEqual({(one["height"], one["width"]) for one in found}, {(8, 8)})
        self.assertEqual(len(found), 10 << 10)

    def test_a_large_table(self):
        """Every row has its sample: one picture under many names."""
        src = self.path("src")
        os.mkdir(src)
        pictures.write(os.path.join(src, "p.jpg"), b"abc")
        for digit in range(10):
            os.symlink(".", os.path.join(src, "d%d" % digit))
        with open(self.path("list.txt"), "w", encoding="ascii") as file, \
                open(self.path("table.csv"), "w", encoding="ascii") as table:
            table.write("key,number,words\n")
            for number in range(ROWS):
                path = "/".join("d" + digit for digit in str(number).zfill(7)) + "/p.jpg"
                file.write("3 1700000000.000000000 %s\n" % path)
                table.write("%s,%d,the words of sample %d\n" % (path, number, number))
        os.utime(os.path.join(src, "p.jpg"), (1700000000, 1700000000))
        done = self.pack(self.path("list.txt"), self.out, "--root", src, "--check", "none",
                         "--labels", "none", "--join", self.path("table.csv"), "--memory", "128MiB",
                         "--shards", str(max(8, ROWS // 125000)), "--progress", "never", timeout=1500)
        print("%d rows: %.1f s, %d MiB" % (ROWS, done.seconds, done.max_rss_bytes // MIB))
        self.assertLessEqual(done.max_rss_bytes, 128 * MIB)
        key = "/".join("d" + digit for digit in str(ROWS // 3).zfill(7)) + "/p.jpg"
        self.assertEqual(self.expect(run("cat", self.out, key, "--field", "words"), DONE).out,
                         b"the words of sample %d" % (ROWS // 3))

    def test_exported_to_hdf5(self):
        """Keys and borders are not held until the end."""
        src = self.path("src")
        os.mkdir(src)
        # Tiny, for the pack's pages in memory count as well.
        pictures.write(os.path.join(src, "p.jpg"), b"abc")
        for digit in range(10):
            os.symlink(".", os.path.join(src, "d%d" % digit))
        with open(self.path("list.txt"), "w", encoding="ascii") as file:
            for number in range(100000):
                file.write("/".join("d" + digit for digit in str(number).zfill(5)) + "/p.jpg 3\n")
        self.pack(self.path("list.txt"), self.out, "--root", src, "--check", "none", timeout=600)
        for layout in ("vlen", "flat"):
            done = run("export", self.out, self.path(layout), "--to", "hdf5", "--layout", layout,
                       "--memory", "64MiB", timeout=600)
            if b"cannot write HDF5" in done.err:
                self.skipTest("built without HDF5")
            self.expect(done, DONE)
            print("hdf5 %s: %.1f s, %d MiB" % (layout, done.seconds, done.max_rss_bytes // MIB))
            self.assertLessEqual(done.max_rss_bytes, 64 * MIB)
            shutil.rmtree(self.path(layout))


if __name__ == "__main__":
    if SANITIZED:
        print("sanitizers need memory of their own")
        sys.exit(SKIPPED)
    main()

# ctest: timeout=900
"""A sample of more than 4 GiB: sizes and offsets that 32 bits do not hold."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, PackTest, main, run, samples  # noqa: E402

GIB = 1 << 30


class HugeTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")

    def write(self, name, data):
        pictures.write(os.path.join(self.src, name), data)

    def test_a_sample_of_more_than_4_gib(self):
        if os.statvfs(self.dir).f_bavail * os.statvfs(self.dir).f_frsize < 12 * GIB:
            self.skipTest("needs 12 GiB of free space")
        self.write("a/1.jpg", b"small")
        with open(os.path.join(self.src, "a", "2.jpg"), "wb") as file:
            file.truncate(4 * GIB + 5)
        self.write("a/3.jpg", b"behind")
        done = self.pack(self.src, self.out, "--check", "none", "--no-shuffle", "--shards", "1",
                         timeout=300)
        self.assertLess(done.max_rss_bytes, GIB // 2)
        found = samples(self.out, "id")
        self.assertEqual([one["bytes"] for one in found], [5, 4 * GIB + 5, 6])
        self.assertGreater(found[2]["offset"], 4 * GIB)
        self.assertEqual(run("cat", self.out, "a/3.jpg").out, b"behind")
        self.expect(run("verify", self.out, timeout=300), DONE, "ok:")


if __name__ == "__main__":
    main()

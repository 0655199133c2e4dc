# ctest: timeout=900 labels=slow serial
"""Ten million samples of three bytes: packed within --memory, killed and continued within it as well.
Under a sanitizer, or with STRIPEPACK_TEST_SAMPLES, fewer."""

import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import DONE, SANITIZED, SHIM, PackTest, faulty, identity, main, run  # noqa: E402

SAMPLES = int(os.environ.get("STRIPEPACK_TEST_SAMPLES", "200000" if SANITIZED else "10000000"))
DIGITS = 7
MIB = 1 << 20
DEFAULT_MEMORY = 512 * MIB


class ManySamplesTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        os.mkdir(self.src)
        # One file under as many names as there are paths through links that lead back.
        for digit in range(10):
            os.symlink(".", os.path.join(self.src, "d%d" % digit))
        file = os.path.join(self.src, "p.jpg")
        with open(file, "wb") as opened:
            opened.write(b"abc")
        mtime = os.stat(file).st_mtime_ns
        head = "3 %d.%09d " % (mtime // 10**9, mtime % 10**9)
        self.list = self.path("list.txt")
        with open(self.list, "w", encoding="ascii") as opened:
            for number in range(SAMPLES):
                path = "/".join("d" + digit for digit in str(number).zfill(DIGITS))
                opened.write(head + path + "/p.jpg\n")
        self.arguments = ["--root", self.src, "--check", "none", "--labels", "none", "--progress",
                          "never", "--json"]

    def packed(self, out):
        done = self.pack(self.list, out, *self.arguments, timeout=800)
        print("%d samples: %.1f s, %d MiB" % (SAMPLES, done.seconds, done.max_rss_bytes // MIB))
        if not SANITIZED:
            self.assertLessEqual(done.max_rss_bytes, DEFAULT_MEMORY)
        report, = self.report(done)["packs"]
        self.assertEqual((report["samples"], report["payload_bytes"]), (SAMPLES, 3 * SAMPLES))
        return report

    def test_many_samples_in_bounded_memory(self):
        shards = self.packed(self.out)["shards"]
        self.assertEqual(shards, -(-SAMPLES // (1 << 19)))
        self.expect(run("verify", self.out, timeout=600), DONE)
        whole = identity(self.out)
        # The last one comes to its footer, with nearly all of its samples kept.
        again = self.path("again")
        plan = "call=truncate;path=shard-%05d.spks;nth=1;action=kill" % (shards - 1)
        done = run("pack", self.list, again, *self.arguments, timeout=800, env=faulty(plan))
        self.assertEqual(done.code, -signal.SIGKILL, str(done))
        report = self.packed(again)
        self.assertGreater(report["samples_kept"], 0.9 * SAMPLES / shards)
        self.assertEqual(identity(again), whole)


if __name__ == "__main__":
    if not os.path.exists(SHIM):
        print("no libfaulty_io.so at " + SHIM)
        sys.exit(77)
    if os.statvfs(".").f_bavail * os.statvfs(".").f_frsize < 8 << 30:
        print("needs 8 GiB of free space")
        sys.exit(77)
    main()

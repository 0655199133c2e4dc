# ctest: timeout=300 serial
"""Peak memory stays within --memory, whatever the sizes of pictures and chunks."""

import multiprocessing
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import SANITIZED, SKIPPED, PackTest, identity, main  # noqa: E402

MIB = 1 << 20


class MemoryTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        # By another process: a child's peak begins with what its parent had.
        maker = multiprocessing.get_context("fork").Process(target=self.make_source)
        maker.start()
        maker.join()
        self.assertEqual(maker.exitcode, 0)

    def make_source(self):
        pictures.make_folder(self.src, {"a": 600}, smallest=50000, largest=400000)
        for number in range(12):  # some that are read piece by piece
            path = os.path.join(self.src, "b", "%d.jpg" % number)
            pictures.write(path, pictures.jpeg(number, (3 + 2 * number) * MIB))

    def test_peak_memory(self):
        geometries = ([], ["--chunk-size", "64MiB", "--shards", "4"], ["--shuffle", "blocks"],
                      ["--no-shuffle", "--chunk-size", "64KiB"])
        for geometry in geometries:
            made = []
            for memory, more in ((64, ["--jobs", "1"]), (64, ["--jobs", "2", "--io-threads", "32"]),
                                 (128, ["--jobs", "8"]), (512, ["--jobs", "2"])):
                with self.subTest(geometry=geometry, memory=memory, more=more):
                    done = self.pack(self.src, self.out, *geometry, *more, "--memory",
                                     "%dMiB" % memory)
                    self.assertLessEqual(done.max_rss_bytes, memory * MIB)
                    made.append(identity(self.out))
                    shutil.rmtree(self.out)
            self.assertEqual(made, made[:1] * 4)

    def test_samples_as_large_as_what_is_read_at_a_time(self):
        folder = self.path("large")
        for number in range(300):
            path = os.path.join(folder, "a", "%d.bin" % number)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(bytes([number % 256]) * (MIB + number))
        for memory in (96, 128, 192):
            with self.subTest(memory=memory):
                done = self.pack(folder, self.out, "--accept", "any", "--memory",
                                 "%dMiB" % memory)
                self.assertLessEqual(done.max_rss_bytes, memory * MIB)
                shutil.rmtree(self.out)


if __name__ == "__main__":
    if SANITIZED:
        print("a sanitizer's own memory would be measured")
        sys.exit(SKIPPED)
    main()

# ctest: timeout=300
"""What loaders refuse, and how they end: closed, or with the program."""
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import TestPack, run_python, stripepack  # noqa: E402


class Counts:
    """In place of an operation on pictures."""

    def decode_batch(self, batch, epoch, seed):  # pylint: disable=unused-argument
        return len(batch)


class LoaderEndsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pack = TestPack()
        cls.dataset = cls.pack.open()

    @classmethod
    def tearDownClass(cls):
        del cls.dataset
        cls.pack.close()

    def loader(self, **options):
        return stripepack.Loader(self.dataset, **{"batch": 8, "lanes": 4, "tail": "exact", **options})

    def test_options_that_are_refused(self):
        for wrong in ({"batch": 0}, {"rank": 2, "world": 2}, {"worker": 1}, {"order": "sorted"},
                      {"tail": "none"}, {"engine": "steam"}, {"fields": []}, {"fields": "image"},
                      {"seed": -1}, {"seed": 1 << 64}, {"lanes": -1}, {"window": 1 << 32},
                      {"memory": -1}, {"threads": 1 << 32}, {"node_ranks": 1 << 32},
                      {"node_memory": 1 << 64}, {"targets": [-1]}, {"targets": [1 << 32]}):
            with self.assertRaisesRegex(ValueError, ".* (is|are) .*", msg=wrong):
                self.loader(**wrong)
        for name in ("batch", "rank", "world", "seed", "epoch", "lanes", "window", "worker", "workers",
                     "memory", "threads", "node_ranks", "node_memory"):
            for wrong in (2.5, float("nan"), "3", b"", [], {}):
                with self.assertRaisesRegex(TypeError, f"^{name} is .*; it is a whole number$"):
                    self.loader(**{name: wrong})
        for wrong in ({"fields": [1]}, {"fields": 1}, {"state": 5}, {"state": b""}, {"targets": "1"},
                      {"targets": [[1]]}, {"targets": [0.5]}, {"targets": 1}, {"decode": 5}):
            with self.assertRaises(TypeError, msg=wrong):
                self.loader(**wrong)
        self.assertRaises(TypeError, self.pack.open, threads=1.5)
        self.assertRaises(ValueError, self.pack.open, threads=-1)
        self.assertRaises(ValueError, self.dataset.part, -1, 2)
        self.assertRaises(TypeError, self.dataset.iterate, 0.5, 2)
        self.assertRaises(KeyError, self.dataset.column, "image")
        self.assertRaises(TypeError, self.dataset.column, "label", 0.5)
        with self.assertRaisesRegex(ValueError, "epoch is -1; it is at least 0"):
            self.loader().set_epoch(-1)
        for wrong, code in (({"fields": ["sound"]}, "not_found"), ({"lanes": 1 << 21},
                            "invalid_argument"), ({"memory": 1000}, "invalid_argument")):
            with self.assertRaises(stripepack.Error) as caught:
                self.loader(**wrong)
            self.assertEqual(caught.exception.code, code)

    def test_close(self):
        loader = self.loader()
        batch = next(iter(loader))
        with loader:
            pass
        self.assertEqual(len(os.listdir("/proc/self/task")), 1)
        self.assertEqual(bytes(batch["image"][0]), self.dataset.read(int(batch.ids[0])))
        state, steps = loader.state(), loader.stats["steps"]
        self.assertEqual(state, batch.state)
        self.assertEqual(steps, 1)
        loader.close()
        for use in (loader.next, lambda: list(loader), lambda: loader.set_epoch(4)):
            with self.assertRaisesRegex(stripepack.Error, "this loader was closed"):
                use()

    def test_close_while_another_thread_waits(self):
        loader = self.loader(decode=Counts())
        ended = []

        def take():
            try:
                while loader.next() is not None:
                    time.sleep(0.001)
            except stripepack.Error as error:
                ended.append(str(error))
            ended.append("ended")

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        time.sleep(0.02)
        loader.close()
        thread.join(20)
        self.assertFalse(thread.is_alive())
        self.assertEqual(ended[-1], "ended")

    def test_a_program_may_end_in_mid_epoch(self):
        """While the thread that decodes ahead is in compiled code."""
        script = """
import sys, stripepack
dataset = stripepack.open(sys.argv[1])
class Reads:
    def decode_batch(self, batch, epoch, seed):
        for _ in range(20_000):
            dataset.read(0)
for batch in stripepack.Loader(dataset, decode=Reads()):
    sys.exit(5)
"""
        for _ in range(3):
            done = run_python("-c", script, self.pack.path)
            self.assertEqual((done.returncode, done.stderr), (5, ""))


if __name__ == "__main__":
    unittest.main()

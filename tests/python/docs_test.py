# ctest: timeout=120
"""The code in docs/PYTHON.md runs."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import SOURCE, TestPack  # noqa: E402


class DocsTest(unittest.TestCase):
    def test_the_code_runs(self):
        text = (SOURCE / "docs" / "PYTHON.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```py\n(.*?)```", text, re.S)
        self.assertGreaterEqual(len(blocks), 5)
        try:
            import PIL  # noqa: F401
            import torch
            torch.set_num_threads(1)
        except ImportError:
            blocks = [block for block in blocks if "torch" not in block]
        pack = TestPack()
        self.addCleanup(pack.close)
        (pack.root / "my.pack").symlink_to(pack.path)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(pack.root)
        names = {}
        for block in blocks:
            with self.subTest(block=block):
                exec(compile(block, "PYTHON.md", "exec"), names)  # pylint: disable=exec-used


if __name__ == "__main__":
    unittest.main()

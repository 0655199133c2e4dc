# ctest: timeout=60
"""The type stubs tell of the same names and arguments as the code."""
import ast
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packs import SOURCE  # noqa: E402

PACKAGE = SOURCE / "libformat" / "python" / "stripepack"
# A stub, and the files that it tells of.
STUBS = {"dataset": ["dataset"], "batch": ["batch"], "loader": ["loader"],
         "torch/__init__": ["torch/folder", "torch/sampler", "torch/stream", "torch/ranks"]}


def arguments(function):
    """[(name, default or None)]"""
    names = function.args.posonlyargs + function.args.args
    defaults = [None] * (len(names) - len(function.args.defaults)) + function.args.defaults
    return [(name.arg, None if default is None else ast.unparse(default))
            for name, default in zip(names, defaults)]


def functions(files, suffix):
    """{dotted name: arguments} of all that is public."""
    found = {}
    for name in files:
        tree = ast.parse((PACKAGE / f"{name}{suffix}").read_text(encoding="utf-8"))
        for node in tree.body:
            for owner, part in ([("", node)] if isinstance(node, ast.FunctionDef) else
                                [(node.name + ".", part) for part in node.body]
                                if isinstance(node, ast.ClassDef) else []):
                if isinstance(part, ast.FunctionDef) and (
                        not part.name.startswith("_") or part.name in ("__init__", "__len__")):
                    found[owner + part.name] = arguments(part)
    return found


class StubsTest(unittest.TestCase):
    maxDiff = None

    def test_stubs_and_code_agree(self):
        for stub, files in STUBS.items():
            told, there = functions([stub], ".pyi"), functions(files, ".py")
            # What is made by others, and what is not for users.
            for name in ("Batch.__init__", "Field.__init__", "Columns.__init__", "print_rank",
                         "warn_of_second_sharding", "_Decoding.__init__"):
                there.pop(name, None)
            self.assertEqual(told, there)


if __name__ == "__main__":
    unittest.main()

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
STUBS = {"dataset": ["dataset"], "batch": ["batch"], "loader": ["loader"], "image": ["image"],
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
                    # Of overloads the first has the code's defaults.
                    found.setdefault(owner + part.name, arguments(part))
    return found


def parsed(name):
    return ast.parse((PACKAGE / name).read_text(encoding="utf-8"))


def fields(body):
    """[(name, default or None)] of annotated names."""
    return [(node.target.id, None if node.value is None else ast.unparse(node.value))
            for node in body if isinstance(node, ast.AnnAssign)]


def operations():
    """{class: [(name, default)]} of the dataclasses of image.py, and what all of them have besides."""
    tree = parsed("image.py")
    common = next(node.value for node in tree.body
                  if isinstance(node, ast.Assign) and node.targets[0].id == "_COMMON")
    shared = []
    for name, value in zip(common.keys, common.values):
        default = value.elts[1]
        if isinstance(default, ast.Call):  # dataclasses.field
            default = next(word.value for word in default.keywords if word.arg == "default")
        shared.append((name.value, ast.unparse(default)))
    return {node.name: fields(node.body) for node in tree.body
            if isinstance(node, ast.ClassDef) and node.decorator_list}, shared


class StubsTest(unittest.TestCase):
    maxDiff = None

    def test_stubs_and_code_agree(self):
        for stub, files in STUBS.items():
            told, there = functions([stub], ".pyi"), functions(files, ".py")
            # What is made by others, and what is not for users.
            for name in ("Batch.__init__", "Field.__init__", "Columns.__init__", "print_rank",
                         "warn_of_second_sharding", "_Decoding.__init__"):
                there.pop(name, None)
            if stub == "image":
                own, shared = operations()
                self.assertEqual(sorted(own), ["CenterCrop", "FullDecode", "RandomResizedCrop", "Resize"])
                for name, its in own.items():  # which dataclass makes
                    there[f"{name}.__init__"] = [("self", None), *its, *shared]
            self.assertEqual(told, there)

    def test_fields_of_operations(self):
        own, shared = operations()
        own["_Operation"] = shared
        told = {node.name: fields(node.body) for node in parsed("image.pyi").body
                if isinstance(node, ast.ClassDef)}
        for name, its in own.items():
            self.assertEqual([field for field, _ in told[name]], [field for field, _ in its], name)


if __name__ == "__main__":
    unittest.main()

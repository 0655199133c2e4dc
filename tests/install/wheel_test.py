# ctest: timeout=300
"""A wheel of this build, installed into an environment of its own: package, library and program."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["STRIPEPACK_SOURCE"])
BUILD = pathlib.Path(os.environ["STRIPEPACK_BUILD"])
sys.path.insert(0, str(SOURCE / "tests" / "support"))

import pictures  # noqa: E402

SKIPPED = 77
PROGRAM = """
import sys, stripepack
dataset = stripepack.open(sys.argv[1])
loader = stripepack.Loader(dataset, batch=4, tail="exact")
print(stripepack.compiled, len(dataset), sum(len(batch["image"]) for batch in loader))
print(stripepack.__file__)
"""


class WheelTest(unittest.TestCase):
    def run_it(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              env={name: value for name, value in os.environ.items()
                                   if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")})
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_a_wheel_of_this_build(self):
        with tempfile.TemporaryDirectory(prefix="stripepack-wheel-test-") as folder:
            root = pathlib.Path(folder)
            self.run_it(sys.executable, "-m", "venv", "--system-site-packages", root / "env")
            binaries = root / "env" / "bin"
            self.run_it(binaries / "python", "-m", "pip", "wheel", "--no-deps", "--no-index",
                        "--wheel-dir", root, "--config-settings", f"build-dir={BUILD}", SOURCE)
            (wheel,) = root.glob("stripepack-*.whl")
            self.run_it(binaries / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel)
            pictures.make_folder(root / "pictures", {"cat": 10, "dog": 5})
            self.run_it(binaries / "stripepack", "pack", root / "pictures", root / "pack")
            said = self.run_it(binaries / "python", "-c", PROGRAM, root / "pack").split()
            self.assertEqual(said[:3], ["True", "15", "15"])
            self.assertTrue(said[3].startswith(str(root / "env")), said[3])
            self.run_it(binaries / "python", "-m", "pip", "uninstall", "--yes", "stripepack")
            self.assertEqual(list((root / "env").rglob("*stripepack*")), [])


if __name__ == "__main__":
    if not list((BUILD / "python" / "stripepack").glob("_stripepack*.so")):
        print("skipped: the Python module is not built")
        sys.exit(SKIPPED)
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        print("skipped:", error, "(Debian: apt install python3-venv)")
        sys.exit(SKIPPED)
    unittest.main()

"""All C and C++ is formatted as .clang-format says. Skipped where clang-format is missing."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("STRIPEPACK_SOURCE", pathlib.Path(__file__).parents[2]))
CLANG_FORMAT = shutil.which("clang-format")


def formatted_files():
    for folder in ("libformat", "libimage", "tools", "tests", "samples"):
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.suffix in {".h", ".hpp", ".c", ".cc"}:
                yield str(path)


class Format(unittest.TestCase):
    def test_all_files_are_formatted(self):
        run = subprocess.run([CLANG_FORMAT, "--style=file", "--dry-run", *formatted_files()],
                             capture_output=True, text=True, check=True)
        where = [line for line in run.stderr.splitlines() if "warning:" in line]
        files = sorted({line.split(":")[0] for line in where})
        self.assertEqual(files, [], "run: clang-format -i " + " ".join(files))


if __name__ == "__main__":
    if not CLANG_FORMAT:
        print("skipped: no clang-format")
        sys.exit(77)
    unittest.main()

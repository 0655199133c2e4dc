# ctest: timeout=900 labels=slow
"""The Debian packages: each has words of its own, a maintainer, and a changelog made of CHANGELOG.md."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["STRIPEPACK_SOURCE"])
BUILD = pathlib.Path(os.environ["STRIPEPACK_BUILD"])
SKIPPED = 77
MAINTAINER = "A Name <name@example.org>"


def run(*command, env=None, **options):
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} gave {result.returncode}:\n{result.stdout.decode()}")
    return result.stdout.decode()


def changelog(source, folder, version="0.3.0", env=None):
    output = pathlib.Path(folder) / "made"
    run("cmake", f"-DSOURCE={source}", f"-DOUTPUT={output}", f"-DVERSION={version}",
        f"-DMAINTAINER={MAINTAINER}", "-P", SOURCE / "cmake/debian-changelog.cmake",
        env={"SOURCE_DATE_EPOCH": "", **(env or {})})
    return output.read_text(encoding="utf-8")


class Changelog(unittest.TestCase):
    def test_headings_are_entries_and_dates(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "CHANGELOG.md"
            source.write_text("# Changes\n\n## Unreleased\n\n- new; [a] `b`\n\n## 0.2.0 (2026-12-08)\n\n"
                              "- " + "word " * 20 + "\n  and the end\n\nText.\n\n"
                              "### 0.1.0: first (2024-02-29)\n\n- one\n- two\n", encoding="utf-8")
            due = ("stripepack (0.3.0) unstable; urgency=medium\n\n  * new; [a] `b`\n\n"
                   f" -- {MAINTAINER}  %s\n\n"
                   "stripepack (0.2.0) unstable; urgency=medium\n\n"
                   "  *" + " word" * 15 + "\n   " + " word" * 5 + " and the end\n\n"
                   f" -- {MAINTAINER}  Tue, 08 Dec 2026 00:00:00 +0000\n\n"
                   "stripepack (0.1.0) unstable; urgency=medium\n\n  * one\n  * two\n\n"
                   f" -- {MAINTAINER}  Thu, 29 Feb 2024 00:00:00 +0000\n")
            self.assertEqual(changelog(source, folder), due % "Thu, 01 Jan 1970 00:00:00 +0000")
            self.assertEqual(changelog(source, folder, env={"SOURCE_DATE_EPOCH": "1000000000"}),
                             due % "Sun, 09 Sep 2001 01:46:40 +0000")

    def test_every_bullet_of_ours_is_in_it(self):
        with tempfile.TemporaryDirectory() as folder:
            made = changelog(SOURCE / "CHANGELOG.md", folder)
            self.assertEqual(made, changelog(SOURCE / "CHANGELOG.md", folder))
        ours = (SOURCE / "CHANGELOG.md").read_text(encoding="utf-8")
        words = [line[2:].split() for line in re.sub(r"\n  +", " ", ours).splitlines()
                 if line.startswith("- ")]
        told = [item.split() for item in re.findall(
            r"^  \* ((?:.*\n)(?:    .*\n)*)", made, re.MULTILINE)]
        self.assertEqual(told, words)
        self.assertLessEqual(max(map(len, made.splitlines())), 78)


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
            if shutil.which(tool) is None:
                print("there is no " + tool)
                sys.exit(SKIPPED)
        cls.folder = tempfile.TemporaryDirectory(prefix="stripepack-deb-")
        run("cpack", "-G", "DEB", "-B", cls.folder.name, "--config", BUILD / "CPackConfig.cmake",
            cwd=BUILD)
        cls.packages = sorted(pathlib.Path(cls.folder.name).glob("*.deb"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def field(self, package, name):
        return run("dpkg-deb", "-f", package, name).strip()

    def test_descriptions(self):
        names = [self.field(package, "Package") for package in self.packages]
        for name in ("libstripepack0", "libstripepack-dev", "stripepack"):
            self.assertIn(name, names)
        summaries = set()
        for package in self.packages:
            with self.subTest(package=package.name):
                summary, *rest = self.field(package, "Description").splitlines()
                self.assertLess(len(summary), 80)
                self.assertFalse(summary.endswith("."))
                self.assertGreaterEqual(len(rest), 2)
                self.assertTrue(all(re.match(r" \S.{0,78}$", line) for line in rest), rest)
                self.assertNotIn(summary, summaries)
                summaries.add(summary)

    def test_maintainer_and_changelog(self):
        cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
        maintainer = re.search(r"^SPK_DEB_MAINTAINER:STRING=(.*)$", cache, re.MULTILINE).group(1)
        texts = set()
        for package in self.packages:
            with self.subTest(package=package.name), tempfile.TemporaryDirectory() as root:
                self.assertEqual(self.field(package, "Maintainer"), maintainer)
                run("dpkg-deb", "-x", package, root)
                docs = pathlib.Path(root) / "usr/share/doc" / self.field(package, "Package")
                self.assertTrue((docs / "copyright").is_file())
                texts.add((docs / "changelog.gz").read_bytes())
        self.assertEqual(len(texts), 1)
        packed = texts.pop()
        self.assertEqual(packed[3:8], bytes(5))  # neither a name nor a time
        text = gzip.decompress(packed).decode()
        version = self.field(self.packages[0], "Version")
        self.assertTrue(text.startswith(f"stripepack ({version}) unstable; urgency=medium\n"))
        self.assertIn(f"\n -- {maintainer}  ", text)


if __name__ == "__main__":
    unittest.main()

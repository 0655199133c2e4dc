# ctest: timeout=900
"""What the documents say is true: every block marked ```sh or ```python runs, the commands' pages
name exactly the options that the program has, and links lead somewhere.

A page's blocks run one after another with `sh -eu`, or with Python where its module is built, in
one temporary folder that holds pictures/ (the classes cat, dog, hen), splits/ (train/ and val/ of
such) and pack/ (the pack of pictures/). Blocks marked ```console or ```text are not run."""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, PROGRAM, PackTest, main, run, text  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([SOURCE / "README.md", *(SOURCE / "docs").rglob("*.md")])
# Options of every command, told once in docs/CLI.md or by --help itself.
COMMON = {"--help", "--json"}


def blocks(page, languages=("sh",)):
    """(line, text, language) of each block of these languages."""
    found = []
    inside = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if inside is None and line.startswith("```") and line.strip("` ") in languages:
            inside = (number, [], line.strip("` "))
        elif inside is not None and line.strip() == "```":
            found.append((inside[0], "\n".join(inside[1]) + "\n", inside[2]))
            inside = None
        elif inside is not None:
            inside[1].append(line)
    return found


def subcommands():
    done = run("--help")
    listed = text(done.out).split("Subcommands:\n")[1]
    return re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)


def long_options(words):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", words))


class DocsTest(PackTest):
    def test_blocks_run(self):
        pictures.make_folder(self.path("pictures"), {"cat": 30, "dog": 20, "hen": 10})
        pictures.make_folder(self.path("splits", "train"), {"cat": 12, "dog": 12})
        pictures.make_folder(self.path("splits", "val"), {"cat": 3, "dog": 3})
        self.pack(self.path("pictures"), self.path("pack"))
        environment = dict(os.environ)
        environment["PATH"] = os.path.dirname(PROGRAM) + os.pathsep + os.environ.get("PATH", "")
        module = os.path.join(os.environ.get("STRIPEPACK_BUILD", ""), "python")
        environment["PYTHONPATH"] = module
        python = subprocess.run([sys.executable, "-c", "import stripepack, numpy"], env=environment,
                                capture_output=True)
        shells = {"sh": ["sh", "-eu", "-c"]}
        if python.returncode == 0:
            shells["python"] = [sys.executable, "-c"]
        for page in PAGES:
            found = blocks(page, shells)
            if not found:
                continue
            folder = self.path("page-" + page.stem)
            os.mkdir(folder)
            for name in ("pictures", "splits", "pack"):
                subprocess.run(["cp", "-a", self.path(name), folder], check=True)
            for line, script, language in found:
                with self.subTest(page=str(page.relative_to(SOURCE)), line=line):
                    done = subprocess.run([*shells[language], script], cwd=folder,
                                          env=environment, capture_output=True, timeout=120)
                    self.assertEqual(done.returncode, 0,
                                     script + text(done.stdout) + text(done.stderr))

    def test_every_command_has_its_page_and_every_option_its_place(self):
        commands = subcommands()
        self.assertIn("pack", commands)
        for command in commands:
            with self.subTest(command=command):
                done = self.expect(run(command, "--help"), DONE)
                self.assertEqual(done.err, b"")
                page = SOURCE / "docs" / "commands" / (command + ".md")
                self.assertTrue(page.is_file(), "no page for " + command)
                # The head of a help line is the option; its explanation may speak of others.
                heads = re.findall(r"^  (?:-\w,)?(--[a-z][a-z0-9-]*)", text(done.out), re.MULTILINE)
                options = set(heads)
                words = page.read_text(encoding="utf-8")
                written = long_options(words)
                # What a source is, is said in one place.
                if "(pack.md#options-of-the-source)" in words:
                    pack_page = page.with_name("pack.md").read_text(encoding="utf-8")
                    section = pack_page.split("### Options of the source")[1]
                    written |= long_options(re.split(r"^##", section, flags=re.MULTILINE)[0])
                self.assertEqual(options - written - COMMON, set(), "options without words")

    def test_options_that_pages_name_exist(self):
        commands = subcommands()
        known = {command: long_options(text(run(command, "--help").out)) for command in commands}
        everything = set().union(*known.values()) | {"--version", "--help"}
        for command in commands:
            page = SOURCE / "docs" / "commands" / (command + ".md")
            if not page.is_file():
                continue
            words = page.read_text(encoding="utf-8")
            # The synopsis and the tables are about this command; running text may name others'.
            own = [line for line in words.splitlines()
                   if line.startswith("    stripepack ") or line.startswith("| `-")]
            for line in own:
                cell = line.split("|")[1] if line.startswith("|") else line
                with self.subTest(page=page.name, line=line):
                    self.assertEqual(long_options(cell) - known[command] - COMMON, set())
            for script in blocks(page):
                for line in script[1].splitlines():
                    if line.startswith("stripepack "):
                        self.assertEqual(long_options(line) - everything, set(), line)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
                if "://" not in target:
                    with self.subTest(page=str(page.relative_to(SOURCE)), target=target):
                        self.assertTrue((page.parent / target).exists())


if __name__ == "__main__":
    main()

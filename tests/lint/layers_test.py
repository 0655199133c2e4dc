"""Holds what the layers promise, by looking at the source text.

Layers, lowest first: base, format, layout, io, container, loader, capi; the tools above all. A file
includes its own layer or a lower one, by folder path. Besides: format and layout do no I/O and own
no threads; the library links no tool's libraries, never prints, exits or reads the environment;
only capi has extern "C"; only layout rounds and pads; no file outgrows 500 lines. The picture library
stands beside: it includes its own folder and of libformat only what is named here.
"""
import os
import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("STRIPEPACK_SOURCE", pathlib.Path(__file__).parents[2]))
LAYERS = ["base", "format", "layout", "io", "container", "loader", "capi"]
TOOL_FOLDERS = ["commands", "sources", "sinks", "image", "pipeline", "team", "ui"]
# What libimage takes from libformat, besides base/.
FOR_PICTURES = {"capi/report.h", "io/per_process.h", "layout/permutation.h", "stripepack/image.h"}
MAX_LINES = 500

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
STRING_OR_COMMENT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)
TOOL_LIBRARIES = re.compile(
    r"^(tbb|oneapi|CLI|opencv2|jpeglib|turbojpeg|png|webp|tiff|gif_lib|openssl|hdf5|lmdb|mpi)\b")
IO_HEADERS = {"fcntl.h", "unistd.h", "fstream", "iostream", "cstdio", "stdio.h", "filesystem",
              "thread", "mutex", "condition_variable", "future", "sys/stat.h", "sys/mman.h",
              "sys/types.h", "dirent.h", "pthread.h"}
TALKS = re.compile(
    r"\b(std::cout|std::cerr|std::clog|(?:std::)?f?printf\s*\(|(?:std::)?puts\s*\(|"
    r"(?:std::)?_?exit\s*\(|(?:std::)?abort\s*\(|(?:std::|secure_)?getenv\s*\()")
# A mask by ~(x - 1), a division after adding x - 1, a remainder taken from a multiple: the ways in
# which rounding up or down is written by hand.
ROUNDING = re.compile(
    r"&\s*~\s*\(?[\w.:>-]+\s*-\s*1|"
    r"\+\s*\(?([\w.:]+)\s*-\s*1\)?\s*\)\s*/\s*\1|"
    r"\b([\w.:]+)\s*-\s*[\w.:]+\s*%\s*\2\b|"
    r"/\s*([\w.:]+)\s*\*\s*\3\b")
# Files and folders that round something else than places in a shard.
ROUNDING_ALLOWED = (
    "libformat/src/base/checked.h",  # defines round_up and divide_up, which layout uses
    "libformat/src/io/mapping.cc",   # the page that madvise wants
    "tools/image/",                  # blocks and tiles of picture formats
    "tools/pipeline/external_sort.cc",  # divides its memory into records
)
# A file that must stand alone: the oracle is one file to hand on with the specification.
LENGTH_ALLOWED = ("tests/oracle/decode.py",)


def code_only(text):
    """The text without comments and the insides of strings; line numbers stay."""
    def blank(match):
        lines = "\n" * match.group().count("\n")
        return ('""' if match.group()[0] in "\"'R" else "") + lines
    return STRING_OR_COMMENT.sub(blank, text)


def sources(root, folder):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix in {".h", ".hpp", ".c", ".cc"}:
            yield path


def included(text):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def check_includes(root):
    """All broken include rules as 'file:line: what is wrong'."""
    found = []
    for path in sources(root, "libformat/src"):
        layer = path.relative_to(root / "libformat/src").parts[0]
        name = path.relative_to(root)
        if layer not in LAYERS:
            found.append(f"{name}:1: {layer}/ is not a layer")
            continue
        lower = LAYERS[:LAYERS.index(layer) + 1]
        for number, quoted, angled in included(path.read_text()):
            here = f"{name}:{number}: "
            if quoted:
                folder, slash, _ = quoted.partition("/")
                if not slash:
                    found.append(here + f'include "{quoted}" by its folder: "{layer}/{quoted}"')
                elif folder == "stripepack":
                    if layer != "capi":
                        found.append(here + f"{layer}/ must not include the public header")
                elif folder not in lower:
                    found.append(here + f"{layer}/ must not include {folder}/")
            elif TOOL_LIBRARIES.match(angled):
                found.append(here + f"the library must not use <{angled}>")
            elif layer in ("format", "layout") and angled in IO_HEADERS:
                found.append(here + f"{layer}/ does no I/O and owns no threads, so no <{angled}>")
    for path in sources(root, "tools"):
        name = path.relative_to(root)
        for number, quoted, _ in included(path.read_text()):
            if quoted:
                folder, slash, _ = quoted.partition("/")
                if not slash:
                    found.append(f'{name}:{number}: include "{quoted}" by its folder')
                elif folder not in LAYERS + TOOL_FOLDERS + ["stripepack", "picture"]:
                    found.append(f"{name}:{number}: {folder}/ is neither a layer nor a tools folder")
    for path in sources(root, "libimage/src"):
        for number, quoted, _ in included(path.read_text()):
            if quoted and not quoted.startswith(("picture/", "base/")) and \
                    quoted not in FOR_PICTURES:
                found.append(f"{path.relative_to(root)}:{number}: libimage must not include {quoted}")
    for path in [*sources(root, "libformat/include"), *sources(root, "libimage/include")]:
        for number, quoted, _ in included(path.read_text()):
            if quoted and not quoted.startswith("stripepack/"):
                found.append(f"{path.relative_to(root)}:{number}: a public header must not include "
                             f'"{quoted}"')
    return found


def check_words(root):
    """Rules about what the code says, as 'file:line: what is wrong'."""
    found = []
    for path in [*sources(root, "libformat/src"), *sources(root, "libimage/src"),
                 *sources(root, "tools")]:
        name = path.relative_to(root)
        in_library = name.parts[0] in ("libformat", "libimage")
        layer = name.parts[2] if in_library else None
        text = path.read_text()
        for number, line in enumerate(code_only(text).splitlines(), 1):
            here = f"{name}:{number}: "
            if layer != "capi" and re.search(r"\bextern\s*\"", line):
                found.append(here + 'extern "C" belongs to capi/')
            if in_library and TALKS.search(line):
                found.append(here + "the library never prints, exits or reads the environment")
            if layer != "layout" and ROUNDING.search(line) and \
                    not str(name).startswith(ROUNDING_ALLOWED):
                found.append(here + "rounding and padding belong to layout/ (layout/geometry.h)")
    return found


def check_lengths(root):
    found = []
    for folder in ("libformat", "libimage", "tools", "tests", "samples"):
        for path in [*sources(root, folder), *sorted((root / folder).rglob("*.py"))]:
            lines = path.read_text().count("\n")
            name = path.relative_to(root)
            if lines > MAX_LINES and str(name) not in LENGTH_ALLOWED:
                found.append(f"{name}: {lines} lines, more than {MAX_LINES}")
    return found


class Layers(unittest.TestCase):
    maxDiff = None

    def test_includes_go_downwards(self):
        self.assertEqual(check_includes(SOURCE), [])

    def test_code_keeps_its_manners(self):
        self.assertEqual(check_words(SOURCE), [])

    def test_no_file_is_too_long(self):
        self.assertEqual(check_lengths(SOURCE), [])

    def test_every_layer_is_seen(self):
        seen = {path.relative_to(SOURCE / "libformat/src").parts[0]
                for path in sources(SOURCE, "libformat/src")}
        self.assertLessEqual(seen, set(LAYERS))
        self.assertIn("base", seen)


class TheRulesBite(unittest.TestCase):
    """Each rule reports a file that breaks it, and nothing else."""

    def check(self, files, expected, check=check_includes):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            self.assertEqual(check(root), expected)

    def test_upward_include(self):
        self.check({"libformat/src/base/x.h": '#pragma once\n#include "io/file.h"\n',
                    "libformat/src/io/y.cc": '#include "base/x.h"\n#include "io/file.h"\n'},
                   ["libformat/src/base/x.h:2: base/ must not include io/"])

    def test_tools_from_the_library(self):
        self.check({"libformat/src/loader/x.cc": '#include "ui/table.h"\n#include <tbb/task.h>\n'},
                   ["libformat/src/loader/x.cc:1: loader/ must not include ui/",
                    "libformat/src/loader/x.cc:2: the library must not use <tbb/task.h>"])

    def test_include_without_folder(self):
        self.check({"tools/ui/x.cc": '#include "table.h"\n'},
                   ['tools/ui/x.cc:1: include "table.h" by its folder'])

    def test_io_in_a_pure_layer(self):
        self.check({"libformat/src/format/x.cc": "#include <unistd.h>\n"},
                   ["libformat/src/format/x.cc:1: format/ does no I/O and owns no threads, "
                    "so no <unistd.h>"])

    def test_inner_header_in_a_public_one(self):
        self.check({"libformat/include/stripepack/x.h": '#include "base/status.h"\n'},
                   ["libformat/include/stripepack/x.h:1: a public header must not include "
                    '"base/status.h"'])

    def test_pictures_from_inner_parts(self):
        self.check({"libimage/src/picture/x.cc": '#include "picture/y.h"\n#include "io/file.h"\n'
                                                 '#include <jpeglib.h>\n'},
                   ["libimage/src/picture/x.cc:2: libimage must not include io/file.h"])

    def test_extern_c(self):
        self.check({"libformat/src/io/x.cc": '// extern "C" in a comment is fine\nextern "C" {\n',
                    "libformat/src/capi/y.cc": 'extern "C" {\n'},
                   ['libformat/src/io/x.cc:2: extern "C" belongs to capi/'], check_words)

    def test_talking_library(self):
        self.check({"libformat/src/io/x.cc": 'f("printf(");\nsnprintf(b, 1, "");\nprintf("");\n',
                    "tools/ui/y.cc": 'printf("");\n'},
                   ["libformat/src/io/x.cc:3: the library never prints, exits or reads the "
                    "environment"], check_words)

    def test_rounding_outside_layout(self):
        lines = ["a = (b + c - 1) / c;", "a = b & ~(c - 1);", "a = b / c * c;",
                 "a = (b + (c - 1)) & ~(c - 1);", "a = c - b % c;", "a = b - c;"]
        text = "\n".join(lines) + "\n"
        what = "rounding and padding belong to layout/ (layout/geometry.h)"
        self.check({"libformat/src/io/x.cc": text, "libformat/src/layout/y.cc": text},
                   [f"libformat/src/io/x.cc:{n}: {what}" for n in range(1, 6)], check_words)

    def test_long_file(self):
        self.check({"tools/ui/x.cc": "\n" * 501, "tools/ui/y.cc": "\n" * 500},
                   ["tools/ui/x.cc: 501 lines, more than 500"], check_lengths)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# ctest: timeout=300
"""docs/FORMAT.md against the code: its tables are those of format_table.def, its examples are bytes of
the golden pack. `--fix` rewrites both in place."""

import argparse
import difflib
import os
import re
import struct
import subprocess
import sys

import golden

FORMAT_MD = os.path.join(golden.SOURCE, "docs", "FORMAT.md")
BLOCK = re.compile(
    r"(<!-- begin (?P<kind>generated|example): (?P<name>[^\n]*?) -->\n)(?P<body>.*?)"
    r"(<!-- end (?P=kind) -->)",
    re.S,
)
TYPES = {"u8": ("B", 1), "u16": ("H", 2), "u32": ("I", 4), "u64": ("Q", 8)}


def dumped_tables():
    text = subprocess.run(
        [golden.program("spk_format_dump")], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return {match["name"]: match["body"] for match in BLOCK.finditer(text)}


def record_fields(table):
    for line in table.splitlines()[2:]:
        offset, kind, name = [cell.strip(" `") for cell in line.strip("|").split("|")[:3]]
        yield int(offset), kind, name


def show_value(name, kind, value):
    if name == "magic":
        return '"%s"' % value.to_bytes(8, "little").decode()
    if kind == "u64" and value >= 1 << 48:
        return "0x%016x" % value
    return str(value)


def show_record(data, base, table):
    """A record, a field a line: offset, bytes, name, value."""
    lines = []
    for offset, kind, name in record_fields(table):
        code, size = TYPES[kind]
        raw = data[base + offset : base + offset + size]
        value = show_value(name, kind, struct.unpack("<" + code, raw)[0])
        lines.append("%06x  %-23s  %s = %s" % (base + offset, raw.hex(" "), name, value))
    return "\n".join(lines)


def show_bytes(data, base, size):
    lines = []
    for at in range(base, base + size, 16):
        raw = data[at : min(at + 16, base + size)]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in raw)
        lines.append("%06x  %-47s  %s" % (at, raw.hex(" "), text))
    return "\n".join(lines)


def example(name, tables, packs):
    """`PACK FILE OFFSET RECORD`, `PACK FILE OFFSET table`, or `PACK FILE text`."""
    pack, file, *what = name.split()
    data = packs[pack][file]
    if what == ["text"]:
        return "```\n" + data.decode() + "```\n"
    place, record = what
    if record == "table":
        size = struct.unpack_from("<Q", data, int(place) - 128 + 72)[0]  # the header's table_bytes
        body = show_bytes(data, int(place), size)
    else:
        if place == "footer":
            base = struct.unpack_from("<Q", data, len(data) - 64 + 16)[0]
        else:
            base = len(data) - 64 if place == "end" else int(place)
        body = show_record(data, base, tables[record])
    return "```\n" + body + "\n```\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="rewrite docs/FORMAT.md")
    arguments = parser.parse_args()
    tables = dumped_tables()
    packs = {"tiny": golden.unpack("tiny")}
    used = set()

    def replace(match):
        if match["kind"] == "example":
            body = example(match["name"], tables, packs)
        else:
            used.add(match["name"])
            body = tables[match["name"]]
        return match[1] + body + match[5]

    with open(FORMAT_MD, encoding="utf-8") as file:
        old = file.read()
    new = BLOCK.sub(replace, old)
    missing = set(tables) - used
    if missing:
        print("docs/FORMAT.md lacks the tables: " + ", ".join(sorted(missing)))
        return 1
    if old == new:
        return 0
    if arguments.fix:
        with open(FORMAT_MD, "w", encoding="utf-8") as file:
            file.write(new)
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), "docs/FORMAT.md", "what the code says"
        )
    )
    print("docs/FORMAT.md is out of step; mend with: tests/golden/format_doc_test.py --fix")
    return 1


if __name__ == "__main__":
    sys.exit(main())

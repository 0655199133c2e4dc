#!/usr/bin/env python3
# ctest: timeout=60
"""A change to the format's numbers or to golden bytes has an entry in docs/FORMAT_HISTORY.md."""

import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import golden  # noqa: E402

TABLE = os.path.join(golden.SOURCE, "libformat", "src", "format", "format_table.def")


def table_numbers():
    """What format_table.def fixes, an item a line, without the explanations."""
    with open(TABLE, encoding="utf-8") as file:
        text = re.sub(r"\\\n", "\n", file.read())
    items = []
    struct = ""
    patterns = (
        r"SPK_CONST\((\w+), (\w+), (\w+),",
        r"SPK_ENUM\((\w+), (\w+), (\w+),",
        r"SPK_STRUCT\((\w+), (\d+),",
        r"F\((\d+), (\w+), (\w+),",
    )
    for line in text.splitlines():
        start = re.match(r"#define SPK_FIELDS_(\w+)", line)
        if start:
            struct = start[1]
        for pattern in patterns:
            match = re.match(r"\s*" + pattern, line)
            if match:
                items.append(" ".join((struct if pattern.startswith("F") else "",) + match.groups()))
    return "\n".join(items) + "\n"


def last_entry(name):
    with open(golden.HISTORY, encoding="utf-8") as file:
        found = re.findall(r"^- %s: `(\w*)`$" % name, file.read(), re.M)
    return found[-1] if found else None


def main():
    failed = 0
    packs = {name: golden.unpack(name) for name in golden.names()}
    with open(golden.sums_path(), encoding="utf-8") as file:
        if file.read() != golden.sums(packs):
            print("tests/golden/v1/SHA256SUMS is not that of the archives")
            failed += 1
    numbers = table_numbers()
    if numbers.count("\n") < 150:
        print("only %d numbers found in format_table.def" % numbers.count("\n"))
        failed += 1
    actual = {
        "golden set": golden.set_hash(),
        "table": hashlib.sha256(numbers.encode()).hexdigest(),
    }
    for name, value in actual.items():
        if last_entry(name) != value:
            print(
                "docs/FORMAT_HISTORY.md: the last entry has `%s: %s`, the tree has `%s`; "
                "add an entry that says what changed and why" % (name, last_entry(name), value)
            )
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

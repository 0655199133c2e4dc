# ctest: timeout=300
"""RecordIO of `export`, read by an independent reader that is written here from the format's
description (no package of MXNet is at hand): records that are cut where they contain the magic
number, headers with one and with several labels, .idx and .lst."""

import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, FAILED, NO, PackTest, main, names, run, samples  # noqa: E402

MAGIC = struct.pack("<I", 0xced7230a)


def records(path):
    """[(offset, payload)]"""
    with open(path, "rb") as file:
        whole = file.read()
    found = []
    at = 0
    payload = None
    while at < len(whole):
        magic, word = struct.unpack_from("<4sI", whole, at)
        assert magic == MAGIC, "no magic at %d" % at
        flag, size = word >> 29, word & (1 << 29) - 1
        data = whole[at + 8:at + 8 + size]
        assert len(data) == size
        if flag in (0, 1):
            assert payload is None
            begin, payload = at, data
        else:
            payload += MAGIC + data
        if flag in (0, 3):
            found.append((begin, payload))
            payload = None
        at += 8 + (size + 3) // 4 * 4
    assert at == len(whole) and payload is None
    return found


def unpack(payload):
    """(labels, id, picture)"""
    flag, label, number, second = struct.unpack_from("<IfQQ", payload)
    assert second == 0
    if flag == 0:
        return [label], number, payload[24:]
    return list(struct.unpack_from("<%df" % flag, payload, 24)), number, payload[24 + 4 * flag:]


class ExportRecordIoTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.dest = self.path("dest")
        self.made = pictures.make_folder(self.src, {"cat": 12, "dog": 9})

    def export(self, *more, code=DONE, words=()):
        self.expect(run("export", self.out, self.dest, "--to", "recordio", *more), code, *words)

    def check(self, stem, first, keys, labels_of, bytes_of):
        found = records(os.path.join(self.dest, stem + ".rec"))
        with open(os.path.join(self.dest, stem + ".idx"), encoding="ascii") as file:
            self.assertEqual([tuple(map(int, line.split("\t"))) for line in file],
                             [(first + i, offset) for i, (offset, _) in enumerate(found)])
        with open(os.path.join(self.dest, stem + ".lst"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        self.assertEqual(len(found), len(keys))
        for number, (key, (_, payload), line) in enumerate(zip(keys, found, lines), first):
            self.assertEqual(unpack(payload), (labels_of(key), number, bytes_of[key]))
            self.assertEqual((int(line[0]), [float(cell) for cell in line[1:-1]], line[-1]),
                             (number, labels_of(key), key))

    def stored_keys(self):
        return [one["key"].decode() for one in samples(self.out, "id")]

    def test_one_file(self):
        self.pack(self.src, self.out)
        self.export()
        self.assertEqual(names(self.dest), ["data.idx", "data.lst", "data.rec"])
        self.check("data", 0, self.stored_keys(), lambda key: [float(key[:3] == "dog")], self.made)

    def test_several_files_number_on(self):
        self.pack(self.src, self.out)
        self.export("--shard-samples", "8", "--prefix", "train")
        keys = self.stored_keys()
        for number, first in enumerate((0, 8, 16)):
            self.check("train_%d" % number, first, keys[first:first + 8],
                       lambda key: [float(key[:3] == "dog")], self.made)

    def test_keys_that_no_line_holds_come_back(self):
        folder = self.path("odd")
        keys = ["a\tb.jpg", "a\nb.jpg", "a\rb.jpg", "a\\tb.jpg", "a\\x09b.jpg", "a\\x5cx09.jpg",
                "a\\\t.jpg", "\\x5", "\x01\x7f.jpg"]
        for number, key in enumerate(keys):
            pictures.write(os.path.join(folder, key), pictures.jpeg(number))
        self.pack(folder, self.out, "--accept", "any")
        self.export("--verify")
        again = self.path("again")
        self.pack(self.dest, again, "--features", "key=lst")
        self.assertEqual({one["key"] for one in samples(again)}, {key.encode() for key in keys})
        self.expect(run("verify", again, "--against", self.dest, "--features", "key=lst"), DONE)
        self.expect(run("verify", again, "--against", self.dest), NO,
                    "the pack was made with --features 'key=lst'")
        with open(os.path.join(self.dest, "data.lst"), encoding="ascii", newline="") as file:
            written = {line.split("\t")[2] for line in file.read().splitlines()}
        self.assertLess({"a\\x09b.jpg", "a\\x0ab.jpg", "a\\tb.jpg", "a\\x5cx09b.jpg", "\\x5"},
                        written)

    def test_the_magic_number_inside(self):
        """At every place of a record modulo 4, once, twice in a row, and as its last bytes."""
        folder = self.path("magic")
        made = {}
        for number in range(8):
            base = pictures.jpeg(number)
            for count in (1, 2, 5):
                # In a comment segment behind the picture's first marker.
                inner = b"x" * number + MAGIC * count + b"y" * (number % 3)
                data = base[:2] + b"\xff\xfe" + struct.pack(">H", len(inner) + 2) + inner + base[2:]
                made["a/%d-%d.jpg" % (number, count)] = data
        for number in range(4):  # behind the end of the picture
            made["a/end-%d.jpg" % number] = pictures.jpeg(number) + b"z" * number + MAGIC
        for key, data in made.items():
            pictures.write(os.path.join(folder, key), data)
        self.pack(folder, self.out, "--check", "none")
        self.export()
        found = records(os.path.join(self.dest, "data.rec"))
        with open(os.path.join(self.dest, "data.rec"), "rb") as file:
            whole = file.read()
        cut = sum(whole[at:at + 4] == MAGIC for at in range(0, len(whole), 4)) - len(found)
        self.assertGreater(cut, 10)
        self.check("data", 0, self.stored_keys(), lambda key: [0.0], made)

    def test_several_labels_and_fractions(self):
        listing = os.path.join(self.src, "list.lst")
        for lines, labels in (("0\t1\t2.5\tcat/00000.jpg\n1\t3\t-4\tcat/00001.jpg\n",
                               {"cat/00000.jpg": [1.0, 2.5], "cat/00001.jpg": [3.0, -4.0]}),
                              ("0\t0.25\tcat/00000.jpg\n1\t-7.5\tcat/00001.jpg\n",
                               {"cat/00000.jpg": [0.25], "cat/00001.jpg": [-7.5]})):
            with open(listing, "w", encoding="utf-8") as file:
                file.write(lines)
            self.pack(listing, self.out, "--no-shuffle", "--force", "--labels", "float")
            self.export("--force")
            self.check("data", 0, sorted(labels), labels.get, self.made)

    def test_what_a_float_cannot_hold_is_refused(self):
        listing = os.path.join(self.src, "list.lst")
        for label, code in ((1 << 24, DONE), ((1 << 24) + 1, FAILED), (-(1 << 24) - 1, FAILED)):
            with open(listing, "w", encoding="utf-8") as file:
                file.write("0\t%d\tcat/00000.jpg\n" % label)
            self.pack(listing, self.out, "--force")
            self.export("--force", "--restart", code=code,
                        words=["32-bit floats", "'cat/00000.jpg'"] if code == FAILED else ())


if __name__ == "__main__":
    main()

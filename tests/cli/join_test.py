# ctest: timeout=300
"""`pack --join TABLE` and `repack --join TABLE`: fields and labels from a table."""

import json
import os
import pathlib
import random
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NO, REJECTS, USAGE, PackTest, identity,  # noqa: E402
                     main, rejects, run, samples, text)


class JoinTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.made = pictures.make_folder(self.src, {"cat": 4, "dog": 3})
        self.keys = sorted(self.made)
        self.table = self.path("table.csv")

    def write(self, head, rows, delimiter=",", end="\n"):
        random.Random(3).shuffle(rows)
        with open(self.table, "w", encoding="utf-8", newline="") as file:
            for row in [head, *rows]:
                file.write(delimiter.join(str(cell) for cell in row) + end)

    def field(self, pack, key, name):
        return self.expect(run("cat", pack, key, "--field", name), DONE).out

    def settings(self, pack):
        manifest = json.loads(pathlib.Path(pack, "manifest.json").read_text(encoding="utf-8"))
        return manifest, [(one["name"], one["kind"]) for one in manifest["fields"]]

    def test_columns_become_fields_of_their_kind(self):
        rows = [[key, number, number / 4, '"said ""%d"", twice\nover"' % number, "00%d" % number]
                for number, key in enumerate(self.keys)]
        self.write(["key", "count", "score", "caption", "code"], rows)
        self.pack(self.src, self.out, "--join", self.table)
        _, fields = self.settings(self.out)
        self.assertEqual(fields, [("image", "blob"), ("caption", "blob"), ("code", "blob"),
                                  ("label", "int64"), ("height", "int64"), ("width", "int64"),
                                  ("channels", "int64"), ("count", "int64"), ("score", "float64")])
        csv = self.path("csv")
        self.expect(run("export", self.out, "--to", "csv", csv), DONE)
        lines = pathlib.Path(csv, "data.csv").read_text(encoding="utf-8").splitlines()
        head = lines[0].split(",")
        told = {line.split(",")[0]: line.split(",") for line in lines[1:]}
        for number, key in enumerate(self.keys):
            self.assertEqual(self.field(self.out, key, "image"), self.made[key])
            self.assertEqual(text(self.field(self.out, key, "caption")),
                             'said "%d", twice\nover' % number)
            self.assertEqual(text(self.field(self.out, key, "code")), "00%d" % number)
            self.assertEqual(int(told[key][head.index("count")]), number)
            self.assertEqual(float(told[key][head.index("score")]), number / 4)
        self.assertEqual([one["labels"] for one in samples(self.out)], [[0]] * 4 + [[1]] * 3)
        self.assert_verifies(self.out, "--against", self.src, "--join", self.table)

    def test_verify_sees_what_the_table_no_longer_says(self):
        self.write(["key", "n", "words"], [[key, 5, "abc"] for key in self.keys])
        self.pack(self.src, self.out, "--join", self.table)
        for n, words, said in ((6, "abc", "other values of n"), (5, "abd", "(field words)")):
            self.write(["key", "n", "words"], [[key, n, words] for key in self.keys])
            self.expect(run("verify", self.out, "--against", self.src, "--join", self.table), NO,
                        said)
        self.expect(run("verify", self.out, "--join", self.table), USAGE)

    def test_a_repacked_pack_gets_what_a_packed_folder_gets(self):
        self.write(["name", "ignored", "n"], [[key, "x", 7] for key in self.keys], "\t", "\r\n")
        options = ("--join", self.table, "--join-key", "name", "--join-columns", "n:count:float32")
        self.pack(self.src, self.path("direct"), *options)
        self.pack(self.src, self.out)
        new = self.path("new")
        self.expect(run("repack", self.out, new, *options), DONE)
        for pack in (self.path("direct"), new):
            _, fields = self.settings(pack)
            self.assertEqual(fields[-1], ("count", "float32"))
        self.assert_verifies(new, "--against", self.path("direct"))
        self.assertEqual({one["key"]: one["checksum"] for one in samples(new)},
                         {one["key"]: one["checksum"] for one in samples(self.out)})
        # Texts as well, of a pack that has several fields of bytes already.
        self.write(["key", "caption"], [[key, "of " + key] for key in self.keys])
        both = self.path("both")
        self.expect(run("repack", new, both, "--join", self.table), DONE)
        self.write(["key", "more"], [[key, ""] for key in self.keys])
        last = self.path("last")
        self.expect(run("repack", both, last, "--join", self.table), DONE)
        for key in self.keys:
            self.assertEqual(self.field(last, key, "image"), self.made[key])
            self.assertEqual(text(self.field(last, key, "caption")), "of " + key)
            self.assertEqual(self.field(last, key, "more"), b"")
        self.assert_verifies(last, "--against", both, "--join", self.table)

    def test_labels(self):
        self.write(["key", "label"], [[key, "wild" if "cat" in key else "a b"] for key in self.keys])
        self.pack(self.src, self.out, "--join", self.table, code=USAGE,
                  words=["--join-columns label"])
        self.pack(self.src, self.out, "--join", self.table, "--join-columns", "label")
        manifest, _ = self.settings(self.out)
        self.assertEqual(manifest["classes"], ["a b", "wild"])
        self.assertEqual([one["labels"] for one in samples(self.out)], [[1]] * 4 + [[0]] * 3)
        self.assert_verifies(self.out, "--against", self.src, "--join", self.table,
                             "--join-columns", "label")
        self.expect(run("verify", self.out, "--against", self.src), NO)
        for cell, options, labels in ((3, "age:label", [3]), (0.5, "age:label", [0.5]),
                                      (3, "age:label:float64", [3.0])):
            self.write(["key", "age"], [[key, cell] for key in self.keys])
            out = self.path("out-%s-%s" % (cell, options.count(":")))
            self.pack(self.src, out, "--join", self.table, "--join-columns", options)
            self.assertEqual([one["labels"] for one in samples(out)], [labels] * 7)
            self.assertEqual(self.settings(out)[0]["classes"], [])
            self.assert_verifies(out, "--against", self.src, "--join", self.table,
                                 "--join-columns", options)

    def test_who_has_no_partner(self):
        self.write(["key", "n", "words"],
                   [[key, 1, "x"] for key in self.keys[2:]] + [["cat/gone.jpg", 1, "x"]])
        done = self.pack(self.src, self.out, "--join", self.table, code=FAILED,
                         words=["2 samples have no row in the table (cat/00000.jpg, cat/00001.jpg)",
                                "1 row has no sample (cat/gone.jpg)", "--join-missing",
                                "--join-extra"])
        self.assertFalse(os.path.exists(self.out))
        extra = ("--join", self.table, "--join-extra", "ignore")
        done = self.pack(self.src, self.out, *extra, "--join-missing", "absent", "--json")
        warnings = self.report(done)["warnings"]
        self.assertEqual(warnings["no row in the table"]["count"], 2)
        self.assertEqual(warnings["rows of the table without a sample"]["count"], 1)
        self.assertNotEqual(run("cat", self.out, self.keys[0], "--field", "words").code, DONE)
        self.assertEqual(self.field(self.out, self.keys[0], "image"), self.made[self.keys[0]])
        self.assert_verifies(self.out, "--against", self.src, *extra, "--join-missing", "absent")
        filled = self.path("filled")
        self.pack(self.src, filled, *extra, "--join-missing", "-1")
        self.assert_verifies(filled, "--against", self.src, *extra, "--join-missing", "-1")
        self.expect(run("verify", filled, "--against", self.src, *extra, "--join-missing",
                        "absent"), NO, "other values of n")
        self.pack(self.src, self.path("no"), *extra, "--join-missing", "0.5", code=USAGE,
                  words=["--join-missing 0.5 is no int64"])
        self.pack(self.src, self.path("no"), *extra, "--join-missing", "some", code=USAGE,
                  words=["none of refuse, absent and a number"])
        # Without a label there is no sample.
        columns = ("--join-columns", "n:label")
        labelled = self.path("labelled")
        self.pack(self.src, labelled, *extra, *columns, "--join-missing", "absent", code=REJECTS)
        self.assertEqual([key for key, _ in rejects(labelled + ".partial")],
                         [key.encode() for key in self.keys[:2]])
        self.pack(self.src, self.path("zero"), *extra, *columns, "--join-missing", "0")
        self.assertEqual([one["labels"] for one in samples(self.path("zero"))],
                         [[0]] * 2 + [[1]] * 5)

    def test_empty_cells_of_numbers(self):
        self.write(["key", "n"], [[key, "" if key == self.keys[3] else 4] for key in self.keys])
        self.pack(self.src, self.out, "--join", self.table, code=FAILED,
                  words=["1 cell that holds a number elsewhere is empty (cat/00003.jpg: n)"])
        self.pack(self.src, self.out, "--join", self.table, "--join-missing", "absent")
        self.assert_verifies(self.out)

    def test_a_changed_table_is_told(self):
        rows = [[key, "abc"] for key in self.keys]
        self.write(["key", "words"], rows)
        self.pack(self.src, self.out, "--join", self.table)
        before = identity(self.out)
        self.write(["key", "words"], rows[::-1])  # another order is the same table
        self.pack(self.src, self.out, "--join", self.table, words=["complete"])
        rows[0][1] = "abd"
        self.write(["key", "words"], rows)
        self.pack(self.src, self.out, "--join", self.table, code=FAILED, words=["join_table"])
        self.assertEqual(identity(self.out), before)

    def test_wrong_tables(self):
        def refuses(content, *words, options=(), code=USAGE):
            with open(self.table, "w", encoding="utf-8") as file:
                file.write(content)
            self.pack(self.src, self.out, "--join", self.table, *options, code=code, words=words)
            self.assertFalse(os.path.exists(self.out))

        refuses("", "empty")
        refuses("key,n\n", "no rows")
        refuses("key\na\n", "no column but its key")
        refuses("key,n,n\na,1,2\n", "two columns are named 'n'")
        refuses("key,n\na,1\nb\n", "line 3: has 1 field, the header has 2")
        refuses("key,n\na,1\nb,2\na,3\n", "line 4: the key 'a' stands in line 2, too")
        refuses("key,\na,1\n", "column 2 has no name")
        refuses("key,width\na,1\n", "'width' is there already")
        refuses("key,n\n,1\n", "line 2: has no key")
        refuses("key,n\na,x\n", "'x' of column 'n' is no int64", options=("--join-columns", "n:n:int64"))
        refuses("key,n\na,1\n", "no column 'm'", options=("--join-columns", "m"), code=FAILED)
        refuses("key,n\na,1\n", "no column 'm'", options=("--join-key", "m"), code=FAILED)
        refuses("key,n\na,1\n", "no such type", options=("--join-columns", "n:n:int32"))
        refuses("key,n\na,1\n", "become one field", options=("--join-columns", "n,key:n"))
        self.pack(self.src, self.out, "--join-columns", "n", code=USAGE, words=["with --join"])
        self.pack(self.src, self.out, "--join", self.path("none"), code=FAILED, words=["--join"])

    def test_splits_archives_lists_and_dry_runs(self):
        splits = self.path("splits")
        for split in ("train", "val"):
            shutil.copytree(self.src, os.path.join(splits, split))
        self.write(["key", "words"], [[key, "w" + key] for key in self.keys])
        self.pack(splits, self.out, "--join", self.table)
        self.assert_verifies(self.out, "--against", splits, "--join", self.table)
        self.assertEqual(text(self.field(os.path.join(self.out, "val"), self.keys[5], "words")),
                         "w" + self.keys[5])
        tar = shutil.make_archive(self.path("src"), "gztar", self.src)
        for name, source in (("tar", tar), ("list", self.path("list.txt"))):
            with open(self.path("list.txt"), "w", encoding="ascii") as file:
                for number, key in enumerate(self.keys[::-1]):
                    file.write("%s %d\n" % (key, number))
            options = ("--join", self.table, *(["--root", self.src] if name == "list" else []))
            self.write(["key", "words"], [[key, "w" + key] for key in self.keys])
            done = self.pack(source, self.path(name), *options, "--dry-run")
            self.assertIn("nothing was written", text(done.out))
            self.pack(source, self.path(name), *options)
            self.assert_verifies(self.path(name), "--against", source, *options)
            self.assertEqual(text(self.field(self.path(name), self.keys[2], "words")),
                             "w" + self.keys[2])
        self.assertEqual([one["labels"] for one in samples(self.path("list"))],
                         [[number] for number in range(7)])

    def test_parts_of_a_job(self):
        """A part that finds the plan there never lists the source, and opens its samples all the same."""
        self.write(["key", "words", "n"], [[key, "w" + key, 5] for key in self.keys])
        options = ("--join", self.table, "--shards", "3", "--chunk-size", "64KiB")
        self.pack(self.src, self.path("alone"), *options)
        for index in range(3):
            self.pack(self.src, self.out, *options, "--part", "%d/3" % index)
        self.assert_same_pack(self.out, self.path("alone"))

    def test_bytes_do_not_depend_on_memory(self):
        made = pictures.make_folder(self.path("many"), {"cat": 400}, 700, 800)
        self.write(["key", "words", "n"],
                   [[key, random.Random(key).randbytes(3000).hex(), number]
                    for number, key in enumerate(made)])
        options = (self.path("many"), "--join", self.table)
        self.pack(options[0], self.out, *options[1:])
        self.pack(options[0], self.path("less"), *options[1:], "--memory", "53MiB", "--jobs", "5")
        self.assert_same_pack(self.out, self.path("less"))


if __name__ == "__main__":
    main()

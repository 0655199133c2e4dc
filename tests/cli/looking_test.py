"""info, ls, cat: what they print, to the byte, and how they end."""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, NO, NOT_A_PACK, PROGRAM, USAGE, PackTest, main, run,  # noqa: E402
                     text)


class LookingTest(PackTest):
    """A pack of seven pictures in two classes, in the order of the source."""

    def setUp(self):
        super().setUp()
        self.made = pictures.make_folder(self.path("src"), {"cat": 4, "dog": 3})
        self.keys = sorted(self.made)
        self.pack(self.path("src"), self.out, "--no-shuffle")

    def lines(self, *arguments):
        done = self.expect(run(*arguments), DONE)
        self.assertEqual(done.err, b"")
        return text(done.out).splitlines()

    def fails(self, code, message, *arguments):
        done = run(*arguments)
        self.assertEqual((done.code, text(done.err), done.out), (code, message + "\n", b""))

    # --- ls

    def test_ls(self):
        expected = ["#sample\tordinal\tbytes\tsize\tlabel\tclass\tkey"]
        for number, key in enumerate(self.keys):
            name = key.split("/")[0]
            expected.append("%d\t%d\t%d\t16x24x1\t%d\t%s\t%s" % (
                number, number, len(self.made[key]), name == "dog", name, key))
        self.assertEqual(self.lines("ls", self.out), expected)

    def test_ls_filters(self):
        def keys(*arguments):
            return self.lines("ls", self.out, "--keys", *arguments)
        self.assertEqual(keys(), self.keys)
        self.assertEqual(keys("--class", "dog"), self.keys[4:])
        self.assertEqual(keys("--class", "dog", "--class", "cat"), self.keys)
        self.assertEqual(keys("--label", "0"), self.keys[:4])
        self.assertEqual(keys("--label", "7"), [])
        self.assertEqual(keys("--glob", "*2.jpg"), ["cat/00002.jpg", "dog/00002.jpg"])
        self.assertEqual(keys("--glob", "[d]og/?????.jpg"), self.keys[4:])
        self.assertEqual(keys("--glob", "cat/*0.jpg", "--glob", "cat/*1.jpg"), self.keys[:2])
        self.assertEqual(keys("--range", "2:5"), self.keys[2:5])
        self.assertEqual(keys("--range", "5:"), self.keys[5:])
        self.assertEqual(keys("--range", ":1"), self.keys[:1])
        self.assertEqual(keys("--range", "100:200"), [])
        self.assertEqual(keys("--class", "dog", "--range", ":5"), self.keys[4:5])
        self.fails(USAGE, "stripepack ls: %s: --class: there is no class 'cow' among 2; "
                   "`stripepack info --classes` lists them" % self.out,
                   "ls", self.out, "--keys", "--class", "cow")
        # No head of a table that does not come.
        self.fails(USAGE, "stripepack ls: %s: --class: there is no class 'cow' among 2; "
                   "`stripepack info --classes` lists them" % self.out,
                   "ls", self.out, "--class", "cow")
        self.fails(NO, "stripepack cat: %s: no sample has the key 'cow/00001.jpg'; "
                   "`stripepack ls --keys` prints all keys" % self.out,
                   "cat", self.out, "cow/00001.jpg")
        self.fails(USAGE, "stripepack ls: --range: 'x' is not a range of sample numbers; write A:B, "
                   "A: or :B; B itself is not in it; see `stripepack ls --help`",
                   "ls", self.out, "--range", "x")

    def test_ls_keys0_and_odd_names(self):
        odd = [b"a\\b.jpg", b"new\nline.jpg", b"tab\t.jpg", b"\xff\xfe.jpg", "é.jpg".encode()]
        folder = os.fsencode(self.path("odd")) + b"/cat"
        os.makedirs(folder)
        for number, name in enumerate(odd):
            with open(folder + b"/" + name, "wb") as file:
                file.write(pictures.jpeg(number))
        self.pack(self.path("odd"), self.path("oddpack"), "--no-shuffle")
        done = self.expect(run("ls", "--keys0", self.path("oddpack")), DONE)
        self.assertEqual(done.out, b"".join(b"cat/" + name + b"\0" for name in sorted(odd)))
        self.assertEqual(self.lines("ls", "--keys", self.path("oddpack")),
                         ["cat/a\\\\b.jpg", "cat/new\\x0aline.jpg", "cat/tab\\x09.jpg", "cat/é.jpg",
                          "cat/\\xff\\xfe.jpg"])
        # cat takes raw keys and the printed form.
        for number, name in enumerate(odd):
            done = self.expect(run("cat", self.path("oddpack"), b"cat/" + name), DONE)
            self.assertEqual(done.out, pictures.jpeg(number))
        for printed, number in (("cat/new\\x0aline.jpg", 1), ("cat/\\xff\\xfe.jpg", 3)):
            done = self.expect(run("cat", self.path("oddpack"), printed), DONE)
            self.assertEqual(done.out, pictures.jpeg(number))

    def test_ls_json(self):
        done = self.expect(run("ls", self.out, "--json"), DONE)
        *rows, summary = done.objects
        self.assertEqual([row["key"] for row in rows], self.keys)
        for number, (row, key) in enumerate(zip(rows, self.keys)):
            name = key.split("/")[0]
            place = {field: row.pop(field) for field in ("checksum", "shard", "offset")}
            self.assertEqual(list(row)[:2], ["type", "v"])
            self.assertEqual(row, {"type": "sample", "v": 1, "sample": number, "ordinal": number,
                                   "key": key, "labels": [int(name == "dog")], "class": name,
                                   "width": 16, "height": 24, "channels": 1,
                                   "bytes": len(self.made[key])})
            with open(os.path.join(self.out, "shard-%05d.spks" % place["shard"]), "rb") as file:
                file.seek(place["offset"])
                self.assertEqual(file.read(row["bytes"]), self.made[key])
        total = sum(map(len, self.made.values()))
        self.assertEqual(summary, {"type": "summary", "v": 1, "samples": 7, "bytes": total})

    def test_ls_by_ordinal_of_a_shuffled_pack(self):
        self.pack(self.path("src"), self.path("shuffled"), "--seed", "5")
        self.assertNotEqual(self.lines("ls", "--keys", self.path("shuffled")), self.keys)
        self.assertEqual(self.lines("ls", "--keys", self.path("shuffled"), "--sort", "ordinal"),
                         self.keys)

    # --- cat

    def test_cat(self):
        for number, key in enumerate(self.keys):
            by_key = self.expect(run("cat", self.out, key), DONE)
            self.assertEqual((by_key.out, by_key.err), (self.made[key], b""))
            by_number = self.expect(run("cat", self.out, "--id", str(number), "--field", "image"),
                                    DONE)
            self.assertEqual(by_number.out, self.made[key])

    def test_cat_that_cannot(self):
        done = self.expect(run("cat", self.out, "cat/9.jpg"), NO, "cat/9.jpg")
        self.assertEqual(done.out, b"")
        self.fails(NO, "stripepack cat: %s: there is no sample 7 among 7" % self.out,
                   "cat", self.out, "--id", "7")
        self.fails(USAGE, "stripepack cat: --field: bytes are not what is in field 'label'; fields "
                   "that hold bytes: image", "cat", self.out, "--id", "0", "--field", "label")
        self.fails(USAGE, "stripepack cat: name the sample by KEY or --id", "cat", self.out)
        self.expect(run("cat", self.out, "--id", "0", "x"), USAGE, "--id")

    def test_cat_of_a_damaged_sample_writes_nothing(self):
        row = json.loads(self.lines("ls", self.out, "--json", "--range", "2:3")[0])
        shard = os.path.join(self.out, "shard-%05d.spks" % row["shard"])
        with open(shard, "r+b") as file:
            file.seek(row["offset"] + 5)
            byte = file.read(1)[0]
            file.seek(row["offset"] + 5)
            file.write(bytes([byte ^ 1]))
        done = self.expect(run("cat", self.out, self.keys[2]), NO, self.keys[2],
                           "shard-%05d.spks @%d" % (row["shard"], row["offset"]))
        self.assertEqual(done.out, b"")
        done = self.expect(run("cat", self.out, "--json", self.keys[2]), NO)
        error = json.loads(done.err)
        self.assertEqual((error["type"], error["v"], error["code"], error["exit"], error["offset"]),
                         ("error", 1, "damaged", NO, row["offset"]))
        self.assertEqual(run("cat", self.out, self.keys[3]).out, self.made[self.keys[3]])

    def test_cat_refuses_a_terminal(self):
        for force, code in (([], USAGE), (["--force"], DONE)):
            ours, theirs = pty.openpty()
            done = subprocess.run([PROGRAM, "cat", self.out, "--id", "0", *force], stdout=theirs,
                                  stderr=subprocess.PIPE, check=False)
            os.close(theirs)
            os.close(ours)
            self.assertEqual(done.returncode, code)
            self.assertEqual(done.stderr, b"" if force else
                             b"stripepack cat: standard output is a terminal; send it to a file, or "
                             b"use --force\n")

    # --- info

    def test_info(self):
        said = dict(line.split(None, 1) if not line.startswith(("content", "plan", "format"))
                    else (line[:20].strip(), line[20:]) for line in self.lines("info", self.out)
                    if len(line.split(None, 1)) == 2)
        self.assertEqual(said["pack"], self.out)
        self.assertRegex(said["content id"], "^[0-9a-f]{32}$")
        self.assertEqual(said["format version"], "1")
        # One column, also behind the longest name of a setting.
        self.assertIn("  blob_align_bytes  64", self.lines("info", self.out))
        self.assertEqual((said["samples"], said["rejected"], said["classes"]), ("7", "0", "2"))
        self.assertEqual(said["fields"],
                         "image blob, label int64, height int64, width int64, channels int64")
        self.assertEqual(said["source_kind"], "folder")

    def test_pack_and_info_tell_the_same_overhead(self):
        again = self.path("again")
        done = self.pack(self.path("src"), again)
        share = re.search(r"; (\d+\.\d\d % tables and padding)$", text(done.out), re.MULTILINE)
        info = text(run("info", again).out)
        size = re.search(r"^size .*\((.*) bytes, (.*)\)$", info, re.MULTILINE)
        self.assertEqual(size.group(2), share.group(1))
        total = int(size.group(1).replace(",", ""))
        files = [name for name in os.listdir(again) if name.endswith((".spks", ".spki"))]
        self.assertEqual(sum(os.path.getsize(os.path.join(again, name)) for name in files), total)
        payload = run("info", "--json", again).objects[0]["payload_bytes"]
        self.assertEqual(share.group(1), "%.2f %% tables and padding" % (100 * (total - payload) / total))
        shutil.rmtree(again)
        report = self.report(self.pack(self.path("src"), again, "--json"))
        self.assertEqual(report["packs"][0]["total_bytes"], total)

    def test_info_json_adds_up(self):
        pack, = self.expect(run("info", self.out, "--json"), DONE).objects
        self.assertEqual((pack["type"], pack["v"]), ("pack", 1))
        self.assertEqual(pack["payload_bytes"], sum(map(len, self.made.values())))
        files = [name for name in os.listdir(self.out) if name.startswith(("shard-", "index."))]
        self.assertEqual(pack["total_bytes"],
                         sum(os.path.getsize(os.path.join(self.out, name)) for name in files))
        self.assertEqual(pack["total_bytes"], pack["payload_bytes"] + pack["padding_bytes"] +
                         pack["table_bytes"])
        self.assertEqual(pack["settings"]["shuffle"], "none")

    def test_info_digest_is_the_same_for_the_same_data_only(self):
        digest, = self.lines("info", "--digest", self.out)
        self.assertRegex(digest, "^stripepack:1 [0-9a-f]{32} 7 samples %d bytes$"
                         % sum(map(len, self.made.values())))
        self.pack(self.path("src"), self.path("again"), "--no-shuffle", "--jobs", "1")
        self.assertEqual(self.lines("info", "--digest", self.path("again")), [digest])
        self.pack(self.path("src"), self.path("shuffled"))
        self.assertNotEqual(self.lines("info", "--digest", self.path("shuffled")), [digest])

    def test_info_chunks_and_classes(self):
        head, *rows = self.lines("info", "--chunks", self.out)
        self.assertEqual(head, "#chunk\tshard\tslot\toffset\tspan\tfirst\tsamples\tused\tread\t"
                         "checksum")
        chunks = [one for one in self.expect(run("info", "--chunks", "--json", self.out),
                                             DONE).objects]
        self.assertEqual(len(rows), len(chunks))
        self.assertEqual(sum(chunk["samples"] for chunk in chunks), 7)
        size, = {json.loads(self.lines("info", "--json", self.out)[0])["chunk_bytes"]}
        for number, (row, chunk) in enumerate(zip(rows, chunks)):
            fields = ("chunk", "shard", "slot", "offset", "span_slots", "first_sample", "samples",
                      "used_bytes", "read_bytes", "checksum")
            self.assertEqual(row.split("\t"), [str(chunk[field]) for field in fields])
            self.assertEqual(chunk["chunk"], number)
            self.assertEqual(chunk["offset"], chunk["slot"] * size)
        self.assertEqual(self.lines("info", "--classes", self.out),
                         ["#label\tsamples\tclass", "0\t4\tcat", "1\t3\tdog"])

    # --- all of them

    def test_a_folder_of_splits(self):
        for split, count in (("train", 3), ("val", 2)):
            pictures.make_folder(self.path("both", split), {"cat": count}, seed=split)
        self.pack(self.path("both"), self.path("packs"), "--no-shuffle")
        keys = ["train/cat/00000.jpg", "train/cat/00001.jpg", "train/cat/00002.jpg",
                "val/cat/00000.jpg", "val/cat/00001.jpg"]
        self.assertEqual(self.lines("ls", "--keys", self.path("packs")), keys)
        digests = self.lines("info", "--digest", self.path("packs"))
        self.assertEqual([line.split()[-1] for line in digests], ["train", "val"])
        with open(self.path("both", keys[4]), "rb") as file:
            self.assertEqual(run("cat", self.path("packs"), keys[4]).out, file.read())
        self.expect(run("cat", self.path("packs"), "--id", "0"), USAGE, "train, val")
        self.expect(run("cat", self.path("packs"), "cat/00000.jpg"), NO, "train, val")

    def test_what_is_no_pack(self):
        os.mkdir(self.path("empty"))
        pictures.write(self.path("file"), b"x")
        for command in (["info"], ["ls"], ["cat", "--id", "0"], ["diff", self.out],
                        ["extract", "--force"]):
            more = [self.path("target")] if command[0] == "extract" else []
            for path, code in ((self.path("empty"), NOT_A_PACK), (self.path("file"), NOT_A_PACK),
                               (self.path("src"), NOT_A_PACK), (self.path("nowhere"), FAILED)):
                with self.subTest(command=command, path=path):
                    self.expect(run(*command, path, *more), code, path)
        self.assertFalse(os.path.exists(self.path("target")))

    def test_nothing_is_written_beside_the_data(self):
        before = sorted(os.listdir(self.out))
        for arguments in (["info"], ["ls"], ["cat", "--id", "0"]):
            self.expect(run(*arguments, self.out), DONE)
        self.assertEqual(sorted(os.listdir(self.out)), before)

    def test_a_reader_that_leaves_ends_it_quietly(self):
        for arguments in (["ls"], ["ls", "--json"], ["info"], ["cat", "--id", "0"]):
            process = subprocess.Popen([PROGRAM, *arguments, self.out], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            process.stdout.close()
            error = process.stderr.read()
            process.stderr.close()
            self.assertEqual((process.wait(60), error), (DONE, b""), arguments)

    def test_a_full_disk_is_told(self):
        for arguments in (["ls"], ["info"], ["cat", "--id", "0"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *arguments, self.out], stdout=full,
                                      stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr), (
                FAILED, b"stripepack %s: cannot write to standard output: No space left on device\n"
                % arguments[0].encode()))

    def test_a_signal_stops_it_even_where_nobody_reads(self):
        many = self.path("many.txt")
        picture = self.path("src", self.keys[0])
        with open(many, "w", encoding="utf-8") as file:
            file.writelines("%s 0\n" % picture for _ in range(3000))
        self.pack(many, self.path("many"))
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process = subprocess.Popen([PROGRAM, "ls", self.path("many")], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            process.stdout.read(10)  # it is listing, and will soon find the pipe full
            time.sleep(0.5)
            process.send_signal(number)
            self.assertEqual(process.wait(30), code)
            self.assertIn(b"stopped by SIG", process.stderr.read())
            process.stdout.close()
            process.stderr.close()


class FrameTest(PackTest):
    """The program around the commands."""

    def test_version(self):
        done = self.expect(run("--version"), DONE)
        self.assertRegex(text(done.out), r"^stripepack \d+\.\d+\.\d+\nformat version 1\nbuilt with")

    def test_help_of_everything(self):
        done = self.expect(run("--help"), DONE, "Subcommands:")
        self.assertEqual(done.err, b"")
        for command in ("pack", "info", "ls", "cat", "extract", "diff"):
            done = self.expect(run(command, "--help"), DONE, "Usage: stripepack " + command)
            self.assertEqual(done.err, b"")

    def test_help_as_a_command(self):
        for command in ([], ["pack"], ["help"], ["order"]):
            self.assertEqual(self.expect(run("help", *command), DONE).out, run(*command, "--help").out)
        self.expect(run("help", "nosuch"), USAGE,
                    "stripepack help: there is no subcommand 'nosuch'; `stripepack help` lists them")
        self.expect(run("help", "pack", "verify"), USAGE)

    def test_usage_errors(self):
        for arguments, message in (
                ([], "stripepack: A subcommand is required; see `stripepack --help`"),
                (["frob"], "stripepack: there is no subcommand 'frob'; see `stripepack --help`"),
                (["ls"], "stripepack ls: PACK is required; see `stripepack ls --help`"),
                (["ls", "--frob", "x"], "stripepack ls: The following argument was not expected: "
                 "--frob; see `stripepack ls --help`"),
                (["extract", "a", "b", "--jobs", "many"], None),
                (["extract", "a", "b", "--progress", "loud"], None),
                (["ls", "a", "--sort", "size"], None)):
            done = run(*arguments)
            self.assertEqual((done.code, done.out), (USAGE, b""), arguments)
            if message is not None:
                self.assertEqual(text(done.err), message + "\n")
            elif arguments:
                option = next(word for word in arguments if word.startswith("--"))
                self.assertIn(option, text(done.err))

    def test_usage_errors_as_json(self):
        for arguments in (["frob", "--json"], ["ls", "--json"], ["--json", "ls"],
                          ["ls", "x", "--sort", "size", "--json"]):
            done = run(*arguments)
            self.assertEqual((done.code, done.out), (USAGE, b""), arguments)
            error = json.loads(done.err)
            self.assertEqual((error["type"], error["v"], error["code"], error["exit"]),
                             ("error", 1, "invalid_argument", USAGE))

    def test_closed_descriptors_do_not_end_up_in_a_pack(self):
        pictures.make_folder(self.path("src"), {"cat": 3})
        script = 'exec "$0" pack "$1" "$2" 0<&- 1>&- 2>&-'
        subprocess.run(["sh", "-c", script, PROGRAM, self.path("src"), self.out], check=False,
                       timeout=60)
        if os.path.exists(self.out):
            done = self.expect(run("extract", self.out, self.path("back")), DONE)
            self.assertIn("3 of 3", text(done.out))


if __name__ == "__main__":
    main()

"""Stripe options, `fs`, `layout` and `verify --layout` where there are no stripes: on any disk. Real
layouts are for tests/pfs."""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, FAILED, NO, USAGE, PackTest, identity, main, run, text  # noqa: E402

SMALL = ["--chunk-size", "64KiB", "--shards", "2"]


class StripesTest(PackTest):
    def setUp(self):
        super().setUp()
        self.source = self.path("src")
        pictures.make_folder(self.source, {"cat": 20, "dog": 20})

    def record(self):
        return json.loads(pathlib.Path(self.out, "layout.json").read_text())

    def file_system(self):
        return run("fs", self.path(), "--json").objects[0]["file_system"]

    def test_fs_tells_of_folders_and_files(self):
        folder = run("fs", self.path(), "--json").objects[0]
        self.assertEqual((folder["type"], folder["layout"]),
                         ("fs", {"system": "none", "components": []}))
        self.assertGreater(folder["free_bytes"], 0)
        lines = text(run("fs", self.path()).out).splitlines()
        self.assertIn("layout       of files made here: not told", lines)
        name = self.path("file")
        pathlib.Path(name).touch()
        self.assertIn("layout       of this file: not told", text(run("fs", name).out).splitlines())
        done = run("fs", self.path("nosuch"))
        self.assertEqual(done.code, FAILED)
        self.assertIn("cannot open: No such file or directory", text(done.err))

    def test_layout_is_recorded_and_the_same_when_looked_at_again(self):
        self.pack(self.source, self.out, *SMALL)
        record = self.record()
        self.assertEqual((record["version"], record["chunk_bytes"], len(record["maps"])),
                         (1, 65536, 1))
        self.assertEqual(record["maps"][0]["asked"], "the folder's own")
        self.assertEqual(record["maps"][0]["file_system"], self.file_system())
        again = run("layout", self.out, "--refresh")
        self.assertEqual(again.code, DONE)
        self.assertIn("the shards lie as is recorded", text(again.err))
        self.assertEqual(self.record(), record)
        shown = text(run("layout", self.out).out)
        self.assertIn("  got      not told by the file system", shown)
        one = run("layout", self.out, "--json").objects[0]
        self.assertEqual((one["digest"], one["current"], one["shards"]), ("0" * 16, True, []))
        self.assertEqual(run("layout", "--targets", self.out).out, b"")
        checked = run("verify", "--layout", self.out)
        self.assertEqual(checked.code, DONE)
        self.assertEqual(text(checked.out).splitlines()[-1], "layout: ok")

    def test_what_cannot_be_had_is_warned_about_once_and_changes_no_byte(self):
        self.pack(self.source, self.path("plain"), *SMALL)
        done = self.pack(self.source, self.out, *SMALL, "--stripe-size", "1MiB")
        self.assertEqual(text(done.out + done.err).count("stripe layout not set"), 1)
        self.assertEqual(identity(self.out), identity(self.path("plain")))
        refused = self.file_system() + " takes no stripe layout"
        self.assertEqual(self.record()["maps"][0]["asked"], "stripe_size=1048576")
        self.assertEqual(self.record()["maps"][0]["refused"], refused)
        checked = run("verify", "--layout", self.out)
        self.assertEqual(checked.code, NO)
        self.assertIn("layout: asked for stripe_size=1048576, not given: " + refused,
                      text(checked.out))

    def test_none_does_not_look(self):
        done = self.pack(self.source, self.out, *SMALL, "--stripe", "none")
        self.assertNotIn("stripe layout", text(done.out + done.err))

    def test_parts_record_what_was_asked_for(self):
        options = [*SMALL, "--stripe", "keep"]
        for part in (0, 1, 2):
            self.pack(self.source, self.out, *options, "--part", "%d/3" % part)
        self.assertEqual(self.record()["maps"][0]["asked"], "the folder's own")

    def test_wrong_options_are_refused(self):
        for options, said in (
                (["--stripe", "keep", "--pool", "a"],
                 "--stripe keep and none go with none of --stripe-size"),
                (["--stripe", "wide"], "'wide' is not one of auto|keep|none"),
                (["--stripe-count", "0"], "'0' is neither a whole number from 1 on nor 'all'"),
                (["--stripe-count", "4x"], "'4x' is neither a whole number from 1 on nor 'all'"),
                (["--targets", "0"], "--targets"),
                (["--targets", "3", "--shards", "2"], "excludes")):
            done = run("pack", self.source, self.out, *options)
            self.assertEqual(done.code, USAGE, (options, done))
            self.assertIn(said, text(done.err))
        self.assertFalse(os.path.exists(self.out))

    def test_dry_run_tells_what_is_asked_for_and_why(self):
        lines = text(self.pack(self.source, self.out, "--dry-run").out).splitlines()
        self.assertIn("  stripes   the folder's own", lines)
        self.assertIn("    no stripes are known of here", lines)
        split = run("pack", self.source, self.out, "--dry-run", "--stripe", "keep",
                    "--json").objects[0]["splits"][0]
        self.assertEqual((split["stripes_asked"], split["stripes_reasons"]),
                         ("the folder's own", ["--stripe keep: the folder's own layout"]))

    def test_damaged_record_is_named_and_never_written_over(self):
        self.pack(self.source, self.out, *SMALL)
        path = pathlib.Path(self.out, "layout.json")
        path.write_text("{")
        done = run("layout", self.out, "--refresh")
        self.assertEqual(done.code, FAILED)
        self.assertIn("layout.json", text(done.err))
        self.assertEqual(path.read_text(), "{")
        path.unlink()
        self.assertIn("nothing is recorded", text(run("layout", self.out).out))
        self.assertEqual(run("layout", self.out, "--refresh").code, DONE)
        self.assertEqual(len(self.record()["maps"]), 1)


if __name__ == "__main__":
    main()

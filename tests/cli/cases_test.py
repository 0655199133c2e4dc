# ctest: timeout=300
"""Inputs that people really have, each with its expected outcome: tests/cases/README.md."""

import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import (DONE, FAILED, SHIM, PackTest, faulty, main, names, payloads,  # noqa: E402
                     rejects, run, samples, snapshot, text, unescape)

ARCHIVE = pathlib.Path(__file__).resolve().parents[1] / "cases" / "cases.tar.gz"
NOT_PUBLISHED = 3
NOBODY = 65534


def as_bytes(expected, member):
    if member + "_hex" in expected:
        return [bytes.fromhex(name) for name in expected[member + "_hex"]]
    return [name.encode("utf-8", "surrogateescape") for name in expected.get(member, [])]


def as_list(label):
    return label if isinstance(label, list) else [label]


class CasesTest(PackTest):
    def test_cases(self):
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(self.dir)
        cases = [name for name in names(self.dir) if os.path.isdir(self.path(name))]
        self.assertEqual(len(cases), 94)
        for case in cases:
            with self.subTest(case=case):
                self.check(case)
                scenario = self.expected_of(case).get("scenario")
                if scenario is not None:
                    self.play(case, scenario)

    def expected_of(self, case):
        return json.loads((pathlib.Path(self.dir) / case / "expect.json").read_text(encoding="utf-8"))

    def play(self, case, scenario):
        """What happens to a case that is packed well otherwise; its pack is there already."""
        kind = scenario["type"]
        source = str(pathlib.Path(self.dir) / case / self.expected_of(case)["input"])
        pack = self.path(case + ".pack")
        if kind == "disk-full":
            self.disk_full(source, pack, scenario["limit_bytes"])
        elif kind == "kill":
            self.killed(source, pack, scenario["points"])
        elif kind == "shard":
            self.uneven_ranks(pack, scenario["world"])
        else:
            self.assertEqual(kind, "resume-epoch")
            self.resumed_epoch(pack, scenario["stop_after"])

    def disk_full(self, source, whole, limit_bytes):
        out = self.path("full.pack")
        for what in ({"limits": [(resource.RLIMIT_FSIZE, limit_bytes)]},
                     {"env": faulty("call=pwrite,pwritev,write;path=%s.partial;nth=4;errno=ENOSPC"
                                    % out)}):
            if "env" in what and not os.path.exists(SHIM):
                continue
            done = run("pack", source, out, **what)
            self.assertEqual(done.code, FAILED, str(done))
            self.assertRegex(text(done.err), "space|limit|large")
            self.assertFalse(os.path.exists(out))
            self.expect(run("pack", source, out), DONE)  # over what was left
            self.assert_same_pack(out, whole)
            shutil.rmtree(out)

    def killed(self, source, whole, points):
        if not os.path.exists(SHIM):
            self.skipTest("no libfaulty_io.so")
        out = self.path("killed.pack")
        arguments = ["pack", source, out, "--jobs", "1", "--io-threads", "1"]
        calls = "call=pwrite,pwritev,write,sync,rename,unlink,mkdir,openat;path=" + out
        count = self.count_calls(calls, *arguments)
        shutil.rmtree(out)
        for point in points:
            plan = "%s;nth=%d;action=kill" % (calls, max(1, int(count * point)))
            done = run(*arguments, env=faulty(plan))
            self.assertEqual(done.code, -signal.SIGKILL, str(done))
            self.assertFalse(os.path.exists(out))
            self.expect(run(*arguments), DONE)
            self.assert_same_pack(out, whole)
            shutil.rmtree(out)

    def order(self, pack, *arguments):
        done = self.expect(run("order", pack, "--batch", "1", *arguments), DONE)
        return [int(line) for line in done.out.split()]

    def uneven_ranks(self, pack, world):
        for tail, each, repeats in (("pad", 3, 2), ("drop", 2, 0)):
            ranks = [self.order(pack, "--world", str(world), "--rank", str(rank), "--tail", tail)
                     for rank in range(world)]
            self.assertEqual([len(rank) for rank in ranks], [each] * world)
            together = [number for rank in ranks for number in rank]
            self.assertEqual(len(together) - len(set(together)), repeats)
            self.assertEqual(10 - len(set(together)), 0 if tail == "pad" else 2)

    def resumed_epoch(self, pack, stop_after):
        fixed = ["--lanes", "2", "--window", "1", "--epoch", "1"]
        whole = self.order(pack, *fixed)
        self.assertEqual(sorted(whole), list(range(12)))
        rest = ["--consumed", str(stop_after)]
        self.assertEqual(self.order(pack, *fixed, *rest), whole[stop_after:])
        # Two ranks instead of one go on with the same samples.
        both = [self.order(pack, *fixed, *rest, "--world", "2", "--rank", rank) for rank in "01"]
        self.assertEqual(sorted(both[0] + both[1]), sorted(whole[stop_after:]))

    def check(self, case):
        folder = pathlib.Path(self.dir) / case
        expected = json.loads((folder / "expect.json").read_text(encoding="utf-8"))
        options = expected.get("options", {})
        arguments = ["--json", "--progress", "never"]
        if "root" in options:
            arguments += ["--root", str(folder / options["root"])]
        if options.get("labels") == "float-vector":
            arguments += ["--labels", "float"]
        if "max_pixels" in options:
            arguments += ["--max-pixels", str(options["max_pixels"])]
        out = self.path(case + ".pack")
        command = ["pack", str(folder / expected["input"]), out, *arguments]
        how = {"timeout": expected.get("timeout_s", 60)}
        if os.getuid() == 0 and case in ("l-readonly", "l-stale-lock"):  # root may write anywhere
            how["user"] = how["group"] = NOBODY
            self.let_all_read(folder, out)
        before = snapshot(folder)
        done = run(*command, **how)
        self.assertEqual(snapshot(folder), before)  # nothing is made, changed or locked beside SRC
        if "max_rss_mb" in expected:
            self.assertLess(done.max_rss_bytes, expected["max_rss_mb"] << 20)
        if expected["expect"] == "reject-input":
            self.assertIn(done.code, (2, 4), str(done))
            self.assertFalse(os.path.exists(out))
            if "hint_option" in expected:
                self.assertRegex(text(done.err + done.out),
                                 "--[a-z-]*%s" % expected["hint_option"])
            if "error_offset" in expected:
                self.assertEqual(json.loads(done.err)["offset"], expected["error_offset"])
            if "salvage_samples" in expected:
                done = run(*command, "--salvage", "--max-rejects", "1", **how)
                self.assertEqual(done.code, DONE, str(done))
                self.assertEqual(len(samples(out)), expected["salvage_samples"])
            if "error_line" in expected:
                self.assertIn("line %d" % expected["error_line"], text(done.err))
            return
        if done.code == NOT_PUBLISHED:
            self.assertEqual(expected["expect"], "reject-sample", str(done))
            self.assertFalse(os.path.exists(out))
            self.compare_rejects(out + ".partial", expected)
            limit = json.loads(done.out.splitlines()[-1])["rejects"]
            done = run(*command, "--max-rejects", str(limit), **how)
        else:  # without --max-rejects nothing is published that lacks a sample
            self.assertEqual(json.loads(done.out.splitlines()[-1])["rejects"], 0, str(done))
        self.assertEqual(done.code, DONE, str(done))
        report = self.report(done)
        self.compare_samples(out, expected)
        for split, labels in expected.get("other_split", {}).items():
            self.assertEqual([one["labels"] for one in samples(out) if one["split"] == split],
                             [[label] for label in labels])
        split = expected.get("options", {}).get("split", "")
        self.compare_rejects(os.path.join(out, split), expected)
        self.compare_classes(out, expected)
        counted = sum(kind["count"] for kind in report["warnings"].values())
        self.assertGreaterEqual(counted, expected.get("warn", 0))
        if "ignored" in expected:
            self.assertEqual(sum(report["ignored"].values()), expected["ignored"])

    def let_all_read(self, folder, out):
        for path in (self.dir, str(folder)):
            os.chmod(path, 0o755)
        os.chmod(self.dir, 0o777)
        self.assertFalse(os.path.exists(out))

    def compare_samples(self, out, expected):
        stored = payloads(out)
        split = expected.get("options", {}).get("split", "")
        listed = [one for one in samples(out) if one.get("split", "") == split]
        found = [(one["key"], one["labels"],
                  [one.get("height"), one.get("width"), one.get("channels")],
                  hashlib.sha256(stored[split, one["key"], one["ordinal"]]).hexdigest())
                 for one in listed]
        keys = as_bytes(expected, "names")
        if "names" not in expected and "names_hex" not in expected:  # the source has none
            keys = [one["key"] for one in listed]
        wanted = list(zip(keys, [as_list(label) for label in expected["labels"]],
                          expected["dims"], expected["sha256_of_payloads"]))
        if expected["kind"] == "folder":  # byte order of the paths is the order of the source
            wanted.sort()
            allowed = {name.encode() for name in expected.get("accept_if_supported", [])}
            found = [one for one in found if one[0] not in allowed]
        self.assertEqual(found, wanted)
        self.assertEqual(len(found), expected["samples"])

    def compare_rejects(self, out, expected):
        found = dict(rejects(out))
        optional = {name.encode() for name in expected.get("accept_if_supported", [])}
        for one in expected.get("rejected", []):
            name = one["name"].encode("utf-8", "surrogateescape")
            if name not in found:
                self.assertIn(name, optional)
                continue
            reason = found.pop(name)
            for word in one["why"].replace(":", " ").replace("(", " ").replace(")", " ").split():
                self.assertIn(word.lower(), reason.lower(), (name, one["why"]))
        self.assertEqual(found, {})

    def compare_classes(self, out, expected):
        if "classes" not in expected and "classes_hex" not in expected:
            return
        split = expected.get("options", {}).get("split", "")
        manifest = json.loads(pathlib.Path(out, split, "manifest.json").read_text(encoding="utf-8"))
        found = [unescape(name) for name in manifest["classes"]]
        may_add = {name.encode() for name in expected.get("classes_may_add", [])}
        wanted = as_bytes(expected, "classes")
        self.assertEqual([name for name in found if name in wanted or name not in may_add], wanted)


if __name__ == "__main__":
    main()

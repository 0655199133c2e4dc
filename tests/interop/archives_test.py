# ctest: timeout=600
"""Archives that other programs write: GNU tar, Python's tarfile and zipfile, gzip and zstd. A folder
and an archive of it give the same samples."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import (DONE, FAILED, USAGE, PackTest, main, payloads, run,  # noqa: E402
                     samples)


def facts(pack):
    """{(split, key): (labels, sha256)}; "./" before keys does not count."""
    stored = payloads(pack)
    return {(one.get("split", ""), one["key"]):
            (one["labels"], hashlib.sha256(stored[one.get("split", ""), one["key"], one["ordinal"]]).hexdigest())
            for one in samples(pack)}


def read_name(name, folder):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


class ArchivesTest(PackTest):
    def setUp(self):
        super().setUp()
        pictures.make_folder(self.path("src"), {"ant": 7, "bee": 3, "cat": 5})
        os.mkdir(self.path("src", "empty"))
        os.makedirs(self.path("src", "cat", "deep" * 20))
        shutil.copy(self.path("src", "cat", sorted(os.listdir(self.path("src", "cat")))[1]),
                    self.path("src", "cat", "deep" * 20, "x" * 90 + ".jpg"))
        self.pack(self.path("src"), self.path("folder.pack"))
        self.expected = facts(self.path("folder.pack"))
        self.assertEqual(len(self.expected), 16)

    def check(self, archive, *more):
        out = self.path("a.pack")
        self.pack(archive, out, *more)
        self.assertEqual(facts(out), self.expected)
        self.expect(run("verify", out, "--against", archive), DONE)
        manifest = json.loads(pathlib.Path(out, "manifest.json").read_text(encoding="utf-8"))
        self.assertEqual(manifest["classes"], ["ant", "bee", "cat", "empty"])
        shutil.rmtree(out)
        self.expect(run("pack", archive, out, "--dry-run"), DONE)

    def test_gnu_tar_in_all_its_formats(self):
        for form in ("gnu", "oldgnu", "pax", "posix", "ustar"):
            with self.subTest(form=form):
                archive = self.path(form + ".tar")
                subprocess.run(["tar", "--format", form, "-cf", archive, "-C", self.path("src"), "."],
                               check=True)
                self.check(archive)

    def test_an_archive_of_one_archive_a_class(self):
        """As ILSVRC2012_img_train.tar comes."""
        os.mkdir(self.path("inner"))
        for name in os.listdir(self.path("src")):
            subprocess.run(["tar", "-cf", self.path("inner", name + ".tar"), "-C",
                            self.path("src", name), "."], check=True)
        outer = self.path("outer.tar")
        subprocess.run(["tar", "-cf", outer, "-C", self.path("inner"), *sorted(os.listdir(
            self.path("inner")))], check=True)
        self.check(outer)
        # Nothing of it is unpacked: the pictures are read where they lie.
        done = self.expect(run("pack", outer, self.path("dry"), "--dry-run", "--json"), DONE)
        self.assertEqual(json.loads(done.out)["spool_bytes"], 0)
        with open(outer, "rb") as file:
            data = file.read()
        with open(outer + ".gz", "wb") as file:
            file.write(gzip.compress(data))
        self.check(outer + ".gz")
        done = self.expect(run("pack", outer + ".gz", self.path("dry"), "--dry-run", "--json"), DONE)
        self.assertEqual(json.loads(done.out)["spool_bytes"], len(data))
        # An inner archive that ends early refuses the whole, naming it.
        with tarfile.open(outer) as tar:
            member = tar.getmember("bee.tar")
        broken = bytearray(data)
        end = member.offset_data + member.size
        broken[member.offset_data + 1024:end] = b"\x01" * (member.size - 1024)
        with open(self.path("broken.tar"), "wb") as file:
            file.write(broken)
        self.expect(run("pack", self.path("broken.tar"), self.path("no.pack")), FAILED,
                    "member bee.tar")
        self.pack(self.path("broken.tar"), self.path("some.pack"), "--salvage",
                  "--max-rejects", "1")
        kept = {key for _, key in facts(self.path("some.pack"))}
        self.assertTrue(kept.issuperset(key for _, key in self.expected if not
                                        key.startswith(b"bee/")))

    def test_words_as_labels(self):
        os.mkdir(self.path("words"))
        labels = ["n02", "a cat", "n01"]
        with tarfile.open(self.path("words", "w-000000.tar"), "w") as tar:
            for number in range(9):
                parts = {"jpg": pictures.jpeg(number, 900),
                         "cls": labels[number % 3].encode() + b"\n" * (number % 2)}
                for suffix, data in parts.items():
                    member = tarfile.TarInfo("%03d.%s" % (number, suffix))
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        out = self.path("words.pack")
        done = run("pack", self.path("words"), out)
        self.expect(done, FAILED, "is no number; --labels words takes names")
        self.pack(self.path("words"), out, "--labels", "words", "--restart")
        manifest = json.loads(pathlib.Path(out, "manifest.json").read_text(encoding="utf-8"))
        self.assertEqual(manifest["classes"], ["a cat", "n01", "n02"])
        self.assertEqual([one["labels"] for one in samples(out)], [[2], [0], [1]] * 3)
        self.expect(run("verify", out, "--against", self.path("words"), "--labels", "words"), DONE)
        self.expect(run("pack", self.path("src"), self.path("no.pack"), "--labels", "words"), USAGE,
                    "--labels words goes with archives")

    def test_packed_tar(self):
        plain = self.path("plain.tar")
        subprocess.run(["tar", "-cf", plain, "-C", self.path("src"), "."], check=True)
        with open(plain, "rb") as file:
            data = file.read()
        half = len(data) // 2
        with open(self.path("two.tar.gz"), "wb") as file:  # gzip's files may be joined
            file.write(gzip.compress(data[:half]) + gzip.compress(data[half:]))
        self.check(self.path("two.tar.gz"))
        if shutil.which("zstd") is not None:
            subprocess.run(["zstd", "-q", plain], check=True)
            self.check(plain + ".zst")

    def test_hard_links(self):
        first = sorted(name for name in os.listdir(self.path("src", "ant")))[0]
        os.link(self.path("src", "ant", first), self.path("src", "bee", "linked.jpg"))
        archive = self.path("links.tar")
        subprocess.run(["tar", "-cf", archive, "-C", self.path("src"), "ant", "bee", "cat", "empty"],
                       check=True)
        self.pack(self.path("src"), self.path("again.pack"))
        self.expected = facts(self.path("again.pack"))
        self.check(archive)

    def test_sparse_members_are_refused(self):
        with open(self.path("src", "bee", "hole.jpg"), "wb") as file:
            file.truncate(1 << 20)
            file.seek(1 << 19)
            file.write(b"x")
        for form in ("gnu", "pax"):
            archive = self.path(form + "-sparse.tar")
            subprocess.run(["tar", "--format", form, "--sparse", "-cf", archive, "-C",
                            self.path("src"), "."], check=True)
            self.expect(run("pack", archive, self.path("no.pack")), FAILED, "sparse member")

    def test_python_tarfile(self):
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            archive = self.path("python.tar")
            with tarfile.open(archive, "w", format=form) as tar:
                for name in sorted(os.listdir(self.path("src"))):
                    tar.add(self.path("src", name), name)
            self.check(archive)

    def test_zip(self):
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            for big in (False, True):
                archive = self.path("python.zip")
                with zipfile.ZipFile(archive, "w", compression) as file:
                    for folder, folders, names in os.walk(self.path("src")):
                        for name in sorted(names) + folders:
                            path = os.path.join(folder, name)
                            inside = os.path.relpath(path, self.path("src"))
                            if os.path.isdir(path) or not big:
                                file.write(path, inside)
                            else:
                                with file.open(inside, "w", force_zip64=True) as out:
                                    out.write(read_name(name, folder))
                self.check(archive)

    def test_webdataset_shards(self):
        names = sorted(os.listdir(self.path("src", "ant")))
        os.mkdir(self.path("wds"))
        wanted = {}
        for shard in range(2):
            with tarfile.open(self.path("wds", "x-%06d.tar" % shard), "w") as tar:
                for number, name in enumerate(names[shard * 3:shard * 3 + 3]):
                    key = "%d/%06d" % (shard, number)
                    data = read_name(name, self.path("src", "ant"))
                    parts = {"jpg": data, "cls": b"%d" % (shard * 10 + number),
                             "json": json.dumps({"caption": name}).encode()}
                    for suffix, content in parts.items():
                        member = tarfile.TarInfo(key + "." + suffix)
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))
                    wanted["", key.encode()] = ([shard * 10 + number],
                                                hashlib.sha256(data).hexdigest())
        for source in (self.path("wds"), self.path("wds", "x-{000000..000001}.tar"),
                       self.path("wds", "x-*.tar")):
            out = self.path("wds.pack")
            self.pack(source, out, "--labels", "int")
            self.assertEqual(facts(out), wanted)
            done = self.expect(run("cat", out, "1/000002", "--field", "json"), DONE)
            self.assertEqual(json.loads(done.out), {"caption": names[5]})
            shutil.rmtree(out)

    def test_an_archive_that_changes_meanwhile_is_noticed(self):
        archive = self.path("plain.tar")
        subprocess.run(["tar", "-cf", archive, "-C", self.path("src"), "."], check=True)
        self.pack(archive, self.path("a.pack"))
        with open(archive, "r+b") as file:
            file.truncate(os.path.getsize(archive) // 2)
        self.expect(run("pack", archive, self.path("b.pack")), FAILED, "the archive ends")
        self.assertFalse(os.path.exists(self.path("b.pack")))


if __name__ == "__main__":
    if shutil.which("tar") is None:
        print("no tar: apt install tar")
        sys.exit(77)
    main()

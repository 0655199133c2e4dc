# ctest: timeout=300
"""tar shards of `export`, read by Python's tarfile and by GNU tar; the indexes for DALI and wids
against the places that tarfile finds."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from packing import DONE, PackTest, main, names, payloads, run, samples  # noqa: E402

# What WebDataset takes for key and field.
BASE_PLUS_EXT = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")


def read(path):
    with open(path, "rb") as file:
        return file.read()


class ExportTarTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.dest = self.path("dest")
        self.made = pictures.make_folder(self.src, {"cat": 11, "dog": 8})
        deep = "/".join(["deep" * 12] * 4)
        more = {"dog/has.many.dots.JPEG": 1, "dog/with blank.jpg": 2, "dog/t\u00e4st.jpg": 3,
                "dog/%s.jpg" % ("n" * 90): 4, "dog/%s.jpg" % ("n" * 150): 5,
                "cat/%s/1.jpg" % deep: 6, "cat/%s/%s.jpg" % (deep, "x" * 120): 7}
        for key, seed in more.items():
            self.made[key] = pictures.jpeg(seed, 900)
            pictures.write(os.path.join(self.src, key), self.made[key])
        self.pack(self.src, self.out)

    def export(self, *more, dest=None):
        self.expect(run("export", self.out, dest or self.dest, "--to", "tar", *more), DONE)

    def members(self, path):
        with tarfile.open(path) as archive:
            return [(one, archive.extractfile(one).read()) for one in archive]

    def groups(self, path):
        """As WebDataset makes them: neighbours with one key."""
        found = []
        for member, data in self.members(path):
            key, field = BASE_PLUS_EXT.match(member.name).groups()
            if not found or found[-1][0] != key:
                found.append((key, {}))
            self.assertNotIn(field, found[-1][1])
            found[-1][1][field] = data
        self.assertEqual(len({key for key, _ in found}), len(found))
        return found

    def test_webdataset(self):
        self.export("--shard-samples", "10")
        shards = [name for name in names(self.dest) if name.endswith(".tar")]
        self.assertEqual(shards, ["data-00000%d.tar" % number for number in range(3)])
        found = {}
        for shard in shards:
            for key, fields in self.groups(os.path.join(self.dest, shard)):
                facts = json.loads(fields["json"])
                picture, = [data for name, data in fields.items() if name in ("jpg", "JPEG")]
                self.assertEqual(set(fields) - {"jpg", "JPEG"}, {"cls", "json"})
                self.assertEqual(facts["key"].rsplit(".", 1)[0].rsplit("/", 1)[0],
                                 key.rsplit("/", 1)[0])
                found[facts["key"]] = picture, int(fields["cls"])
        self.assertEqual(found, {key: (data, int(key.startswith("dog")))
                                 for key, data in self.made.items()})

    def test_members_are_the_same_for_everybody(self):
        self.export()
        for member, _ in self.members(os.path.join(self.dest, "data-000000.tar")):
            self.assertEqual((member.mtime, member.uid, member.gid, member.uname, member.gname,
                              member.mode, member.type), (0, 0, 0, "", "", 0o444, tarfile.REGTYPE))

    def test_gnu_tar(self):
        if shutil.which("tar") is None:
            self.skipTest("no tar")
        self.export("--layout", "folders", "--shards", "2")
        back = self.path("back")
        os.mkdir(back)
        for shard in ("data-000000.tar", "data-000001.tar"):
            done = subprocess.run(["tar", "-xf", os.path.join(self.dest, shard)], cwd=back,
                                  capture_output=True, env=dict(os.environ, LC_ALL="C.UTF-8"))
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        for key, data in self.made.items():
            self.assertEqual(read(os.path.join(back, key)), data)
        # A folder again, and the same pack but for what differs by nature.
        self.pack(back, self.path("again"))
        self.assertEqual(payloads(self.path("again")), payloads(self.out))
        # And compared by tar itself; times and owners are not of the source.
        done = subprocess.run(["tar", "--list", "--file", os.path.join(self.dest, shard)],
                              capture_output=True)
        self.assertEqual(done.returncode, 0)
        # Whole records, as tar writes them.
        self.assertEqual(os.path.getsize(os.path.join(self.dest, shard)) % 10240, 0)

    def test_indexes(self):
        self.export("--shards", "3")
        with open(os.path.join(self.dest, "index.json"), encoding="utf-8") as file:
            wids = json.load(file)
        self.assertEqual((wids["__kind__"], wids["wids_version"], wids["name"]),
                         ("wids-shard-index-v1", 1, "data"))
        self.assertEqual([one["url"] for one in wids["shardlist"]],
                         [name for name in names(self.dest) if name.endswith(".tar")])
        for one in wids["shardlist"]:
            path = os.path.join(self.dest, one["url"])
            self.assertEqual(one["filesize"], os.path.getsize(path))
            self.assertEqual(one["nsamples"], len(self.groups(path)))
            # DALI: "v1.2 COUNT", then extension, offset, size and name of each member.
            lines = read(path[:-len("tar")] + "idx").decode().splitlines()
            self.assertEqual(lines[0], "v1.2 %d" % one["nsamples"])
            self.assertEqual(len(lines), one["nsamples"] + 1)
            cells = [cell for line in lines[1:] for cell in line.split(" ")]
            members = [member for member, _ in self.members(path)]
            self.assertEqual(len(cells), 4 * len(members))
            whole = read(path)
            for number, member in enumerate(members):
                field, offset, size, name = cells[4 * number:4 * number + 4]
                self.assertEqual(name, member.name.replace(" ", "_"))
                self.assertEqual(name.rsplit("/", 1)[-1].split(".", 1)[1], field)
                self.assertEqual((int(offset), int(size)), (member.offset_data, member.size))
                self.assertEqual(whole[int(offset):int(offset) + 2] == b"\xff\xd8",
                                 field in ("jpg", "JPEG"))

    def test_keys_that_share_a_base(self):
        """a.jpg and a.jpeg, and a list that names one file twice."""
        folder = self.path("more")
        for name in ("a.jpg", "a.jpeg", "b.jpg"):
            pictures.write(os.path.join(folder, name), pictures.jpeg(name))
        with open(os.path.join(folder, "list.txt"), "w", encoding="utf-8") as file:
            file.write("a.jpg 0\na.jpeg 1\nb.jpg 2\nb.jpg 3\n../more/a.jpg 4\n")
        self.pack(os.path.join(folder, "list.txt"), self.path("pack"), "--no-shuffle")
        self.expect(run("export", self.path("pack"), self.dest, "--to", "tar"), DONE)
        groups = self.groups(os.path.join(self.dest, "data-000000.tar"))
        self.assertEqual([int(fields["cls"]) for _, fields in groups], [0, 1, 2, 3, 4])
        self.assertEqual([json.loads(fields["json"])["key"] for _, fields in groups],
                         [one["key"].decode() for one in samples(self.path("pack"))])

    def test_no_labels(self):
        os.makedirs(self.path("flat"))
        for number in range(3):
            pictures.write(self.path("flat", "%d.jpg" % number), pictures.jpeg(number))
        self.pack(self.path("flat"), self.path("pack"), "--labels", "none")
        self.expect(run("export", self.path("pack"), self.dest, "--to", "tar"), DONE)
        for _, fields in self.groups(os.path.join(self.dest, "data-000000.tar")):
            self.assertEqual(set(fields), {"jpg", "json"})

    def test_several_labels_and_fractions(self):
        with open(os.path.join(self.src, "list.lst"), "w", encoding="utf-8") as file:
            file.write("0\t1\t2\tcat/00000.jpg\n1\t3\t4\tcat/00001.jpg\n")
        self.pack(os.path.join(self.src, "list.lst"), self.path("pack"), "--no-shuffle")
        self.expect(run("export", self.path("pack"), self.dest, "--to", "tar"), DONE)
        groups = self.groups(os.path.join(self.dest, "data-000000.tar"))
        self.assertEqual([json.loads(fields["json"])["label"] for _, fields in groups],
                         [[1, 2], [3, 4]])


if __name__ == "__main__":
    main()

# ctest: timeout=300
"""TFRecord shards of `export`: framing and both CRCs by this file's own reader, tf.train.Example by
protobuf with a descriptor that is built here, DALI's index against the places of the records."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from messages import example_class, masked_crc  # noqa: E402
from packing import DONE, SKIPPED, PackTest, main, names, run, samples  # noqa: E402

Example = example_class()
if Example is None:
    print("python3-protobuf is not installed")
    sys.exit(SKIPPED)


def records(path):
    """[(offset, size with framing, data)]; both CRCs are checked."""
    with open(path, "rb") as file:
        whole = file.read()
    found = []
    at = 0
    while at < len(whole):
        size = int.from_bytes(whole[at:at + 8], "little")
        crc = int.from_bytes(whole[at + 8:at + 12], "little")
        assert crc == masked_crc(whole[at:at + 8]), "length CRC at %d" % at
        data = whole[at + 12:at + 12 + size]
        crc = int.from_bytes(whole[at + 12 + size:at + 16 + size], "little")
        assert len(data) == size and crc == masked_crc(data), "data CRC at %d" % at
        found.append((at, size + 16, data))
        at += size + 16
    return found


def plain(example):
    """{feature: list of values}"""
    found = {}
    for name, feature in example.features.feature.items():
        found[name] = list(getattr(feature, feature.WhichOneof("kind")).value)
    return found


class ExportTfRecordTest(PackTest):
    def setUp(self):
        super().setUp()
        self.src = self.path("src")
        self.dest = self.path("dest")
        self.made = pictures.make_folder(self.src, {"cat": 9, "dog": 6}, largest=3000)

    def export(self, *more):
        self.expect(run("export", self.out, self.dest, "--to", "tfrecord", *more), DONE)
        found = []
        for name in names(self.dest):
            if name.endswith(".idx"):
                continue
            here = records(os.path.join(self.dest, name))
            with open(os.path.join(self.dest, name + ".idx"), encoding="ascii") as file:
                self.assertEqual([tuple(map(int, line.split())) for line in file],
                                 [record[:2] for record in here])
            for _, _, data in here:
                example = Example()
                example.ParseFromString(data)
                # Nothing that protobuf does not know, and its own bytes but for the map's order.
                self.assertEqual(len(example.SerializeToString(deterministic=True)), len(data))
                found.append(plain(example))
        return found

    def test_check_value_of_the_crc(self):
        crc = masked_crc(b"123456789")
        self.assertEqual(((crc - 0xa282ead8) & 0xffffffff) << 15 & 0xffffffff
                         | ((crc - 0xa282ead8) & 0xffffffff) >> 17, 0xe3069283)

    def test_pictures_and_labels(self):
        self.pack(self.src, self.out)
        found = self.export("--shards", "3")
        self.assertEqual([one["image/filename"][0] for one in found],
                         [one["key"] for one in samples(self.out, "id")])
        for one in found:
            key = one["image/filename"][0].decode()
            self.assertEqual(one, {
                "image/encoded": [self.made[key]], "image/format": [b"JPEG"],
                "image/filename": [key.encode()], "image/height": [pictures.HEIGHT],
                "image/width": [pictures.WIDTH], "image/channels": [1],
                "image/class/label": [int(key.startswith("dog"))],
                "image/class/text": [key.split("/")[0].encode()]})

    def test_odd_labels(self):
        listing = os.path.join(self.src, "list.lst")
        for lines, labels in (
                ("0\t-5\tcat/00000.jpg\n1\t9007199254740993\tcat/00001.jpg\n",
                 [[-5], [9007199254740993]]),
                ("0\t0.5\tcat/00000.jpg\n1\t-0.25\tcat/00001.jpg\n", [[0.5], [-0.25]]),
                ("0\t1\t2\tcat/00000.jpg\n1\t3\t-4\tcat/00001.jpg\n", [[1, 2], [3, -4]])):
            with open(listing, "w", encoding="utf-8") as file:
                file.write(lines)
            self.pack(listing, self.out, "--no-shuffle", "--force", "--labels",
                      "float" if "." in lines.replace(".jpg", "") else "auto")
            found = self.export("--force")
            self.assertEqual([one["image/class/label"] for one in found], labels)
            self.assertNotIn("image/class/text", found[0])

    def test_the_empty_index_of_an_empty_shard_is_no_shard(self):
        self.pack(self.src, self.out)
        self.expect(run("export", self.out, self.dest, "--to", "tfrecord", "--shards", "17",
                        "--verify"), DONE, "read back: 15")
        self.assertEqual(sum(os.path.getsize(os.path.join(self.dest, name)) == 0
                             for name in names(self.dest) if name.endswith(".idx")), 2)
        again = self.path("again")
        self.pack(self.dest, again)
        self.assertEqual(len(samples(again)), 15)

    def test_a_large_sample_comes_in_pieces(self):
        big = pictures.jpeg("big", 600000)
        pictures.write(os.path.join(self.src, "cat", "big.jpg"), big)
        self.pack(self.src, self.out)
        found = self.export("--memory", "100KiB")
        self.assertEqual({one["image/filename"][0].decode(): one["image/encoded"][0]
                          for one in found}, dict(self.made, **{"cat/big.jpg": big}))


if __name__ == "__main__":
    main()

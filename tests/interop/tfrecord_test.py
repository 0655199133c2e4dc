# ctest: timeout=300
"""TFRecord files whose messages protobuf's own library writes, from a description of
tf.train.Example that is made here. (There is no Debian package of TensorFlow; the frames are written by hand.)"""

import gzip
import hashlib
import os
import pathlib
import random
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pictures  # noqa: E402
from messages import example_class, masked_crc  # noqa: E402
from packing import DONE, SKIPPED, PackTest, main, payloads, run, samples  # noqa: E402

Example = example_class()
if Example is None:
    print("python3-protobuf is not installed")
    sys.exit(SKIPPED)


class TfRecordTest(PackTest):
    def setUp(self):
        super().setUp()
        pictures.make_folder(self.path("src"), {"cat": 12})
        self.random = random.Random(5)

    def record(self, name, label):
        with open(self.path("src", "cat", name), "rb") as file:
            image = file.read()
        example = Example()
        feature = example.features.feature
        feature["image/encoded"].bytes_list.value.append(image)
        feature["image/class/label"].int64_list.value.append(label)
        feature["image/filename"].bytes_list.value.append(name.encode())
        feature["image/format"].bytes_list.value.append(b"JPEG")
        feature["image/object/bbox/xmin"].float_list.value.extend(
            self.random.random() for _ in range(label % 3))
        feature["image/class/text"].bytes_list.value.append("Hauskatze \u732b".encode())
        data = example.SerializeToString()
        length = struct.pack("<Q", len(data))
        return (length + struct.pack("<I", masked_crc(length)) + data +
                struct.pack("<I", masked_crc(data))), hashlib.sha256(image).hexdigest()

    def test_shards_and_splits(self):
        names = sorted(os.listdir(self.path("src", "cat")))
        wanted = {"train": [], "validation": []}
        os.mkdir(self.path("in"))
        packed = {0: lambda data: data, 1: gzip.compress, 2: zlib.compress}
        for shard in range(3):
            split, count = ("train", 2) if shard < 2 else ("validation", 1)
            content = b""
            for number, name in enumerate(names[shard * 4:shard * 4 + 4]):
                data, digest = self.record(name, shard * 4 + number - 2)
                content += data
                wanted[split].append((name.encode(), [shard * 4 + number - 2], digest))
            path = self.path("in", "%s-%05d-of-%05d" % (split, shard % 2, count))
            with open(path, "wb") as file:
                file.write(packed[shard](content))
        features = "box=image/object/bbox/xmin,text=image/class/text"
        self.pack(self.path("in"), self.out, "--features", features)
        for split, expected in wanted.items():
            folder = os.path.join(self.out, split)
            stored = payloads(folder)
            found = [(one["key"], one["labels"], one["bytes"]) for one in samples(folder)]
            self.assertEqual([one[:2] for one in found], [one[:2] for one in expected])
            for one, (key, _, digest) in zip(samples(folder), expected):
                self.assertEqual(hashlib.sha256(stored["", key, one["ordinal"]]).hexdigest(), digest)
            done = self.expect(run("cat", folder, expected[0][0].decode(), "--field", "text"), DONE)
            self.assertEqual(done.out.decode(), "Hauskatze \u732b")
        self.expect(run("verify", self.out, "--against", self.path("in"), "--features", features),
                    DONE)


if __name__ == "__main__":
    main()

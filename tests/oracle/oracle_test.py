#!/usr/bin/env python3
# ctest: timeout=900
"""The second decoder against the C++ code: it reads every golden pack, packs made from random
recipes, and what `stripepack pack` makes; and it notices every changed byte.

SPK_SEED (default: 1) is the first seed, SPK_ROUNDS (default: 40) says how many random packs."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "golden")]

import decode  # noqa: E402
import golden  # noqa: E402
import xxh3  # noqa: E402

FIRST_SEED = int(os.environ.get("SPK_SEED", "1"))
ROUNDS = int(os.environ.get("SPK_ROUNDS", "40"))


def dump(path):
    return json.loads(json.dumps(decode.dump(decode.Pack(path), content=True)))


def make(kind, which, directory):
    subprocess.run([golden.program("spk_make_pack"), kind, which, directory], check=True)
    with open(os.path.join(directory, "expected.json"), encoding="utf-8") as file:
        return json.load(file)


class OracleTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="stripepack-oracle-")
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def path(self, name):
        return os.path.join(self.scratch, name)

    def test_hashes_are_those_of_the_document(self):
        with open(os.path.join(golden.SOURCE, "docs", "FORMAT.md"), encoding="utf-8") as file:
            section = file.read().partition("<!-- begin generated: xxh3 -->")[2]
        lines = section.partition("<!-- end")[0].strip().splitlines()[2:]
        self.assertGreater(len(lines), 10)
        for line in lines:
            size, hash64, hash128 = [cell.strip(" `") for cell in line.strip("|").split("|")]
            data = bytes(i & 255 for i in range(int(size)))
            self.assertEqual(decode.hex64(xxh3.xxh3_64(data)), hash64, size)
            self.assertEqual(decode.hex128(*xxh3.xxh3_128(data)), hash128, size)

    def test_escaping_is_reversible(self):
        data = bytes(range(256)) + "é€🐈\\x41".encode() + b"\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf\xf0\x9f"
        self.assertEqual(decode.unescape(decode.escape(data)), data)
        self.assertEqual(
            decode.escape(b"a\\b\n\xff" + "é".encode() + b"\xf0\x9f"), "a\\\\b\\x0a\\xffé\\xf0\\x9f"
        )
        for bad in ("a\\q", "\\", "\\x4", "\\x41", "\\xFF", "a\nb"):
            self.assertRaises(ValueError, decode.unescape, bad)

    def test_golden_packs(self):
        for name in golden.names():
            with self.subTest(name):
                expected = make("golden", name, self.path(name))
                golden.extract(name, self.path(name + "-stored"))
                self.assertEqual(dump(self.path(name + "-stored")), expected)

    def test_random_packs(self):
        for seed in range(FIRST_SEED, FIRST_SEED + ROUNDS):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory(dir=self.scratch) as directory:
                expected = make("random", str(seed), os.path.join(directory, "made"))
                self.assertEqual(dump(os.path.join(directory, "made", "pack")), expected)

    def test_single_samples_are_read_by_the_index(self):
        expected = make("golden", "many", self.path("many"))
        pack = decode.Pack(self.path("many/pack"))
        number = 0
        for shard in expected["shards"]:
            for chunk in shard["chunks"]:
                for sample in chunk["samples"]:
                    key = decode.unescape(sample["key"])
                    self.assertEqual(pack.find(key), number)
                    if number % 10 == 0:
                        content = sample["values"][0]["content"]
                        self.assertEqual(pack.read(number, "image").hex(), content)
                    number += 1
        self.assertEqual(len(pack), number)
        self.assertRaises(decode.NotFound, pack.find, b"nobody")
        self.assertRaises(decode.NotFound, pack.read, 0, "label")

    def test_every_changed_byte_is_noticed(self):
        golden.extract("one-sample", self.path("pack"))
        for name in ("index.spki", "shard-00000.spks", "manifest.json", "rejects.tsv"):
            path = self.path(os.path.join("pack", name))
            with open(path, "rb") as file:
                good = file.read()
            # All of what has a meaning, and some of the padding.
            places = [i for i, byte in enumerate(good) if byte or i % 61 == 0 or i % 4096 < 256]
            for place in places:
                bad = bytearray(good)
                bad[place] ^= 1 << (place % 8)
                self._write(path, bad)
                with self.assertRaises(decode.PackError, msg="%s at %d" % (name, place)):
                    decode.Pack(self.path("pack")).check()
            for size in list(range(0, len(good), 509)) + [len(good) - 1]:
                self._write(path, good[:size])
                with self.assertRaises(decode.PackError, msg="%s cut at %d" % (name, size)):
                    decode.Pack(self.path("pack")).check()
            self._write(path, good)
        decode.Pack(self.path("pack")).check()

    def test_command_line(self):
        make("golden", "tiny", self.path("tiny"))
        script = [sys.executable, "-B", os.path.join(HERE, "decode.py")]
        pack = self.path("tiny/pack")
        run = subprocess.run(script + [pack], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(run.returncode, 0)
        self.assertIn("3 samples", run.stdout)
        run = subprocess.run(script + [pack, "--cat", "dog/1.jpg"], stdout=subprocess.PIPE, check=False)
        self.assertEqual((run.returncode, len(run.stdout)), (0, 60))
        for arguments, code in (([pack, "--cat", "nobody"], 2), ([self.scratch], 5)):
            run = subprocess.run(script + arguments, stderr=subprocess.PIPE, check=False)
            self.assertEqual(run.returncode, code, arguments)

    def test_packs_of_the_program(self):
        program = os.environ.get("STRIPEPACK", "")
        if not os.access(program, os.X_OK):
            self.skipTest("no stripepack program in this build")
        pictures = {}
        for split in ("train", "val"):
            for label in ("cat", "dög"):
                for i in range(30):
                    name = os.path.join(self.scratch, "in", split, label, "%d.png" % i)
                    os.makedirs(os.path.dirname(name), exist_ok=True)
                    pictures[split, "%s/%d.png" % (label, i)] = png(1 + i, 2 + i)
                    self._write(name, pictures[split, "%s/%d.png" % (label, i)])
        command = [program, "pack", self.path("in"), self.path("out"), "--shards", "3"]
        run = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        self.assertEqual(run.returncode, 0, run.stdout)
        for split in ("train", "val"):
            pack = decode.Pack(self.path(os.path.join("out", split)))
            pack.check()
            self.assertEqual(pack.schema.classes, [b"cat", "dög".encode()])
            self.assertEqual(len(pack), 60)
            found = {}
            for number in range(len(pack)):
                sample = pack.sample(number)
                found[split, sample.key.decode()] = pack.read(number, "image")
                label = sample.values[pack.schema.number("label")][0]
                self.assertEqual(pack.schema.classes[label], sample.key.split(b"/")[0])
            self.assertEqual(found, {name: data for name, data in pictures.items() if name[0] == split})

    @staticmethod
    def _write(path, data):
        with open(path, "wb") as file:
            file.write(data)


def png(width, height):
    """A grey picture."""
    import struct
    import zlib

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + bytes((x * y) & 255 for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


if __name__ == "__main__":
    print("seeds %d .. %d; set SPK_SEED, SPK_ROUNDS for others" % (FIRST_SEED, FIRST_SEED + ROUNDS - 1))
    unittest.main()

"""What the golden tests share: where the packs lie, and how they are stored.

A golden pack is tests/golden/v1/NAME.tar.gz, made so that equal packs give equal archives; SHA256SUMS next
to it has the hash of every file of every pack. The hash of SHA256SUMS itself stands in
docs/FORMAT_HISTORY.md, so that golden bytes cannot change without an entry there.
"""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True

SOURCE = os.environ.get(
    "STRIPEPACK_SOURCE", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
)
BUILD = os.environ.get("STRIPEPACK_BUILD", os.path.join(SOURCE, "build", "dev"))
VERSION_DIR = os.path.join(SOURCE, "tests", "golden", "v1")
HISTORY = os.path.join(SOURCE, "docs", "FORMAT_HISTORY.md")


def program(name):
    path = os.path.join(BUILD, "tests", name)
    if not os.path.exists(path):
        sys.exit("%s is not there; set STRIPEPACK_BUILD to the build directory" % path)
    return path


def names():
    """Names of the checked-in packs."""
    return sorted(
        name[: -len(".tar.gz")] for name in os.listdir(VERSION_DIR) if name.endswith(".tar.gz")
    )


def archive_path(name):
    return os.path.join(VERSION_DIR, name + ".tar.gz")


def unpack(name):
    """The files of a pack: name to bytes."""
    with tarfile.open(archive_path(name), "r:gz") as archive:
        return {
            os.path.basename(member.name): archive.extractfile(member).read() for member in archive
        }


def extract(name, directory):
    """Writes a pack's files into a new directory."""
    os.makedirs(directory)
    for file, data in unpack(name).items():
        with open(os.path.join(directory, file), "wb") as out:
            out.write(data)


def store(name, files):
    """Writes the archive of a pack. Owners, times and order are fixed, so the bytes are."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(files):
            member = tarfile.TarInfo("%s/%s" % (name, file))
            member.size = len(files[file])
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(files[file]))
    with open(archive_path(name), "wb") as out:
        with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=9) as packed:
            packed.write(raw.getvalue())


def make(name, directory):
    """Makes a golden pack anew; returns its files."""
    subprocess.run([program("spk_make_pack"), "golden", name, directory], check=True)
    return read_directory(os.path.join(directory, "pack"))


def read_directory(path):
    files = {}
    for file in os.listdir(path):
        with open(os.path.join(path, file), "rb") as data:
            files[file] = data.read()
    return files


def sums(packs):
    """The text of SHA256SUMS for {pack: {file: bytes}}."""
    return "".join(
        "%s  %s/%s\n" % (hashlib.sha256(packs[pack][file]).hexdigest(), pack, file)
        for pack in sorted(packs)
        for file in sorted(packs[pack])
    )


def sums_path():
    return os.path.join(VERSION_DIR, "SHA256SUMS")


def set_hash():
    with open(sums_path(), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()

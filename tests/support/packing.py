"""What the tests of `stripepack pack` share: running the program, comparing packs and trees."""

import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SKIPPED = 77
PROGRAM = os.environ.get("STRIPEPACK", "")
BUILD = os.environ.get("STRIPEPACK_BUILD", "")
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHIM = os.path.join(BUILD, "tests", "libfaulty_io.so")
# The program has a sanitizer, which needs memory, threads and descriptors of its own.
SANITIZED = any(name in os.environ for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"))

# Exit codes of the program.
DONE, NO, USAGE, REJECTS, FAILED, NOT_A_PACK = 0, 1, 2, 3, 4, 5

# What identifies a pack; the other files tell when, where and by whom it was made.
IDENTITY = ("shard-", "index.spki", "manifest.json", "rejects.tsv")


class Done:
    """A run that has ended."""

    def __init__(self, code, out, err, seconds, max_rss_bytes):
        self.code = code
        self.out = out
        self.err = err
        self.seconds = seconds
        self.max_rss_bytes = max_rss_bytes

    @property
    def objects(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def __str__(self):
        return "exit %s\n--- stdout\n%s\n--- stderr\n%s" % (self.code, text(self.out), text(self.err))


def text(data):
    return data.decode("utf-8", "backslashreplace")


def start(*arguments, env=None, cwd=None, limits=(), umask=-1, user=None, group=None,
          stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    """Starts the program. `limits`: (resource, value) pairs set in it. `user`, `group`: ids."""

    def prepare():
        for kind, value in limits:
            resource.setrlimit(kind, (value, value))
        if group is not None:
            os.setgroups([group])
            os.setgid(group)
        if user is not None:
            os.setuid(user)

    needs_prepare = limits or user is not None or group is not None
    return subprocess.Popen(
        [PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        env=dict(os.environ, **(env or {})), cwd=cwd, umask=umask,
        preexec_fn=prepare if needs_prepare else None)


def finish(process, timeout=120):
    """Waits for a started program; kills it after `timeout` seconds."""
    begin = time.monotonic()
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("still running after %s s: %s" % (timeout, process.args)) from None
    return Done(process.returncode, out, err, time.monotonic() - begin, 0)


def run(*arguments, timeout=120, **how):
    """Runs the program to its end and measures it. (Its peak memory is at least what this process
    has: the kernel counts from before the program took its place.)"""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = start(*arguments, stdout=out, stderr=err, **how)
        killer = threading.Timer(timeout, process.kill)
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        done = Done(process.returncode, out.read(), err.read(), seconds, usage.ru_maxrss * 1024)
    if seconds >= timeout:
        raise AssertionError("still running after %s s: %s" % (timeout, process.args))
    return done


def faulty(plan, count_file=None):
    """Environment in which chosen calls of the program fail; see tests/crash/faulty_io.c."""
    environment = {"LD_PRELOAD": SHIM, "FAULTY_IO": plan}
    if count_file is not None:
        environment["FAULTY_IO_COUNT"] = count_file
    if "ASAN_OPTIONS" in os.environ:  # the sanitizer wants to be the first library
        environment["ASAN_OPTIONS"] = os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0"
    return environment


def for_mpi(environment):
    """The same for a program that MPI starts: its libraries do not free all that they take, and
    UCX's hooks run in a thread that the thread sanitizer holds for ended."""
    changed = dict(environment, UCX_MEM_MMAP_HOOK_MODE="none")
    if "ASAN_OPTIONS" in environment:
        changed["ASAN_OPTIONS"] += ":detect_leaks=0"
    return changed


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def identity(pack):
    """{file: sha256} of all that identifies the pack, or each pack of a folder of splits."""
    found = {}
    for folder, _, names in os.walk(pack):
        for name in names:
            if name.startswith(IDENTITY):
                path = os.path.join(folder, name)
                found[os.path.relpath(path, pack)] = sha256(path)
    return found


def names(folder):
    return sorted(os.listdir(folder))


def all_names(pack):
    """Every file below `pack`, relative."""
    return sorted(os.path.relpath(os.path.join(folder, name), pack)
                  for folder, _, files in os.walk(pack) for name in files)


def snapshot(folder, times=True):
    """Everything below `folder` as it is: types, modes, sizes, contents and, with `times`, mtimes."""
    found = {}
    root = os.fsencode(folder)
    for where, folders, files in os.walk(root):
        for name in [b"."] + folders + files:
            path = os.path.join(where, name)
            info = os.lstat(path)
            what = (info.st_mode, info.st_uid, info.st_gid)
            if times:
                what += (info.st_mtime_ns,)
            if stat.S_ISREG(info.st_mode):
                what += (info.st_size, info.st_ino, sha256(path) if info.st_size < 1 << 24 else "")
            elif stat.S_ISLNK(info.st_mode):
                what += (os.readlink(path),)
            found[os.path.relpath(path, root)] = what
    return found


def unescape(value):
    """The bytes of a name in JSON or TSV, where \\ and what is not printable UTF-8 are escaped."""
    return re.sub(rb"\\(?:x([0-9a-f]{2})|\\)",
                  lambda m: bytes.fromhex(m.group(1).decode()) if m.group(1) else b"\\",
                  value.encode())


def samples(pack, sort="ordinal"):
    """Facts of every sample as `ls --json` tells them; "key" becomes bytes."""
    done = run("ls", pack, "--json", "--sort", sort)
    if done.code != DONE:
        raise AssertionError("ls failed: %s" % done)
    found = [one for one in done.objects if one["type"] == "sample"]
    for one in found:
        one["key"] = unescape(one["key"])
    return found


def payloads(pack):
    """The stored bytes of every sample, by number, read straight from the shards at the places that
    the program tells; the program's own checks are not relied on."""
    found = {}
    for one in samples(pack, "id"):
        folder = os.path.join(pack, one["split"]) if "split" in one else pack
        with open(os.path.join(folder, "shard-%05d.spks" % one["shard"]), "rb") as file:
            file.seek(one["offset"])
            found[one.get("split", ""), one["key"], one["ordinal"]] = file.read(one["bytes"])
    return found


def rejects(pack):
    """[(key, reason)] of rejects.tsv, in its order."""
    with open(os.path.join(pack, "rejects.tsv"), encoding="utf-8", newline="\n") as file:
        lines = file.read().splitlines()
    if lines[0] != "ordinal\tkey\treason":
        raise AssertionError("unknown head of rejects.tsv: " + lines[0])
    rows = [line.split("\t") for line in lines[1:]]
    return [(unescape(key), unescape(reason).decode()) for _, key, reason in rows]


class PackTest(unittest.TestCase):
    """A test with a folder of its own, self.dir."""

    @classmethod
    def setUpClass(cls):
        if not os.access(PROGRAM, os.X_OK):
            print("the program is not built: STRIPEPACK=%s" % PROGRAM)
            sys.exit(SKIPPED)

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="spk-")
        self.addCleanup(remove_tree, self.dir)
        self.out = os.path.join(self.dir, "out")
        self.partial = self.out + ".partial"

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def expect(self, done, code, *words):
        """The exit code, and words of what it said on either stream."""
        self.assertEqual(done.code, code, str(done))
        said = text(done.out + done.err)
        for word in words:
            self.assertIn(word, said)
        return done

    def pack(self, *arguments, code=DONE, words=(), **how):
        done = run("pack", *arguments, **how)
        return self.expect(done, code, *words)

    def report(self, done):
        """The object that `pack --json` ends with."""
        last = done.objects[-1]
        self.assertEqual(last["type"], "pack")
        return last

    def count_calls(self, plan, *arguments):
        """How many calls that match `plan` the program makes with these arguments."""
        with tempfile.TemporaryDirectory(prefix="spk-count-") as folder:
            count_file = os.path.join(folder, "count")
            self.expect(run(*arguments, env=faulty(plan, count_file)), DONE)
            with open(count_file, encoding="ascii") as file:
                return int(file.read())

    def assert_verifies(self, pack, *more):
        self.expect(run("verify", pack, *more), DONE)

    def assert_same_pack(self, pack, other):
        """Byte for byte, and neither has a file that the other lacks."""
        mine = identity(pack)
        self.assertIn("manifest.json", {os.path.basename(name) for name in mine})
        self.assertEqual(mine, identity(other) if isinstance(other, str) else other)

    def assert_no_leftovers(self, *expected):
        """The test's folder holds `expected` and nothing else; packs hold nothing temporary."""
        self.assertEqual(names(self.dir), sorted(expected))
        for name in expected:
            for file in all_names(self.path(name)) if os.path.isdir(self.path(name)) else ():
                for mark in (".tmp", "owner", "replan", ".spkp"):
                    self.assertNotIn(mark, file.split("/", 1)[-1] if name == "src" else file,
                                     "left behind in " + name)


def remove_tree(folder):
    for where, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(where, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder)


def main():
    unittest.main(verbosity=1)

#!/usr/bin/env python3
"""Ranks on nodes of their own that walk one LMDB of CIFAR Datums, against the loader, shuffled, and whole chunks.

  paper_bench.py --work DIR [--pictures DIR] [--world 8,16,32] [--samples N] [--rounds N] [--rate MIB] [--engine NAME]
                 [--json FILE] [--programs BUILD]

Needs root, loop devices, the block I/O controller of cgroups, and a disk below WORK that is faster than --rate.

W ranks, each on an emulated node, read one epoch of N pictures. A node is a read-only loop mount of its own, so with
a page cache of its own: direct I/O below, 128 KiB read-ahead. All of them share the file system image, with the LMDB
and the pack made of it, and RATE MiB/s of its disk, by a cgroup. That this limit holds over all nodes together is
measured first, by dd. The three sides:
  LMDB walk   each rank goes over all records by a cursor and uses each W-th, as Caffe's ranks do
  loader      the library's loader, shuffled order, default options
  chunks      a plain program: each rank reads a W-th of the shards by pread, in whole chunks; the limit
Sides take turns. Before each run the nodes are mounted anew, so that nothing of them is cached. Timed is from when all
ranks have started, so with all opening of files, until the last has added up its bytes.

Pixels are those of PICTURES (folders or a tar) at 32 x 32, or drawn ones. The image of up to 1 GB is kept in WORK. Each
walk fills the page caches of all nodes: W times the LMDB's size must fit in memory. Mounts are in a mount namespace of
this program's own and loop devices go with their mounts, so that none stay behind, however it ends (of SIGKILL an empty
cgroup does). Where it cannot run it says why and exits with 77.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

CANNOT = 77
MIB = 1 << 20
READ_AHEAD_SECTORS = 256  # 128 KiB
CHECK_BYTES = 1 << 30  # that dd reads over all nodes, where the shards are large enough
CHECK_TOLERANCE = 1.1
SIDES = {"lmdb": "LMDB walk", "loader": "loader", "chunks": "chunks"}
ASKED = {32: 30.0}  # the loader's speed as a multiple of the walk's
CLONE_NEWNS = 0x00020000


class Cannot(Exception):
    """This machine lacks something."""


def tool(*command):
    """What a program of the system prints."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Cannot(f"there is no program {command[0]}") from error
    if done.returncode != 0:
        raise Cannot(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout.strip()


def own_mounts():
    """What is mounted from here on is seen by this program only and goes with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise Cannot(f"no mount namespace of its own: {os.strerror(ctypes.get_errno())}")
    tool("mount", "--make-rprivate", "/")


def disk_of(path):
    """MAJOR:MINOR of the whole disk that `path` is on."""
    device = os.stat(path).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    place = pathlib.Path("/sys/dev/block") / name
    if not place.exists():
        raise Cannot(f"{path} is not on a disk whose speed could be limited: choose another --work")
    if (place / "partition").exists():
        name = (place.resolve().parent / "dev").read_text(encoding="ascii").strip()
    return name


class Throttle:
    """A cgroup whose processes read `rate` MiB/s of `disk` together: of version 1 or 2, whichever has it."""

    def __init__(self, disk, rate):
        name = f"stripepack-bench-{os.getpid()}"
        old = pathlib.Path("/sys/fs/cgroup/blkio")
        if (old / "blkio.throttle.read_bps_device").exists():
            self.path = old / name
            self.setting = (self.path / "blkio.throttle.read_bps_device", f"{disk} {rate * MIB}")
        else:
            root = next((place for place in map(pathlib.Path, ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"))
                         if (place / "cgroup.controllers").exists()), None)
            if root is None or "io" not in (root / "cgroup.controllers").read_text(encoding="ascii").split():
                raise Cannot("no cgroup controls block I/O here (blkio of version 1, or io of version 2)")
            with contextlib.suppress(OSError):  # it may be on already
                (root / "cgroup.subtree_control").write_text("+io", encoding="ascii")
            self.path = root / name
            self.setting = (self.path / "io.max", f"{disk} rbps={rate * MIB}")

    def __enter__(self):
        try:
            self.path.mkdir()
        except OSError as error:
            raise Cannot(f"cannot make a cgroup: {error}") from error
        try:
            self.setting[0].write_text(self.setting[1], encoding="ascii")
        except OSError as error:
            self.__exit__()
            raise Cannot(f"the kernel does not limit reads of this disk ({error})") from error
        return self

    def enter(self):
        """Called in a process that shall be limited, before it does anything."""
        (self.path / "cgroup.procs").write_text("0", encoding="ascii")

    def __exit__(self, *_):
        for _try in range(50):  # processes that were ended leave it when their reads are done
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)
        print(f"paper_bench: could not remove {self.path}", file=sys.stderr)


class Nodes:
    """So many nodes: DIR/0, DIR/1 ..., each a mount of `image` with no page in memory."""

    def __init__(self, image, directory, count):
        self.image, self.directory, self.count = image, directory, count
        self.mounted, self.loops = [], []

    def __enter__(self):
        try:
            for number in range(self.count):
                self.add(self.directory / str(number))
        except BaseException:
            self.__exit__()
            raise
        return self

    def add(self, place):
        place.mkdir(parents=True, exist_ok=True)
        loop = tool("losetup", "--find", "--show", "--read-only", "--direct-io=on", self.image)
        try:
            if tool("losetup", "--noheadings", "--output", "DIO", loop) != "1":
                raise Cannot(f"{loop} does no direct I/O to {self.image}: choose another --work")
            tool("blockdev", "--setra", READ_AHEAD_SECTORS, loop)
            tool("mount", "-t", "ext4", "-o", "ro", loop, place)
            self.mounted.append(place)
            self.loops.append(loop)
        finally:
            tool("losetup", "--detach", loop)  # when it is unmounted, or at once

    def read(self):
        """Reads and bytes so far of all nodes."""
        fields = [pathlib.Path(f"/sys/block/{pathlib.Path(loop).name}/stat").read_text(encoding="ascii").split()
                  for loop in self.loops]
        return sum(int(field[0]) for field in fields), 512 * sum(int(field[2]) for field in fields)

    def __exit__(self, *_):
        for place in reversed(self.mounted):
            for _try in range(50):
                if subprocess.run(["umount", place], check=False, stderr=subprocess.DEVNULL).returncode == 0:
                    break
                time.sleep(0.1)
            else:
                subprocess.run(["umount", "--lazy", place], check=False)
            with contextlib.suppress(OSError):
                place.rmdir()
        self.mounted, self.loops = [], []


def make_image(args):
    """An image of ext4 with lmdb/ and pack/, and the size of the pack's chunks."""
    name = f"{args.pictures.stem if args.pictures else 'drawn'}-{args.samples}"
    image, facts = args.work / f"{name}.ext4", args.work / f"{name}.json"
    if image.exists() and facts.exists():
        return image, json.loads(facts.read_text(encoding="ascii"))
    facts.unlink(missing_ok=True)
    tree = args.work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    lmdb, pack = tree / "lmdb", tree / "pack"
    lmdb.mkdir(parents=True)
    quiet = ["--progress", "never"]
    command = [args.programs / "tests/bench/paper_rank", "make", "--lmdb", lmdb, "--samples", str(args.samples)]
    program = args.programs / "stripepack"
    if args.pictures:
        small, cifar, pixels = tree / "small.pack", tree / "small.cifar", tree / "pixels"
        subprocess.run([program, "pack", args.pictures, small, "--resize", "32x32", "--color", "rgb", "--encode", "raw",
                        "--splits", "none", *quiet], check=True)
        subprocess.run([program, "export", small, cifar, "--to", "cifar", *quiet], check=True)
        pixels.write_bytes(b"".join(path.read_bytes() for path in sorted(cifar.glob("*.bin"))))
        command += ["--cifar", pixels]
    subprocess.run(command, check=True)
    (lmdb / "lock.mdb").unlink(missing_ok=True)
    for path in tree.iterdir():  # the image gets the LMDB and the pack
        if path.is_file():
            path.unlink()
        elif path != lmdb:
            shutil.rmtree(path)
    subprocess.run([program, "pack", lmdb, pack, *quiet], check=True)
    info = json.loads(subprocess.run([program, "info", pack, "--json"], check=True, capture_output=True).stdout)
    sizes = {path: sum(file.stat().st_size for file in path.iterdir()) for path in (lmdb, pack)}
    with open(image, "wb") as file:
        file.truncate(int(sum(sizes.values()) * 1.03) + 32 * MIB)
    tool("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^has_journal", "-m", "0", "-E", "lazy_itable_init=0", "-d", tree,
         image)
    shutil.rmtree(tree)
    made = {"chunk_bytes": info["chunk_bytes"], "lmdb_bytes": sizes[lmdb], "pack_bytes": sizes[pack]}
    facts.write_text(json.dumps(made), encoding="ascii")
    os.sync()
    return image, made


def forget(args, page_bytes):
    """Drops what is cached. Memory for so many bytes of pages is touched and freed, so that it is there at once."""
    touch = args.programs / "tests/bench/touch_memory"
    subprocess.run([touch, str(-(-page_bytes // (1 << 30)))], check=True, stdout=subprocess.DEVNULL)
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


def check_rate(args, image, world, throttle):
    """MiB/s that dd on all nodes at once reads, without the limit and with it."""
    speeds = []
    for enter in (None, throttle.enter):
        with Nodes(image, args.work / "nodes", world) as nodes:
            count = max(CHECK_BYTES // world // MIB, 1)
            before = nodes.read()[1]
            start = time.monotonic()
            readers = [subprocess.Popen(["dd", f"if={node}/lmdb/data.mdb", "of=/dev/null", "bs=1M", f"count={count}"],
                                        stderr=subprocess.DEVNULL, preexec_fn=enter) for node in nodes.mounted]
            try:
                if any([reader.wait() for reader in readers]):
                    raise Cannot("dd failed")
            finally:
                for reader in readers:
                    reader.kill()
                    reader.wait()
            seconds = time.monotonic() - start
            speeds.append((nodes.read()[1] - before) / MIB / seconds)
    return speeds


def run_side(args, image, facts, world, side, throttle):
    forget(args, world * facts["lmdb_bytes"])
    with Nodes(image, args.work / "nodes", world) as nodes:
        before = nodes.read()
        done = subprocess.run(
            [args.programs / "tests/bench/paper_rank", "run", "--side", side, "--nodes", nodes.directory, "--world",
             str(world), "--samples", str(args.samples), "--chunk-bytes", str(facts["chunk_bytes"]), "--engine",
             args.engine], check=True, stdout=subprocess.PIPE, preexec_fn=throttle.enter)
        after = nodes.read()
    result = json.loads(done.stdout)
    result["node_reads"] = after[0] - before[0]
    result["node_bytes"] = after[1] - before[1]
    return result


def summary(world, runs):
    """Medians of each side, and its speed against the walk's: the median of the rounds' ratios, lowest, highest."""
    sides = {}
    for side in SIDES:
        mine = [result[side] for result in runs]
        seconds = [result["seconds"] for result in mine]
        ratios = [result["lmdb"]["seconds"] / result[side]["seconds"] for result in runs]
        sides[side] = {"seconds": statistics.median(seconds), "seconds_min": min(seconds), "seconds_max": max(seconds),
                       "ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios),
                       **{key: statistics.median(result[key] for result in mine) for key in (
                           "node_reads", "node_bytes", "opened_median_seconds", "opened_last_seconds",
                           "first_median_seconds", "first_last_seconds")}, "how": mine[0]["how"]}
    return {"world": world, "sides": sides, "runs": runs}


def show(result):
    for side, name in SIDES.items():
        got = result["sides"][side]
        mib = got["node_bytes"] / MIB
        print(f"  {name:10} {got['seconds']:7.2f} s ({got['seconds_min']:.2f} to {got['seconds_max']:.2f})  "
              f"read {mib:7.0f} MiB at {mib / got['seconds']:4.0f} MiB/s in pieces of "
              f"{got['node_bytes'] / max(got['node_reads'], 1) / 1024:4.0f} KiB; ranks open after "
              f"{got['opened_median_seconds']:.3f} s, the last {got['opened_last_seconds']:.3f} s")
    for side in ("loader", "chunks"):
        got = result["sides"][side]
        asked = ASKED.get(result["world"]) if side == "loader" else None
        verdict = "" if asked is None else f", asked {asked:.0f}: {'reached' if got['ratio'] >= asked else 'MISSED'}"
        print(f"    {SIDES[side]} against the walk: {got['ratio']:.1f} x ({got['ratio_min']:.1f} to "
              f"{got['ratio_max']:.1f}){verdict}" + (f" [{got['how']}]" if got["how"] else ""), flush=True)


def measure(args, image, facts, world):
    with Throttle(disk_of(image), args.rate) as throttle:
        free, limited = check_rate(args, image, world, throttle)
        print(f"{world} nodes: dd on all at once reads {free:.0f} MiB/s without the limit, {limited:.0f} MiB/s with it "
              f"(set: {args.rate} MiB/s in all)", flush=True)
        if limited > args.rate * CHECK_TOLERANCE:
            raise Cannot("the limit does not hold over loop devices here")
        if free < args.rate * CHECK_TOLERANCE:
            print("  the disk itself is hardly faster than the limit: --rate should be lower", flush=True)
        runs = []
        for number in range(args.rounds):
            order = list(SIDES) if number % 2 == 0 else list(reversed(SIDES))
            results = {side: run_side(args, image, facts, world, side, throttle) for side in order}
            if results["lmdb"]["sum"] != results["loader"]["sum"]:
                sys.exit("paper_bench: the sums of the walk and the loader differ")
            if not results["lmdb"]["samples"] == results["loader"]["samples"] == args.samples:
                sys.exit("paper_bench: not every sample was used once")
            runs.append(results)
    result = summary(world, runs)
    result["dd_mib_per_second"] = {"free": free, "limited": limited}
    show(result)
    return result


def check_machine(args):
    if os.geteuid() != 0:
        raise Cannot("loop mounts and cgroups need root")
    if not os.path.exists("/dev/loop-control"):
        raise Cannot("there are no loop devices (/dev/loop-control)")
    for program in ("stripepack", "tests/bench/paper_rank", "tests/bench/touch_memory"):
        if not (args.programs / program).exists():
            raise Cannot(f"no {program} in {args.programs}: build with -DSPK_BUILD_BENCH=ON and liblmdb-dev")


def check_memory(worlds, facts):
    """The nodes' page caches must fit, or the walks would read some pages twice."""
    with open("/proc/meminfo", encoding="ascii") as file:
        available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    need = max(worlds) * facts["lmdb_bytes"] * 11 // 10
    if need > available:
        raise Cannot(f"{max(worlds)} nodes want {need // MIB} MiB of page cache, there are {available // MIB}: "
                     "fewer --samples, or a smaller --world")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--world", default="8,16,32")
    parser.add_argument("--samples", type=int, default=98304)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=400)
    parser.add_argument("--engine", choices=("auto", "pool", "uring", "mmap"), default="auto")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    args.world = [int(world) for world in args.world.split(",")]
    args.work = args.work.resolve()
    args.programs = args.programs.resolve()
    return args


def main():
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        check_machine(args)
        args.work.mkdir(parents=True, exist_ok=True)
        disk_of(args.work)
        image, facts = make_image(args)
        check_memory(args.world, facts)
        print(f"{args.samples} pictures of 3072 bytes; LMDB {facts['lmdb_bytes'] / 1e6:.0f} MB, pack "
              f"{facts['pack_bytes'] / 1e6:.0f} MB in chunks of {facts['chunk_bytes'] // 1024} KiB; medians of "
              f"{args.rounds}", flush=True)
        own_mounts()
        results = [measure(args, image, facts, world) for world in args.world]
    except Cannot as error:
        print(f"paper_bench: {error}", file=sys.stderr)
        sys.exit(CANNOT)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    if args.json:
        args.json.write_text(json.dumps({"samples": args.samples, "rate_mib_per_second": args.rate, **facts,
                                         "worlds": results}, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()

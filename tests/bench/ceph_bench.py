#!/usr/bin/env python3
"""Reading and writing on a CephFS that is brought up for it, sides in turn, medians of N rounds.

  ceph_bench.py --pictures DIR --work DIR [--copies N] [--rounds N] [--ranks 1,2,4,8]
                [--parts read,write] [--programs BUILD] [--json FILE]

The pictures are copied N times into WORK. read: R processes together read every sample once in random
order and add up all bytes: of a pack by the loader (default options, checksums on; "direct": with
direct="on"), of one file a sample, of an LMDB (get by key), of a SquashFS image (mounted by a loop
device, not compressed), all on the CephFS. Before each run the client is unmounted, memory is touched (touch_memory), the page cache
dropped, and the client mounted anew; OSDs and metadata server keep what they have in memory. All sides
must read the same samples, bytes and sum.
write: `mpirun -n R stripepack pack` against `cp`, from the warm local folder; each run ends when the
client is unmounted, so that all it held is with the OSDs.

Needs root and the packages of tests/pfs (cmake/setup.sh pfs), squashfs-tools, an mpirun whose plugin is
built, and the built benchmarks. Exit codes: 77 where something is missing, which is told; 1 failed; 130,
143 stopped. The lab is taken down whatever happens; the copied pictures stay in WORK.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "pfs")]

import ceph_lab  # noqa: E402
from pack_bench import drop_caches, replicate, warm  # noqa: E402
from rank_runs import Ranks  # noqa: E402

SKIPPED = 77
SIDES = ("pack", "direct", "files", "lmdb", "squashfs")
MPIRUN = {
    "mpich": ["mpirun.mpich"],
    "openmpi": ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"],
}
TICKS = os.sysconf("SC_CLK_TCK")


def find_mpirun(programs):
    """The command of the first mpirun that a plugin was built for; None where there is none."""
    for name, command in MPIRUN.items():
        if shutil.which(command[0]) and (programs / "plugins" / f"stripepack-{name}.so").exists():
            return command
    return None


def why_not(args):
    """What is missing; empty where nothing is."""
    missing = ceph_lab.why_not()
    if missing:
        return missing + " (cmake/setup.sh pfs installs its packages)"
    if not os.access(args.programs / "stripepack", os.X_OK):
        return f"no program in {args.programs}: build it, or name the folder by --programs"
    if "read" in args.parts:
        if not os.access(args.programs / "tests/bench/rank_reads", os.X_OK):
            return f"no tests/bench/rank_reads in {args.programs}: configure with -DSPK_BUILD_BENCH=ON"
        if shutil.which("mksquashfs") is None:
            return "no mksquashfs: `apt install squashfs-tools`"
        if image_mounter("", "") is None:
            return "the kernel has no squashfs, and there is no squashfuse: `apt install squashfuse`"
    if "write" in args.parts and find_mpirun(args.programs) is None:
        return "no mpirun with a plugin that was built for it: `apt install mpich libmpich-dev`"
    return ""


def image_mounter(image, place):
    """The command; None where neither the kernel nor a program can."""
    if shutil.which("modprobe"):
        subprocess.run(["modprobe", "squashfs"], capture_output=True, check=False)
    if "\tsquashfs\n" in pathlib.Path("/proc/filesystems").read_text():
        return ["mount", "-t", "squashfs", "-o", "loop,ro", image, place]
    return ["squashfuse", image, place] if shutil.which("squashfuse") else None


class BenchLab(ceph_lab.CephLab):
    """With a SquashFS image that lies in it, and figures of what its processes did."""

    def start(self):
        super().start()
        self.image_place = str(self.root / "image")
        os.mkdir(self.image_place)

    def stop(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # to its end
        self.drop_image()
        super().stop()

    def mount_image(self, image):
        self.run(*image_mounter(image, self.image_place))

    def drop_image(self):
        place = str(self.root / "image")
        if os.path.ismount(place) and subprocess.run(["umount", place], check=False).returncode != 0:
            subprocess.run(["umount", "-l", place], check=False)

    def make_cold(self, touch, before_mounting=drop_caches):
        self.drop_image()
        self.unmount_client()
        subprocess.run(touch, check=True, stdout=subprocess.DEVNULL)
        before_mounting()
        self.mount_client()

    def daemons(self):
        osds = [f"osd.{number}" for number in range(ceph_lab.OSDS)]
        return {"client": ["client"], "osds": osds, "mds": ["mds.a"]}

    def used(self):
        """CPU seconds of daemons, and bytes that OSDs read from their disk, so far."""
        found = {}
        for group, names in self.daemons().items():
            found[group] = 0
            for name in names:
                # Behind the program's name, which may hold blanks.
                stat = pathlib.Path(f"/proc/{self.pid(name)}/stat").read_text().rsplit(")", 1)[1].split()
                found[group] += (int(stat[11]) + int(stat[12])) / TICKS
        found["osd_disk_bytes"] = 0
        for name in self.daemons()["osds"]:
            for line in pathlib.Path(f"/proc/{self.pid(name)}/io").read_text().splitlines():
                if line.startswith("read_bytes:"):
                    found["osd_disk_bytes"] += int(line.split()[1])
        return found

    def wait_for_purge(self):
        """Until what was deleted is gone from the OSDs, too. Clients may hold it back."""
        def ready():
            counters = self.counters("mds.a")
            return (counters["mds_cache"]["num_strays"] == 0 and
                    counters["purge_queue"]["pq_executing"] == 0)
        self.wait_for("the end of purging", ready)


class Reading:
    def __init__(self, args, lab, source, names):
        self.args, self.lab, self.names = args, lab, names
        self.rank_reads = args.programs / "tests/bench/rank_reads"
        self.list = args.temp / "names"
        self.places = {name: os.path.join(lab.mount, name) for name in SIDES}
        self.places["direct"] = self.places["pack"]
        self.write_list(0)
        self.make(source)
        self.expected = self.ranks([[self.rank_reads, "files", source, self.list, "0", "1"]]).run()[2]

    def ranks(self, commands):
        return Ranks(commands, self.args.temp / "errors")

    def make(self, source):
        lmdb, image = self.args.temp / "lmdb", self.args.temp / "image"
        lmdb.mkdir()
        for command in (
                [self.args.programs / "stripepack", "pack", source, self.places["pack"], "--splits", "none",
                 "--progress", "never"],
                ["cp", "-r", source, self.places["files"]],
                [self.rank_reads, "make-lmdb", lmdb, self.list, source],
                ["cp", "-r", lmdb, self.places["lmdb"]],
                # Equal pictures stay apart, and nothing is to be decompressed.
                ["mksquashfs", source, image, "-no-duplicates", "-noD", "-noF", "-noI", "-no-progress", "-quiet"],
                ["cp", image, self.places["squashfs"]]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(lmdb)
        image.unlink()

    def write_list(self, seed):
        names = list(self.names)
        random.Random(seed).shuffle(names)
        self.list.write_text("\n".join(names) + "\n", encoding="utf-8", errors="surrogateescape")

    def commands(self, side, round_number, ranks):
        place = self.lab.image_place if side == "squashfs" else self.places[side]
        kind = "files" if side == "squashfs" else side
        what = str(round_number) if side in ("pack", "direct") else self.list
        return [[self.rank_reads, kind, place, what, str(rank), str(ranks)] for rank in range(ranks)]

    def measure(self, side, round_number, ranks):
        self.lab.make_cold(self.args.touch)
        if side == "squashfs":
            self.lab.mount_image(self.places[side])
        processes = self.ranks(self.commands(side, round_number, ranks))
        before = self.lab.used()
        seconds, cpu_seconds, found = processes.run()
        after = self.lab.used()
        if found != self.expected:
            raise RuntimeError(f"{side} read {found} (samples, bytes, sum) instead of {self.expected}")
        counters = self.lab.counters("client")
        result = {name: after[name] - before[name] for name in after}
        result.update(seconds=seconds, ranks=cpu_seconds, osd_reads=counters["objecter"]["op_r"],
                      mds_requests=counters["client"]["reply"]["avgcount"])
        return result

    def run(self):
        results = []
        for ranks in self.args.ranks:
            runs = {side: [] for side in self.args.sides}
            for round_number in range(self.args.rounds):
                self.write_list(round_number)
                for side in turned(self.args.sides, round_number):
                    runs[side].append(self.measure(side, round_number, ranks))
                    say(f"read, {ranks} ranks, round {round_number}", side, runs[side][-1]["seconds"])
            for side in self.args.sides:
                results.append({"side": side, "ranks_count": ranks, **summary(runs[side], self.expected[1])})
        return results


class Writing:
    def __init__(self, args, lab, source, total):
        self.args, self.lab, self.source, self.total = args, lab, source, total
        self.one_file = args.temp / "one-file"
        with open(self.one_file, "wb") as out:
            for path in sorted(source.rglob("*")):
                if path.is_file():
                    out.write(path.read_bytes())
        self.out = os.path.join(lab.mount, "out")
        pack = [args.programs / "stripepack", "pack", source, self.out, "--splits", "none", "--progress", "never"]
        mpirun = find_mpirun(args.programs)
        self.commands = {
            "cp -r": ["cp", "-r", source, self.out],
            "cp, one file": ["cp", self.one_file, self.out],
            "pack": pack,
            "mpirun -n 1 pack": [*mpirun, "-n", "1", *pack],
            "mpirun -n 2 pack": [*mpirun, "-n", "2", *pack],
        }

    def measure(self, command):
        """Seconds until the program's end, and until the client's, which writes out what it holds."""
        if os.path.isdir(self.out):
            shutil.rmtree(self.out)
        elif os.path.exists(self.out):
            os.unlink(self.out)
        self.lab.make_cold(self.args.touch, self.lab.wait_for_purge)
        warm(self.source)
        self.one_file.read_bytes()
        before = os.times()
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        program_seconds = time.monotonic() - start
        self.lab.unmount_client()
        seconds = time.monotonic() - start
        after = os.times()
        self.lab.mount_client()
        return {"seconds": seconds, "program_seconds": program_seconds,
                "cpu": (after.children_user - before.children_user +
                        after.children_system - before.children_system)}

    def run(self):
        runs = {side: [] for side in self.commands}
        for round_number in range(self.args.rounds):
            for side in turned(list(self.commands), round_number):
                runs[side].append(self.measure(self.commands[side]))
                say(f"write, round {round_number}", side, runs[side][-1]["seconds"])
        return [{"side": side, **summary(found, self.total)} for side, found in runs.items()]


def turned(sides, by):
    return [*sides[by % len(sides):], *sides[:by % len(sides)]]


def say(what, side, seconds):
    print(f"{what}: {side} {seconds:.2f} s", file=sys.stderr, flush=True)


def summary(runs, total):
    found = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    found["all_seconds"] = [run["seconds"] for run in runs]
    found["mb_per_second"] = total / 1e6 / found["seconds"]
    return found


def span(found):
    return f"{found['seconds']:7.2f} s ({min(found['all_seconds']):.2f} to {max(found['all_seconds']):.2f})"


def print_reading(results, total):
    print("                                                 x the     CPU seconds                    OSDs':       requests\n"
          "ranks side      time (least to most)        MB/s  pack  ranks client   OSDs    MDS    reads  x bytes  to the MDS")
    for found in results:
        pack = next(one for one in results if one["side"] == "pack" and one["ranks_count"] == found["ranks_count"])
        print(f"{found['ranks_count']:5} {found['side']:9} {span(found):26} {found['mb_per_second']:5.0f}  "
              f"{found['seconds'] / pack['seconds']:4.2f} {found['ranks']:6.2f} {found['client']:6.2f} {found['osds']:6.2f} "
              f"{found['mds']:6.2f} {found['osd_reads']:8.0f} {found['osd_disk_bytes'] / total:8.2f} {found['mds_requests']:11.0f}")


def print_writing(results):
    print("side              time (least to most)        MB/s  the program alone, its CPU seconds")
    for found in results:
        print(f"{found['side']:17} {span(found):26} {found['mb_per_second']:5.0f}  {found['program_seconds']:17.2f} {found['cpu']:17.2f}")


def measure_all(args):
    source = args.work / f"pictures-{args.pictures.name}-{args.copies}"
    replicate(args.pictures, source, args.copies)
    files = [path for path in source.rglob("*") if path.is_file()]
    total = sum(path.stat().st_size for path in files)
    osd_bytes = max(4 << 30, 4 * total)  # sparse files: reading takes four copies on three OSDs
    with BenchLab(osd_bytes) as lab:
        store = " ".join(lab.run("findmnt", "-no", "SOURCE,FSTYPE", "-T", str(lab.root)).split())
        result = {"files": len(files), "bytes": total, "rounds": args.rounds, "cores": os.cpu_count(),
                  "osds": ceph_lab.OSDS, "store": store, "load_before": os.getloadavg()[0]}
        print(f"{len(files)} files, {total / 1e9:.2f} GB; {os.cpu_count()} cores for the ranks, client, MDS and {ceph_lab.OSDS} "
              f"OSDs, whose store is on {store}; medians of {args.rounds}", flush=True)
        if "read" in args.parts:
            reading = Reading(args, lab, source, [str(path.relative_to(source)) for path in files])
            result["reading"] = reading.run()
            print_reading(result["reading"], total)
            for place in set(reading.places.values()):
                subprocess.run(["rm", "-r", place], check=True)
        if "write" in args.parts:
            result["writing"] = Writing(args, lab, source, total).run()
            print_writing(result["writing"])
        result["load_after"] = os.getloadavg()[0]
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")


def numbers(text):
    return [int(word) for word in text.split(",")]


def words(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--copies", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=numbers, default=[1, 2, 4, 8])
    parser.add_argument("--parts", type=words, default=["read", "write"])
    parser.add_argument("--sides", type=words, default=list(SIDES), help="of reading; with pack always")
    parser.add_argument("--touch-gib", type=int, default=2)
    parser.add_argument("--programs", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("STRIPEPACK_BUILD", "build/release")))
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    args.programs = args.programs.resolve()
    args.work = args.work.resolve()
    unknown = set(args.sides) - set(SIDES) | set(args.parts) - {"read", "write"}
    if unknown or "pack" not in args.sides:
        parser.error(f"--sides are pack and others of {','.join(SIDES)}; --parts of read,write")
    args.touch = [args.programs / "tests/bench/touch_memory", str(args.touch_gib)]
    missing = why_not(args)
    if missing:
        print("skipped: " + missing)
        return SKIPPED
    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: the lab is taken down
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    args.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ceph-bench-", dir=args.work) as temp:
        args.temp = pathlib.Path(temp)
        try:
            measure_all(args)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            print(f"ceph_bench: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

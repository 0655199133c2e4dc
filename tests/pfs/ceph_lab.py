"""A real CephFS on this machine, for tests that need true stripe layouts: one monitor, three OSDs on
files, one metadata server, ceph-fuse. Everything lies in one folder and listens on 127.0.0.1 only.

    with CephLab() as lab:
        lab.mount            # the mount point
        lab.objects(path)    # {object number: OSD}, from the cluster, not from us

Needs root, /dev/fuse and Debian's packages ceph-mon, ceph-osd, ceph-mds, ceph-mgr, ceph-fuse,
ceph-common, ceph-base and attr; why_not() tells what is missing.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

from lab import Lab

PROGRAMS = ("ceph-mon", "ceph-osd", "ceph-mds", "ceph-mgr", "ceph-fuse", "ceph", "rados",
            "osdmaptool", "getfattr")
OSDS = 3
LIMIT_SECONDS = 120


def why_not():
    """Why no lab can be had here; empty where it can."""
    if os.geteuid() != 0:
        return "the CephFS lab needs root"
    if not os.path.exists("/dev/fuse"):
        return "the CephFS lab needs /dev/fuse"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return "the CephFS lab lacks " + ", ".join(missing) if missing else ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class CephLab(Lab):
    def __init__(self, osd_bytes=4 << 30):
        self.osd_bytes = osd_bytes
        # Paths of unix sockets are short.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="spk-ceph-", dir="/tmp"))
        self.mount = str(self.root / "mnt")
        self.conf = str(self.root / "ceph.conf")
        for name in ("run", "log", "mnt", "data/mon.a", "data/mgr.x", "data/mds.a"):
            (self.root / name).mkdir(parents=True)

    def write_conf(self):
        port = free_port()
        self.address = "v2:127.0.0.1:%d/0" % port
        self.fsid = str(uuid.uuid4())
        sections = {
            "global": {
                "fsid": self.fsid, "mon_host": self.address,
                "auth_cluster_required": "none", "auth_service_required": "none",
                "auth_client_required": "none",
                "public_addr": "127.0.0.1", "public_network": "127.0.0.0/8",
                "ms_bind_ipv6": "false", "ms_bind_msgr1": "false",
                "run_dir": self.root / "run", "admin_socket": self.root / "run/$name.asok",
                "pid_file": self.root / "run/$name.pid", "log_file": self.root / "log/$name.log",
                "crash_dir": self.root / "log", "keyring": self.root / "data/keyring",
                "mon_cluster_log_file": self.root / "log/cluster.log", "log_to_stderr": "false",
                # One copy of everything, on whichever OSD: there is one host.
                "osd_pool_default_size": 1, "osd_pool_default_min_size": 1,
                "osd_pool_default_pg_autoscale_mode": "off", "osd_crush_chooseleaf_type": 0,
                "mon_allow_pool_size_one": "true", "mon_max_pg_per_osd": 1000,
                "mon_warn_on_pool_no_redundancy": "false",
                "mon_osd_full_ratio": ".97", "mon_osd_backfillfull_ratio": ".96",
                "mon_osd_nearfull_ratio": ".95",
                "mon_data_avail_warn": 2, "mon_data_avail_crit": 1,
                # Quick to start, small in memory.
                "paxos_propose_interval": "0.05", "paxos_min_wait": "0.02",
                "mds_beacon_interval": 1, "mds_tick_interval": 1, "client_oc_size": 64 << 20,
            },
            "mon": {"mon_data": self.root / "data/mon.$id"},
            "mgr": {"mgr_data": self.root / "data/mgr.$id", "mgr_initial_modules": ""},
            "mds": {"mds_data": self.root / "data/mds.$id"},
            "osd": {
                "osd_data": self.root / "data/osd.$id", "osd_objectstore": "bluestore",
                "bluestore_block_size": self.osd_bytes, "bluestore_cache_autotune": "false",
                "bluestore_cache_size": 64 << 20, "osd_class_update_on_start": "false",
                "osd_op_num_shards": 2, "osd_op_num_threads_per_shard": 1,
            },
        }
        with open(self.conf, "w") as file:
            for name, values in sections.items():
                file.write("[%s]\n" % name)
                file.writelines("%s = %s\n" % pair for pair in values.items())

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        if done.returncode != 0:
            raise RuntimeError("%s: exit %d\n%s" % (" ".join(command), done.returncode, done.stderr))
        return done.stdout

    def ceph(self, *arguments):
        return self.run("ceph", "-c", self.conf, "--connect-timeout", "20", *arguments)

    def wait_for(self, what, ready):
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
                if ready():
                    return
            if time.monotonic() > end:
                raise RuntimeError("%s did not come within %d s; see %s" % (
                    what, LIMIT_SECONDS, self.root / "log"))
            time.sleep(0.02)  # between two looks

    def daemon(self, kind, identity):
        self.run("ceph-" + kind, "-i", identity, "-c", self.conf)

    def start_osd(self, number):
        self.daemon("osd", str(number))

    def start(self):
        self.write_conf()
        keyring, monmap = str(self.root / "data/keyring"), str(self.root / "data/monmap")
        self.run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.",
                 "--cap", "mon", "allow *")
        self.run("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", "--cap", "mon",
                 "allow *", "--cap", "osd", "allow *", "--cap", "mds", "allow *", "--cap", "mgr",
                 "allow *")
        self.run("monmaptool", "--create", "--clobber", "--fsid", self.fsid, "--addv", "a",
                 self.address, monmap)
        self.run("ceph-mon", "-c", self.conf, "--mkfs", "-i", "a", "--monmap", monmap,
                 "--keyring", keyring)
        self.daemon("mon", "a")
        self.wait_for("the monitor", lambda: self.ceph("mon", "stat"))
        self.daemon("mgr", "x")
        for number in range(OSDS):
            (self.root / "data" / ("osd.%d" % number)).mkdir()
            identity = str(uuid.uuid4())
            self.ceph("osd", "new", identity, str(number))
            self.run("ceph-osd", "-c", self.conf, "-i", str(number), "--mkfs", "--osd-uuid", identity)
            self.start_osd(number)
        self.wait_for("the OSDs", lambda: "%d up" % OSDS in self.ceph("osd", "stat"))
        self.ceph("osd", "pool", "create", "meta", "8")
        self.ceph("osd", "pool", "create", "data", "32")
        self.ceph("fs", "new", "lab", "meta", "data")
        self.daemon("mds", "a")
        self.wait_for("the metadata server", lambda: "up:active" in self.ceph("mds", "stat"))
        self.mount_client()

    def mount_client(self):
        self.run("ceph-fuse", "-c", self.conf, "-n", "client.admin",
                 "--pid-file=%s" % (self.root / "run/client.pid"),
                 "--admin-socket=%s" % (self.root / "run/client.asok"),
                 "--log-file=%s" % (self.root / "log/client.log"), self.mount)
        self.wait_for("the mount", lambda: os.path.ismount(self.mount))

    def unmount_client(self):
        """Ends when the client has written out all that it held, and is gone with its caches."""
        # A loop device lets go of its file a moment after it was unmounted.
        self.wait_for("the unmounting", lambda: self.run("umount", self.mount) == "")
        self.wait_for("the client's end", lambda: self.pid("client") is None)

    def counters(self, name):
        """Of a daemon ("osd.1", "mds.a") or the "client", since it was started."""
        return json.loads(self.run("ceph", "daemon", str(self.root / "run" / (name + ".asok")),
                                   "perf", "dump"))

    def pid(self, name):
        """Of a daemon of ours that lives; None otherwise. A number that another process got since is
        not taken for it."""
        try:
            pid = int((self.root / "run" / (name + ".pid")).read_text())
            command = pathlib.Path("/proc/%d/cmdline" % pid).read_bytes()
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self.conf) in command else None

    def kill(self, name, number=signal.SIGKILL):
        """Ends a daemon ("osd.1") and waits until it is gone."""
        pid = self.pid(name)
        if pid is None:
            return
        end = time.monotonic() + 20
        # It may end by itself meanwhile.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            while self.pid(name) is not None:
                if time.monotonic() > end:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.05)  # between two looks
        # Its lock on it may last a moment longer than it does.
        with contextlib.suppress(OSError):
            os.unlink(self.root / "run" / (name + ".pid"))

    def stop(self):
        if os.path.ismount(self.mount):
            if subprocess.run(["umount", self.mount], capture_output=True).returncode != 0:
                subprocess.run(["umount", "-l", self.mount], capture_output=True)
        self.kill("client", signal.SIGTERM)
        # All they hold goes, too. A metadata server that is asked to end may start itself anew.
        for name in ("mds.a", *("osd.%d" % n for n in range(OSDS)), "mgr.x", "mon.a"):
            self.kill(name)
        if not os.path.ismount(self.mount):
            shutil.rmtree(self.root, ignore_errors=True)

    def layout(self, path, kind="file"):
        """The layout as getfattr reads it: {"stripe_unit": ..., "pool": ...}."""
        text = self.run("getfattr", "--absolute-names", "--only-values", "-n",
                        "ceph.%s.layout" % kind, str(path))
        found = dict(word.split("=", 1) for word in text.split())
        return {name: value if name == "pool" else int(value) for name, value in found.items()}

    def objects(self, path):
        """Number and OSD of each object that the cluster holds of a file that is synced."""
        pool = self.layout(path)["pool"]
        pool_number = re.search(r"^(\d+) %s$" % re.escape(pool), self.ceph("osd", "lspools"),
                                re.MULTILINE).group(1)
        osdmap = str(self.root / "run/osdmap")
        self.ceph("osd", "getmap", "-o", osdmap)
        prefix = "%x." % os.stat(path).st_ino
        found = {}
        for name in self.run("rados", "-c", self.conf, "-p", pool, "ls").split():
            if name.startswith(prefix):
                said = self.run("osdmaptool", osdmap, "--test-map-object", name, "--pool",
                                pool_number)
                found[int(name[len(prefix):], 16)] = int(re.search(r"\[(\d+)", said).group(1))
        return found

"""A real Slurm of one node on this machine: munged, slurmctld and slurmd, without systemd. Everything
lies in one folder and listens on 127.0.0.1 only.

    with SlurmLab() as lab:
        lab.run("sbatch", script)    # with the lab's configuration

Needs root and Debian's packages slurmctld, slurmd, slurm-client and munge; why_not() tells what is
missing.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from lab import Lab

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo", "scontrol",
            "squeue")
LIMIT_SECONDS = 60
CPUS = 8  # that jobs may ask for, whatever the machine has


def why_not():
    """Why no lab can be had here; empty where it can."""
    if os.geteuid() != 0:
        return "the Slurm lab needs root"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return "the Slurm lab lacks " + ", ".join(missing) if missing else ""


def free_ports(count):
    """Different ones, free a moment ago."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


class SlurmLab(Lab):
    def __init__(self, mpi="none"):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="spk-slurm-", dir="/tmp"))
        # munged refuses folders that others may write to, and clients must get at its socket.
        self.root.chmod(0o755)
        self.mpi = mpi
        self.conf = str(self.root / "slurm.conf")
        self.daemons = []
        self.environment = dict(os.environ, SLURM_CONF=self.conf)
        for name in [name for name in self.environment
                     if name.startswith("SLURM_") and name != "SLURM_CONF"]:
            del self.environment[name]

    def write_conf(self):
        host = socket.gethostname().split(".")[0]
        controller, node = free_ports(2)
        settings = {
            "ClusterName": "spklab", "SlurmctldHost": host + "(127.0.0.1)", "SlurmUser": "root",
            "SlurmctldPort": controller, "SlurmdPort": node,
            "AuthType": "auth/munge", "AuthInfo": "socket=%s" % (self.root / "munge/socket"),
            "CredType": "cred/munge", "MpiDefault": self.mpi,
            "StateSaveLocation": self.root / "state", "SlurmdSpoolDir": self.root / "spool",
            "SlurmctldPidFile": self.root / "slurmctld.pid",
            "SlurmdPidFile": self.root / "slurmd.pid",
            "SlurmctldLogFile": self.root / "slurmctld.log",
            "SlurmdLogFile": self.root / "slurmd.log",
            "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none", "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core", "SlurmdParameters": "config_overrides",
            "SchedulerParameters": "sched_min_interval=0,sched_interval=1,bf_interval=1",
            "ReturnToService": 2, "KillWait": 5,
        }
        lines = ["%s=%s" % pair for pair in settings.items()]
        lines.append("NodeName=%s NodeAddr=127.0.0.1 CPUs=%d State=UNKNOWN" % (host, CPUS))
        lines.append("PartitionName=lab Nodes=ALL Default=YES OverSubscribe=FORCE:8 "
                     "MaxTime=INFINITE State=UP")
        pathlib.Path(self.conf).write_text("\n".join(lines) + "\n", encoding="ascii")

    def start(self):
        for name in ("munge", "state", "spool"):
            (self.root / name).mkdir(mode=0o755)
        key = self.root / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.write_conf()
        munge = self.root / "munge"
        self.daemon("munged", "--foreground", "--force", "--key-file", key, "--socket",
                    munge / "socket", "--pid-file", munge / "pid", "--log-file", munge / "log",
                    "--seed-file", munge / "seed")
        self.wait_for("munged", (munge / "socket").exists)
        self.daemon("slurmctld", "-D", "-f", self.conf)
        self.daemon("slurmd", "-D", "-f", self.conf)
        self.wait_for("an idle node", lambda: b"idle" in subprocess.run(
            ["sinfo", "-h", "-o", "%T"], env=self.environment, capture_output=True).stdout)

    def daemon(self, name, *arguments):
        with open(self.root / (name + ".out"), "ab") as log:
            process = subprocess.Popen([name, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, env=self.environment,
                                       start_new_session=True)
        self.daemons.append((name, process))

    def wait_for(self, what, there):
        limit = time.monotonic() + LIMIT_SECONDS
        while not there():
            for name, process in self.daemons:
                if process.poll() is not None:
                    raise RuntimeError("%s ended with %d: %s" % (name, process.returncode,
                                                                 self.logs()))
            if time.monotonic() > limit:
                raise RuntimeError("%s did not come up: %s" % (what, self.logs()))
            time.sleep(0.05)

    def logs(self):
        text = ""
        for path in sorted([*self.root.glob("*.out"), *self.root.glob("*.log"),
                            *self.root.glob("munge/log")]):
            text += "\n--- %s\n%s" % (path.name, path.read_text(errors="replace")[-3000:])
        return text

    def run(self, *words, timeout=120, check=True):
        """Its standard output."""
        done = subprocess.run([str(word) for word in words], env=self.environment,
                              capture_output=True, timeout=timeout, cwd=self.root)
        if check and done.returncode != 0:
            raise RuntimeError("%s: exit %d\n%s%s%s" % (
                " ".join(map(str, words)), done.returncode, done.stdout.decode(errors="replace"),
                done.stderr.decode(errors="replace"), self.logs()))
        return done.stdout.decode(errors="replace")

    def state_of(self, job):
        """{job or array task: state} of a job, from the controller."""
        found = {}
        for line in self.run("scontrol", "-o", "show", "job", job).splitlines():
            fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
            name = fields["JobId"]
            if "ArrayTaskId" in fields:
                name = fields["ArrayJobId"] + "_" + fields["ArrayTaskId"]
            found[name] = fields["JobState"]
        return found

    def wait_for_jobs(self, job, limit_seconds=180):
        """Until none of the job is pending or at work; their states."""
        limit = time.monotonic() + limit_seconds
        waiting = set()
        while True:
            states = self.state_of(job)
            if not set(states.values()) & {"PENDING", "RUNNING", "COMPLETING", "REQUEUED",
                                           "CONFIGURING", "SUSPENDED"}:
                return states
            for name, state in states.items():
                if state != "PENDING":
                    waiting.discard(name)
                elif name not in waiting:
                    # A job that was requeued is held back for two minutes, so that its node does
                    # not take it for the one that it has just ended. Some seconds do as well.
                    waiting.add(name)
                    self.run("scontrol", "update", "JobId=" + name, "StartTime=now+5", check=False)
            if time.monotonic() > limit:
                raise RuntimeError("still at work: %s%s" % (states, self.logs()))
            time.sleep(0.1)

    def stop(self):
        """Node first, so that its jobs end; then the rest."""
        subprocess.run(["scancel", "--full", "--state=RUNNING", "--user=root"],
                       env=self.environment, capture_output=True, timeout=30)
        for name, process in reversed(self.daemons):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

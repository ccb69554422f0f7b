"""A real Slurm of the tests' own: munge, one controller, a few nodes that are processes on this machine."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.paths import ROOT
from tests.ports import reserve_port
from tests.processes import gone

DAEMONS = ("munged", "slurmctld", "slurmd")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
PATIENCE_S = 900.0
SET_UP = ROOT / ".venv/.stamp"

CONF = """\
ClusterName=kit
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
"""
"""The least that a cluster runs with on one machine. Source: https://slurm.schedmd.com/slurm.conf.html"""


def missing() -> list[str]:
    """What is not installed of it."""
    return [name for name in DAEMONS if shutil.which(name, path=PATH) is None]


@dataclass
class SlurmCluster:
    """`nodes` by name; `settings`: further lines of slurm.conf; `environment` is what its clients need. Needs root: slurmd does."""

    folder: Path
    nodes: tuple[str, ...]
    settings: str = ""
    jobs: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": PATH}

    def start(self) -> None:
        self._configure()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o600)
        options = {"socket": "munge.sock", "key-file": key.name, "log-file": "munged.log", "pid-file": "munged.pid"}
        options["seed-file"] = "munge.seed"
        self._run("munged", "--force", *(f"--{name}={self.folder / file}" for name, file in options.items()))
        self._start_services()
        self._run("slurmctld")
        for name in self.nodes:
            self._run("slurmd", "-N", name)
        self.wait_for(dict.fromkeys(self.nodes, "idle"))

    def stop(self) -> None:
        for job in self.jobs:
            job.kill()
            job.wait()
        for file in [*self.folder.glob("slurmd.*.pid"), self.folder / "slurmctld.pid", self.folder / "munged.pid"]:
            end(file)

    def stop_controller(self) -> None:
        end(self.folder / "slurmctld.pid")

    def start_controller(self) -> None:
        self._run("slurmctld")

    def states(self) -> dict[str, str]:
        """Return sinfo's state, signs and all."""
        reported = self._run("sinfo", "-h", "-N", "-o", "%N %T")
        return dict(line.split() for line in reported.splitlines())

    def reasons(self) -> dict[str, str]:
        return dict(line.split(" ", 1) for line in self._run("sinfo", "-h", "-N", "-o", "%N %E").splitlines())

    def wait_for(self, wanted: dict[str, str]) -> None:
        """Until these nodes are in these states; an error that shows the states and the logs after minutes."""
        until = time.monotonic() + PATIENCE_S
        while not wanted.items() <= (seen := self._seen()).items():
            if time.monotonic() > until:
                logs = "\n".join(file.read_text(errors="replace")[-800:] for file in self.folder.glob("*.log"))
                raise AssertionError(f"wanted {wanted}, seen {seen}\n{logs}")
            time.sleep(0.2)

    def work_on(self, node: str, seconds: int = 600) -> None:
        """A job on the node, which runs once this returns."""
        argv = ["srun", "-w", node, "sleep", str(seconds)]
        self.jobs.append(subprocess.Popen(argv, env=self.environment, stderr=subprocess.DEVNULL))
        self.wait_for({node: "allocated"})

    def end_work(self) -> None:
        if jobs := self._run("squeue", "--noheader", "--format=%i").split():  # of all users, held ones too
            self._run("scancel", *jobs)
        for job in self.jobs:
            job.wait(PATIENCE_S)
        self.jobs.clear()

    def update(self, node: str, *settings: str) -> None:
        """What an administrator would do by hand."""
        self._run("scontrol", "update", f"NodeName={node}", *settings)

    def reset(self) -> None:
        """All nodes idle, none with a feature."""
        self.end_work()
        for node in self.nodes:
            self.update(node, "AvailableFeatures=", "ActiveFeatures=")
            if self.states()[node] != "idle":
                with suppress(subprocess.CalledProcessError):
                    self.update(node, "State=RESUME")
        self.wait_for(dict.fromkeys(self.nodes, "idle"))

    def _start_services(self) -> None:
        """Start what slurmctld needs in addition to munge: nothing here."""

    def _seen(self) -> dict[str, str]:
        try:
            return self.states()
        except subprocess.CalledProcessError:
            return {}

    def _configure(self) -> None:
        (self.folder / "state").mkdir()
        host = socket.gethostname().partition(".")[0]
        ports = [reserve_port("127.0.0.1") for _ in range(len(self.nodes) + 1)]
        lines = [CONF.format(folder=self.folder, host=host, port=ports[0]), self.settings]
        for name, port in zip(self.nodes, ports[1:], strict=True):
            lines.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1\n")
        names = ",".join(self.nodes)
        lines += [f"PartitionName=main Nodes={names} Default=YES State=UP\n", f"PartitionName=other Nodes={names}\n"]
        (self.folder / "slurm.conf").write_text("".join(lines))

    def _run(self, *argv: str) -> str:
        program = shutil.which(argv[0], path=PATH) or argv[0]
        done = subprocess.run(
            [program, *argv[1:]], env=self.environment, check=True, capture_output=True, text=True, timeout=600
        )
        return done.stdout


@contextmanager
def running_slurm(nodes: tuple[str, ...] = ("c1", "c2", "c3"), settings: str = "") -> Iterator[SlurmCluster]:
    """A cluster while the context lasts; nothing of it afterwards. `settings`: further lines of slurm.conf."""
    folder = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))
    folder.chmod(0o755)  # munged refuses a socket where others could not reach it
    cluster = SlurmCluster(folder, nodes, settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def end(pid_file: Path) -> None:
    """The daemon that wrote this file, and wait until it is gone."""
    if not pid_file.exists() or not pid_file.read_text().strip():
        return
    pid = int(pid_file.read_text())
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if gone(pid):
                return
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)

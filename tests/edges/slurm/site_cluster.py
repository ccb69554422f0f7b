"""A real Slurm with the files that `clusterctl export slurm` writes: munge, MariaDB, slurmdbd, slurmctld, slurmds.

All of it runs on this machine, so that each node's line gets a port in addition. What this machine lacks (cgroups, GPUs,
a user `slurm`) is given by the site's own settings.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl_cli.main import run
from lab.tests.lab_kit import eventually
from tests.edges.slurm.cluster import PATH, SlurmCluster, end, missing
from tests.edges.slurm.node_programs import install, write_node_file
from tests.operations.slurm_site import write
from tests.ports import reserve_port

GPUS = 8
DATABASE = ("mariadbd", "mariadb-install-db", "slurmdbd")
ADDRESS = "127.0.0"
HOST = socket.gethostname().partition(".")[0]
_NODE = re.compile(r"^NodeName=(\S+) NodeAddr=\S+", re.MULTILINE)


def missing_here() -> list[str]:
    """Return the programs that are not installed."""
    return [*missing(), *(name for name in DATABASE if shutil.which(name, path=PATH) is None)]


@dataclass
class SiteCluster(SlurmCluster):
    """`extra`: settings of slurm.conf in the site file, in addition to those of the tests."""

    extra: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    database: subprocess.Popen[bytes] | None = None

    @property
    def site(self) -> Path:
        return self.folder / "site"

    def start(self) -> None:
        """Start the database and its daemon, too."""
        names = ("controller", "dbd", "database", *self.nodes)
        self.ports = {name: reserve_port("127.0.0.1") for name in names}
        super().start()

    def stop(self) -> None:
        super().stop()
        end(self.folder / "slurmdbd.pid")
        if self.database is not None:
            self.database.terminate()
            self.database.wait(600)

    def export(self) -> None:
        """Write the files, as an operator does after a node came or left; then give each node its port."""
        written = self.folder / "written"
        assert run(["export", "slurm", "--site", str(self.site), "--out", str(written), "--yes"]) == 0
        for file in written.iterdir():
            (self.folder / file.name).write_text(_NODE.sub(self._with_port, file.read_text()))

    def _with_port(self, line: re.Match[str]) -> str:
        return f"{line[0]} NodeHostname={HOST} Port={self.ports[line[1]]}"

    def _configure(self) -> None:
        (self.folder / "state").mkdir()
        for number in range(GPUS):
            (self.folder / f"nvidia{number}").touch()
        cluster = {
            "name": "west",
            "controllers": [f"{HOST}(127.0.0.1)"],
            "accounting": "127.0.0.1",
            "gpu_device": str(self.folder / "nvidia"),
            "settings": {**self._settings(), **self.extra},
        }
        write(self.folder, cluster, gold=self.nodes, address=ADDRESS)
        install(self.folder)
        write_node_file(self.folder, self.nodes)
        self.export()

    def _settings(self) -> dict[str, str]:
        folder, ports = self.folder, self.ports
        return {
            "SlurmctldPort": str(ports["controller"]),
            "AccountingStoragePass": f"{folder}/munge.sock",
            "SlurmdParameters": "config_overrides",
            "AuthInfo": f"socket={folder}/munge.sock",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "StateSaveLocation": f"{folder}/state",
            "SlurmdSpoolDir": f"{folder}/spool.%n",
            "SlurmctldPidFile": f"{folder}/slurmctld.pid",
            "SlurmdPidFile": f"{folder}/slurmd.%n.pid",
            "SlurmctldLogFile": f"{folder}/slurmctld.log",
            "SlurmdLogFile": f"{folder}/slurmd.%n.log",
            "ProctrackType": "proctrack/pgid",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStoragePort": str(ports["dbd"]),
            "HealthCheckInterval": "0",
            "PrologEpilogTimeout": "600",
            **{
                name: str(folder / f"clusterctl-{name.lower().removesuffix('checkprogram')}")
                for name in ("Prolog", "Epilog", "HealthCheckProgram")
            },
        }

    def _start_services(self) -> None:
        """Start MariaDB and slurmdbd, and wait until they listen."""
        data = self.folder / "mariadb"
        self._run("mariadb-install-db", f"--datadir={data}", "--user=root", "--skip-test-db", "--skip-name-resolve")
        argv = [
            shutil.which("mariadbd", path=PATH) or "mariadbd",
            "--no-defaults",
            "--user=root",
            "--skip-grant-tables",
            "--bind-address=127.0.0.1",
            f"--port={self.ports['database']}",
            f"--datadir={data}",
            f"--socket={self.folder}/mariadb.sock",
            f"--pid-file={self.folder}/mariadbd.pid",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        with (self.folder / "mariadbd.log").open("wb") as log:
            self.database = subprocess.Popen(argv, stdout=log, stderr=log)
        conf = self.folder / "slurmdbd.conf"
        conf.write_text(self._dbd_conf())
        conf.chmod(0o600)
        assert eventually(lambda: _listens(self.ports["database"]))
        self._run("slurmdbd")
        assert eventually(lambda: _listens(self.ports["dbd"]))

    def _dbd_conf(self) -> str:
        folder = self.folder
        return "\n".join(
            [
                f"DbdHost={HOST}",
                "DbdAddr=127.0.0.1",
                f"DbdPort={self.ports['dbd']}",
                "SlurmUser=root",
                "AuthType=auth/munge",
                f"AuthInfo=socket={folder}/munge.sock",
                "StorageType=accounting_storage/mysql",
                "StorageHost=127.0.0.1",
                f"StoragePort={self.ports['database']}",
                "StorageUser=root",
                "StorageLoc=slurm_acct_db",
                f"PidFile={folder}/slurmdbd.pid",
                f"LogFile={folder}/slurmdbd.log",
                "",
            ]
        )


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running_site_cluster(nodes: tuple[str, ...], extra: Mapping[str, str] | None = None) -> Iterator[SiteCluster]:
    """A cluster while the context lasts; nothing of it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))
    folder.chmod(0o755)  # munged refuses a socket where others could not reach it
    cluster = SiteCluster(folder, nodes, extra=extra or {})
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)

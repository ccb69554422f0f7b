"""Debian's Patroni on loopback: one etcd, two PostgreSQL servers that replicate synchronously, and a crash of either."""

from __future__ import annotations

import itertools
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from lab.tests.lab_kit import eventually
from tests.edges.journal.postgres import PROGRAMS
from tests.ports import reserve_port

HOST = "127.0.0.1"
PROGRAM, ETCD = "/usr/bin/patroni", "/usr/bin/etcd"
PATIENCE_S = 240.0
DCS = {
    "ttl": 20,
    "loop_wait": 1,
    "retry_timeout": 3,
    "maximum_lag_on_failover": 1048576,
    "synchronous_mode": True,
    "postgresql": {"use_pg_rewind": True, "parameters": {"wal_log_hints": "on", "max_connections": 60}},
}
"""Patroni's shortest `ttl`: so long after a crash the standby waits at least."""


@dataclass
class Server:
    """One PostgreSQL server and the Patroni that runs it."""

    name: str
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def asks(self, question: str) -> object:
        """The answer to a question of one value; None where the server gives none."""
        with suppress(psycopg.Error), psycopg.connect(self.dsn, autocommit=True, connect_timeout=2) as connection:
            row = connection.execute(question.encode()).fetchone()
            return row[0] if row else None
        return None

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@{self.address}/postgres"

    @property
    def leads(self) -> bool:
        return self.asks("SELECT NOT pg_is_in_recovery()") is True

    def crash(self) -> None:
        """As where the machine loses its power: neither Patroni nor PostgreSQL sends anything more."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(postmaster, signal.SIGKILL)


@dataclass
class Cluster:
    """`url` names a new, empty database each time, by both servers: libpq connects to the one that takes writes."""

    folder: Path
    servers: tuple[Server, ...]
    etcd_port: int
    stack: ExitStack
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self) -> str:
        name = f"journal_{next(self.numbers)}"
        with psycopg.connect(self.leader().dsn, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        hosts = "&".join(f"host={server.address}" for server in self.servers)
        return f"postgresql+psycopg://postgres@/{name}?{hosts}&target_session_attrs=read-write"

    def leader(self) -> Server:
        return next(server for server in self.servers if server.leads)

    def until_replicated(self) -> None:
        """Until one leads and the other has all that it acknowledges."""
        question = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        assert eventually(lambda: any(one.leads and one.asks(question) == 1 for one in self.servers), PATIENCE_S)

    def begin(self, server: Server) -> None:
        """Run Patroni on the server's folder, as it starts with its machine."""
        settings = server.folder / "patroni.json"  # JSON is YAML
        settings.write_text(json.dumps(self._settings(server)))
        log = self.stack.enter_context((server.folder / "log").open("ab"))
        server.process = subprocess.Popen(
            (PROGRAM, settings), stdout=log, stderr=log, user=_owner(), group=_owner(), cwd=server.folder
        )

    def _settings(self, server: Server) -> dict[str, object]:
        everywhere = "all all 127.0.0.1/32 trust"
        login = {"username": "postgres", "password": "none"}
        return {
            "scope": "journal",
            "name": server.name,
            "restapi": {"listen": f"{HOST}:{reserve_port(HOST)}", "connect_address": f"{HOST}:1"},
            "etcd3": {"host": f"{HOST}:{self.etcd_port}"},
            "bootstrap": {"dcs": DCS, "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}, "no-sync"]},
            "postgresql": {
                "listen": server.address,
                "connect_address": server.address,
                "data_dir": str(server.folder / "data"),
                "bin_dir": str(PROGRAMS[-1]),
                "pgpass": str(server.folder / "pgpass"),
                "pg_hba": [f"host {everywhere}", "host replication all 127.0.0.1/32 trust", "local all all trust"],
                "authentication": {
                    "superuser": login,
                    "replication": {"username": "copy", "password": "none"},
                    "rewind": login,
                },
                "parameters": {"unix_socket_directories": str(server.folder), "fsync": "off"},
            },
        }


def _owner() -> int | None:
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster while the context lasts; nothing of it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ha", dir="/tmp"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        servers = tuple(Server(name, folder / name, reserve_port(HOST)) for name in ("one", "two"))
        for one in (folder, *(server.folder for server in servers), folder / "etcd"):
            one.mkdir(exist_ok=True, mode=0o700)
            if os.geteuid() == 0:
                shutil.chown(one, "nobody")
        port = _etcd(folder / "etcd", stack)
        cluster = Cluster(folder, servers, port, stack)
        stack.callback(_end, servers)
        for server in servers:
            cluster.begin(server)
        cluster.until_replicated()
        yield cluster


def _etcd(folder: Path, stack: ExitStack) -> int:
    port, peers = reserve_port(HOST), reserve_port(HOST)
    client, peer = f"http://{HOST}:{port}", f"http://{HOST}:{peers}"
    ways = (f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}")
    cluster = (f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}")
    slow = ("--heartbeat-interval=500", "--election-timeout=5000")
    log = stack.enter_context((folder / "log").open("ab"))
    process = subprocess.Popen(
        (ETCD, f"--data-dir={folder}/data", *ways, *cluster, *slow),
        stdout=log, stderr=log, user=_owner(), group=_owner(), cwd=folder,
    )  # fmt: skip
    stack.callback(process.wait)
    stack.callback(process.kill)
    return port


def _end(servers: tuple[Server, ...]) -> None:
    for server in servers:
        with suppress(OSError, ValueError, IndexError):
            server.crash()

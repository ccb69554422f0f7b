"""A PostgreSQL server of the tests' own: a data directory and a socket in a temporary folder, no TCP port."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.paths import ROOT

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
SET_UP = ROOT / ".venv/.stamp"
USER = "clusterctl"
OPTIONS = "-c listen_addresses='' -c fsync=off -c max_connections=60"


@dataclass
class PostgresServer:
    """Runs as `nobody` where we are root: PostgreSQL refuses to. `url` names a new, empty database each time.

    listening  further options of the server, such as ` -c listen_addresses=127.0.0.1`
    """

    folder: Path
    listening: str = ""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def make(self) -> None:
        self._as_owner("initdb", "-D", self.data, "-U", USER, "--auth=trust", "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        log = self.folder / "log"
        self._as_owner(
            "pg_ctl", "-D", self.data, "-l", log, "-w", "-o", f"-k {self.folder} {OPTIONS}{self.listening}", "start"
        )

    def stop(self, mode: str = "fast") -> None:
        """`fast` ends sessions in order, `immediate` is a crash."""
        self._as_owner("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def url(self) -> str:
        name = f"journal_{next(self.numbers)}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{USER}@/{name}?host={self.folder}"

    def dsn(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={self.folder}"

    def dump(self, url: str) -> str:
        """The whole database as SQL that any client can run."""
        argv = (PROGRAMS[-1] / "pg_dump", "--inserts", "--no-owner", "--no-privileges", url.replace("+psycopg", ""))
        text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("\\", "--")))

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _as_owner(self, program: str, *argv: str | Path) -> None:
        user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        command = (PROGRAMS[-1] / program, *argv)
        subprocess.run(command, check=True, capture_output=True, user=user, group=user, cwd="/")


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A server while the context lasts; nothing of it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    server = PostgresServer(folder)
    server.make()
    server.start()
    try:
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop("immediate")
        shutil.rmtree(folder)

"""A rehearsal site under test: its commands run as an operator runs them, and its journal is read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from click.testing import CliRunner

from clusterctl.edges.journal import SqlJournal, open_journal
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.state import NodeState
from clusterctl_cli.main import cli
from lab.tests.lab_kit import ROOT, RunningLab
from tests.processes import Process, descendants

RUN_S = 2400.0
"""A whole bootstrap on a machine that has other things to do."""


class UtcClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class Controller:
    """A `clusterctl` that runs in a process group of its own; its output is kept in files. Use as a context.

    `within` starts it elsewhere, such as in another network namespace.
    """

    def __init__(self, folder: Path, argv: Sequence[str], within: Sequence[str] = ()) -> None:
        self._argv = (*within, sys.executable, "-m", "clusterctl_cli.main", *argv)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "out").open("wb") as out, (self._folder / "err").open("wb") as err:
            self._process = subprocess.Popen(self._argv, cwd=ROOT, stdout=out, stderr=err, start_new_session=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._running.poll() is None:
            self.kill()

    @property
    def stdout(self) -> str:
        return (self._folder / "out").read_text(errors="replace")

    @property
    def stderr(self) -> str:
        return (self._folder / "err").read_text(errors="replace")

    @property
    def ended(self) -> bool:
        return self._running.poll() is not None

    @property
    def pid(self) -> int:
        return self._running.pid

    def wait(self, seconds: float = RUN_S) -> int:
        """Its exit code."""
        return self._running.wait(seconds)

    def family(self) -> set[Process]:
        """All that it has started and that runs now, wherever it detached to."""
        return descendants(self._running.pid)

    def kill(self) -> None:
        """`kill -9` of the process group, as when a terminal's shell is killed."""
        os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


@dataclass(frozen=True)
class Site:
    """The site directory of a running lab."""

    lab: RunningLab
    scratch: Path

    @property
    def folder(self) -> Path:
        return self.lab.site

    def start(self, *argv: str, within: Sequence[str] = ()) -> Controller:
        """A command on this site, in the background; `within` as for `Controller`."""
        number = len(list(self.scratch.glob("run*")))
        return Controller(self.scratch / f"run{number}", (*argv, "--site", str(self.folder)), within)

    def run(self, *argv: str) -> Controller:
        """A command on this site, to its end."""
        with self.start(*argv) as controller:
            controller.wait()
        return controller

    def ask(self, *argv: str) -> dict[str, Any]:
        """The one JSON document that `clusterctl … --json` prints, asked in this process; it must succeed."""
        words = [*argv, "--json", "--site", str(self.folder)]
        asked = CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
        assert not asked.return_value, asked.output
        return dict(json.loads(asked.stdout))

    def stages(self) -> dict[str, str]:
        return {node["name"]: node["stage"] for node in self.ask("nodes")["nodes"]}

    @property
    def journal_file(self) -> Path:
        return self.folder / "state/journal.db"

    @contextmanager
    def journal(self) -> Iterator[SqlJournal]:
        opened = open_journal(f"sqlite:///{self.journal_file}", UtcClock())
        try:
            yield opened
        finally:
            opened.close()

    def states(self) -> tuple[NodeState, ...]:
        """Of all nodes; none before a first run has begun."""
        if not self.journal_file.exists():
            return ()
        with self.journal() as journal:
            return journal.states()

    def events(self) -> Iterator[Event]:
        """Of all nodes, oldest first for each."""
        with self.journal() as journal:
            for node in journal.states():
                yield from journal.history(Stream.NODE, node.id)

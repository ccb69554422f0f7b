"""Fake machines that outlive their controllers: what was done to each is kept in files, with the process that did it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.worker_scaling import fleet_names
from clusterctl.fleet.finding import Observed
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.gold_pool import gold_pool
from clusterctl.ports import Deadline, HostAddress, InstallStatus, InstallTarget, PlayOutcome, Ran
from tests.fake_fleet import FakeFleet


@dataclass(frozen=True)
class Record:
    """Lines of a file that many processes append to: a process, a machine, and a word about it."""

    file: Path

    def add(self, name: str, word: str) -> None:
        with self.file.open("a") as file:
            file.write(f"{os.getpid()} {name} {word}\n")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep all others from the record for the time."""
        with self.file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def lines(self) -> list[tuple[int, str, str]]:
        text = self.file.read_text() if self.file.exists() else ""
        return [(int(pid), name, word) for pid, name, word in map(str.split, text.splitlines())]


@dataclass(frozen=True, eq=False)
class Kept(MutableMapping[str, Any]):
    """A mapping that all processes share; nothing is taken out of it."""

    record: Record

    def __getitem__(self, name: str) -> float:
        return float({line[1]: line[2] for line in self.record.lines()}[name])

    def __setitem__(self, name: str, value: float) -> None:
        self.record.add(name, repr(value))

    def __delitem__(self, name: str) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter({line[1] for line in self.record.lines()})

    def __len__(self) -> int:
        return len(set(self))


@dataclass
class LastingFleet(FakeFleet):
    """Notes who acts on which machine, before each act, unless the run's claim on it is gone then."""

    acts: Record = field(kw_only=True)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        self._act(target.name, "install", deadline)
        return super().start(target, deadline)

    def _command(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        self._act(host.name, "load" if b"ib_write_bw" in stdin else argv[0], deadline)
        return super()._command(host, argv, stdin, deadline)

    def _play(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        for host in hosts:
            self._act(host.name, playbook, deadline)
        return super()._play(playbook, hosts, variables, deadline)

    def _act(self, name: str, act: str, deadline: Deadline) -> None:
        with self.acts.alone():
            deadline.check(f"acting on {name}")
            self.acts.add(name, act)


def opened(site: Path, scale: float, began: float, invocation: Invocation) -> SiteContext:
    """Open the site for a run that acts on the machines; their record lies in its folder."""
    context = open_site(site, invocation)
    fleet = LastingFleet(
        fleet_names(site),
        (site / "topology.txt").read_text(),
        gold_pool(context.site),
        scale,
        installs=Kept(Record(site.parent / "installs")),  # type: ignore[arg-type]
        boots=Kept(Record(site.parent / "boots")),  # type: ignore[arg-type]
        began=began,
        acts=Record(site.parent / "acts"),
    )
    return replace(context, connect=lambda _site, _access: fleet)

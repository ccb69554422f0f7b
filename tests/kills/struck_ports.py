"""The ports of a run with a seam around everything that it does: each passes on to the real one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Self

from clusterctl.fleet.bmc.screen import Screen
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.finding import Digest, Evidence, Observed
from clusterctl.fleet.incidents.incident import IncidentState
from clusterctl.fleet.node import Inventory, NodeId, Serial
from clusterctl.fleet.settings.baseline import Bios
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.adapters import Adapters
from clusterctl.ports import (
    BmcAddress,
    BmcClient,
    Bmcs,
    Claim,
    ClaimOwner,
    Claims,
    CounterReader,
    Deadline,
    Eraser,
    FabricReader,
    HostAddress,
    Images,
    Installer,
    InstallStatus,
    InstallTarget,
    Journal,
    LogEntry,
    Playbooks,
    PlayOutcome,
    Pool,
    PortAdmin,
    Post,
    Power,
    Ran,
    Shell,
    TableReader,
    TelemetryReader,
)
from clusterctl.ports.accounts import AccountBmcs, PowerLogins
from clusterctl.ports.certificates import CertificateBmcs
from clusterctl.ports.journal import Append, JournalHealth
from clusterctl.ports.services import ServiceBmcs
from tests.events import data_of
from tests.kills.seams import Seams


def append_name(events: Sequence[NewEvent]) -> str:
    """Return the content of an append, in words that are the same for every node: `act.intended install.start`."""
    kinds = [f"{event.kind.value} {data_of(event).get('act', '')}".strip() for event in events]
    return "append " + ", ".join(dict.fromkeys(kinds))


@dataclass(frozen=True)
class StruckJournal:
    """Appends are noted in the diary once they have returned: those must never be lost."""

    inner: Journal
    seams: Seams

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        with self.seams.around(append_name(events)):
            return self._noted(self.inner.append(events, claim=claim))

    def append_each(self, appends: Sequence[Append]) -> Sequence[tuple[Event, ...] | Exception]:
        with ExitStack() as stack:
            for one in appends:
                stack.enter_context(self.seams.around(append_name(one.events)))
            written = self.inner.append_each(appends)
            for events in written:
                if not isinstance(events, Exception):
                    self._noted(events)
        return written

    def _noted(self, written: tuple[Event, ...]) -> tuple[Event, ...]:
        for event in written:
            act = data_of(event).get("act", "") if event.kind is Kind.ACT_INTENDED else ""
            target = data_of(event).get("target", "") if act else ""
            self.seams.diary.write(
                seq=event.seq,
                stream=event.stream,
                subject=event.subject,
                kind=event.kind.value,
                act=act,
                target=target,
            )
        return written

    def changed(self, kinds: Collection[Kind], seq: int) -> Collection[NodeId]:
        return self.inner.changed(kinds, seq)

    def last_seq(self) -> int:
        return self.inner.last_seq()

    def states_of(self, nodes: Iterable[NodeId]) -> Mapping[NodeId, NodeState]:
        return self.inner.states_of(nodes)

    def store(self, evidence: Iterable[Evidence]) -> None:
        with self.seams.around("store"):
            self.inner.store(evidence)

    def claim(self, nodes: Iterable[NodeId], run: str) -> Claims:
        with self.seams.around("claim"):
            return self.inner.claim(nodes, run)

    def release(self, claims: Iterable[Claim], rest_s: float = 0.0) -> None:
        with self.seams.around("release"):
            self.inner.release(claims, rest_s)

    @property
    def lease_s(self) -> float:
        return self.inner.lease_s

    def renew(self, claims: Iterable[Claim]) -> Mapping[NodeId, str]:
        return self.inner.renew(claims)  # by the clock: no seam, for no two runs would have the same

    def evidence(self, digest: Digest) -> Evidence | None:
        return self.inner.evidence(digest)

    def evidences(self, digests: Iterable[Digest]) -> Mapping[Digest, Evidence]:
        return self.inner.evidences(digests)

    def owners(self, prefix: str) -> tuple[ClaimOwner, ...]:
        return self.inner.owners(prefix)

    def states(self, since: int = 0) -> tuple[NodeState, ...]:
        return self.inner.states(since)

    def each_state(self, without: Collection[NodeId] = ()) -> Iterator[NodeState]:
        return self.inner.each_state(without)

    def state_versions(self, since: int = 0) -> Mapping[NodeId, str]:
        return self.inner.state_versions(since)

    def names(self) -> Mapping[str, NodeId]:
        return self.inner.names()

    def summaries(self, since: int = 0) -> tuple[NodeSummary, ...]:
        return self.inner.summaries(since)

    def health(self) -> JournalHealth:
        return self.inner.health()

    def state(self, node: NodeId) -> NodeState:
        return self.inner.state(node)

    def incidents(self, *, unfinished: bool = False) -> tuple[IncidentState, ...]:
        return self.inner.incidents(unfinished=unfinished)

    def history(self, stream: Stream, subject: str) -> Iterator[Event]:
        return self.inner.history(stream, subject)

    def latest(self, stream: Stream, kind: Kind | None = None) -> Iterator[Event]:
        return self.inner.latest(stream, kind)

    def histories(self, nodes: Collection[NodeId], kinds: Collection[Kind]) -> Iterator[Event]:
        return self.inner.histories(nodes, kinds)

    def recent(
        self, kinds: Collection[Kind], since: datetime, subjects: Collection[str] | None = None
    ) -> Iterator[Event]:
        return self.inner.recent(kinds, since, subjects)

    def later(self, kinds: Collection[Kind], seq: int) -> Iterator[Event]:
        return self.inner.later(kinds, seq)


@dataclass(frozen=True)
class StruckInstaller:
    inner: Installer
    seams: Seams

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        with self.seams.around("installer.prepare", effect="install.prepare", target=target.serial):
            return self.inner.prepare(target, deadline)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        with self.seams.around("installer.start", effect="install.start", target=target.serial):
            return self.inner.start(target, deadline)

    def power_login(self, target: InstallTarget, deadline: Deadline) -> BmcAddress | None:
        return self.inner.power_login(target, deadline)

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        with self.seams.around("installer.release", effect="install.release", target=target.serial):
            return self.inner.release(target, deadline)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        with self.seams.around("installer.observe"):
            return self.inner.observe(targets, deadline)


@dataclass(frozen=True)
class StruckBmc:
    inner: BmcClient
    seams: Seams

    def __enter__(self) -> Self:
        with self.seams.around("bmc.open"):
            self.inner.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.inner.__exit__(*exc)

    def inventory(self, deadline: Deadline) -> Observed[Inventory]:
        with self.seams.around("bmc.inventory"):
            return self.inner.inventory(deadline)

    def power(self, deadline: Deadline) -> Observed[Power]:
        with self.seams.around("bmc.power"):
            return self.inner.power(deadline)

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        with self.seams.around("bmc.set_power", effect="bmc.set_power", target=serial):
            return self.inner.set_power(power, serial, deadline)

    def post(self, deadline: Deadline) -> Observed[Post]:
        with self.seams.around("bmc.post"):
            return self.inner.post(deadline)

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        with self.seams.around("bmc.event_log"):
            return self.inner.event_log(deadline)

    def screen(self, deadline: Deadline) -> Observed[Screen | None]:
        with self.seams.around("bmc.screen"):
            return self.inner.screen(deadline)

    def bios(self, deadline: Deadline) -> Observed[Bios]:
        with self.seams.around("bmc.bios"):
            return self.inner.bios(deadline)


@dataclass(frozen=True)
class StruckBmcs:
    inner: Bmcs
    seams: Seams

    def open(self, address: BmcAddress, deadline: Deadline) -> StruckBmc:
        return StruckBmc(self.inner.open(address, deadline), self.seams)


@dataclass(frozen=True)
class StruckShell:
    """Commands are distinguished by their first word: `cat` greets, `sudo` checks, `python3` loads."""

    inner: Shell
    seams: Seams

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        with self.seams.around(f"shell.run {argv[0]}"):
            return self.inner.run(host, argv, stdin, deadline)


@dataclass(frozen=True)
class StruckPlaybooks:
    inner: Playbooks
    seams: Seams

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        with self.seams.around(f"playbooks.run {playbook}"):
            yield from self.inner.run(playbook, hosts, variables, deadline)


@dataclass(frozen=True)
class StruckFabric:
    inner: FabricReader
    seams: Seams

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        with self.seams.around("fabric.ibnetdiscover"):
            return self.inner.ibnetdiscover(deadline)


@dataclass(frozen=True)
class StruckPool:
    inner: Pool
    seams: Seams

    def publish(self, gold: Mapping[str, str]) -> None:
        with self.seams.around("pool.publish"):
            self.inner.publish(gold)

    def lacks(self, names: Iterable[str]) -> frozenset[str]:
        return self.inner.lacks(names)


class StruckOutside:
    """Meets `Adapters`."""

    def __init__(self, inner: Adapters, seams: Seams) -> None:
        self._inner = inner
        self._seams = seams

    def close(self) -> None:
        self._inner.close()

    @cached_property
    def bmcs(self) -> StruckBmcs:
        return StruckBmcs(self._inner.bmcs, self._seams)

    @property
    def accounts(self) -> AccountBmcs:
        return self._inner.accounts

    @property
    def services(self) -> ServiceBmcs:
        return self._inner.services

    @property
    def certificates(self) -> CertificateBmcs:
        return self._inner.certificates

    @property
    def power_logins(self) -> PowerLogins:
        return self._inner.power_logins

    @property
    def eraser(self) -> Eraser:
        return self._inner.eraser

    @cached_property
    def installer(self) -> StruckInstaller:
        return StruckInstaller(self._inner.installer, self._seams)

    @cached_property
    def shell(self) -> StruckShell:
        return StruckShell(self._inner.shell, self._seams)

    @cached_property
    def playbooks(self) -> StruckPlaybooks:
        return StruckPlaybooks(self._inner.playbooks, self._seams)

    @cached_property
    def fabric(self) -> StruckFabric:
        return StruckFabric(self._inner.fabric, self._seams)

    @property
    def fabric_ports(self) -> PortAdmin:
        return self._inner.fabric_ports

    @property
    def telemetry(self) -> TelemetryReader | None:
        return self._inner.telemetry

    @property
    def images(self) -> Images:
        return self._inner.images

    @property
    def tables(self) -> TableReader:
        return self._inner.tables

    @property
    def counters(self) -> CounterReader:
        return self._inner.counters

    @cached_property
    def pool(self) -> StruckPool:
        return StruckPool(self._inner.pool, self._seams)

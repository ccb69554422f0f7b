"""A site of gold nodes with a scheduler of its own, for tests of nights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

from clusterctl.edges.site import Site
from clusterctl.fleet.errors import NoFabricPortError, UnreachableError
from clusterctl.fleet.finding import Observed
from clusterctl.operations.context import open_site
from clusterctl.operations.gold_pool import gold_pool
from clusterctl.ports import BmcAddress, BmcClient, Deadline, HostAddress, Pool, Ran
from clusterctl.ports.scheduler import PREFIX, Draining, Occupancy, Use, is_returnable
from tests.edges.site.ready import write_ready_site
from tests.steps.fakes import identified

NAMES = ("n1", "n2", "n3", "n4")
_NOW = datetime.now(UTC)
WINDOW = f"{_NOW - timedelta(minutes=30):%H:%M}-{_NOW + timedelta(hours=23):%H:%M}"
"""Open while the tests run, whatever time of the day it is."""
SETTINGS = f"""
scheduler: {{kind: list, nodes: ["n*"]}}
nightly: {{window: "{WINDOW}", percent: 50, node_minutes: 10, expiry_days: 14}}
"""


def write(folder: Path, settings: str = SETTINGS) -> Path:
    """Four gold nodes; no machine of them answers."""
    site = folder / "site"
    write_ready_site(site)
    rows = [f"{name},10.0.0.{at},SN-{name},A01,{4 * at}" for at, name in enumerate(NAMES, start=1)]
    (site / "bmcs.csv").write_text("\n".join(["name,bmc_address,serial,rack,unit", *rows, ""]))
    with (site / "site.yml").open("a") as file:
        file.write(settings)
    journal = open_site(site).journal
    for name in NAMES:
        identified(journal, name, f"SN-{name}", "gold")
    journal.close()
    return site


@dataclass
class FakeScheduler:
    """Meets `Scheduler`. `reasons`: of nodes that are out; `busy`: these have work; `calls`: what was asked for."""

    names: Sequence[str] = NAMES
    busy: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    gets_work: set[str] = field(default_factory=set)
    """These get a job between the look and the drain."""

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        return Observed({name: self._one(name) for name in self.names})

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        self.calls.append(("take", tuple(nodes)))
        assert reason.startswith(PREFIX)
        self.busy |= self.gets_work
        had = [name for name in nodes if self._one(name).use is Use.IDLE]
        self.reasons.update(dict.fromkeys(had, reason))
        return {name: "it has work" for name in nodes if name not in had}

    def drain(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Draining:
        """Keep new jobs off the nodes; those with work are out once it has ended."""
        assert reason.startswith(PREFIX)
        self.calls.append(("drain", tuple(nodes)))
        refused = {name: "another drain" for name in nodes if self.reasons.get(name, reason) != reason}
        mine = [name for name in nodes if name not in refused]
        self.reasons.update(dict.fromkeys(mine, reason))
        waiting = {name: "draining" for name in mine if name in self.busy}
        return Draining(out=frozenset(mine) - waiting.keys(), waiting=waiting, refused=refused)

    def relabel(self, node: str, reason: str, deadline: Deadline) -> None:
        self.reasons[node] = reason

    def give_back(self, nodes: Sequence[str], deadline: Deadline) -> Mapping[str, str]:
        self.calls.append(("give_back", tuple(nodes)))
        ours = [name for name in nodes if is_returnable(self.reasons.get(name, ""))]
        for name in ours:
            del self.reasons[name]
        return {name: "it is not ours" for name in nodes if name not in ours}

    def _one(self, name: str) -> Occupancy:
        if name in self.reasons:
            return Occupancy(Use.OUT, "drained", self.reasons[name])
        return Occupancy(Use.BUSY, "allocated") if name in self.busy else Occupancy(Use.IDLE, "idle")


class Silence:
    """Neither hosts nor BMCs answer."""

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        raise UnreachableError("no route", where=host.name)

    def open(self, address: BmcAddress, deadline: Deadline) -> BmcClient:
        raise UnreachableError("no route", where=address.host)


class DarkFabric:
    """A controller without a link to the fabric. Meets `FabricReader` and `CounterReader`."""

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        raise NoFabricPortError("no InfiniBand port can be opened", where="ibnetdiscover", remedy="load ib_umad")

    ibqueryerrors = traffic = ibnetdiscover


class NoPlaybooks:
    def run(self, *_: object) -> Iterator[Observed[object]]:
        raise AssertionError("no host answers, so none is introduced")


@dataclass
class SilentOutside:
    """Meets `Adapters` as far as a burn-in needs it: no host answers."""

    site: Site
    shell: Silence = field(default_factory=Silence)
    bmcs: Silence = field(default_factory=Silence)
    installer: Silence = field(default_factory=Silence)
    playbooks: NoPlaybooks = field(default_factory=NoPlaybooks)
    fabric: DarkFabric = field(default_factory=DarkFabric)
    counters: DarkFabric = field(default_factory=DarkFabric)
    telemetry: None = None
    closed: int = 0
    scheduler: FakeScheduler | None = None

    @property
    def pool(self) -> Pool:
        return gold_pool(self.site)

    @property
    def accounts(self) -> NoReturn:
        raise AssertionError("no account may be changed")

    power_logins = accounts

    def close(self) -> None:
        self.closed += 1

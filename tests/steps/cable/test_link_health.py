"""The counters of each reading are kept; a link's errors are known over days; what was not read is not healthy."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.errors import ClusterctlError, EdgeError, EnvironmentBrokenError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.fabric.history import known_modules
from clusterctl.fleet.fabric.telemetry import HIGHEST
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.finding import Evidence, Observed, Origin, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.payloads.hardware import FabricLinksJudged, FabricTransceiverSeen
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.cable.fabric_record import FabricRecord
from clusterctl.steps.cable.link_health import CHECK, LinkCollector
from clusterctl.steps.cable.step import Cable, Wiring
from clusterctl.steps.executor.pipeline import Pipeline
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step_queue import StepLimits
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from tests.cabling.bench import Bench, plan
from tests.formats.infiniband import printers
from tests.steps.cable.test_cable import addressed
from tests.steps.fakes import NOW, identified

HOUR = timedelta(hours=1)
LIMITS = shipped_fabric_limits("ndr")


@dataclass
class Clock:
    at: datetime = NOW

    def now(self) -> datetime:
        return self.at


@dataclass
class FakeFabric:
    """Meets `FabricReader` and `CounterReader`. `counts`: what stands in the counters; `broken`: what a reading raises."""

    clock: Clock
    bench: Bench = field(default_factory=Bench)
    counts: dict[PortId, Mapping[str, int]] = field(default_factory=dict)
    broken: dict[str, ClusterctlError] = field(default_factory=dict)

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        return self._read("ibnetdiscover", printers.ibnetdiscover(addressed(self.bench.fabric())))

    def ibqueryerrors(self, deadline: Deadline) -> Observed[str]:
        return self._read("ibqueryerrors", printers.ibqueryerrors(addressed(self.bench.fabric()), self.counts))

    def traffic(self, deadline: Deadline) -> Observed[str]:
        raise AssertionError("no traffic is read")

    def _read(self, source: str, text: str) -> Observed[str]:
        if source in self.broken:
            raise self.broken[source]
        return Observed(text, (Evidence(source, "controller", self.clock.now(), Origin.REAL, text.encode()),))


@dataclass
class Site:
    clock: Clock
    book: SqlJournal
    fabric: FakeFabric
    runs: int = 0

    @property
    def collector(self) -> LinkCollector:
        return LinkCollector(self.book, self.fabric, self.fabric, LIMITS, plan())

    def cable(self) -> NodeState:
        """A new node goes through the step `cable`; return what became of it."""
        self.runs += 1
        name = f"node{self.runs:03}"
        identified(self.book, name, f"S-{name}", "configured")
        wiring = Wiring(plan(), dict, most_broken_percent=10.0)
        step = Cable(self.fabric, FabricRecord(self.book), wiring, {}, 0.01, self.collector)
        recorder = Recorder(self.book, Policy(required={Step.CABLE: frozenset({"cable"})}), self.clock)
        pipeline = Pipeline([step], recorder, {Step.CABLE: StepLimits(8, 20.0)}, threading.Event())
        (node,) = [state for state in self.book.states() if state.name == name]
        pipeline.run([node], self.book.claim([node.id], "r1").granted)
        return self.book.state(node.id)

    def judged(self) -> FabricLinksJudged:
        (event,) = self.book.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED)
        assert isinstance(event.payload, FabricLinksJudged)
        return event.payload

    def end_of(self, host: str) -> PortId:
        return end_of(self.fabric, host)


def end_of(fabric: FakeFabric, host: str) -> PortId:
    """The switch port of a host's first link."""
    seen = addressed(fabric.bench.fabric())
    ends = {a: b for link in seen.links for a, b in ((link.a, link.b), (link.b, link.a))}
    return next(far for own, far in ends.items() if seen.devices[own.guid].description.startswith(f"{host} "))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    clock = Clock()
    book = open_journal(f"sqlite:///{tmp_path}/j.db", clock, Holder("r1"))
    yield Site(clock, book, FakeFabric(clock))
    book.close()


def test_the_first_reading_proves_nothing_and_the_second_all_links(site):
    """The node goes on with both; the judgement is INCONCLUSIVE at first, never healthy."""
    assert site.cable().stage is Stage.CABLED
    assert (site.judged().verdict, site.judged().links) == ("inconclusive", 0)
    assert "first time" in site.judged().reason
    site.clock.at += HOUR
    assert site.cable().stage is Stage.CABLED
    found = site.judged()
    assert (found.verdict, found.bad, found.seconds) == ("pass", 0, 3600.0)
    assert found.proven == found.links > 0


def test_a_link_that_gathers_errors_is_a_warning_of_its_node_with_the_serial(site):
    """200 symbol errors in three hours, all in the second one; the node's own findings name it, other nodes' do not."""
    port = site.end_of("node003")
    name = f"{port.guid}/{port.number}"
    seen = FabricTransceiverSeen(part="MCP4Y10", ports=(name,))
    site.book.append([NewEvent(Stream.FABRIC, "MT2243VS01234", seen)])
    site.cable()
    site.clock.at += HOUR
    site.fabric.counts = {port: {"SymbolErrorCounter": 200}}
    other = site.cable()
    assert other.stage is Stage.CABLED
    assert [found for found in other.reports["cable"].findings if found.check == CHECK] == []
    site.clock.at += 2 * HOUR
    node = site.cable()
    assert node.stage is Stage.CABLED
    (found,) = [found for found in node.reports["cable"].findings if found.check == CHECK]
    assert (found.verdict, found.code) == (Verdict.WARN, Code.LINK_ERRORS)
    assert "200 symbol errors" in found.cause
    assert "3.0 h" in found.cause
    assert found.remedy.endswith(f"MCP4Y10 serial MT2243VS01234 at {found_port(found.cause)}")
    assert (site.judged().verdict, site.judged().bad) == ("fail", 1)
    assert "200 symbol errors" in site.judged().causes[0]


def found_port(cause: str) -> str:
    """The switch port of `… symbol errors at leaf-0 port 3 in …`."""
    return cause.partition(" symbol errors at ")[2].partition(" in ")[0]


def test_errors_before_a_counter_was_cleared_are_not_lost_and_the_link_is_not_proven(site):
    port = site.end_of("node001")
    site.fabric.counts = {port: {"SymbolErrorCounter": 10}}
    site.collector.look(Deadline.after(60))
    for count in (50, 3):  # 40 more, then cleared, then 3
        site.clock.at += HOUR
        site.fabric.counts = {port: {"SymbolErrorCounter": count}}
        site.collector.look(Deadline.after(60))
    assert "43 symbol errors" in site.judged().causes[0]
    site.fabric.counts = {port: {"SymbolErrorCounter": 3}}
    site.clock.at += timedelta(hours=23, minutes=30)
    found = site.collector.look(Deadline.after(60))
    assert found.bad == 0, "the errors are older than a day"
    assert found.proven == found.links


def test_a_counter_at_its_maximum_proves_no_link_healthy(site):
    port = site.end_of("node001")
    for _ in range(3):
        site.fabric.counts = {port: {"SymbolErrorCounter": 0xFFFF}}
        found = site.collector.look(Deadline.after(60))
        site.clock.at += HOUR
    assert (found.verdict, found.bad) == ("inconclusive", 0)
    assert found.proven == found.links - 1
    assert "at their maximum" in found.causes[0]


@pytest.mark.parametrize("source", ["ibnetdiscover", "ibqueryerrors"])
def test_without_access_to_the_fabric_the_links_are_inconclusive(site, source):
    """After a healthy reading, too: the judgement of yesterday is not repeated."""
    for _ in range(2):
        site.collector.look(Deadline.after(60))
        site.clock.at += HOUR
    assert site.judged().verdict == "pass"
    site.fabric.broken[source] = EdgeError("no InfiniBand port can be opened", where=source, remedy="load ib_umad")
    found = site.collector.look(Deadline.after(60))
    assert (found.verdict, found.links, found.proven) == ("inconclusive", 0, 0)
    assert "no InfiniBand port can be opened" in found.reason
    assert site.judged() == found


@pytest.mark.parametrize(
    "error",
    [
        EdgeError("no summary", where="ibqueryerrors", remedy="look"),
        EnvironmentBrokenError("there is no such program", where="ibqueryerrors", remedy="install it"),
    ],
    ids=["it read no port", "it is not installed"],
)
def test_a_step_goes_on_where_the_counters_cannot_be_read(site, error):
    """The cabling is proven without counters; that the links were not measured stands in the journal."""
    site.fabric.broken["ibqueryerrors"] = error
    assert site.cable().stage is Stage.CABLED
    assert site.judged().verdict == "inconclusive"
    assert error.message in site.judged().reason


def test_what_the_tool_prints_is_not_trusted(site):
    """An output that is cut off is no reading, and spoils no later one."""
    site.collector.look(Deadline.after(60))
    site.clock.at += HOUR
    whole, site.fabric._read = site.fabric._read, lambda source, text: whole(source, text[: len(text) // 2])  # type: ignore[method-assign]
    assert site.collector.look(Deadline.after(60)).verdict == "inconclusive"
    site.fabric._read = whole  # type: ignore[method-assign]
    site.clock.at += HOUR
    assert site.collector.look(Deadline.after(60)).verdict == "pass"


@dataclass
class FakeTelemetry:
    """Meets `TelemetryReader`: what ibdiagnet prints of the fabric. `hot`: °C of each port's transceiver, else 45."""

    fabric: FakeFabric
    hot: dict[PortId, float] = field(default_factory=dict)

    def db_csv(self, deadline: Deadline) -> Observed[str]:
        seen = addressed(self.fabric.bench.fabric())
        ports = [end for link in seen.links for end in (link.a, link.b)]
        names = [name for name in HIGHEST if name not in ("PortRcvSwitchRelayErrors", "VL15Dropped")]
        rows = "".join(f"0x{p.guid},0x{p.guid},{p.number}{',0' * len(names)}\n" for p in ports)
        text = f"START_PM_INFO\nNodeGUID,PortGUID,PortNumber,{','.join(names)}\n{rows}END_PM_INFO\n"
        cables = "".join(
            f'0x{p.guid},0x{p.guid},{p.number},"V","MMA4Z00","MT2243VS{at:05}","46.120","{self.hot.get(p, 45):g}C"\n'
            for at, p in enumerate(ports)
        )
        text += (
            f"START_CABLE_INFO\nNodeGuid,PortGuid,PortNum,Vendor,PN,SN,FWVersion,Temperature\n{cables}END_CABLE_INFO\n"
        )
        return self.fabric._read("db_csv", printers.db_csv(seen, text))


def test_a_night_with_telemetry_finds_the_hot_modules_of_a_switch_and_keeps_the_serials(site):
    """All transceivers of a switch are hot, no counter rises: one group, and the serials are in the history."""
    telemetry = FakeTelemetry(site.fabric)
    site.collector.look(Deadline.after(60), telemetry)
    site.clock.at += HOUR
    seen = addressed(site.fabric.bench.fabric())
    leaf = next(device for device in seen.devices.values() if "leaf-0" in device.description)
    telemetry.hot = {end: 78.0 for link in seen.links for end in (link.a, link.b) if end.guid == leaf.guid}
    assert len(telemetry.hot) >= 3
    found = site.collector.look(Deadline.after(60), telemetry)
    count = len(telemetry.hot)
    assert f"{count} of {count} modules" in found.causes[0]
    assert "above 70 °C" in found.causes[0]
    kept = known_modules(site.book.latest(Stream.FABRIC, Kind.FABRIC_TRANSCEIVER_SEEN))
    assert {kept[port].part for port in telemetry.hot} == {"MMA4Z00"}
    site.fabric.broken["db_csv"] = EdgeError("exit status 1", where="ibdiagnet", remedy="look")
    site.clock.at += HOUR
    assert site.collector.look(Deadline.after(60), telemetry).verdict == "inconclusive"

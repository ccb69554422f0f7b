"""The BMC before and after the loads: what it logged meanwhile is found, what it had logged before is not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.node import Fan, Inventory
from clusterctl.ports import Deadline
from clusterctl.steps.burnin.bmc_watch import CHECK, BmcWatch
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SkuLimits
from clusterctl.steps.executor.reachability import BmcProbe
from tests.lab_data import lab_limits
from tests.steps.burnin.test_burnin import SKU, nodes
from tests.steps.fakes import FakeBmc, FakeBmcs, FixedClock, address_of, inventory, seen

OLD = LogEntry("2026-05-01T00:00:00Z", "Critical", "Fan 1A has failed.", "IDRAC.2.7.FAN0001", log="/Sel")
FAN = LogEntry("2026-05-02T00:00:00Z", "Critical", "Fan 2A has failed.", "IDRAC.2.7.FAN0001", log="/Sel")


@dataclass
class Loaded(FakeBmc):
    """A BMC that logs `added` after its first answer; `lost`: it answers once."""

    added: tuple[LogEntry, ...] = ()
    lost: bool = False
    asked: list[str] = field(default_factory=list)

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        self.asked.append("log")
        if len(self.asked) > 1 and self.lost:
            raise UnreachableError("no route to host")
        return Observed((*self.log, *(self.added if len(self.asked) > 1 else ())), seen("log"))


def watched(bmc: FakeBmc, address: str = "10.0.1.1") -> list[Finding]:
    """What is found of a node whose BMC is asked before and after its loads."""
    state = replace(nodes(1)[0], bmc=address)
    assert state.serial is not None
    host = NodeUnderTest(state, state.serial, None, SkuLimits(SKU, lab_limits()))  # type: ignore[arg-type]
    watch = BmcWatch(BmcProbe(FakeBmcs({"n0": bmc}), address_of), FixedClock())
    watch.begin(host, Deadline.after(60))
    watch.begin(host, Deadline.after(60))
    watch.end(host, Deadline.after(60))
    return host.findings


def machine() -> Inventory:
    return replace(inventory("S0"), fans=(Fan("Fan 1A"), Fan("Fan 2A")))


def test_a_fan_that_failed_under_load() -> None:
    """Its entry came after the first reading: it is found on the fan; the older entry of another fan is not."""
    found = watched(Loaded(machine(), log=(OLD,), added=(FAN,)))
    fans = [one for one in found if "Fan 2A" in one.subject + one.cause]
    assert [one.verdict for one in fans] == [Verdict.FAIL], found
    assert "found after loads since" in fans[0].cause
    assert fans[0].evidence
    assert not any("Fan 1A" in one.subject for one in found)


def test_nothing_new_in_the_log() -> None:
    """Nor are parts that the SKU misses before and after the loads."""
    assert watched(Loaded(machine(), log=(OLD,))) == []


def test_a_bmc_that_is_silent_after_the_loads() -> None:
    """It was not watched: INCONCLUSIVE, with the reason."""
    (only,) = watched(Loaded(machine(), log=(OLD,), lost=True))
    assert (only.check, only.verdict) == (CHECK, Verdict.INCONCLUSIVE)
    assert "no route to host" in only.cause


def test_a_bmc_that_is_silent_before_the_loads() -> None:
    (only,) = watched(FakeBmc(UnreachableError("no route to host")))
    assert (only.check, only.verdict) == (CHECK, Verdict.INCONCLUSIVE)


def test_a_node_without_a_bmc_is_not_asked() -> None:
    """A machine that was adopted without one."""
    assert watched(FakeBmc(UnreachableError("no route to host")), address="") == []

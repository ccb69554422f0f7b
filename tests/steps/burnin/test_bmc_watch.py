"""The BMC before and after the loads: what it logged meanwhile is found, what it had logged before is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clusterctl.fleet.bmc.logs import UNREAD, LogEntry
from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.finding import Finding, Observed, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Fan, Inventory, Psu, RevalidationOrigin, Serial
from clusterctl.fleet.state import Revalidation
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


def looked_at(bmc: FakeBmc, *, before: Sequence[Finding] = (), revalidated: bool = True) -> list[Finding]:
    """What is found of a node that was gold, whose last discover found `before`, before any load."""
    why = Revalidation(RevalidationOrigin.NIGHT, "nightly") if revalidated else None
    report = Report("discover", "lab", tuple(before))
    state = replace(nodes(1)[0], bmc="10.0.1.1", revalidation=why, reports={"discover": report})
    assert state.serial is not None
    host = NodeUnderTest(state, state.serial, None, SkuLimits(SKU, lab_limits()))  # type: ignore[arg-type]
    watch = BmcWatch(BmcProbe(FakeBmcs({"n0": bmc}), address_of), FixedClock())
    watch.look(host, Deadline.after(60))
    watch.end(host, Deadline.after(60))
    return host.findings


NOW_BAD = replace(OLD, at="2025-12-31T00:00:00Z")
"""One day before the tests' clock."""


def test_a_night_finds_what_failed_since_the_last_discover() -> None:
    """A power supply and a fan of the log fail the node, on their parts, with the BMC's answers as evidence."""
    psus = (Psu("PSU 1", Serial("P1"), healthy=True), Psu("PSU 2", Serial("P2"), healthy=False))
    found = looked_at(Loaded(replace(machine(), psus=psus), log=(NOW_BAD,)))
    failed = {one.subject: one for one in found if one.verdict is Verdict.FAIL}
    assert {"PSU 2", "Fan 1A"} <= failed.keys()
    assert all(one.evidence for one in failed.values())


def test_a_night_does_not_repeat_what_discover_found() -> None:
    """What the last discover warned of is no finding again; what has become worse since is."""
    whole = Loaded(machine(), log=(NOW_BAD,))
    first = looked_at(whole)
    assert first
    assert looked_at(Loaded(machine(), log=(NOW_BAD,)), before=first) == []
    milder = [replace(one, verdict=Verdict.WARN) for one in first]
    again = looked_at(Loaded(machine(), log=(NOW_BAD,)), before=milder)
    assert {one.verdict for one in again} == {Verdict.FAIL}


def test_a_first_burnin_judges_the_bmc_at_discover_only() -> None:
    assert looked_at(Loaded(machine(), log=(NOW_BAD,)), revalidated=False) == []


def test_a_silent_bmc_takes_no_node_out_of_gold() -> None:
    """In a night it is a warning: the machine itself is judged by its host."""
    (only,) = looked_at(FakeBmc(UnreachableError("no route to host")))
    assert (only.check, only.verdict) == (CHECK, Verdict.WARN)
    assert only.verdict.admits


def test_the_bmc_of_another_machine_is_not_judged() -> None:
    """Its faults are not the node's: a warning with both serials, and nothing else."""
    psus = (Psu("PSU 2", Serial("P2"), healthy=False),)
    (only,) = looked_at(Loaded(replace(inventory("S9"), psus=psus)))
    assert (only.check, only.verdict) == (CHECK, Verdict.WARN)
    assert "S9" in only.cause


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


def test_a_part_that_only_warned_before_the_loads_fails_after_them() -> None:
    """Its warning, of the same kind, does not stand for the failure."""
    state = replace(nodes(1)[0], bmc="10.0.1.1")
    assert state.serial is not None
    host = NodeUnderTest(state, state.serial, None, SkuLimits(SKU, lab_limits()))  # type: ignore[arg-type]
    watch = BmcWatch(BmcProbe(FakeBmcs({"n0": Loaded(machine(), log=(OLD,), added=(FAN,))}), address_of), FixedClock())
    watch.begin(host, Deadline.after(60))
    (failed,) = watched(Loaded(machine(), log=(OLD,), added=(FAN,)))
    host.findings.append(replace(failed, verdict=Verdict.WARN))
    watch.end(host, Deadline.after(60))
    assert [one.verdict for one in host.findings] == [Verdict.WARN, Verdict.FAIL]


def test_a_log_that_was_unread_both_times_was_not_watched() -> None:
    """The same silence before and after is no proof that nothing was logged."""
    unread = LogEntry("", "", "HTTP 500", UNREAD, log="/Sel")
    (only,) = watched(Loaded(machine(), log=(unread,)))
    assert (only.verdict, only.code) == (Verdict.INCONCLUSIVE, Code.NOT_REPORTED)
    nightly = looked_at(Loaded(machine(), log=(unread,)))
    assert {one.verdict for one in nightly} == {Verdict.WARN}


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

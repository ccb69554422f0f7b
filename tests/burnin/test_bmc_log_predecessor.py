"""A new module is not blamed for the log entries of the module that it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Dimm, Inventory, Serial
from clusterctl_burnin.bmc_log.judge import Past, judge_log

NOW = datetime(2026, 5, 1, tzinfo=UTC)
WORDS = "Multi-bit memory errors detected on a memory device at location(s) DIMM A2."


def machine(serial: str) -> Inventory:
    """Its module in A2 has this serial, and is well by the BMC's word."""
    dimms = tuple(Dimm(f"DIMM A{n}", 65536, "x", Serial(s), True) for n, s in ((1, "M1"), (2, serial)))
    return Inventory("Dell Inc.", "GX", Serial("EX1"), dimms=dimms)


def entry(days: float) -> LogEntry:
    at = (NOW - timedelta(days=days)).isoformat()
    return LogEntry(at, "Critical", WORDS, message_id="MEM0001")


def reported(entries: Sequence[LogEntry], serial: str, before: Sequence[Finding] = ()) -> Finding:
    """The findings about A2."""
    findings = judge_log(entries, machine(serial), (), NOW, past=Past(before))
    return next(finding for finding in findings if finding.subject == "DIMM A2")


def test_an_entry_about_the_old_module_is_a_warning_about_that_module() -> None:
    """It names the old one, and how to be rid of the entry."""
    old = reported([entry(3)], "M2")
    assert (old.verdict, old.serial) == (Verdict.FAIL, "M2")
    new = reported([entry(3)], "M9", before=[old])
    assert (new.verdict, new.serial) == (Verdict.WARN, "M2")
    assert "the part before it, serial M2" in new.cause
    assert "clear-log" in new.remedy


def test_it_stays_so_at_every_later_look() -> None:
    """The report before the last may be forgotten: the last one still names the old module."""
    before = reported([entry(3)], "M2")
    for _ in range(3):
        before = reported([entry(3)], "M9", before=[before])
        assert (before.verdict, before.serial) == (Verdict.WARN, "M2")


def test_one_entry_more_is_the_new_modules() -> None:
    """Whatever the BMC's clock shows: an entry was written since the old one was judged."""
    old = reported([entry(3)], "M2")
    for more in (0.1, 400 / 1440, 2.9):
        blamed = reported([entry(more), entry(3)], "M9", before=[old])
        assert (blamed.verdict, blamed.serial) == (Verdict.FAIL, "M9")


def test_the_same_module_stays_to_blame() -> None:
    """Looking twice mends nothing, nor does moving the remedy to its rack."""
    old = reported([entry(3)], "M2")
    placed = replace(old, remedy=f"rack R1 U4, n1: {old.remedy}")
    assert reported([entry(3)], "M2", before=[placed]).verdict is Verdict.FAIL
    assert reported([entry(3)], "M9", before=[placed]).verdict is Verdict.WARN


def test_a_module_without_earlier_judgement_is_to_blame() -> None:
    """Without a last report, or with one that could not be read, nothing is known of a predecessor."""
    assert reported([entry(3)], "M9").verdict is Verdict.FAIL
    assert (
        reported(
            [entry(3)],
            "M9",
            before=[Finding(check="bmc", verdict=Verdict.FAIL, code=Code.BMC_UNREACHABLE, subject="bmc")],
        ).verdict
        is Verdict.FAIL
    )

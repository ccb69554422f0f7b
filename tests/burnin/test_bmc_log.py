"""A BMC's log against the machine of today: what failed is found by its part, what was repaired is history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.bmc.logs import UNREAD, LogEntry
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.part_health import judge_psus
from clusterctl.fleet.node import Cpu, Dimm, Drive, Fan, Gpu, Inventory, Psu, Serial, Temperature
from clusterctl_burnin.bmc_log.judge import judge_log, weighs
from clusterctl_burnin.bmc_log.table import Weight, parse_table, shipped_table
from tests.fleet.skus import H100_X8

NOW = datetime(2026, 5, 1, tzinfo=UTC)
CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "bmc_log.yml").read_text())
MACHINE = Inventory(
    "Example Inc.",
    "GX",
    Serial("EX1"),
    cpus=(Cpu("CPU 1", "x", healthy=True), Cpu("CPU 2", "x", healthy=True)),
    dimms=(Dimm("DIMM A1", 65536, "x", Serial("M1"), True), Dimm("DIMM A2", 65536, "x", Serial("M2"), True)),
    gpus=(Gpu("GPU_SXM_1", "H100", Serial("G1"), healthy=True), Gpu("GPU_SXM_2", "H100", Serial("G2"), healthy=True)),
    fans=(Fan("Fan 1A", healthy=True), Fan("Fan 2A")),
    drives=(
        Drive("Disk.Bay.0:Enclosure", "x", 1, Serial("D0"), "NVMe", healthy=True),
        Drive("Disk.Bay.1:Enclosure", "x", 1, Serial("D1"), "NVMe"),
    ),
    psus=(
        Psu("PS1", Serial("P1"), True),
        Psu("PS2", Serial("P2"), True),
        Psu("PS3", Serial("P3"), False),
        Psu("PS4", Serial("P4")),
    ),
    temperatures=(Temperature("Inlet Temp", 22, 42, "OK", intake=True),),
)
"""PS3 fails, PS4, Fan 2A and drive 1 report no health, all else is healthy."""


def labelled_entries() -> Iterator[tuple[list[str], str]]:
    """Yield the header and the message of each entry of `data/bmc_log_entries*.txt`; the first of them explains them."""
    header: list[str] = []
    files = sorted((Path(__file__).parent / "data").glob("bmc_log_entries*.txt"))
    for line in (line for file in files for line in file.read_text().splitlines()):
        if line.startswith("@ "):
            header = [field.strip() for field in line[2:].split(" | ")]
        elif line and not line.startswith("#"):
            yield header, line


def mistake(header: list[str], message: str) -> str:
    """Return what the table makes of a labelled entry; empty where that is its label."""
    weight, component, part = header[:3]
    meaning = shipped_table().meaning(entry(message, message_id="".join(header[4:])))
    if meaning is None:
        return f"unknown: {message}"
    weights = {"any": {"noise", "degraded", "repaired"}}.get(weight, {weight})
    components = {meaning.rule.component.value} if weight in ("noise", "any") else {component}
    right = meaning.rule.weight.value in weights and meaning.rule.component.value in components
    named = part == "-" or part in meaning.part
    return "" if right and named else f"{meaning.rule.name}, part {meaning.part!r}: {message}"


def test_each_labelled_entry_has_its_weight() -> None:
    """At least 75 fatal ones of five vendors; each with a source, none twice."""
    found = list(labelled_entries())
    assert [text for header, message in found if (text := mistake(header, message))] == []
    assert sum(header[0] == "fatal" for header, _ in found) >= 75
    assert all(len(header) >= 4 and header[3] for header, _ in found)
    assert len({message for _, message in found}) == len(found)


def with_slots(dimms: Sequence[str] = (), fans: Sequence[str] = ()) -> Inventory:
    """The machine with modules and fans in these slots in place of its own; none of them reports its health."""
    modules = tuple(Dimm(slot, 65536, "x", Serial(f"M-{slot}"), None) for slot in dimms)
    return replace(MACHINE, dimms=modules or MACHINE.dimms, fans=tuple(Fan(slot) for slot in fans) or MACHINE.fans)


def entry(message: str, days: float = 1, severity: str = "Critical", **more: Any) -> LogEntry:
    return LogEntry((NOW - timedelta(days=days)).isoformat(), severity, message, **more)


def judged(*entries: LogEntry, machine: Inventory = MACHINE, found: tuple[Finding, ...] = ()) -> tuple[Finding, ...]:
    """The findings of entries given from old to new."""
    return judge_log(entries[::-1], machine, found, NOW)


def own(*entries: LogEntry, machine: Inventory = MACHINE) -> list[tuple[Verdict, str]]:
    """Verdict and part of all findings but the summary."""
    return [(one.verdict, one.subject) for one in judged(*entries, machine=machine) if one.subject != "bmc"]


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case['message'][:40]}" for n, case in enumerate(CASES)])
def test_entries_of_vendors(case: dict[str, Any]) -> None:
    """Each by the rule it should fit, about the right part, with serial and remedy; what is new is called new."""
    one = entry(
        case["message"],
        case.get("days", 1),
        case.get("severity", "Critical"),
        message_id=case.get("id", ""),
        origin=case.get("origin", ""),
    )
    *found, summary = judged(one, machine=with_slots(**case.get("slots", {})))
    assert [one.subject for one in found] == ([case["part"]] if "part" in case else [])
    for finding in found:
        assert finding.verdict is Verdict(case["verdict"])
        assert case["message"] in finding.cause
        assert finding.remedy
        assert bool(case.get("new")) or finding.measured == case["rule"]
    message = {True: "new kinds, newest", "old": "outside the table"}.get(case.get("new", ""), "none of them open")
    assert message in summary.cause or bool(found)
    assert summary.verdict is (Verdict.WARN if case.get("new") is True and not found else Verdict.PASS)


def test_a_part_has_its_serial() -> None:
    """The finding names the part by slot and serial."""
    found, _ = judged(entry("Multi-bit memory errors detected on a memory device at location(s) DIMM_A2."))
    assert found.serial == "M2"
    assert found.remedy.startswith("replace memory module DIMM A2 (serial M2); ")


@pytest.mark.parametrize(
    "after",
    [
        entry("Power supply 4 failed.", 0.5, "OK", cleared=True),
        entry("The power supply 4 is operating normally.", 0.5, "OK"),
        entry("PS4 Status, Power Supply Installed", 0.5, "OK"),
        entry("", 0.5, "OK", message_id="Power.1.0.PowerSupplyOk"),
    ],
    ids=["deasserted", "reported-healthy", "replaced", "registry"],
)
def test_a_repaired_part_is_history(after: LogEntry) -> None:
    """By the log's own word; what fails again after that counts again."""
    failed = entry("Power supply 4 failed.", 1)
    assert own(failed) == [(Verdict.FAIL, "PS4")]
    assert own(failed, after) == []
    assert own(failed, after, entry("Power supply 4 failed.", 0.1)) == [(Verdict.FAIL, "PS4")]


def test_slots_that_count_from_0() -> None:
    """The third power supply is not PSU3 there: the entry follows from the one that fails."""
    psus = tuple(Psu(f"PSU{n}", Serial(f"P{n}"), healthy=n != 2) for n in range(4))
    machine = replace(MACHINE, psus=psus)
    found = judged(entry("Power supply 3 failed."), machine=machine, found=judge_psus(machine, H100_X8))
    assert [(one.subject, one.root) for one in found[:-1]] == [("PSU2", ""), ("psu 3", "psu:PSU2")]


def test_mending_one_part_mends_no_other() -> None:
    """Power supply 1 is healthy: that proves nothing about the fourth."""
    entries = (entry("Power supply 4 failed."), entry("The power supply 1 is operating normally.", 0.5, "OK"))
    assert own(*entries) == [(Verdict.FAIL, "PS4")]


def test_repeated_entries_are_one_finding() -> None:
    """The newest is quoted, and how often it was logged."""
    found = judged(*(entry("CPU 2 has an internal error (IERR).", days) for days in (5, 4, 3)))
    assert len(found) == 2
    assert "3 times" in found[0].cause
    assert (NOW - timedelta(days=3)).isoformat() in found[0].cause


def test_a_failing_part_and_its_entry_are_one_cause() -> None:
    """The part is the root; its entry and the roll-up follow from it."""
    health = Finding(check="bmc_health", verdict=Verdict.FAIL, code=Code.BMC_HEALTH, root="psu:PS3")
    report = Report(
        "discover", "", judged(entry("Power supply 3 failed."), found=(*judge_psus(MACHINE, H100_X8), health))
    )
    assert [root.key for root in report.roots()] == ["psu:PS3"]


def test_an_entry_that_names_no_part_follows_from_any_of_its_kind() -> None:
    """A log that has only that a drive failed, and a drive that fails."""
    failed = Finding(check="drives", verdict=Verdict.FAIL, code=Code.PART_UNHEALTHY, subject="Disk.Bay.1:Enclosure")
    machine = replace(MACHINE, drives=(replace((MACHINE.drives or ())[1], healthy=False),))
    found = judged(entry("a drive of the array has failed"), machine=machine, found=(failed,))
    assert [one.root for one in found if one.check == "event_log" and one.verdict is Verdict.FAIL] == [failed.key]


def test_a_roll_up_that_only_the_log_explains() -> None:
    """Critical, and all parts well: the entry is the root."""
    health = Finding(check="bmc_health", verdict=Verdict.FAIL, code=Code.BMC_HEALTH)
    report = Report("discover", "", judged(entry("System firmware hang"), found=(health,)))
    assert [root.key for root in report.roots()] == ["event_log:system"]


def test_a_bmc_with_a_clock_that_was_never_set() -> None:
    """An entry of 1970 may be of today: what lasts counts, what may have passed since does not stop a node."""
    lasting = replace(entry("CPU 2 has an internal error (IERR)."), at="1970-01-01T00:01:38Z")
    passing = replace(entry("Power supply 4 failed."), at="no time")
    assert own(lasting) == [(Verdict.FAIL, "CPU 2")]
    assert own(passing) == [(Verdict.WARN, "PS4")]


def test_an_unread_log_is_reported() -> None:
    """It is not an empty one."""
    found = judged(LogEntry("", "Warning", "this log could not be read: HTTP 500", message_id=UNREAD))
    assert found[-1].verdict is Verdict.WARN
    assert "could not be read" in found[-1].cause


def test_the_part_that_a_finding_names() -> None:
    """Failures and unknown entries; not logins, and not that a log could not be read."""
    reported = ("Power supply 4 failed.", "something new")
    untold = ("Successfully logged in using root, from 192.0.2.9 and REDFISH.", "PS1 Status, Power Supply Installed")
    assert all(weighs(entry(message)) for message in reported)
    assert not any(weighs(entry(message)) for message in untold)
    assert not weighs(entry("this log could not be read", message_id=UNREAD))


def test_an_empty_log() -> None:
    """Nothing is reported, and nothing stays open."""
    assert [one.verdict for one in judged()] == [Verdict.PASS]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.builds(
            LogEntry,
            st.text(),
            st.sampled_from(["", "OK", "Warning", "Critical"]),
            st.text(),
            st.text(),
            st.text(),
            st.text(),
            st.text(),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_any_entries(entries: list[LogEntry]) -> None:
    """No text breaks it, and no unknown text stops a node without naming its part."""
    for found in judge_log(entries, MACHINE, (), NOW):
        assert found.verdict is not Verdict.FAIL or found.subject != "bmc"


def test_every_rule_has_a_source_and_what_stops_a_node_a_remedy() -> None:
    """The table is what others will add to."""
    rules = shipped_table().rules
    assert all(rule.source for rule in rules)
    assert all(rule.remedy for rule in rules if rule.weight in (Weight.FATAL, Weight.DEGRADED))
    assert all(rule.repairs for rule in rules if rule.weight is Weight.REPAIRED)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{name: a, component: psu, weight: fatal, text: ['('], remedy: x, source: y}", "no regular expression"),
        ("{name: a, component: psu, weight: fatal, remedy: x, source: y}", "fits nothing"),
        ("{name: a, component: psu, weight: repaired, repairs: [b], text: [x], remedy: x, source: y}", "no rule"),
        ("{name: a, component: shoe, weight: fatal, text: [x], remedy: x, source: y}", "component"),
    ],
)
def test_a_broken_table(rule: str, words: str) -> None:
    """File and line of what is wrong."""
    with pytest.raises(UsageError) as caught:
        parse_table(f"version: 1\nrecent_days: 30\nrules:\n  - {rule}\n", where="mine.yml")
    assert "mine.yml:4" in caught.value.where
    assert words in str(caught.value)

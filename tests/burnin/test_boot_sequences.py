"""A POST hang stops a node until a later boot disproves it, or the log is cleared; never longer."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl_burnin.bmc_log.judge import IF_REPAIRED, Past, judge_log
from tests.burnin.test_bmc_log import MACHINE, NOW

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "boot_sequences.yml").read_text())


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def log_of(events: list[Any]) -> list[LogEntry]:
    """What the BMC's log holds after all that happened, newest first."""
    entries: list[LogEntry] = []
    for event in events:
        if event == "clear":
            entries.clear()
            continue
        days, message, *rest = event
        at = "1970-01-01T00:01:38Z" if days is None else ago(days).isoformat()
        entries.append(LogEntry(at, "Critical", message, *rest))
    return sorted(entries, key=lambda entry: entry.at, reverse=True)


def hang(entries: list[LogEntry], posted: str | None = None, host_at: datetime | None = None) -> Finding | None:
    """What is found of the hang."""
    found = judge_log(entries, replace(MACHINE, posted=posted), (), NOW, past=Past(host_at=host_at))
    return next((one for one in found if one.measured == "firmware-hang"), None)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_sequence_has_its_verdict(case: dict[str, Any]) -> None:
    """A hang that stops the node has a remedy that describes how a repaired node goes on."""
    booted = case.get("booted")
    posted = None if booted is None else "" if booted == "now" else ago(booted).isoformat()
    found = hang(log_of(case["events"]), posted, ago(case["host"]) if "host" in case else None)
    assert (found.verdict.value if found else "history") == case["expect"]
    if found is not None and found.verdict is Verdict.FAIL:
        assert found.remedy.endswith(IF_REPAIRED)


@given(st.lists(st.sampled_from(["hang", "boot", "clear"]), max_size=12))
def test_any_sequence(events: list[str]) -> None:
    """The last of hang, boot and clear decides, whatever came before."""
    words = {"hang": "System Firmware Hang", "boot": "C: boot completed"}
    count = len(events)
    log = [one if one == "clear" else [(count - at) / 2, words[one]] for at, one in enumerate(events)]
    found = hang(log_of(log))
    since_clear = events[len(events) - events[::-1].index("clear") :] if "clear" in events else events
    if "hang" not in since_clear:
        assert found is None
        return
    assert found is not None
    last = [one for one in since_clear if one in words][-1]
    assert found.verdict is (Verdict.FAIL if last == "hang" else Verdict.WARN)


def test_a_boot_disproves_nothing_else() -> None:
    """An internal error of a CPU stays what it is: the machine booted with it."""
    entries = log_of([[2, "CPU 2 has an internal error (IERR)."], [1, "C: boot completed"]])
    found = judge_log(entries, replace(MACHINE, posted=""), (), NOW)
    assert [one.verdict for one in found if one.subject == "CPU 2"] == [Verdict.FAIL]

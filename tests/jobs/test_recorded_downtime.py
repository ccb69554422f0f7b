"""The downtime of recorded runs, recomputed from their events alone, and held against the times of Slurm's accounting.

`data/recorded_runs.json`: the events of supervised runs on lab hosts, and what `sacct -X -D` printed of their jobs. Recorded with
tests/edges/slurm/test_failures_on_a_lab.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.codec import payload_from_json
from clusterctl.fleet.event import Event, Stream
from clusterctl.jobs.downtime import RunTime, run_time
from clusterctl.jobs.supervision import fold

RUNS = json.loads((Path(__file__).parent / "data/recorded_runs.json").read_text())
ENDED = "job.attempt_ended"
SLURM_S = 1.0
"""Slurm's times have whole seconds."""


def timed(recorded: Mapping[str, Any]) -> RunTime:
    """Return what the report makes of a recorded run."""
    events = [
        Event(
            seq=seq,
            at=at(one["at"]),
            actor="root",
            run="r",
            stream=Stream.JOB,
            subject=recorded["run"],
            payload=payload_from_json(seq, one["kind"], 1, json.dumps(one["payload"])),
        )
        for seq, one in enumerate(recorded["events"], start=1)
    ]
    found = fold(events)
    assert found is not None
    return run_time(found)


def at(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def ends(recorded: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one["payload"] for one in recorded["events"] if one["kind"] == ENDED]


def between(first: str, last: str) -> float:
    return (at(last) - at(first)).total_seconds()


@pytest.mark.parametrize("recorded", RUNS, ids=lambda one: one["run"])
def test_the_terms_add_up_to_the_wall_clock_of_slurm(recorded: Mapping[str, Any]) -> None:
    """From the first start to the last end, as slurmdbd has them, and no second of it counts twice."""
    jobs = recorded["sacct"]
    clock = between(min(one["start"] for one in jobs), max(one["end"] for one in jobs))
    found = timed(recorded)
    terms = ("startup", "useful", "saving", "lost", "detection", "shutdown", "wait")
    assert sum(getattr(one, term) for one in found.attempts for term in terms) == pytest.approx(clock, abs=SLURM_S)
    assert found.elapsed == pytest.approx(clock, abs=SLURM_S)


@pytest.mark.parametrize("recorded", RUNS, ids=lambda one: one["run"])
def test_each_term_follows_from_the_events(recorded: Mapping[str, Any]) -> None:
    """Recomputed by the formulae of docs/reference/downtime.md, without the code of the report."""
    found, attempts = timed(recorded), ends(recorded)
    assert len(found.attempts) == len(attempts)
    downtime = 0.0
    for number, (one, of) in enumerate(zip(attempts, found.attempts, strict=True)):
        launched, stopped = one["launched"], one["stopped"]
        detected = min(one["detected"], stopped, key=at)
        first = min(one["first_at"] or detected, detected, key=at)
        last = min(one["last_at"] or first, detected, key=at)
        kept = min(one["saved_at"] or first, last, key=at)
        failed = one["state"] != "COMPLETED"
        lost = between(kept, last) if failed else 0.0
        assert of.startup == pytest.approx(between(launched, first))
        assert of.lost == pytest.approx(lost)
        assert of.detection == pytest.approx(between(last, detected))
        assert of.shutdown == pytest.approx(between(detected, stopped))
        assert of.useful + of.saving == pytest.approx(between(first, last) - lost)
        after = attempts[number + 1]["launched"] if number + 1 < len(attempts) else stopped
        assert of.wait == pytest.approx(between(stopped, after))
        downtime += one["saving_s"] + lost + between(last, detected) + between(detected, stopped)
        downtime += between(launched, first) if number else 0.0
    assert found.downtime == pytest.approx(downtime)


def test_there_are_runs_with_restarts_of_all_kinds() -> None:
    """Crashes, a hang that was cancelled, hardware, and runs of one attempt."""
    attempts = [one for recorded in RUNS for one in ends(recorded)]
    assert {one["failure"] for one in attempts} >= {"crash", "hang", "ended"}
    assert {one["layer"] for one in attempts} >= {"hardware", "storage", "application"}
    assert {len(ends(recorded)) for recorded in RUNS} >= {1, 2}

"""Nothing is broken: every machine becomes gold, stays gold through burn-ins, and nothing is held against any of them.

tests/kills holds a fault-free site to the same, and kills its controller again and again: this is the longer campaign.
Run 1 is the whole way to gold, each later one a burn-in of the same machines; CLUSTERCTL_FAULT_FREE_RUNS says how many
(30). Each run prints a line; after the first false finding the campaign goes on and fails at its end.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from clusterctl.fleet.event import Kind
from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.promises import broken_promises
from tests.e2e.site_kit import Site
from tests.events import data_of

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab]

HOSTS = 8
RUNS = int(os.environ.get("CLUSTERCTL_FAULT_FREE_RUNS", "30"))
AGAIN = ("revalidate", "*", "--from-pool", "--reason", "fault-free campaign", "--yes")


def test_eight_sound_machines_become_gold_and_stay_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """In each run exit code 0, all gold, each burnt in once more; over the whole journal no finding that is not PASS."""
    folder = tmp_path_factory.mktemp("f")
    with running_lab("e2ef", "10.159.0.0/16", folder, "--hosts", str(HOSTS)) as lab:
        site, known = Site(lab, folder / "runs"), set[str]()
        for number in range(1, RUNS + 1):
            wrong = [*_run(site, number), *broken_promises(site, HOSTS)]
            new = [line for line in wrong if line not in known]
            known.update(new)
            _print(f"run {number} of {RUNS}: " + ("no false finding" if not new else "\n  ".join(["WRONG", *new])))
        assert not known


def _run(site: Site, number: int) -> Iterator[str]:
    """Make one run; yield what is wrong with how it ended."""
    before = _burnins(site)
    started = time.monotonic()
    run = site.run(*(("bootstrap", "--yes") if number == 1 else AGAIN))
    if run.wait() != 0:
        yield f"run {number} ended with {run.wait()}: {run.stderr[-2000:]}{run.stdout[-2000:]}"
    made = _burnins(site) - before
    if made != HOSTS:
        yield f"run {number} recorded {made} burn-ins, not {HOSTS}"
    _print(f"run {number}: {made} burn-ins in {time.monotonic() - started:.0f} s")


def _burnins(site: Site) -> int:
    """Return how many reports of burn-ins the journal has."""
    if not site.states():
        return 0
    reports = (event for event in site.events() if event.kind is Kind.REPORT_RECORDED)
    return sum(data_of(event)["report"]["step"] == "burnin" for event in reports)


def _print(line: str) -> None:
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")
    sys.stdout.flush()

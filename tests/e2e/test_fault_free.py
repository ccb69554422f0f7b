"""Nothing is broken: every machine becomes gold, stays gold through burn-ins, and nothing is held against any of them.

tests/kills holds a fault-free site to the same, and kills its controller again and again: this is the longer campaign.
Run 1 brings all machines to gold, by the suite as it is shipped. Each later run burns three of them in again with the
fourth, another one each time, as their partner: all checks, all loads, each pair of machines once (`SHORTER`).
CLUSTERCTL_FAULT_FREE_RUNS sets the number of runs (30). Each run prints what it found; a false finding fails the campaign
at its end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime

import pytest

from clusterctl.fleet.event import Kind
from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.promises import broken_promises
from tests.e2e.site_kit import Site
from tests.events import data_of

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab]

HOSTS = 4
SHORTER = {"pair_rounds": HOSTS - 1, "group_rounds": 2, "pair_meetings": 1}
"""How often the loads of several machines are repeated within one of the later runs; the suite has 5, 6 and 3."""
RUNS = int(os.environ.get("CLUSTERCTL_FAULT_FREE_RUNS", "30"))


def test_sound_machines_become_gold_and_stay_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """In each run exit code 0, and all are gold after it; over the whole journal no finding that is not PASS."""
    folder = tmp_path_factory.mktemp("f")
    with running_lab("e2ef", "10.159.0.0/16", folder, "--hosts", str(HOSTS)) as lab:
        site, known = Site(lab, folder / "runs"), set[str]()
        for number in range(1, RUNS + 1):
            wrong = _run(site, number)
            if number == 1:
                _shorten(site)
            new = [line for line in (*wrong, *broken_promises(site, HOSTS)) if line not in known]
            known.update(new)
            _print(f"run {number} of {RUNS}: " + ("no false finding" if not new else "\n  ".join(["WRONG", *new])))
        assert not known


def _run(site: Site, number: int) -> list[str]:
    """Make one run; return in what it differs from one without findings, which burns each of its nodes in once."""
    before, started = _burnins(site), time.monotonic()
    names = [f"node{one:03d}" for one in range(1, HOSTS + 1)]
    partner = names.pop(number % HOSTS)
    again = ("revalidate", *names, "--partner", partner, "--from-pool", "--reason", "fault-free campaign", "--yes")
    run = site.run(*(("bootstrap", "--yes") if number == 1 else again))
    made = _burnins(site) - before
    took = f"{time.monotonic() - started:.0f} s, load average {os.getloadavg()[0]:.0f}"
    _print(f"run {number}: exit code {run.wait()}, {made} burn-ins in {took}")
    wanted = HOSTS if number == 1 else len(names)
    if run.wait() == 0 and made == wanted:
        return []
    return [f"run {number}: exit code {run.wait()}, {made} burn-ins instead of {wanted}: {run.stderr}{run.stdout}"]


def _shorten(site: Site) -> None:
    with (site.folder / "site.yml").open("a") as file:
        file.write(f"\nsuite: {json.dumps(SHORTER)}\n")


def _burnins(site: Site) -> int:
    """Return how many reports of burn-ins the journal has."""
    if not site.states():
        return 0
    reports = (event for event in site.events() if event.kind is Kind.REPORT_RECORDED)
    return sum(data_of(event)["report"]["step"] == "burnin" for event in reports)


def _print(line: str) -> None:
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")
    sys.stdout.flush()

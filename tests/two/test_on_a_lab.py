"""Two at once and a sleeper on a real lab: every OS is written once, nothing is left, and the owners are reported."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from clusterctl.fleet.acts import Act
from lab.tests.lab_kit import eventually, needs_lab, running_lab
from tests.e2e.promises import broken_promises
from tests.e2e.site_kit import Controller, Site

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(3600)]

HOSTS = 4
LEASE_S = 20
MOMENT_S = 600.0
FIRST, SECOND = ("node001", "node002"), ("node003", "node004")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("two")
    with running_lab("two", "10.148.0.0/16", folder, "--hosts", str(HOSTS)) as lab:
        with (lab.site / "site.yml").open("a") as settings:
            settings.write(f"\nclaims: {{lease_s: {LEASE_S}}}\n")
        yield Site(lab, folder / "runs")


def intended(site: Site) -> set[str]:
    """Nodes whose OS is about to be written, or was."""
    return {state.name for state in site.states() if state.intent(Act.INSTALL_START)}


def stopped_quietly(site: Site, run: Controller) -> bool:
    """Stop it, but not during a write: it would keep SQLite's lock while it is stopped, and the others would wait for that."""
    os.kill(run.pid, signal.SIGSTOP)
    try:
        with closing(sqlite3.connect(site.journal_file, timeout=0.0, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        os.kill(run.pid, signal.SIGCONT)
        return False
    return True


def arrives(site: Site, argv: tuple[str, ...]) -> Controller:
    """The command again and again, as long as other runs hold some of its nodes; its last run."""
    runs: list[Controller] = []

    def alone() -> bool:
        runs.append(site.run(*argv))
        return "left alone" not in runs[-1].stderr

    assert eventually(alone, MOMENT_S)
    return runs[-1]


def test_two_runs_and_a_sleeper_write_every_os_once(site: Site) -> None:
    """The first run has two nodes and is stopped while it installs them; a second on all four does the other two and
    names the holder; a third takes the two over once the claims expired; the sleeper wakes, does nothing and reports it.

    At the end all are gold, every OS was written once, no claim, process or folder is left.
    """
    bootstrap = ("bootstrap", "--yes")
    with site.start(*bootstrap, "--limit", "node00[12]") as first:
        assert eventually(lambda: first.ended or intended(site) >= set(FIRST), MOMENT_S)
        assert not first.ended, first.stderr
        second = site.start(*bootstrap)
        with second:
            assert eventually(lambda: second.ended or intended(site) > set(FIRST), MOMENT_S)
            assert not second.ended, second.stderr
            assert eventually(lambda: stopped_quietly(site, first), MOMENT_S)
            assert second.wait() == 1, second.stderr
        (line,) = (line for line in second.stderr.splitlines() if line.startswith("left alone: "))
        assert line.startswith(f"left alone: {', '.join(FIRST)}: held by clusterctl bootstrap of ")
        assert f"pid {first.pid} on" in line
        assert {name for name, stage in site.stages().items() if stage == "gold"} == set(SECOND)

        third = arrives(site, bootstrap)
        assert third.wait() == 0, third.stderr
        os.kill(first.pid, signal.SIGCONT)
        assert first.wait() == 1, first.stderr
        assert f"left alone: {', '.join(FIRST)}: held by another run since" in first.stderr
    assert not broken_promises(site, HOSTS)

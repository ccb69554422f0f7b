"""Installs as such, in a lab: the disks that hosts report, waves that stop by themselves, an OS replaced by order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusterctl.fleet.event import Kind, Stream
from lab.tests.lab_kit import eventually, needs_lab, running_lab
from tests.e2e.promises import unfolded
from tests.e2e.site_kit import Site
from tests.events import data_of

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(3600)]

BROKEN = ("node001", "node002")
GOOD = "node003"
WAVES = "waves: {canary: 1, at_once: 2, per_rack: 1, stop_percent: 20, of_at_least: 2, patience_s: 600}"
REINSTALL = ("install", "--reinstall", GOOD, "--reason", "another kernel", "--yes")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Four machines, the first two of which boot an older OS; the site's waves are strict."""
    folder = tmp_path_factory.mktemp("installs")
    with running_lab("stinst", "10.175.0.0/16", folder, "--hosts", "4") as lab:
        for name in BROKEN:
            lab("inject", "wrong-boot-disk", name)
        text = (lab.site / "site.yml").read_text()
        (ours,) = (line for line in text.splitlines() if line.startswith("waves:"))
        (lab.site / "site.yml").write_text(text.replace(ours, WAVES))
        site = Site(lab, folder / "runs")
        assert site.run("discover", "--yes").wait() == 0
        yield site


def stages(site: Site) -> dict[str, str]:
    return {state.name: state.stage.value for state in site.states()}


def kinds(site: Site, name: str) -> list[Kind]:
    node = next(state for state in site.states() if state.name == name)
    with site.journal() as journal:
        return [event.kind for event in journal.history(Stream.NODE, node.id)]


def test_two_bad_canaries_and_no_more(site: Site) -> None:
    """Exit code 1, the run prints that and why it stopped; nodes that had no turn keep their stage, with the cause."""
    stopped = site.run("install", "--yes")
    assert stopped.wait() == 1
    assert "install STOPPED for all nodes that have not begun: 2 of the last 2 machines failed" in stopped.stderr
    rest = {name for name, stage in stages(site).items() if stage == "discovered"}
    assert rest == {"node003", "node004"}
    (line,) = [line for line in stopped.stderr.splitlines() if line.startswith("left alone:")]
    assert "node003, node004: install was not begun" in line
    with site.journal() as journal:
        assert [data_of(event)["step"] for event in journal.latest(Stream.RUN, Kind.WAVES_STOPPED)] == ["install"]
    assert not any(site.lab.machine(name)["installed"] for name in rest)


def test_the_next_run_begins_again(site: Site) -> None:
    """With a canary, and takes them all; each host has reported the disk that it runs from."""
    again = site.run("install", "--yes", "--limit", "node00[34]")
    assert again.wait() == 0, again.stderr
    assert list(stages(site).values()).count("installed") == 2
    for state in site.states():
        if state.name in BROKEN:
            continue
        reported = {finding.check: finding for finding in state.reports["install"].findings}
        assert (reported["root_disk_booted"].verdict.value, reported["root_disk_booted"].measured) == (
            "pass",
            state.root_disk,
        )
        assert reported["data_disks"].verdict.value == "pass"


def test_installed_is_left_as_it_is(site: Site) -> None:
    """The step alone finds nothing to do; a dry run of --reinstall prints what it would do, and changes nothing."""
    events = len(kinds(site, GOOD))
    assert site.run("install", "--yes", "--limit", GOOD).wait() == 0
    plan = site.run(*REINSTALL, "--dry-run")
    assert plan.wait() == 0, plan.stderr
    assert "the OS on its disk BOSS0003 is overwritten" in plan.stdout
    assert len(kinds(site, GOOD)) == events
    assert site.lab.machine(GOOD)["installs"] == 1


def test_killed_after_the_order_it_is_replaced_once(site: Site) -> None:
    """Kill -9 once it is ordered: the next install goes on with it, writes the OS once, and holds it to a new key."""
    before = next(state for state in site.states() if state.name == GOOD)
    with site.start(*REINSTALL) as first:
        assert eventually(lambda: Kind.REINSTALL_ORDERED in kinds(site, GOOD), 60), first.stderr
        first.kill()
    again = site.run("install", "--yes", "--limit", GOOD)
    assert again.wait() == 0, again.stderr
    after = next(state for state in site.states() if state.name == GOOD)
    assert (after.stage.value, after.reinstall, after.serial) == ("installed", "", before.serial)
    assert after.host_key != before.host_key
    assert kinds(site, GOOD).count(Kind.REINSTALL_ORDERED) == 1
    assert site.lab.machine(GOOD)["installs"] == 2
    assert list(unfolded(site)) == []

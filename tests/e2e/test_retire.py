"""A machine leaves for good: installed, then erased by the installer, off, and out of the site's life."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.fleet.event import Kind, Stream
from clusterctl.steps.retire import erasing_seen
from lab.tests.lab_kit import eventually, needs_lab, running_lab
from tests.e2e.promises import unfolded
from tests.e2e.site_kit import Site
from tests.events import data_of

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(3600)]

NAME = "node001"
WIPE = ("retire", NAME, "--wipe", "--reason", "lease ended")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two machines with an OS on each."""
    folder = tmp_path_factory.mktemp("retire")
    with running_lab("e2eret", "10.160.0.0/16", folder, "--hosts", "2") as lab:
        site = Site(lab, folder / "runs")
        installed = site.run("bootstrap", "--until", "install", "--yes")
        assert installed.wait() == 0, installed.stderr
        yield site


def serial(site: Site, name: str) -> str:
    return str(site.ask("nodes", name)["nodes"][0]["serial"])


def acts(site: Site) -> list[str]:
    """What was done to the machine on its way out."""
    node = next(state for state in site.states() if state.name == NAME)
    with site.journal() as journal:
        events = list(journal.history(Stream.NODE, node.id))
    return [
        data_of(event)["act"]
        for event in events
        if event.kind is Kind.ACT_INTENDED and "retire" in data_of(event)["act"]
    ]


def erasing(site: Site) -> bool:
    """Whether it is known that MAAS erases: one that is found given back later was erased then."""
    node = next(state for state in site.states() if state.name == NAME)
    with site.journal() as journal:
        return erasing_seen(journal.state(node.id).intents)


def test_the_plan_names_the_drives_and_touches_nothing(site: Site) -> None:
    """As the BMC has reported them: the BOSS root disk and the data drives, by serial and size."""
    effects = [effect["text"] for effect in site.ask(*WIPE, "--dry-run")["effects"]]
    assert all(f"serial {serial(site, NAME)}: erase" in text for text in effects)
    assert any("serial BOSS0001" in text for text in effects)
    assert site.lab.machine(NAME)["installed"] is True
    assert acts(site) == []


def test_another_serial_erases_nothing(site: Site) -> None:
    """Exit code 2, in words."""
    refused = site.run(*WIPE, "--yes", "--serial", serial(site, "node002"))
    assert refused.wait() == 2
    assert f"is not the serial of {NAME}: nothing was done" in refused.stderr
    assert site.lab.machine(NAME)["installed"] is True


def test_killed_in_the_middle_it_is_erased_once_and_retired(site: Site) -> None:
    """The controller dies while MAAS erases; the same command goes on: one erase, an empty and dark machine."""
    known = serial(site, NAME)
    with site.start(*WIPE, "--yes", "--serial", known) as first:
        assert eventually(lambda: erasing(site), 60), first.stderr
        first.kill()
    again = site.run(*WIPE, "--yes", "--serial", known)
    assert again.wait() == 0, again.stderr
    assert "its drives are erased, it is off" in again.stdout
    machine = site.lab.machine(NAME)
    assert (machine["installed"], machine["power"]) == (False, "off")
    assert acts(site) == ["retire.erase", "retire.power_off"]
    node = next(state for state in site.states() if state.name == NAME)
    assert (node.stage.value, node.open_acts) == ("retired", ())
    assert list(unfolded(site)) == []


def test_it_is_not_selected_again(site: Site) -> None:
    """Bootstrap leaves it alone; it is listed as retired, and the other machine goes on."""
    assert site.stages()[NAME] == "retired"
    site.run("discover", "--yes").wait()
    assert site.lab.machine(NAME)["power"] == "off"
    assert json.loads(site.lab("status", "--json"))["machines"][1]["installed"] is True


def test_no_secret_is_printed_on_the_way(site: Site) -> None:
    """The output and the files of erasing contain no password and no key."""
    secrets = [(site.folder / "secrets" / name).read_text().strip() for name in ("bmc-password", "maas-api-key")]
    output = "".join(path.read_text(errors="replace") for path in Path(site.scratch).rglob("*") if path.is_file())
    assert len(output) > 1000
    assert not [secret for secret in secrets if secret in output]

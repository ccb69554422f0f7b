"""`clusterctl power`, as an operator types it, against a BMC that answers over TLS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import open_site
from tests.cli.site_of_three import run
from tests.edges.redfish.replay import PASSWORD, Bmc, serve
from tests.edges.redfish.test_screen import openbmc
from tests.edges.redfish.trees import small
from tests.edges.site.ready import write_ready_site
from tests.steps.fakes import identified

SYSTEM = "/redfish/v1/Systems/1"
WHY = ("--reason", "ticket 7")
Place = tuple[Path, Bmc]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A site of n1, whose BMC answers, and n2, whose BMC does not; both are discovered."""
    with serve(small(), tmp_path) as (server, address):
        site = write_ready_site(tmp_path / "site")
        (site / "bmcs.csv").write_text("name,bmc_address,serial,rack\nn1,127.0.0.1,EX00042,A01\nn2,127.0.0.2,S2,A01\n")
        (site / "secrets" / "bmc-password").write_text(PASSWORD)
        text = (site / "site.yml").read_text()
        text = text.replace("  ca_file: bmc-ca.pem", f"  ca_file: {address.ca_file}\n  port: {address.port}")
        (site / "site.yml").write_text(text)
        server.tree[SYSTEM]["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = [
            "On",
            "ForceOff",
        ]
        journal = open_site(site).journal
        identified(journal, "n1", "EX00042")
        identified(journal, "n2", "S2")
        journal.close()
        yield site, server


def history(site: Path, name: str) -> str:
    return run(site, "nodes", name).stdout


def as_json(site: Path, *words: str) -> tuple[int, Any]:
    done = run(site, *words, "--json")
    return done.return_value, json.loads(done.stdout)


def test_status_of_those_that_answer_and_those_that_do_not(place: Place) -> None:
    """Each node's power; exit code 1 where one could not be asked, with why."""
    site, server = place
    code, reported = as_json(site, "power", "status", "n*")
    assert code == 1
    assert reported["nodes"][0] == {"name": "n1", "text": "on", "power": "on", "error": None}
    assert reported["nodes"][1]["power"] == "unknown"
    assert reported["nodes"][1]["error"]["kind"] == "unreachable"
    assert server.resets == []


def test_off_on_and_history(place: Place) -> None:
    """Done, seen, reported; the node's history has the act and the reason."""
    site, server = place
    code, reported = as_json(site, "power", "off", "n1", *WHY, "--yes")
    assert (code, reported["nodes"]) == (0, [{"name": "n1", "text": "off", "power": "off", "error": None}])
    assert as_json(site, "power", "on", "n1", *WHY, "--yes")[0] == 0
    assert server.resets == ["ForceOff", "On"]
    assert "about to power.off on EX00042: ticket 7" in history(site, "n1")


def test_it_asks(place: Place) -> None:
    """And a no is a no."""
    site, server = place
    with pytest.raises(click.exceptions.Abort):
        run(site, "power", "off", "n1", *WHY, typed="n\n")
    assert server.resets == []
    assert run(site, "power", "off", "n1", *WHY, typed="y\n").return_value == 0


def test_a_dry_run(place: Place) -> None:
    """Prints what it would do; asks no BMC."""
    site, server = place
    assert "Nothing was changed" in run(site, "power", "off", "n1", *WHY, "--dry-run").stdout
    assert server.asked == []


def test_the_budget(place: Place) -> None:
    """More than the site allows to go off at once takes a word more."""
    site, server = place
    (site / "site.yml").write_text((site / "site.yml").read_text() + "\npower: {at_most: 1}\n")
    with pytest.raises(UsageError, match="the budget is 1") as caught:
        run(site, "power", "off", "n*", *WHY, "--yes")
    assert caught.value.where == "--at-most"
    assert server.asked == []


def test_another_machine_at_the_address(place: Place) -> None:
    """It is not touched; exit code 1, and the history has the reason."""
    site, server = place
    server.tree[SYSTEM]["SerialNumber"] = "EX77777"
    code, reported = as_json(site, "power", "off", "n1", *WHY, "--yes")
    assert code == 1
    assert "belongs to machine EX77777" in reported["nodes"][0]["error"]["message"]
    assert server.resets == []


NOW = ("--screen-after", "0")
ISO = "https://images.example.net/debian-12.iso"
SLOT = "/redfish/v1/Managers/1/VirtualMedia/CD"


def with_virtual_drive(server: Bmc) -> None:
    """Give the BMC an empty virtual drive and a boot override."""
    manager = "/redfish/v1/Managers/1"
    server.tree[manager]["VirtualMedia"] = {"@odata.id": f"{manager}/VirtualMedia"}
    server.tree[f"{manager}/VirtualMedia"] = {"Members": [{"@odata.id": SLOT}]}
    actions = {
        f"#VirtualMedia.{name}": {"target": f"{SLOT}/Actions/VirtualMedia.{name}"}
        for name in ("InsertMedia", "EjectMedia")
    }
    server.tree[SLOT] = {"MediaTypes": ["CD", "DVD"], "Inserted": False, "Image": None, "Actions": actions}
    server.tree[SYSTEM]["Boot"] = {
        "BootSourceOverrideEnabled": "Disabled",
        "BootSourceOverrideTarget": "None",
        "BootSourceOverrideMode": "UEFI",
        "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Cd", "Hdd"],
    }


def test_booted_once_from_an_image_and_ejected(place: Place) -> None:
    """The image is in the drive, the next boot is from it, the machine was cycled; `--eject` takes the image out."""
    site, server = place
    with_virtual_drive(server)
    code, reported = as_json(site, "power", "boot", "n1", "--iso", ISO, *NOW, *WHY, "--yes")
    assert (code, reported["nodes"][0]["inserted"]) == (0, True), reported
    assert server.tree[SLOT]["Image"] == ISO
    assert server.tree[SYSTEM]["Boot"]["BootSourceOverrideTarget"] == "Cd"
    assert server.resets == ["ForceOff", "On"]
    assert "ticket 7" in history(site, "n1")
    code, reported = as_json(site, "power", "boot", "n1", "--iso", ISO, "--eject", *WHY, "--yes")
    assert (code, reported["nodes"][0]["text"]) == (0, "ejected"), reported
    assert not server.tree[SLOT]["Inserted"]
    assert server.resets == ["ForceOff", "On"]


def test_what_the_console_showed_is_printed_from_the_journal(place: Place) -> None:
    """The lines that OpenBMC has of the serial console, by the digest that the command prints; nothing else has to be known."""
    site, server = place
    shown = openbmc("Loading the installer", "Partitioning nvme0n1")
    server.tree.update({path: answer for path, answer in shown.items() if "/LogServices" in path})
    with_virtual_drive(server)
    done = run(site, "power", "boot", "n1", "--iso", ISO, *NOW, *WHY, "--yes")
    assert done.return_value == 0
    digest = done.stdout.rpartition("clusterctl nodes n1 --evidence ")[2].split()[0]
    assert run(site, "nodes", "n1", "--evidence", digest).stdout == "Loading the installer\nPartitioning nvme0n1"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("n1", "--iso", "file:///root/x.iso"), "no http or https"),
        (("n1", "--iso", "https://user:word@images.example.net/x.iso"), "login"),
        (("n9", "--iso", ISO), "no node matches"),
        (("--iso", ISO), "no node is named"),
    ],
)
def test_an_image_that_is_refused(place: Place, words: tuple[str, ...], expected: str) -> None:
    """A wrong URL or node is wrong usage; no BMC is asked, and a preview changes nothing."""
    site, server = place
    with pytest.raises(UsageError) as caught:
        run(site, "power", "boot", *words, *WHY, "--yes")
    assert caught.value.remedy
    assert "word@" not in str(caught.value)
    assert expected in str(caught.value)
    shown = run(site, "power", "boot", "n1", "--iso", ISO, *WHY, "--dry-run").stdout
    assert f"n1: power cycle, boot once from {ISO}" in shown
    assert server.asked == []

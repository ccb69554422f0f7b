"""`clusterctl bmc clear-log`, as an operator types it, against a BMC that answers over TLS."""

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
from tests.edges.redfish.replay import PASSWORD, Bmc, Handler, serve
from tests.edges.redfish.trees import small
from tests.edges.site.ready import write_ready_site
from tests.steps.fakes import identified

SYSTEM = "/redfish/v1/Systems/1"
SEL = f"{SYSTEM}/LogServices/SEL"
CLEAR = f"{SEL}/Actions/LogService.ClearLog"
WHY = ("--reason", "the fan is repaired")
Place = tuple[Path, Bmc]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A site of n1, whose BMC answers and has a log of one entry."""
    with serve(small(), tmp_path) as (server, address):
        site = write_ready_site(tmp_path / "site")
        (site / "bmcs.csv").write_text("name,bmc_address,serial,rack\nn1,127.0.0.1,EX00042,A01\n")
        (site / "secrets" / "bmc-password").write_text(PASSWORD)
        text = (site / "site.yml").read_text()
        text = text.replace("  ca_file: bmc-ca.pem", f"  ca_file: {address.ca_file}\n  port: {address.port}")
        (site / "site.yml").write_text(text)
        _with_log(server)
        journal = open_site(site).journal
        identified(journal, "n1", "EX00042")
        journal.close()
        yield site, server


def _with_log(server: Bmc) -> None:
    entries = f"{SEL}/Entries"
    entry = {"@odata.id": f"{entries}/1", "Id": "1", "Created": "2026-01-01T00:00:00Z", "Message": "A fan failed."}
    server.tree[SYSTEM]["LogServices"] = {"@odata.id": f"{SYSTEM}/LogServices"}
    server.tree[f"{SYSTEM}/LogServices"] = {"Members": [{"@odata.id": SEL}]}
    actions = {"#LogService.ClearLog": {"target": CLEAR}}
    server.tree[SEL] = {"@odata.id": SEL, "Id": "SEL", "Entries": {"@odata.id": entries}, "Actions": actions}
    server.tree[entries] = {"@odata.id": entries, "Members": [entry]}

    def cleared(handler: Handler) -> None:
        server.tree[entries]["Members"] = []
        handler.reply(204, None)

    server.faults["POST", CLEAR] = [cleared]


def as_json(site: Path, *words: str) -> tuple[int, Any]:
    done = run(site, *words, "--json")
    return done.return_value, json.loads(done.stdout)


def asked_to_clear(server: Bmc) -> int:
    return server.asked.count(("POST", CLEAR))


def test_kept_and_cleared(place: Place) -> None:
    """Reported, and in the node's history with the reason; the old entries can be read from the journal. Again: nothing."""
    site, server = place
    code, reported = as_json(site, "bmc", "clear-log", "n1", *WHY, "--yes")
    assert code == 0
    (log,) = reported["nodes"]
    assert (log["name"], log["entries"], log["error"]) == ("n1", 1, None)
    history = run(site, "nodes", "n1").stdout
    assert "about to log.clear on EX00042: the fan is repaired" in history
    journal = open_site(site).journal
    kept = journal.evidence(log["evidence"][0])
    assert kept is not None
    assert b"A fan failed." in kept.content
    journal.close()
    assert as_json(site, "bmc", "clear-log", "n1", *WHY, "--yes")[1]["nodes"][0]["entries"] == 0
    assert asked_to_clear(server) == 1


def test_it_asks(place: Place) -> None:
    """And a no is a no."""
    site, server = place
    with pytest.raises(click.exceptions.Abort):
        run(site, "bmc", "clear-log", "n1", *WHY, typed="n\n")
    assert asked_to_clear(server) == 0


def test_a_dry_run(place: Place) -> None:
    """Asks no BMC."""
    site, server = place
    assert "Nothing was changed" in run(site, "bmc", "clear-log", "n*", *WHY, "--dry-run").stdout
    assert server.asked == []


def test_another_machine_at_the_address(place: Place) -> None:
    """It is not touched; exit code 1, and why."""
    site, server = place
    server.tree[SYSTEM]["SerialNumber"] = "EX77777"
    code, reported = as_json(site, "bmc", "clear-log", "n1", *WHY, "--yes")
    assert code == 1
    assert "belongs to machine EX77777" in reported["nodes"][0]["error"]["message"]
    assert asked_to_clear(server) == 0


def test_without_a_reason_worth_reading(place: Place) -> None:
    """Refused before any BMC is asked."""
    site, server = place
    with pytest.raises(UsageError):
        run(site, "bmc", "clear-log", "n1", "--reason", " ", "--yes")
    assert server.asked == []

"""`clusterctl bmc check|apply`, as an operator types it, against a BMC that answers over TLS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import open_site
from tests.cli.site_of_three import run
from tests.edges.redfish.replay import PASSWORD, Bmc, serve
from tests.edges.redfish.test_services import PORT, PROTOCOL, with_services
from tests.edges.redfish.trees import small
from tests.edges.site.ready import write_ready_site
from tests.steps.fakes import identified

SERVICES = "  services: {ntp: [10.0.0.1, NTP2.example], dns: [10.0.0.2]}"
Place = tuple[Path, Bmc]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A site of n1, whose BMC answers, and n2, which no discover has found yet."""
    with serve(with_services(small()), tmp_path) as (server, address):
        site = write_ready_site(tmp_path / "site")
        (site / "bmcs.csv").write_text("name,bmc_address,serial\nn1,127.0.0.1,EX00042\nn2,127.0.0.2,\n")
        (site / "secrets" / "bmc-password").write_text(PASSWORD)
        text = (site / "site.yml").read_text()
        reached = f"  ca_file: {address.ca_file}\n  port: {address.port}\n{SERVICES}"
        text = text.replace("  ca_file: bmc-ca.pem", reached)
        (site / "site.yml").write_text(text)
        journal = open_site(site).journal
        identified(journal, "n1", "EX00042", "gold")
        journal.close()
        yield site, server


def as_json(site: Path, *words: str) -> tuple[int, Any]:
    done = run(site, *words, "--json")
    return done.return_value, json.loads(done.stdout)


def test_checked_applied_checked(place: Place) -> None:
    """A gold node, too: nothing of the machine is touched. What differs is named first, and right afterwards."""
    site, server = place
    code, found = as_json(site, "bmc", "check")
    states = found["nodes"][0]["services"]
    assert (code, {name: one["right"] for name, one in states.items()}) == (1, {"clock": False, "dns": False})
    assert "n2" in found["skipped"]
    assert server.patched == []
    assert "set what differs" in run(site, "bmc", "apply", "n1", "--dry-run").stdout
    assert server.patched == []
    assert run(site, "bmc", "apply", "n1", "--yes").return_value == 0
    assert server.tree[PROTOCOL]["NTP"] == {"ProtocolEnabled": True, "NTPServers": ["10.0.0.1", "ntp2.example"]}
    assert server.tree[PORT]["StaticNameServers"] == ["10.0.0.2"]
    assert as_json(site, "bmc", "check", "n1")[0] == 0


WRONG = (
    "{}",
    "{ntp: [10.0.0.1, 10.0.0.2, 10.0.0.3]}",
    "{dns: [ns.example]}",
    "{ntp: [10.0.0.256]}",
    "{syslog: 'log.example:514'}",
    "{dns: [0.0.0.0]}",
)


def test_a_wrong_section(place: Place) -> None:
    """Names the section; no BMC is asked. The error for a site without one has what to write."""
    site, server = place
    file = site / "site.yml"
    text = file.read_text()
    for services in WRONG:
        file.write_text(text.replace(SERVICES, f"  services: {services}"))
        with pytest.raises(UsageError, match="services"):
            run(site, "bmc", "check")
    file.write_text(text.replace(SERVICES, ""))
    with pytest.raises(UsageError, match="does not name"):
        run(site, "bmc", "apply", "n1", "--yes")
    assert server.asked == []

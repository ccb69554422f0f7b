"""`clusterctl fabric watch` and `fabric repaired` as an operator types them, the tools being small scripts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid
from clusterctl_burnin.package_data import text_of
from clusterctl_cli.main import run
from tests.cli.test_cable_disable import FABRIC as SMALL
from tests.cli.test_cable_disable import PLAN, UPLINK, site
from tests.formats.infiniband import printers

__all__ = ["site"]


def larger() -> Fabric:
    """The two switches with six more hosts: one bad link is less than 10 % of the links."""
    hosts = {
        guid: Device(guid, DeviceKind.CA, f"node{n:03} mlx5_0", 1, port_guids=(guid,), lids=(40 + n,))
        for n in range(11, 17)
        for guid in [Guid(f"{0xE0 + n:016x}")]
    }
    switches = {guid: replace(one, ports=36) for guid, one in SMALL.devices.items() if one.kind is DeviceKind.SWITCH}
    links = tuple(Link(PortId(UPLINK.a.guid, 10 + n), PortId(guid, 1), 4, "NDR") for n, guid in enumerate(hosts))
    return Fabric({**SMALL.devices, **switches, **hosts}, (*links, *SMALL.links))


FABRIC = larger()


def with_watch(site: Path, act: bool) -> None:
    (site.parent / "fabric").write_text(printers.ibnetdiscover(FABRIC))
    (site.parent / "cut").write_text(printers.ibnetdiscover(Fabric(FABRIC.devices, FABRIC.links[:-1])))
    (site.parent / "quiet").write_text(printers.ibqueryerrors(FABRIC, {}))
    settings = (site / "site.yml").read_text()
    (site / "site.yml").write_text(
        settings.replace("\nfabric:\n", f"\nfabric:\n  watch: {{act: {str(act).lower()}}}\n")
    )
    (site / "wiring.csv").write_text(PLAN)


def watched(site: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    assert run(["fabric", "watch", "--once", "--json", "--site", str(site), *words]) in (0, 1)
    found: dict[str, object] = json.loads(capsys.readouterr().out)["watch"]
    return found


def errors(site: Path, count: int) -> None:
    (site.parent / "ill").write_text(printers.ibqueryerrors(FABRIC, {UPLINK.a: {"SymbolErrorCounter": count}}))


@pytest.mark.parametrize("act", [False, True])
def test_a_bad_link(site: Path, act: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """It is disabled where the site orders it, and only named otherwise; the incident has both ends."""
    with_watch(site, act)
    assert watched(site, capsys)["verdict"] == "inconclusive"
    errors(site, 60000)
    found = watched(site, capsys)
    assert (found["verdict"], found["bad"], found["acts"]) == ("fail", 1, act)
    assert (site.parent / "out").exists() is act
    assert ("leaf-1 port 5" in str(found["would"])) is not act
    assert run(["incident", "list", "--site", str(site), "--json"]) == 0
    (incident,) = [one for one in json.loads(capsys.readouterr().out)["incidents"] if one["about"] == "links"]
    assert incident["code"] == ("bad_link" if act else "bit_errors")


def test_the_sites_own_limits(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link that the shipped limits call bad is left in use where the site's limits allow its errors."""
    with_watch(site, act=True)
    watched(site, capsys)
    errors(site, 60000)
    mild = text_of("limits/fabric/ndr.yml").replace("1.0e-14", "1.0e-2").replace("1.0e-15", "1.0e-2")
    (site / "mild.yml").write_text(mild)
    settings = (site / "site.yml").read_text()
    (site / "site.yml").write_text(settings.replace("\nfabric:\n", "\nfabric:\n  limits: mild.yml\n"))
    assert watched(site, capsys)["bad"] == 0
    assert not (site.parent / "out").exists()


def test_a_dry_run_acts_on_nothing(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--dry-run` overrides the site file; the text names what would be done."""
    with_watch(site, act=True)
    watched(site, capsys, "--dry-run")
    errors(site, 60000)
    capsys.readouterr()
    assert run(["fabric", "watch", "--once", "--dry-run", "--site", str(site)]) in (0, 1)
    text = capsys.readouterr().out
    assert "would: leaf-1 port 5: disable in rack" in text
    assert "changes nothing" in text
    assert not (site.parent / "out").exists()


def test_repaired(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A repair that is reported enables the port in the next pass; a port that is in use is refused."""
    with_watch(site, act=True)
    watched(site, capsys)
    errors(site, 60000)
    watched(site, capsys)
    args = ["--reason", "new cable", "--site", str(site)]
    assert run(["fabric", "repaired", "leaf-1:3", *args]) == 2
    assert "these are: leaf-1 port 5" in capsys.readouterr().err
    assert run(["fabric", "repaired", "leaf-1:5", *args]) == 0
    assert "leaf-1 port 5: repaired" in capsys.readouterr().out
    found = watched(site, capsys)
    assert not (site.parent / "out").exists()
    assert found["waiting"] == {"leaf-1 port 5": "its counters are watched"}


def test_a_fabric_that_cannot_be_read(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a problem with exit code 1, and no port is touched."""
    with_watch(site, act=True)
    (site.parent / "ibnetdiscover").write_text("#!/bin/sh\nexit 1\n")
    assert run(["fabric", "watch", "--once", "--site", str(site)]) == 1
    assert "not read: the fabric could not be read" in capsys.readouterr().out

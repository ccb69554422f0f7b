"""`clusterctl plan --network` shows each host's network before anything is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterctl_cli.main import run
from tests.edges.site.ready import write_ready_site

NETWORK = """
network:
  rules:
    - nodes: ["node*"]
      ports:
        - {name: mgmt0, port: boot, address: number, network: 10.30.0.0/16, gateway: 10.30.255.254}
"""
SHEET = (
    "name,bmc_address,boot_mac,address\n"
    "node001,10.20.0.11,5c:ed:8c:00:00:01,\n"
    "node002,10.20.0.12,,\n"
    "login1,10.20.0.13,,10.31.0.1\n"
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_ready_site(tmp_path / "site")
    (folder / "site.yml").write_text((folder / "site.yml").read_text() + NETWORK)
    (folder / "bmcs.csv").write_text(SHEET)
    return folder


def test_each_hosts_network_is_shown(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The netplan file, byte for byte; why there is none yet; or that the installer decides."""
    assert run(["plan", "--network", "--site", str(site)]) == 0
    text = capfd.readouterr().out
    assert "node001: 10.30.0.1\n/etc/netplan/90-clusterctl.yaml:\n" in text
    assert "macaddress: 5c:ed:8c:00:00:01" in text
    assert "node002: 10.30.0.2\n  which port is mgmt0" in text
    assert "login1: 10.31.0.1\n  the installer's own way\n" in text


def test_as_json_it_is_one_document(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Stable keys: name, address, netplan, problem."""
    assert run(["plan", "--network", "--json", "--site", str(site)]) == 0
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)["networks"]}
    assert rows["node001"]["netplan"]["network"]["ethernets"]["mgmt0"]["addresses"] == ["10.30.0.1/16"]
    assert "which port is mgmt0" in rows["node002"]["problem"]
    assert rows["login1"] == {"name": "login1", "address": "10.31.0.1", "netplan": {}, "problem": ""}

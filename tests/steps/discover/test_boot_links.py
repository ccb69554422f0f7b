"""The boot port's link: a warning only where another port of the machine proves that its BMC reads links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.node import Mac, Nic, NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.steps.discover.findings import boot_ports
from tests.steps.fakes import inventory

CASES = yaml.safe_load((Path(__file__).parent / "data/boot_links.yml").read_text())
LINKS = {"up": True, "down": False, None: None}


def mac(number: int) -> Mac:
    return Mac(f"02:00:00:00:00:{number:02x}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_boot_links(case: dict[str, Any]) -> None:
    """Verdict, code and part are those of the case; a finding names each port without a link."""
    ports = [
        Nic(port["slot"], mac(at), port.get("boots", False), LINKS[port.get("link")])
        for at, port in enumerate(case["ports"])
    ]
    named = next((port.mac for port in ports if port.slot == case.get("boot_mac")), None)
    node = NodeState(NodeId("id1"), "n1", boot_mac=named)
    found = boot_ports(node, replace(inventory("S1"), nics=tuple(ports)))
    assert (found.verdict.value, found.code.value) == (case["verdict"], case["code"])
    assert found.subject == case.get("subject", "node")
    if case["code"] == "boot_port_no_link":
        assert found.remedy
        assert not found.deterministic

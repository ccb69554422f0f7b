"""A host with adapters in Ethernet mode: what its stand-ins print, and what the checks make of it."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Verdict
from clusterctl.formats.infiniband.roce import parse_roce_ports
from clusterctl_lab.faults import find
from clusterctl_lab.healthy import build, with_roce
from clusterctl_lab.layout import Layout
from lab.tests.emulators.host_tools.offline_kit import roce_findings
from lab.tests.emulators.host_tools.tools_kit import ToolBox

MACHINE = with_roce(build(3, Layout(IPv4Network("10.88.0.0/16")), "unused"))
HARMLESS = (Verdict.PASS, Verdict.NOT_APPLICABLE)


def test_all_checks_pass_but_for_the_addresses_that_only_a_running_host_has(tmp_path: Path) -> None:
    """No check expects InfiniBand of it; without addresses of the rails `roce` reports that it could not measure."""
    found = [one for one in roce_findings(MACHINE, tmp_path) if one.verdict not in HARMLESS]
    assert {one.check for one in found} == {"roce"}
    assert {one.verdict for one in found} == {Verdict.INCONCLUSIVE}
    assert len(found) == len(MACHINE.hcas)


def test_flow_control_that_is_off_is_seen_at_its_adapter_alone(tmp_path: Path) -> None:
    """The program's document differs for this one; in InfiniBand mode the fault is refused."""
    broken = find("no-flow-control").apply(MACHINE, "mlx5_3")
    ports = parse_roce_ports(ToolBox(tmp_path, broken).run("roce-ports").stdout)
    assert {port.name: port.pfc for port in ports if port.pfc != (3,)} == {"mlx5_3": ()}
    found = [one for one in roce_findings(broken, tmp_path) if one.verdict is Verdict.FAIL]
    assert [(one.check, one.subject) for one in found] == [("roce", "mlx5_3")]
    with pytest.raises(UsageError, match="InfiniBand mode"):
        find("no-flow-control").apply(build(3, Layout(IPv4Network("10.88.0.0/16")), "unused"), "mlx5_3")


def test_each_adapter_receives_its_switch(tmp_path: Path) -> None:
    """The first NIC its management switch, each adapter the switch and the port of its cable."""
    box = ToolBox(tmp_path, MACHINE)
    interfaces = json.loads(box.run("lldpctl", "-f", "json0").stdout)["lldp"][0]["interface"]
    received = {
        one["name"]: (one["chassis"][0]["name"][0]["value"], one["port"][0]["id"][0]["value"]) for one in interfaces
    }
    cables = {f"ib{hca.rail}": hca.cable for hca in MACHINE.hcas}
    assert {name: received[name] for name in cables} == {
        name: (cable.switch, f"swp{cable.port}") for name, cable in cables.items() if cable
    }
    assert received["eth0"][0].startswith("mgmt-")


def test_the_ports_are_those_of_the_adapters(tmp_path: Path) -> None:
    ports = parse_roce_ports(ToolBox(tmp_path, MACHINE).run("roce-ports").stdout)
    assert [port.interface for port in ports] == [f"ib{hca.rail}" for hca in MACHINE.hcas]
    assert {port.pfc for port in ports} == {(3,)}

"""Scrape targets: which exporters of which nodes Prometheus finds, and when a node comes and goes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.site.roles import shipped_roles
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Location, NodeId, Stage
from clusterctl.fleet.roles.selection import Group, RequestedRoles
from clusterctl.fleet.state import NodeState
from clusterctl.operations.scrape_targets import scrape_targets
from clusterctl_cli.main import run
from tests.cli.site_of_three import write

BOTH = RequestedRoles(("base", "node_exporter", "dcgm_exporter"))


def node(name: str, stage: Stage = Stage.GOLD, address: str = "10.0.1.1", bmc: str = "10.0.0.1") -> NodeState:
    place = Location("A01", 4)
    return NodeState(NodeId(f"id-{name}"), name, stage, bmc=bmc, location=place, sku="h100", address=address)


def targets(requested: RequestedRoles, *nodes: NodeState) -> list[tuple[str, str, str]]:
    """Return exporter, node and target of each group."""
    groups = scrape_targets(nodes, requested, shipped_roles())
    assert all(len(group["targets"]) == 1 for group in groups)
    return [(group["labels"]["exporter"], group["labels"]["node"], group["targets"][0]) for group in groups]


def test_a_node_has_a_group_for_each_exporter_of_its_roles() -> None:
    """By exporter, then by name in natural order; ports are the roles' defaults, a BMC has none."""
    assert targets(BOTH, node("n10", address="10.0.1.10"), node("n9")) == [
        ("node_exporter", "n9", "10.0.1.1:9100"),
        ("node_exporter", "n10", "10.0.1.10:9100"),
        ("dcgm_exporter", "n9", "10.0.1.1:9400"),
        ("dcgm_exporter", "n10", "10.0.1.10:9400"),
        ("bmc", "n9", "10.0.0.1"),
        ("bmc", "n10", "10.0.0.1"),
    ]
    assert targets(RequestedRoles(("base",)), node("n9")) == [("bmc", "n9", "10.0.0.1")]


def test_labels_are_name_place_and_sku() -> None:
    (group, *_) = scrape_targets([node("n1")], BOTH, shipped_roles())
    assert group["labels"] == {"exporter": "node_exporter", "node": "n1", "rack": "A01", "unit": "4", "sku": "h100"}
    (group, *_) = scrape_targets([replace(node("n1"), location=Location(), sku="")], BOTH, shipped_roles())
    assert group["labels"] == {"exporter": "node_exporter", "node": "n1", "rack": "", "unit": "", "sku": ""}


@pytest.mark.parametrize("stage", Stage)
def test_a_node_comes_with_its_install_and_goes_when_it_is_retired(stage: Stage) -> None:
    """While it waits for a new install (discovered, with its old address) there is nothing to scrape either."""
    expected = set() if stage in {Stage.SEEN, Stage.DISCOVERED, Stage.RETIRED} else {"n1"}
    assert {name for _, name, _ in targets(BOTH, node("n1", stage))} == expected
    assert targets(BOTH, node("n1", stage, address="")) == []


def test_ports_are_the_sites_and_the_groups() -> None:
    """The address before the port is the node's own matter, and may be a template; IPv6 stands in brackets."""
    group = Group(skus=("h100",), without=("dcgm_exporter",), variables={"node_exporter_listen_address": "[::]:9200"})
    requested = replace(BOTH, variables={"node_exporter_listen_address": "{{ ansible_host }}:9101"}, groups=(group,))
    assert targets(requested, node("n1", bmc=""), replace(node("n2", address="fd00::2", bmc=""), sku="b200")) == [
        ("node_exporter", "n1", "10.0.1.1:9200"),
        ("node_exporter", "n2", "[fd00::2]:9101"),
        ("dcgm_exporter", "n2", "[fd00::2]:9400"),
    ]


@pytest.mark.parametrize("value", ["10.0.0.1", ":0", ":65536", "{{ address }}", ":91000000", ""])
def test_an_address_without_a_port_is_refused(value: str) -> None:
    requested = replace(BOTH, variables={"dcgm_exporter_listen_address": value})
    with pytest.raises(UsageError, match="dcgm_exporter_listen_address of n1"):
        targets(requested, node("n1"))


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """n1 alone is installed; nothing is printed on stdout; metrics may be written by the same call."""
    site, file, prom = str(write(tmp_path)), tmp_path / "nodes.json", tmp_path / "x.prom"
    assert run(["metrics", "--site", site, "--targets", str(file), "--write", str(prom)]) == 0
    assert capsys.readouterr().out == ""
    assert prom.read_text().startswith("# HELP clusterctl_")
    groups = json.loads(file.read_text())
    assert {group["labels"]["node"] for group in groups} == {"n1"}
    assert {"targets": ["10.0.1.1:9100"], "labels": groups[0]["labels"]} == groups[0]
    assert groups[0]["labels"]["rack"] == "A01"
    assert file.stat().st_mode & 0o777 == 0o644
    assert run(["metrics", "--site", site, "--targets", str(tmp_path / "none" / "x.json")]) == 2

"""Which NVIDIA driver a node is held to: its own group's, before the site's."""

from __future__ import annotations

import pytest

from clusterctl.fleet.node import NodeId
from clusterctl.fleet.roles.selection import Group, RequestedRoles
from clusterctl.fleet.state import NodeState
from clusterctl.operations.host_configuration import driver_of

DRIVER = "nvidia_driver_version"
WANTED = RequestedRoles(
    ("nvidia_driver",), {DRIVER: "570.1"}, (Group(nodes=("node002",), variables={DRIVER: "580.2"}),)
)


@pytest.mark.parametrize(("node", "wanted", "driver"), [("node001", WANTED, "570.1"), ("node002", WANTED, "580.2")])
def test_a_group_goes_before_the_site(node: str, wanted: RequestedRoles, driver: str) -> None:
    """As it does when the node is configured."""
    assert driver_of(wanted, NodeState(NodeId("x"), node)) == driver


def test_no_driver_was_named() -> None:
    """Then the check has nothing to hold the node to."""
    assert driver_of(RequestedRoles(()), NodeState(NodeId("x"), "node001")) == ""

"""Whose adapter a GUID is, by what the nodes' BMCs told."""

from __future__ import annotations

from clusterctl.cabling.names import Hosts
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.ports import Journal


def fabric_hosts(journal: Journal) -> Hosts:
    """Every adapter's GUID that a BMC told, and whose it is."""
    return {
        hca.guid: PortName(node.name, "")
        for node in journal.states()
        if node.inventory is not None
        for hca in node.inventory.hcas or ()
        if hca.guid
    }

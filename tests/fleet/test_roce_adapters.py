"""hca_count of a RoCE SKU: Ethernet-only cards of the SKU's model count, other Ethernet cards do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.hardware.matching import match
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Hca, Inventory, Serial, Unread
from tests.fleet.skus import H100_X8

ROCE = replace(H100_X8, hca_link_layer="Ethernet", hca_model="BlueField-3", hca_count=2)
BF3 = tuple(Hca(f"NIC.Slot.{n}", "BlueField-3 P-Series DPU 200GbE", Serial(f"MT{n}")) for n in (1, 2))
OTHERS = (Hca("NIC.Embedded.1", "Broadcom BCM57414"), Hca("NIC.Slot.9", "Intel E810-XXVDA2"))


def hca_count(sku: Sku = ROCE, **fields: Any) -> Finding:
    inventory = Inventory("Dell Inc.", "PowerEdge XE9680", Serial("LAB0001"), **fields)
    (found,) = (one for one in match(inventory, sku) if one.check == "hca_count")
    return found


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({"hcas": (), "ethernet_adapters": (*BF3, *OTHERS)}, Verdict.PASS),
        ({"hcas": BF3[:1], "ethernet_adapters": (*BF3[1:], *OTHERS)}, Verdict.PASS),
        ({"hcas": (), "ethernet_adapters": (*BF3[:1], *OTHERS)}, Verdict.FAIL),
        ({"hcas": None, "ethernet_adapters": None}, Verdict.INCONCLUSIVE),
    ],
)
def test_adapters_of_a_roce_sku(fields: dict[str, Any], verdict: Verdict) -> None:
    """By model, from both lists; what the BMC does not list is left to the host."""
    assert hca_count(**fields).verdict is verdict


def test_an_unread_adapter_is_not_missing() -> None:
    """One of two, and a resource that could not be read: not measured, and nothing is to be replaced."""
    lost = (Unread("ethernet_adapters", "/redfish/v1/Chassis/1/NetworkAdapters/2", "HTTP 500"),)
    found = hca_count(hcas=(), ethernet_adapters=BF3[:1], unread=lost)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_an_infiniband_sku_counts_no_ethernet_card() -> None:
    """As before: the Ethernet-only cards are no InfiniBand adapters."""
    sku = replace(ROCE, hca_link_layer="InfiniBand")
    assert hca_count(sku, hcas=OTHERS, ethernet_adapters=BF3).verdict is Verdict.FAIL

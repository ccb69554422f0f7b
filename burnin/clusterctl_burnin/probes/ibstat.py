"""What the adapter checks and the loads share: one `ibstat`, and which adapters are those of the compute fabric."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from clusterctl.fleet.hardware.sku import Sku
from clusterctl.formats.infiniband.adapters import Adapter, parse_ibstat
from clusterctl_burnin.check import Expected
from clusterctl_burnin.probe import Probe, Readings

IBSTAT = Probe("ibstat", ("ibstat",), role="ib_tools")
ETHERNET: Final = "Ethernet"
_FAMILY = re.compile(r"(?:ConnectX-|MCX)(\d)", re.IGNORECASE)
_TYPES = {
    "4": ("MT4115", "MT4117"),
    "5": ("MT4119", "MT4121"),
    "6": ("MT4123", "MT4125", "MT4127"),
    "7": ("MT4129",),
    "8": ("MT4131",),
}
"""The types that ibstat prints, by family (PCI device numbers of pci.ids: 0x1021, 4129, is ConnectX-7)."""


def compute_adapters(readings: Readings, sku: Sku) -> tuple[Adapter, ...]:
    """Return the adapters of the compute fabric, `mlx5_2` before `mlx5_10`: those with the SKU's link layer.

    In Ethernet mode, adapters for storage and management look alike. Those of another family do not count, and
    where more are left than the SKU has, neither do those that are up at another rate. Raises `UnmeasuredError` and
    `ParseError`.
    """
    found = parse_ibstat(readings.text(IBSTAT))
    if sku.hca_link_layer != ETHERNET:
        return tuple(adapter for adapter in found if adapter.infiniband)
    alike = _of_the_family([adapter for adapter in found if not adapter.infiniband], sku)
    return alike if len(alike) <= sku.hca_count else tuple(one for one in alike if not _other_rate(one, sku))


def _of_the_family(adapters: Iterable[Adapter], sku: Sku) -> tuple[Adapter, ...]:
    """Return the adapters of the SKU's family; all where that is unknown."""
    match = _FAMILY.search(sku.hca_model)
    types = _TYPES.get(match[1], ()) if match else ()
    return tuple(adapter for adapter in adapters if not types or adapter.model in types)


def _other_rate(adapter: Adapter, sku: Sku) -> bool:
    return all(port.up and port.rate != sku.hca_rate_gbps for port in adapter.ports)


def serial_of(adapter: Adapter, expected: Expected) -> str:
    """Return the serial by which the BMC knows the adapter, found by its GUID; empty where it is unknown."""
    guids = {adapter.node_guid, *(port.guid for port in adapter.ports)}
    known_adapters = (expected.inventory.hcas if expected.inventory else None) or ()
    return next((hca.serial for hca in known_adapters if hca.serial and hca.guid in guids), "")

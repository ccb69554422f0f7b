"""The PCIe switch ports above this host's adapters, one each."""

from __future__ import annotations

from clusterctl.lab.faces.tools.host.facts import Hca, load


def bridge_of(hca: Hca) -> str:
    """Its address, as the kernel spells it."""
    return f"0000:{int(hca.pci[5:7], 16) - 3:02x}:01.0"


def bridges() -> tuple[str, ...]:
    return tuple(sorted(bridge_of(hca) for hca in load().hcas))

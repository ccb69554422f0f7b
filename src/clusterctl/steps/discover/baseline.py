"""Discover's look at a machine's baseline: drift is told each time, and keeps no node back; what is unknown does."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl.fleet.errors import AuthenticationError, EdgeError, ParseError
from clusterctl.fleet.finding import Evidence, Finding, Observed
from clusterctl.fleet.hardware.matching import choose_sku
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Inventory
from clusterctl.fleet.settings.drift import drift, findings
from clusterctl.ports import BmcSettings, Deadline

Seen = Observed[tuple[Finding, ...]]


def look(bmc: BmcSettings, inventory: Inventory, skus: Sequence[Sku], deadline: Deadline) -> Seen:
    """Nothing is asked where the machine's SKU has no baseline; its firmware stands in the inventory already."""
    sku = choose_sku(inventory, skus)
    if sku is None or sku.baseline is None:
        return Observed(())
    bios, evidence = None, tuple[Evidence, ...]()
    if sku.baseline.bios:
        try:
            seen = bmc.bios(deadline)
            bios, evidence = seen.value, seen.evidence
        except AuthenticationError:
            raise
        except (EdgeError, ParseError):
            pass  # unmeasured: each attribute is then told as such
    return Observed(tuple(findings(drift(sku.baseline, bios, inventory.firmware))), evidence)

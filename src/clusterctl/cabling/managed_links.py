"""The links between switches as a fabric manager has them, against those that the fabric itself shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.fabric.alarms import ManagedLink
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, PortId

MOST = 2
SHARE = 0.01
"""The model is stale where more links than this differ, by count and by share: single links go and come meanwhile."""


@dataclass(frozen=True, slots=True)
class ModelDifference:
    """`links`: of the fabric; `missing`: those that the manager lacks; `gone`: those that only the manager has."""

    links: int
    missing: int
    gone: int

    @property
    def stale(self) -> bool:
        return self.missing + self.gone > max(MOST, self.links * SHARE)


def compare_model(managed: Iterable[ManagedLink], seen: Fabric) -> ModelDifference:
    """Compare the links between switches that both know: adapters have other GUIDs in some managers."""
    switches = {guid for guid, device in seen.devices.items() if device.kind is DeviceKind.SWITCH}
    own = {_ends(link.a, link.b) for link in seen.cables() if {link.a.guid, link.b.guid} <= switches}
    found = {_ends(link.a, link.b) for link in managed if {link.a.guid, link.b.guid} <= switches}
    return ModelDifference(len(own), len(own - found), len(found - own))


def _ends(a: PortId, b: PortId) -> frozenset[PortId]:
    return frozenset((a, b))

"""New software for switches: intents and results in the journal's stream `fabric`, and what follows for their links.

Subject: the switch's GUID.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from clusterctl.fleet.acts import Act, ActResult, SwitchUpgradeDetails
from clusterctl.fleet.event import Event
from clusterctl.fleet.fabric.history import link_name, port_named
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.node import Guid
from clusterctl.fleet.payloads.node import ActIntended, ActObserved

_NOT_BACK = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchUpgrade:
    """The last upgrade of a switch, as the journal has it.

    to        version of the software
    before    what the switch was
    result    None where no run has written its end
    ended     when that was
    """

    guid: Guid
    to: str
    before: SwitchUpgradeDetails
    result: ActResult | None = None
    ended: datetime | None = None

    @property
    def open(self) -> bool:
        return self.result is None

    @property
    def failed(self) -> bool:
        return self.result is ActResult.FAILED

    def missing(self, fabric: Fabric) -> tuple[str, ...]:
        """Return the links that were up before and are not up, or are slower, or lead elsewhere now."""
        now = {link_name(link): link.gbps for link in fabric.links}
        return tuple(name for name, gbps in self.before.links.items() if now.get(name, 0.0) < gbps)


def switch_upgrades(events: Iterable[Event]) -> Mapping[Guid, SwitchUpgrade]:
    """Return the last upgrade of each switch, of events in `seq` order (the last of each kind and switch is enough)."""
    found: dict[Guid, SwitchUpgrade] = {}
    for event in events:
        match event.payload:
            case ActIntended(act=Act.SWITCH_UPGRADE, target=to, details=SwitchUpgradeDetails() as before):
                guid = Guid(event.subject)
                found[guid] = SwitchUpgrade(guid=guid, to=to, before=before)
            case ActObserved(act=Act.SWITCH_UPGRADE, result=result) if event.subject in found:
                guid = Guid(event.subject)
                found[guid] = replace(found[guid], result=result, ended=event.at)
    return found


def restarted_since(upgrades: Iterable[SwitchUpgrade]) -> dict[PortId, datetime]:
    """Return from when on the counters of links count whose switch restarted for new software, both ends of each.

    While it is away, what its links' counters gather is no fault of theirs: they count from a time that never comes.
    """
    found: dict[PortId, datetime] = {}
    for one in upgrades:
        ends = (port_named(end) for name in one.before.links for end in name.split("-"))
        found |= {port: one.ended or _NOT_BACK for port in ends if port is not None}
    return found

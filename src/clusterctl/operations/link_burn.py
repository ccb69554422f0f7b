"""The burn of links that the watch of the fabric has enabled: free hosts load them, and the journal has the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.burn.coverage import BurnReport
from clusterctl.cabling.burn.verdicts import LoadVerdict
from clusterctl.cabling.health.symptoms import HealthKind
from clusterctl.fleet.acts import Act
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.fabric.history import port_name
from clusterctl.fleet.fabric.port_acts import DisabledPort
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.payloads.fabric import FabricLinkBurned
from clusterctl.fleet.payloads.node import ActIntended
from clusterctl.operations.cable_burn import CableBurnRequest, CableBurnResult
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control
from clusterctl.ports import Claim
from clusterctl.site.ufm import WatchSettings
from clusterctl.steps.cable.link_health import UNREADABLE

MOST_BURNS = 3
"""So often a link is burned after it was enabled, until a burn has proven it: hosts get no jobs meanwhile."""
_WITHIN = 4
"""A burn of single links takes at most so many times as long as one stage."""

Burn = Callable[[SiteContext, CableBurnRequest, Control], CableBurnResult]


@dataclass(frozen=True, slots=True)
class LinkBurner:
    """Burns enabled links under its caller's claim on the fabric. `burn`: `operations.cable_burn.run`."""

    context: SiteContext
    settings: WatchSettings
    control: Control
    claim: Claim
    burn: Burn

    def burns(self, one: DisabledPort) -> tuple[FabricLinkBurned, ...]:
        """Return what the burns of the link have proven since it was enabled, the newest last."""
        found: list[FabricLinkBurned] = []
        for event in self.context.journal.history(Stream.FABRIC, port_name(one.port)):
            match event.payload:
                case ActIntended(act=Act.PORT_ENABLE | Act.PORT_DISABLE):
                    found.clear()
                case FabricLinkBurned() as burned:
                    found.append(burned)
        return tuple(found)

    def proof(self, one: DisabledPort) -> str | None:
        """Return what the burns prove of the link, as text; None where it must be burned first."""
        if not self.settings.burn_s:
            return "not burned: fabric.watch.burn_s is 0"
        burns = self.burns(one)
        return str(burns[-1]) if burns else None

    def fault(self, one: DisabledPort) -> str:
        """Return what the last burn found wrong with the link; empty where nothing is."""
        return next((burned.reason for burned in self.burns(one)[-1:] if burned.failed), "")

    def is_due(self, one: DisabledPort) -> bool:
        """Return whether the link is to be burned, or to be burned again."""
        burns = self.burns(one) if self.settings.burn_s else None
        return burns is not None and len(burns) < MOST_BURNS and not any(burned.proven for burned in burns)

    def load(self, links: Sequence[DisabledPort]) -> Mapping[str, str]:
        """Load the links from free hosts, and write what that proves of each; a burn that was stopped proves nothing.

        Return the hosts that could not be given back to the scheduler, with the reason.
        """
        request = CableBurnRequest(
            links=tuple(place_of(one) for one in links),
            stage_s=self.settings.burn_s,
            adaptive=self.settings.adaptive,
            within_s=float(_WITHIN * self.settings.burn_s),
        )
        journal, cancelled = self.context.journal, self.control.cancelled
        try:
            result = self.burn(self.context, request, Control(None, self.control.on_event, cancelled))
        except UNREADABLE as error:
            stuck: Mapping[str, str] = {}
            found = {one: _unproven(error.message, request.stage_s) for one in links}
        else:
            stuck = result.stuck
            found = {one: self._judged(one, result, request.stage_s) for one in links}
        events = [NewEvent(Stream.FABRIC, port_name(one.port), burned) for one, burned in found.items()]
        if not cancelled.is_set():
            journal.append(events, claim=self.claim)
        return stuck

    def _judged(self, one: DisabledPort, result: CableBurnResult, seconds: int) -> FabricLinkBurned:
        report = result.report
        ways = [way for way in report.directions if _is_of(way, one)] if report is not None else []
        if report is None or len(ways) != 2:
            return _unproven(result.stopped or "no stage came to its end", seconds)
        faults = tuple(self._faults(one, report))
        shares = tuple(round(way.load.share or 0.0, 1) for way in ways)
        proven = all(way.verdict.admits for way in ways)
        verdict = Verdict.FAIL if faults else Verdict.PASS if proven else Verdict.INCONCLUSIVE
        reasons = faults or tuple(dict.fromkeys(way.why for way in ways if not way.verdict.admits))
        return FabricLinkBurned(verdict=verdict.value, seconds=seconds, shares=shares, reason="; ".join(reasons))

    def _faults(self, one: DisabledPort, report: BurnReport) -> Iterator[str]:
        """Yield what is wrong with the link: none where so much is bad that the cause is a common one, and no low rate
        where switches may have sent a part of the load another way.
        """
        for finding in report.health.findings if report.health.stop is None else ():
            slow = finding.kind is HealthKind.SLOW and self.settings.adaptive
            if finding.verdict is Verdict.FAIL and not slow and set(map(str, finding.ends)) == set(one.ends):
                yield finding.cause


def place_of(one: DisabledPort) -> str:
    """Return the port as commands have it, SWITCH:PORT."""
    device, _, port = one.label.rpartition(" port ")
    return f"{device}:{port}"


def _unproven(reason: str, seconds: int) -> FabricLinkBurned:
    return FabricLinkBurned(verdict=Verdict.INCONCLUSIVE.value, seconds=seconds, reason=reason)


def _is_of(way: LoadVerdict, one: DisabledPort) -> bool:
    return {way.load.source, way.load.target} == {one.port, one.peer}

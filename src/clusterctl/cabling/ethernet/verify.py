"""An Ethernet plan compared with LLDP reports: the same explanations as for InfiniBand.

LLDP proves less than a subnet sweep: a cable is visible only where one end reports and the other sends. A cable that no
device could report is reported as not measured.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from clusterctl.cabling.actions import Restore, TakeOut
from clusterctl.cabling.difference import components
from clusterctl.cabling.ethernet.lldp import LldpCable, LldpCables, lldp_cables
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind, chassis_of
from clusterctl.cabling.explain.misplaced import explain_components
from clusterctl.cabling.labels import PlanLabels
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.network.lldp import LldpReport

BMC_PORT = "bmc"
"""Name of a BMC's port in an Ethernet plan. The host's own LLDP neither sends nor receives there."""


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A planned cable with unknown state, and the reason."""

    cable: PlannedCable
    reason: str


@dataclass(frozen=True, slots=True)
class EthernetVerification:
    """`planned`, `observed` and `right` count cables; it is proven without `explanations` and `unmeasured`.

    `proven` are the planned cables that LLDP shows, by their ends. `disputed` are the ports whose report another cable
    contradicts, each with the reason: findings on their own device only.
    """

    planned: int
    observed: int
    proven: frozenset[frozenset[PortName]]
    explanations: tuple[CablingExplanation, ...]
    unmeasured: tuple[Unmeasured, ...]

    @property
    def right(self) -> int:
        return len(self.proven)

    warnings: tuple[str, ...] = ()
    disputed: Mapping[PortName, str] = field(default_factory=dict)

    @property
    def moves(self) -> int:
        """Number of physical actions of all explanations."""
        return sum(explanation.moves for explanation in self.explanations)

    @property
    def chassis(self) -> int:
        """Number of devices to visit for all physical actions."""
        return chassis_of(self.explanations)


def verify_ethernet(
    plan: WiringPlan, reports: Mapping[str, LldpReport], silent: Mapping[str, str] = MappingProxyType({})
) -> EthernetVerification:
    """Return the verification. `reports`: planned device → report; `silent`: device without a report → reason."""
    observed = lldp_cables(plan, reports)
    planned = {cable.ends for cable in plan.cables}
    right = {cable.ends for cable in observed.cables if cable.ends in planned}
    extra = [cable for cable in observed.cables if cable.ends not in planned]
    listeners = _Listeners(plan, reports, observed, silent)
    missing, unmeasured = [], []
    for cable in plan.cables:
        if cable.ends not in right:
            reason = listeners.why_not_measured(cable)
            if reason is not None:
                unmeasured.append(Unmeasured(cable, reason))
            else:
                missing.append(cable)
    return EthernetVerification(
        planned=len(plan.cables),
        observed=len(observed.cables),
        proven=frozenset(right),
        explanations=tuple(_explained(missing, extra, listeners, _labels(plan))),
        unmeasured=tuple(unmeasured),
        disputed=observed.disputed,
    )


class _Listeners:
    """Devices with a report, and devices that any report mentions."""

    def __init__(
        self, plan: WiringPlan, reports: Mapping[str, LldpReport], observed: LldpCables, silent: Mapping[str, str]
    ) -> None:
        self._hosts = plan.hosts
        self._reports = reports
        self._silent = silent
        self._unclear = observed.unclear
        self.used = {end for cable in observed.cables for end in cable.ends}
        self.senders = {end.device for end in self.used if not is_bmc(end, plan.hosts)} | {
            device for device, report in reports.items() if report.neighbours
        }

    def _why_unclear(self, cable: PlannedCable) -> str:
        return "; ".join(dict.fromkeys(self._unclear[end] for end in sorted(cable.ends) if end in self._unclear))

    def why_not_measured(self, cable: PlannedCable) -> str | None:
        """Return the reason; None where LLDP would show the cable, or another cable is in one of its ports."""
        if unclear := self._why_unclear(cable):
            return unclear
        bmc = next((end for end in cable.ends if is_bmc(end, self._hosts)), None)
        listeners = sorted(end.device for end in cable.ends if end != bmc)
        unheard = self._reports.keys().isdisjoint(listeners)
        only_claimed = unheard and bmc is not None and bmc not in self.used  # by a host that reports the switch's port
        if cable.ends & self.used and not only_claimed:
            return None
        if unheard:
            return self._why_no_report(listeners)
        if bmc is not None:
            return f"no device receives LLDP from the BMC of {bmc.device}: many BMCs send no LLDP by default"
        return None

    def _why_no_report(self, listeners: Sequence[str]) -> str:
        why = [f"{device}: {self._silent[device]}" for device in listeners if device in self._silent]
        return "; ".join(why) or _no_report(listeners)

    def listens(self, device: str) -> bool:
        """Return whether there is a report of the device."""
        return device in self._reports


def _no_report(devices: Sequence[str]) -> str:
    return f"no LLDP report of {' or '.join(devices)}"


def is_bmc(port: PortName, hosts: Collection[str]) -> bool:
    """Return whether it is a BMC's port."""
    return port.port.lower() == BMC_PORT and port.device in hosts


def without_management(plan: WiringPlan) -> WiringPlan:
    """Return the plan without the switches that a BMC is cabled to: what is left is the compute network and storage."""
    ends = [pair for cable in plan.cables for pair in itertools.permutations((cable.source, cable.destination))]
    management = {other.device for end, other in ends if is_bmc(end, plan.hosts)}
    cables = tuple(one for one in plan.cables if not {end.device for end in one.ends} & management)
    return replace(plan, cables=cables)


def _labels(plan: WiringPlan) -> PlanLabels:
    devices = frozenset(end.device for cable in plan.cables for end in cable.ends)
    cages = {cable.labelled: cable.cage for cable in plan.cables if cable.cage}
    return PlanLabels(plan=plan, cages=cages, qm9700=frozenset(), guids={}, devices=devices)


def _explained(
    missing: Iterable[PlannedCable], extra: Iterable[LldpCable], listeners: _Listeners, labels: PlanLabels
) -> list[CablingExplanation]:
    """Return silent devices first, each one cause of all its missing cables; then unknown devices, then components."""
    silent, rest = _silent_apart(missing, listeners)
    unknown: dict[str, list[LldpCable]] = defaultdict(list)
    others = []
    ports = {end for cable in labels.plan.cables for end in cable.ends}
    for cable in extra:
        names = sorted(end.device for end in cable.ends if end.device not in labels.devices)
        if names and not cable.ends & ports:
            unknown[names[0]].append(cable)
        else:
            others.append(cable)
    return [
        *(_silent(device, cables, listeners, labels) for device, cables in silent.items()),
        *(_unknown_device(device, cables, labels) for device, cables in unknown.items()),
        *explain_components(components(rest, others), labels),
    ]


def _silent_apart(
    missing: Iterable[PlannedCable], listeners: _Listeners
) -> tuple[dict[str, list[PlannedCable]], list[PlannedCable]]:
    """Return missing cables by the device that is silent on all its cables (of two the one with more), and the rest."""
    rest = []
    mute: dict[frozenset[PortName], tuple[PlannedCable, list[str]]] = {}
    for cable in missing:
        devices = sorted({end.device for end in cable.ends if end.device not in listeners.senders})
        if devices and not cable.ends & listeners.used:
            mute[cable.ends] = (cable, devices)
        else:
            rest.append(cable)
    counts = Counter(device for _, devices in mute.values() for device in devices)
    silent: dict[str, list[PlannedCable]] = defaultdict(list)
    for cable, devices in mute.values():
        silent[max(devices, key=lambda device: counts[device])].append(cable)
    return silent, rest


def _silent(device: str, cables: list[PlannedCable], listeners: _Listeners, labels: PlanLabels) -> CablingExplanation:
    ports = tuple(sorted({end for cable in cables for end in cable.ends}))
    links = f"its {len(cables)} planned links" if len(cables) > 1 else "its planned link"
    why = (
        "it has no neighbour either, so its links are down, or its neighbours send no LLDP"
        if listeners.listens(device)
        else "it is off, unplugged, or sends no LLDP"
    )
    return CablingExplanation(
        kind=FaultKind.ABSENT_DEVICE,
        cause=f"no neighbour receives LLDP from {device} on {links}: {why}",
        action=f"{labels.at(device)}{device}: check that it runs and sends LLDP, then read again",
        nodes=tuple(sorted({port.device for port in ports if port.device in labels.plan.hosts})),
        ports=ports,
        devices=(device,),
        steps=(Restore((device,), tuple(cable.ends for cable in cables)),),
        rack=labels.rack(device, *(port.device for port in ports)),
        links=len(cables),
    )


def _unknown_device(device: str, cables: list[LldpCable], labels: PlanLabels) -> CablingExplanation:
    ports = tuple(sorted({end for cable in cables for end in cable.ends}))
    return CablingExplanation(
        kind=FaultKind.UNKNOWN_DEVICE,
        cause=f"{device} is not in the plan, and is seen on {len(cables)} {'cables' if len(cables) > 1 else 'cable'}",
        action=f"{device}: add it to the plan, or unplug it from {labels.beyond(device, ports)}",
        nodes=tuple(sorted({port.device for port in ports if port.device in labels.plan.hosts})),
        ports=ports,
        devices=(device,),
        rack=labels.rack(*(port.device for port in ports)),
        links=len(cables),
        steps=tuple(TakeOut(*sorted(cable.ends)) for cable in cables),
        tie=True,
    )

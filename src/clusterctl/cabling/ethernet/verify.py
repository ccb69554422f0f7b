"""An Ethernet plan against what devices hear of each other by LLDP: the same explanations as for InfiniBand.

LLDP tells less than a subnet sweep: a cable is seen only where one end listens and the other speaks. What nobody could
have heard is not measured, and is said to be so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from clusterctl.cabling.actions import Restore, TakeOut
from clusterctl.cabling.difference import components
from clusterctl.cabling.ethernet.lldp import Heard, HeardCable, hear
from clusterctl.cabling.explain.explanation import Explanation, Kind
from clusterctl.cabling.explain.misplaced import explain_component
from clusterctl.cabling.labels import Words, shortened
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.network.lldp import LldpReport

BMC_PORT = "bmc"
"""What an Ethernet plan calls a BMC's port: the host's own LLDP neither hears nor speaks there."""


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A planned cable of which nothing is known, and why."""

    cable: PlannedCable
    reason: str


@dataclass(frozen=True, slots=True)
class EthernetVerification:
    """`planned`, `observed` and `right` count cables; all is well where `explanations` and `unmeasured` are empty.

    `proven` are the planned cables that are heard, by their ends.
    """

    planned: int
    observed: int
    proven: frozenset[frozenset[PortName]]
    explanations: tuple[Explanation, ...]
    unmeasured: tuple[Unmeasured, ...]

    @property
    def right(self) -> int:
        return len(self.proven)

    @property
    def moves(self) -> int:
        return sum(explanation.moves for explanation in self.explanations)


def verify_ethernet(
    plan: WiringPlan, reports: Mapping[str, LldpReport], silent: Mapping[str, str] = MappingProxyType({})
) -> EthernetVerification:
    """`reports` are by device, as the plan calls it; hosts, switches, or both. `silent`: why others have none."""
    heard = hear(plan, reports)
    planned = {cable.ends for cable in plan.cables}
    right = {cable.ends for cable in heard.cables if cable.ends in planned}
    extra = [cable for cable in heard.cables if cable.ends not in planned]
    ears = _Ears(plan, reports, heard, silent)
    missing, unmeasured = [], []
    for cable in plan.cables:
        if cable.ends not in right:
            reason = ears.why_not_measured(cable)
            if reason:
                unmeasured.append(Unmeasured(cable, reason))
            else:
                missing.append(cable)
    return EthernetVerification(
        planned=len(plan.cables),
        observed=len(heard.cables),
        proven=frozenset(right),
        explanations=tuple(_explained(missing, extra, ears, _words(plan))),
        unmeasured=tuple(unmeasured),
    )


class _Ears:
    """Who listens, and who is heard at all."""

    def __init__(
        self, plan: WiringPlan, reports: Mapping[str, LldpReport], heard: Heard, silent: Mapping[str, str]
    ) -> None:
        self._hosts = plan.hosts
        self._reports = reports
        self._silent = silent
        self._unclear = heard.unclear
        self.used = {end for cable in heard.cables for end in cable.ends}
        self.voices = {end.device for end in self.used if not is_bmc(end, plan.hosts)} | {
            device for device, report in reports.items() if report.neighbours
        }

    def why_not_measured(self, cable: PlannedCable) -> str:
        """Empty where the cable would have been heard, or where another one is in one of its ports."""
        unclear = dict.fromkeys(self._unclear[end] for end in sorted(cable.ends) if end in self._unclear)
        if unclear:
            return "; ".join(unclear)
        if cable.ends & self.used:
            return ""
        bmc = next((end for end in cable.ends if is_bmc(end, self._hosts)), None)
        ears = sorted(end.device for end in cable.ends if end != bmc)
        if not any(device in self._reports for device in ears):
            why = [f"{device}: {self._silent[device]}" for device in ears if device in self._silent]
            return "; ".join(why) or _nobody_listened(ears)
        if bmc is not None:
            return f"nobody hears the BMC of {bmc.device}: many BMCs speak no LLDP unless told to"
        return ""

    def listens(self, device: str) -> bool:
        return device in self._reports


def _nobody_listened(devices: Sequence[str]) -> str:
    return (
        f"{devices[0]} was not listened to" if len(devices) == 1 else f"neither {' nor '.join(devices)} was listened to"
    )


def is_bmc(port: PortName, hosts: Collection[str]) -> bool:
    return port.port.lower() == BMC_PORT and port.device in hosts


def _words(plan: WiringPlan) -> Words:
    devices = frozenset(end.device for cable in plan.cables for end in cable.ends)
    cages = {cable.labelled: cable.cage for cable in plan.cables if cable.cage}
    return Words(plan=plan, cages=cages, qm9700=frozenset(), guids={}, devices=devices)


def _explained(
    missing: Iterable[PlannedCable], extra: Iterable[HeardCable], ears: _Ears, words: Words
) -> list[Explanation]:
    """Silent devices first: each is one cause of all its missing cables; then strangers, then chains of differences."""
    silent, rest = _silent_apart(missing, ears)
    strangers: dict[str, list[HeardCable]] = defaultdict(list)
    others = []
    ports = {end for cable in words.plan.cables for end in cable.ends}
    for heard in extra:
        names = sorted(end.device for end in heard.ends if end.device not in words.devices)
        if names and not heard.ends & ports:
            strangers[names[0]].append(heard)
        else:
            others.append(heard)
    return [
        *(_silent(device, cables, ears, words) for device, cables in silent.items()),
        *(_stranger(device, cables, words) for device, cables in strangers.items()),
        *(explain_component(component, words) for component in components(rest, others)),
    ]


def _silent_apart(
    missing: Iterable[PlannedCable], ears: _Ears
) -> tuple[dict[str, list[PlannedCable]], list[PlannedCable]]:
    """Missing cables by the device that is silent on all of its own (of two such the one with more), and the others."""
    rest = []
    mute: dict[frozenset[PortName], tuple[PlannedCable, list[str]]] = {}
    for cable in missing:
        devices = sorted({end.device for end in cable.ends if end.device not in ears.voices})
        if devices and not cable.ends & ears.used:
            mute[cable.ends] = (cable, devices)
        else:
            rest.append(cable)
    counts = Counter(device for _, devices in mute.values() for device in devices)
    silent: dict[str, list[PlannedCable]] = defaultdict(list)
    for cable, devices in mute.values():
        silent[max(devices, key=lambda device: counts[device])].append(cable)
    return silent, rest


def _silent(device: str, cables: list[PlannedCable], ears: _Ears, words: Words) -> Explanation:
    ports = tuple(sorted({end for cable in cables for end in cable.ends}))
    links = f"its {len(cables)} planned links" if len(cables) > 1 else "its planned link"
    why = (
        "it hears nobody either, so its links are down, or its neighbours send no LLDP"
        if ears.listens(device)
        else "it is off, unplugged, or sends no LLDP"
    )
    return Explanation(
        kind=Kind.ABSENT_DEVICE,
        cause=f"nobody hears {device} on {links}: {why}",
        action=f"{words.at(device)}{device}: see that it runs and sends LLDP, then read again",
        nodes=tuple(sorted({port.device for port in ports if port.device in words.plan.hosts})),
        ports=ports,
        devices=(device,),
        steps=(Restore((device,), tuple(cable.ends for cable in cables)),),
        rack=words.rack(device, *(port.device for port in ports)),
        links=len(cables),
    )


def _stranger(device: str, cables: list[HeardCable], words: Words) -> Explanation:
    ports = tuple(sorted({end for cable in cables for end in cable.ends}))
    near = [words.port(port) for port in ports if port.device != device] or [words.port(port) for port in ports]
    return Explanation(
        kind=Kind.UNKNOWN_DEVICE,
        cause=f"{device} is not in the plan, and is heard on {len(cables)} {'cables' if len(cables) > 1 else 'cable'}",
        action=f"{device}: add it to the plan, or unplug it from {shortened(near, 4)}",
        nodes=tuple(sorted({port.device for port in ports if port.device in words.plan.hosts})),
        ports=ports,
        devices=(device,),
        rack=words.rack(*(port.device for port in ports)),
        links=len(cables),
        steps=tuple(TakeOut(*sorted(cable.ends)) for cable in cables),
        tie=True,
    )

"""Right links with another cable than planned: serial number, length or type, by the cable's own memory.

A property that the plan or the cable lacks is not compared. No host is held for it: the link itself is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.labels import PlanLabels, listed
from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.telemetry import Transceiver
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.fabric.wiring import PlannedCable

_METRES = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?)\s*m\b", re.IGNORECASE)
_TOLERANCE_M = 1.0
"""Cables report whole metres, and half metres rounded."""
_TYPES: Mapping[str, tuple[str, ...]] = {
    "copper": ("copper", "dac", "passive", "acc", "mcp", "mca", "kupfer"),
    "active optical": ("aoc", "active optical", "mfa", "mfs"),
    "transceivers": ("transceiver", "fiber", "fibre", "mmf", "smf", "mpo", "glasfaser", "mma", "mms"),
}
"""Words of a plan, and beginnings of NVIDIA's part numbers, by type."""
_PART = re.compile(r"[A-Z]{2,4}\d[\w-]{4,}$")


def wrong_cables(
    right: Iterable[ObservedCable], transceivers: Mapping[PortId, Transceiver], labels: PlanLabels
) -> Iterator[CablingExplanation]:
    """Yield one explanation for each right link that has not the planned cable."""
    if not transceivers:
        return
    planned = {cable.ends: cable for cable in labels.plan.cables}
    owners = {cable.serial: cable for cable in labels.plan.cables if cable.serial}
    for link in right:
        cable = planned[link.ends]
        modules = [transceivers[port] for port in (link.link.a, link.link.b) if port in transceivers]
        problems = [*_serial(cable, modules, owners), *_length(cable, modules), *_type(cable, modules)]
        if problems:
            yield _explain(cable, problems, labels)


def _serial(cable: PlannedCable, modules: Iterable[Transceiver], owners: Mapping[str, PlannedCable]) -> Iterator[str]:
    """Yield the wrong serials. A cable has one serial at both ends; two transceivers have two, one of them planned."""
    serials = {module.serial for module in modules if module.serial}
    if cable.serial and serials and cable.serial not in serials:
        found = listed(sorted(serials))
        other = next((owners[serial] for serial in sorted(serials) if serial in owners), None)
        belongs = f", which the plan has at {other.source} – {other.destination}" if other else ""
        yield f"its serial number is {found}, not {cable.serial}{belongs}"


def _length(cable: PlannedCable, modules: Iterable[Transceiver]) -> Iterator[str]:
    lengths = {float(match[1]) for module in modules if (match := _METRES.match(module.length))}
    if cable.length_m and lengths and all(abs(length - cable.length_m) > _TOLERANCE_M for length in lengths):
        yield f"it is {min(lengths):g} m long, not {cable.length_m:g} m"


def _type(cable: PlannedCable, modules: Iterable[Transceiver]) -> Iterator[str]:
    parts = sorted({module.part for module in modules if module.part})
    planned = cable.kind.strip()
    if planned and parts:
        yield from _part_number(planned, parts) if _PART.match(planned) else _kind(planned, parts)


def _part_number(planned: str, parts: list[str]) -> Iterator[str]:
    if not any(part.startswith(planned) for part in parts):
        yield f"its part number is {listed(parts)}, not {planned}"


def _kind(text: str, parts: list[str]) -> Iterator[str]:
    planned, found = _type_of(text), {_type_of(part) for part in parts} - {""}
    if planned and found and planned not in found:
        yield f"it is {listed(sorted(found))} ({listed(parts)}), not {planned}"


def _type_of(text: str) -> str:
    words = text.casefold()
    return next((name for name, signs in _TYPES.items() if any(_has(words, sign) for sign in signs)), "")


def _has(words: str, sign: str) -> bool:
    """Return whether the sign is a word of the text, or, for part numbers, its beginning."""
    return words.startswith(sign) or re.search(rf"\b{re.escape(sign)}\b", words) is not None


def _explain(cable: PlannedCable, problems: list[str], labels: PlanLabels) -> CablingExplanation:
    first, second = cable.source, cable.destination
    return CablingExplanation(
        kind=FaultKind.WRONG_CABLE,
        cause=f"the cable {labels.port(first)} – {labels.port(second)} is not the planned one: {'; '.join(problems)}",
        action=f"{labels.at(first.device)}{labels.port(first)}: exchange the cable, or correct the plan",
        ports=(first, second),
        rack=labels.rack(first.device, second.device),
    )

"""Which part of the machine an entry of a BMC's log is about, and how well that part is by now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.hardware.temperatures import judge_temperatures
from clusterctl.fleet.node import Cpu, Dimm, Drive, Fan, Gpu, Inventory, Psu
from clusterctl_burnin.bmc_log.table import LogComponent

Part = Psu | Fan | Dimm | Cpu | Drive | Gpu

_NO_WORD = re.compile(r"[^a-z0-9]+")
_NUMBER = re.compile(r"\d+")
_SPELLED = (
    (re.compile(r"\bprocessor (\d+), (?=dimm \d)"), r"proc \1 "),  # HPE: Processor 1, DIMM 3
    (re.compile(r"\b(dimm\w+) ?\(cpu(\d+)\)"), r"p\2-\1"),  # Supermicro: DIMMB1(CPU1)
    (re.compile(r"\bfan(?=\d)"), "fan "),  # Dell: System Board Fan3A
)
"""How logs spell, lower case, what the same BMC's inventory spells otherwise: PROC 1 DIMM 3, P1-DIMMB1, Fan 3A."""
CHECKS = {
    LogComponent.PSU: "psu",
    LogComponent.FAN: "fans",
    LogComponent.DIMM: "dimms",
    LogComponent.CPU: "cpus",
    LogComponent.DRIVE: "drives",
    LogComponent.GPU: "gpus",
    LogComponent.TEMPERATURE: "temperature",
}
"""What judges the part itself by the inventory."""


def parts_of(inventory: Inventory, component: LogComponent) -> Sequence[Part]:
    """Return all parts of that kind that the BMC reports."""
    reported: dict[LogComponent, Sequence[Part] | None] = {
        LogComponent.PSU: inventory.psus,
        LogComponent.FAN: inventory.fans,
        LogComponent.DIMM: inventory.dimms,
        LogComponent.CPU: inventory.cpus,
        LogComponent.DRIVE: inventory.drives,
        LogComponent.GPU: inventory.gpus,
    }
    return reported.get(component) or ()


def _by_name(name: str, parts: Sequence[Part]) -> Part | None:
    words = _words(name)
    return _only(part for part in parts if words and _meant(words, _slot(part)))


def part_of(entry: LogEntry, named: str, parts: Sequence[Part]) -> Part | None:
    """Find it by name in the entry, by the BMC's own id, by slot in the message, or by a number that only one has."""
    if found := _by_name(named, parts) or _by_name(entry.origin, parts):
        return found
    message = _words(entry.message)
    if found := _only(part for part in parts if _slot(part) in message):
        return found
    number = _NUMBER.search(named)
    if number is None or _counted_otherwise(parts):
        return None
    return _only(part for part in parts if _first_number(part) == int(number[0]))


def well(inventory: Inventory, component: LogComponent, part: Part | None) -> bool | None:
    """Return how the part is now, or where it is not known all of its kind; None where the BMC does not report it."""
    if part is not None:
        return part.healthy
    if component is LogComponent.TEMPERATURE:
        verdicts = {finding.verdict for finding in judge_temperatures(inventory)}
        return None if not verdicts or Verdict.INCONCLUSIVE in verdicts else verdicts == {Verdict.PASS}
    reported = {one.healthy for one in parts_of(inventory, component)}
    if False in reported:
        return False
    return True if reported == {True} else None


def _counted_otherwise(parts: Sequence[Part]) -> bool:
    """Return whether slots count from 0: messages count from 1, except for drives, so numbers then do not match."""
    return any(_first_number(part) == 0 and not isinstance(part, Drive) for part in parts)


def _meant(words: str, slot: str) -> bool:
    """Return whether it is the slot, more than it, or the end of it; a number alone is not enough for that."""
    return words.endswith(slot) or (slot.endswith(words) and not words.strip().isdigit())


def _only(found: Iterable[Part]) -> Part | None:
    """Return the one; None where there is none, or more than one could be meant."""
    parts = list(found)
    return parts[0] if len(parts) == 1 else None


def _slot(part: Part) -> str:
    return _words(part.slot)


def _words(text: str) -> str:
    """Lower case, spelled as inventories do, its words between single blanks."""
    text = text.lower()
    for spelled, otherwise in _SPELLED:
        text = spelled.sub(otherwise, text)
    return f" {_NO_WORD.sub(' ', text).strip()} " if text else ""


def _first_number(part: Part) -> int | None:
    number = _NUMBER.search(part.slot)
    return int(number[0]) if number else None

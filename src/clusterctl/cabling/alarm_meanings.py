"""What the events of a fabric manager mean for its links: a table of codes."""

from __future__ import annotations

import functools
import importlib.resources
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.fleet.fabric.alarms import FabricAlarm, Meaning
from clusterctl.fleet.fabric.topology import PortId


@functools.cache
def _table() -> Mapping[int, tuple[Meaning, str]]:
    text = importlib.resources.files("clusterctl.cabling").joinpath("data/ufm_events.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {int(code): (Meaning(meaning), name) for code, meaning, name in rows}


def meaning_of(code: int) -> Meaning:
    """Return what a code means. A code that the table does not have is `UNKNOWN`, never harmless."""
    return _table().get(code, (Meaning.UNKNOWN, ""))[0]


def name_of(code: int) -> str:
    """Return the name of a kind of event; `event 1234` for an unknown one."""
    return _table().get(code, (Meaning.UNKNOWN, f"event {code}"))[1]


@dataclass(frozen=True, slots=True)
class Sorted:
    """Alarms by meaning. `suspects`: ports whose counters are to be looked at, with the first alarm of each."""

    suspects: Mapping[PortId, FabricAlarm]
    counts: Mapping[Meaning, int]
    unknown: Mapping[int, int]
    subnet_manager: tuple[FabricAlarm, ...] = ()


def sort_alarms(alarms: Iterable[FabricAlarm]) -> Sorted:
    """Return the alarms by meaning, in their order."""
    suspects: dict[PortId, FabricAlarm] = {}
    counts: Counter[Meaning] = Counter()
    unknown: Counter[int] = Counter()
    managers = []
    for alarm in alarms:
        meaning = meaning_of(alarm.code)
        counts[meaning] += 1
        if meaning is Meaning.UNKNOWN:
            unknown[alarm.code] += 1
        if meaning is Meaning.SUBNET_MANAGER:
            managers.append(alarm)
        if meaning.suspects_link:
            for port in alarm.ports:
                suspects.setdefault(port, alarm)
    return Sorted(suspects, counts, unknown, tuple(managers))

"""Events of a fabric manager: what each means for the fabric's links, by a table of codes, and which are new."""

from __future__ import annotations

import functools
import importlib.resources
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.fabric.alarms import AlarmList, FabricAlarm, Meaning
from clusterctl.fleet.fabric.history import port_name
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.payloads.fabric import FabricAlarmsRead, FabricLinkSuspected


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


AGE = timedelta(hours=24)
"""An event that is older than this when it is first read suspects no link any more."""
_MANAGERS = 20
_UNKNOWN = 100
_UNREAD = 1000
"""Entries that could not be read, of which the journal keeps the digests."""
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NewAlarms:
    """The new events of one source by meaning, and what the journal gets: the cursor, and each suspected port once.

    unread  why entries could not be read that the last reading did not have
    """

    sorted: Sorted
    events: tuple[NewEvent, ...]
    unread: tuple[str, ...] = ()


def fresh(alarms: Sequence[FabricAlarm], last: FabricAlarmsRead | None) -> list[FabricAlarm]:
    """Return the events after the last one that was read. Numbers that begin again count by their times."""
    if last is None:
        return list(alarms)
    if alarms and max(alarm.id for alarm in alarms) >= last.last_id:
        return [alarm for alarm in alarms if alarm.id > last.last_id]
    return [alarm for alarm in alarms if alarm.at > last.newest]


def new_alarms(
    source: str,
    read: AlarmList,
    last: FabricAlarmsRead | None,
    known: Mapping[PortId, FabricLinkSuspected],
) -> NewAlarms:
    """Return what is new of one source. `known`: what the journal has of each port."""
    new = fresh(read.alarms, last)
    found = sort_alarms(new)
    before = last or FabricAlarmsRead(newest=_BEGIN, last_id=0)
    unread = tuple(why for entry, why in read.unread.items() if entry not in before.unread)
    if not new and not unread:
        return NewAlarms(found, ())
    cursor = FabricAlarmsRead(
        newest=max((alarm.at for alarm in new), default=before.newest),
        last_id=max((alarm.id for alarm in new), default=before.last_id),
        counts={meaning.value: count for meaning, count in found.counts.items()},
        unknown=tuple(sorted(found.unknown))[:_UNKNOWN],
        managers=tuple(f"{name_of(one.code)}: {one.text}" for one in found.subnet_manager[-_MANAGERS:]),
        unread=tuple(read.unread)[-_UNREAD:],
    )
    suspects = _suspects(found, cursor.newest, known)
    return NewAlarms(found, (*suspects, NewEvent(Stream.FABRIC, source, cursor)), unread)


def _suspects(found: Sorted, newest: datetime, known: Mapping[PortId, FabricLinkSuspected]) -> list[NewEvent]:
    """Return an event for each port with a new alarm that is not old by then."""
    return [
        NewEvent(Stream.FABRIC, port_name(port), _suspected(alarm))
        for port, alarm in found.suspects.items()
        if newest - alarm.at < AGE and _is_news(alarm, known.get(port))
    ]


def _suspected(alarm: FabricAlarm) -> FabricLinkSuspected:
    return FabricLinkSuspected(
        code=alarm.code, name=name_of(alarm.code), at=alarm.at, text=alarm.text, serial=alarm.serial
    )


def _is_news(alarm: FabricAlarm, before: FabricLinkSuspected | None) -> bool:
    """Return whether the journal lacks this kind of event of the port for a day: UFM repeats them by the minute."""
    return before is None or before.code != alarm.code or alarm.at - before.at > AGE

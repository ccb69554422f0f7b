"""UFM's event log (`/opt/ufm/files/log/event.log`, or what syslog has of it) → alarms.

    2016-10-17 15:56:33.245 [5744] [112] WARNING [Hardware] IBPort [default(34) / Switch: leaf01 / NA / 16] \
[dev_id: 248a0703006d40f0]: Link-Downed counter delta threshold exceeded. …

time, id, code, level, perhaps `Site [name]`, topic, type of object, object, perhaps its GUID, text. A text may go on in
further lines. Lines and fields: https://github.com/Mellanox/ufm_sdk_3.0 (ufm_log_analyzer_plugin).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.alarms import FabricAlarm
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.formats.ufm.common import cable_serial, guid_or_none, port_names, port_number, time_of

MAX_LINE = 4000
"""Characters of a line, and of a text of several, that are read."""
MAX_ENTRIES = 500_000
_HEAD = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) \[(?P<id>\d{1,18})\] "
    r"\[(?P<code>\d{1,6})\] (?P<level>[A-Z]{1,12}) "
    r"(?:Site \[[^\]]*\] )?\[(?P<topic>\w{1,60})\] (?P<object>\w{1,60}) \["
)
_DEVICE = re.compile(r"\] \[dev_id: ([0-9a-fA-F]{16})\]: ")


@dataclass(frozen=True, slots=True)
class UfmEventLog:
    """What a log holds. `skipped`: lines before the first entry, and entries that were not understood."""

    alarms: tuple[FabricAlarm, ...]
    skipped: int = 0


def parse_event_log(text: str, zone: tzinfo) -> UfmEventLog:
    """Return the entries of a log in their order. What is no entry is counted, never guessed."""
    alarms: list[FabricAlarm] = []
    skipped = 0
    for head, body in _entries(text):
        alarm = _alarm(head, body, zone) if head is not None else None
        if alarm is None:
            skipped += 1
        else:
            alarms.append(alarm)
        if len(alarms) >= MAX_ENTRIES:
            break
    return UfmEventLog(tuple(alarms), skipped)


def _entries(text: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Yield each entry's head and the rest of it, with the lines that follow; None for a line without an entry."""
    head: re.Match[str] | None = None
    rest: list[str] = []
    for raw in text.splitlines():
        line = raw[:MAX_LINE]
        found = _HEAD.search(line)
        if found is None and head is not None:
            rest.append(line)
            continue
        if head is not None:
            yield head, " ".join(rest)[:MAX_LINE]
        if found is None:
            if line.strip():
                yield None, line
            continue
        head, rest = found, [line[found.end() :]]
    if head is not None:
        yield head, " ".join(rest)[:MAX_LINE]


def _alarm(head: re.Match[str], body: str, zone: tzinfo) -> FabricAlarm | None:
    place, device, message = _parts(body)
    if message is None:
        return None
    try:
        at = time_of(head["at"], zone)
    except ParseError:
        return None
    guid = guid_or_none(device)
    ports = port_names(place)
    number = port_number(place.rsplit(" / ", 1)[-1]) if head["object"] == "IBPort" else None
    if not ports and guid is not None and number:
        ports = (PortId(guid, number),)
    return FabricAlarm(
        id=int(head["id"]),
        code=int(head["code"]),
        at=at,
        severity=head["level"].capitalize(),
        ports=ports,
        device=None if ports else guid,
        place=place,
        text=message,
        serial=cable_serial(message),
    )


def _parts(body: str) -> tuple[str, str, str | None]:
    """Return the object, the GUID of its device, and the text, which is None where the entry has another form."""
    found = _DEVICE.search(body)
    if found is not None:
        return body[: found.start()], found[1], body[found.end() :]
    place, sign, message = body.partition("]: ")
    return place, "", message if sign else None

"""The answers of UFM's REST API → alarms, ports, links, systems.

Fields: NVIDIA UFM Enterprise REST API Guide (https://docs.nvidia.com/networking/display/ufmenterpriserestapiv6221), and
of older versions, whose events have their code in `type`; since 6.17 it is in `event_type`, and `type` is the kind of
object.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, TypeVar

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.alarms import (
    AlarmList,
    FabricAlarm,
    ManagedLink,
    ManagedPort,
    ManagedSystem,
    UnhealthyPort,
)
from clusterctl.fleet.fabric.manager_jobs import JobStatus, ManagerJob
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.node import Guid
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.ufm.common import cable_serial, guid_or_none, port_names, time_of

T = TypeVar("T")
Item = Mapping[str, Any]
JOB_ID = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?", re.ASCII)
"""The number of a job, or of its part."""
_JOB_OF_ANSWER = re.compile(r"/jobs/([0-9]{1,12})(?![0-9])", re.ASCII)
_ARCHITECTURE = re.compile(r"-(?:X86_64|PPC_M460EX)\Z", re.IGNORECASE)
_NONE = ("N/A", "Unknown", "NoState")
_LINKS = ("Link", "Site")
"""Types of object whose text names the two ports."""


def read_version(value: Any, where: str) -> str:
    """Return UFM's version, `6.18.0-5`. Raise `ParseError` where something else answers there."""
    version = value.get("ufm_release_version") if isinstance(value, dict) else None
    if not isinstance(version, str) or not version:
        raise ParseError("what answers is no UFM", where=where, remedy="check fabric.ufm.url: UFM's first page")
    return visible_line(version, 40)


def read_events(value: Any, zone: tzinfo, where: str) -> AlarmList:
    """Return events in the order of the answer, and those that could not be read. Raise `ParseError` if none could."""
    return _alarm_list(value, lambda item: _event(item, zone, where), where)


def read_alarms(value: Any, zone: tzinfo, where: str) -> AlarmList:
    """Return alarms in the order of the answer, and those that could not be read. Raise `ParseError` if none could."""
    return _alarm_list(value, lambda item: _alarm(item, zone, where), where)


def read_ports(value: Any, where: str) -> tuple[ManagedPort, ...]:
    """Return the ports, without the switches' own port 0."""
    found = _each(value, lambda item: _port(item, where), where)
    return tuple(one for one in found if one.port.number)


def read_links(value: Any, where: str) -> tuple[ManagedLink, ...]:
    """Return the links."""
    return _each(value, lambda item: _link(item, where), where)


def read_systems(value: Any, where: str) -> tuple[ManagedSystem, ...]:
    """Return hosts and switches."""
    return _each(value, lambda item: _system(item, where), where)


def read_unhealthy_ports(value: Any, where: str) -> tuple[UnhealthyPort, ...]:
    """Return the ports that the subnet manager keeps out of its routes."""
    return _each(value, lambda item: _unhealthy(item, where), where)


def read_jobs(value: Any, where: str) -> tuple[ManagerJob, ...]:
    """Return jobs, or parts of one."""
    return _each(value, lambda item: _job(item, where), where)


def read_job(value: Any, where: str) -> ManagerJob:
    """Return one job."""
    return _job(_object(value, where), where)


def job_of_action(location: str, body: str, where: str) -> str:
    """Return the number of the job that UFM made of an action. Raise `ParseError` where it names none.

    The guide has its address in the header Location, NVIDIA's SDK in the answer's text (utils/job_polling.py).
    """
    found = _JOB_OF_ANSWER.search(location) or _JOB_OF_ANSWER.search(body)
    if found is None:
        raise ParseError("UFM took the action and names no job", where=where, remedy="clusterctl fabric jobs")
    return found[1]


def _job(item: Item, where: str) -> ManagerJob:
    id_, progress = item.get("ID"), item.get("Progress")
    id_ = str(id_) if isinstance(id_, int) else id_
    if not isinstance(id_, str) or not JOB_ID.fullmatch(id_):
        raise ParseError("a job has no number", where=where)
    text = _text(item, "Status")
    known = {status.value: status for status in JobStatus}
    return ManagerJob(
        id=id_,
        status=known.get(text, JobStatus.UNKNOWN),
        status_text=text or "no status",
        operation=_text(item, "Operation"),
        description=_text(item, "Description"),
        objects=_text(item, "RelatedObjects"),
        summary=_text(item, "Summary"),
        created=_text(item, "Created"),
        updated=_text(item, "LastUpdated"),
        progress=progress if isinstance(progress, int) and 0 <= progress <= 100 else None,
    )


def _alarm_list(value: Any, read: Callable[[Item], FabricAlarm], where: str) -> AlarmList:
    """Read each entry for itself: one that is malformed hides none of the others."""
    if not isinstance(value, list):
        raise ParseError("the answer is no list", where=where)
    alarms: list[FabricAlarm] = []
    unread: dict[str, str] = {}
    for item in value:
        try:
            alarms.append(read(_object(item, where)))
        except ParseError as error:
            unread[_digest(item)] = error.message
    if unread and not alarms:
        why = next(iter(unread.values()))
        raise ParseError(f"none of {len(value)} entries can be read: {why}", where=where)
    return AlarmList(tuple(alarms), unread)


def _object(item: Any, where: str) -> Item:
    if not isinstance(item, dict):
        raise ParseError("it is no object", where=where)
    return item


def _digest(item: Any) -> str:
    return hashlib.sha256(json.dumps(item, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _each(value: Any, read: Callable[[Item], T], where: str) -> tuple[T, ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ParseError("the answer is no list of objects", where=where)
    return tuple(read(item) for item in value)


def _event(item: Item, zone: tzinfo, where: str) -> FabricAlarm:
    coded = item.get("event_type", item.get("type"))
    text = _text(item, "description")
    kind = _text(item, "type")
    return _made(item, coded, text, zone, where, names=(text,) if kind in _LINKS else ())


def _alarm(item: Item, zone: tzinfo, where: str) -> FabricAlarm:
    text = _text(item, "reason") or _text(item, "description")
    return _made(item, item.get("event_type"), text, zone, where)


def _made(item: Item, coded: Any, text: str, zone: tzinfo, where: str, names: tuple[str, ...] = ()) -> FabricAlarm:
    name = _text(item, "object_name") or _text(item, "related_object_name")
    place = _text(item, "object_path") or _text(item, "related_object_path")
    ports = port_names(name, place, *names)
    return FabricAlarm(
        id=_number(item.get("id"), "id", where),
        code=_number(coded, "event_type", where),
        at=time_of(_text(item, "timestamp"), zone, where),
        severity=_text(item, "severity"),
        ports=ports,
        device=None if ports else guid_or_none(name),
        place=place or name,
        text=text,
        serial=cable_serial(text),
        count=_number(item.get("event_count", 1), "event_count", where),
    )


def _port(item: Item, where: str) -> ManagedPort:
    name = _text(item, "name")
    number = _number(item.get("number"), "number", where)
    guid = guid_or_none(name.partition("_")[0]) or guid_or_none(_text(item, "guid"))
    if guid is None:
        raise ParseError("a port has no GUID", where=where)
    lid = item.get("lid")
    return ManagedPort(
        port=PortId(guid, number),
        logical=_known(_text(item, "logical_state")),
        physical=_known(_text(item, "physical_state")),
        lid=lid if isinstance(lid, int) else 0,
        peer=next(iter(port_names(_text(item, "peer"))), None),
    )


def _link(item: Item, where: str) -> ManagedLink:
    a, b = (_end(item, side, where) for side in ("source", "destination"))
    return ManagedLink(a=a, b=b, width=_known(_text(item, "width")).removeprefix("IB_"))


def _end(item: Item, side: str, where: str) -> PortId:
    return PortId(_guid(item, f"{side}_guid", where), _number(item.get(f"{side}_port"), f"{side}_port", where))


def _system(item: Item, where: str) -> ManagedSystem:
    modules = item.get("modules")
    found = [one for one in modules if isinstance(one, dict)] if isinstance(modules, list) else []
    own = next((one for one in found if _text(one, "type") == "SYSTEM"), {})
    return ManagedSystem(
        guid=_guid(item, "guid" if guid_or_none(_text(item, "guid")) else "system_guid", where),
        name=_text(item, "system_name"),
        kind=_text(item, "type"),
        model=_known(_text(item, "model")),
        firmware=_known(_text(item, "fw_version")),
        serial=_known(_text(own, "serial_number")),
        software=_software(_known(_text(item, "sw_version"))),
        capabilities=frozenset(_texts(item, "capabilities")),
    )


def _software(text: str) -> str:
    """Return the version of a switch's operating system, without the architecture behind it: `3.8.2102-X86_64`."""
    return _ARCHITECTURE.sub("", text)


def _texts(item: Item, name: str) -> list[str]:
    found = item.get(name)
    return [visible_line(one, 40) for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _unhealthy(item: Item, where: str) -> UnhealthyPort:
    port = PortId(
        _guid(item, "UnhealthyGUID", where), _number(item.get("UnhealthyPortNumber"), "UnhealthyPortNumber", where)
    )
    conditions = item.get("Condition")
    texts = conditions if isinstance(conditions, list) else [conditions]
    return UnhealthyPort(port=port, conditions=tuple(visible_line(one, 40) for one in texts if isinstance(one, str)))


def _guid(item: Item, name: str, where: str) -> Guid:
    found = guid_or_none(_text(item, name))
    if found is None:
        raise ParseError(f"{name} is no GUID", where=where)
    return found


def _text(item: Item, name: str) -> str:
    found = item.get(name)
    return found if isinstance(found, str) else ""


def _known(text: str) -> str:
    return "" if text in _NONE else visible_line(text, 80)


def _number(value: Any, name: str, where: str) -> int:
    """Return a number, which UFM also writes as text. Raise `ParseError`."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**18:
        raise ParseError(f"{name} is no number", where=where)
    return value

"""JSON of lldpd's `lldpctl` (`-f json`, `-f json0`, also `show interfaces` of its own ports) → LldpReport.

`json0` writes every element as a list; `json` folds lists of one and uses names as keys. A chassis without a name is
folded into its elements. Recorded from lldpd 1.0.16.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.network.lldp import LldpReport, Neighbour
from clusterctl.fleet.node import Mac
from clusterctl.formats.peer_json import read_json

_REMEDY = "record it again, whole: lldpctl -f json0"
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}$")


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the document: `node001.json lldp.interface.ens1f0.port`."""

    file: str
    path: str = "lldp"

    def under(self, key: str) -> _Place:
        return _Place(self.file, f"{self.path}.{key}")

    def error(self, message: str) -> ParseError:
        return ParseError(message, where=f"{self.file} {self.path}", remedy=_REMEDY)


@dataclass(frozen=True, slots=True)
class _Id:
    value: str
    mac: Mac | None = None


def parse_lldpctl(text: str, *, file: str = "lldpctl") -> LldpReport:
    """Return the report. Raises ParseError with file and line, or the element. No neighbour is no error."""
    place = _Place(file)
    document = _json(text, file)
    root = _only(document.get("lldp"), place) if isinstance(document, dict) else None
    if root is None:
        raise place.error("there is no element `lldp` in it")
    neighbours = []
    interfaces = {}
    for name, body in _interfaces(root.get("interface"), place.under("interface")):
        here = place.under(f"interface.{name}")
        if "via" in body:
            neighbours.append(_neighbour(name, body, here))
        else:
            port = _id(_child(body, "port", here), here.under("port"))
            if port.mac is not None:
                interfaces[name] = port.mac
    return LldpReport(tuple(neighbours), interfaces)


def _json(text: str, file: str) -> Any:
    try:
        return read_json(text, where=file)
    except ParseError as error:
        raise ParseError(error.message, where=error.where, remedy=_REMEDY) from None


def _only(value: object, place: _Place) -> Mapping[str, Any] | None:
    """Return a single element: itself in `json`, a list of it in `json0`. None where it is absent."""
    if isinstance(value, list):
        if len(value) > 1:
            raise place.error(f"occurs {len(value)} times")
        value = value[0] if value else None
    if value is not None and not isinstance(value, dict):
        raise place.error(f"is {type(value).__name__}, not an object")
    return value


def _interfaces(value: object, place: _Place) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and element of each entry; an interface occurs once for each of its neighbours."""
    entries = value if isinstance(value, list) else [value] if value is not None else []
    for entry in entries:
        if not isinstance(entry, dict):
            raise place.error(f"is {type(entry).__name__}, not an object")
        if isinstance(entry.get("name"), str):
            yield entry["name"], entry
            continue
        for name, body in entry.items():
            if not isinstance(body, dict):
                raise place.under(name).error(f"is {type(body).__name__}, not an object")
            yield name, body


def _neighbour(interface: str, body: Mapping[str, Any], place: _Place) -> Neighbour:
    name, chassis = _chassis(_child(body, "chassis", place), place.under("chassis"))
    port = _child(body, "port", place)
    port_id = _id(port, place.under("port"))
    chassis_id = _id(chassis, place.under("chassis"))
    candidates = ("" if port_id.mac else port_id.value, _text(port.get("descr")))
    return Neighbour(
        interface=interface,
        chassis=name or chassis_id.value,
        ports=tuple(dict.fromkeys(filter(None, candidates))),
        port_mac=port_id.mac,
        chassis_mac=chassis_id.mac,
    )


def _child(body: Mapping[str, Any], key: str, place: _Place) -> Mapping[str, Any]:
    found = _only(body.get(key), place.under(key))
    if found is None:
        raise place.error(f"there is no element `{key}` in it")
    return found


def _chassis(element: Mapping[str, Any], place: _Place) -> tuple[str, Mapping[str, Any]]:
    """Return name (may be empty) and elements; `json` has the name as the only key."""
    if len(element) == 1 and not _is_id(element.get("id")):
        ((name, inner),) = element.items()
        if not isinstance(inner, dict):
            raise place.under(name).error(f"is {type(inner).__name__}, not an object")
        return name.strip(), inner
    return _text(element.get("name")), element


def _is_id(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("type"), str))


def _id(element: Mapping[str, Any], place: _Place) -> _Id:
    found = _only(element.get("id"), place.under("id"))
    value = _text(found.get("value")) if found else ""
    if not found or not value:
        raise place.error("there is no id in it")
    mac = Mac(value.lower())
    return _Id(mac, mac) if found.get("type") == "mac" and _MAC.match(mac) else _Id(value)


def _text(value: object) -> str:
    """Return the text of `x`, `{"value": "x"}` or `[{"value": "x"}]`; empty where it is absent."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("value")
    return value.strip() if isinstance(value, str) else ""

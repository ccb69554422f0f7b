"""The topology file of ibtopodiff (`.topo`) → PlanDraft.

A device stands at the line's beginning (`QM9700 leaf-1`), its cables below it (`P1 -4x-100G-> CX7 node001 P1`). A cable
may be listed from both ends. Ports may carry the board or adapter that they are on: `U1/P3`, `mlx5_0/P1`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PlanDraft, PlannedCable, PortName
from clusterctl.formats.wiring.ports import board_of

_PORT = r"((?:[\w.-]+/)*)P([0-9]{1,4})"
CABLE = re.compile(rf"{_PORT}\s+-(?:[0-9]+[xX]-?[0-9.]*G?-)?>\s+(\S+)\s+(\S+)\s+{_PORT}$")
_DEVICE = re.compile(r"(\S+)\s+(\S+)(?:\s+CFG:.*)?$")


@dataclass(slots=True)
class _Reader:
    file: str
    device: str = ""
    cables: list[PlannedCable] = field(default_factory=list)
    seen: set[frozenset[PortName]] = field(default_factory=set)
    models: dict[str, str] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)


def read_topo(text: str, file: str) -> PlanDraft:
    """Return the draft. Raise UsageError with file and line. Devices without an own line are taken for hosts."""
    reader = _Reader(file)
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if line:
            _line(reader, line, number)
    if not reader.cables:
        raise UsageError("no cable in it", where=file, remedy="list at least one cable")
    devices = {end.device for cable in reader.cables for end in (cable.source, cable.destination)}
    hosts = frozenset(devices - reader.owners)
    return PlanDraft(file, tuple(reader.cables), hosts, models=reader.models)


def _line(reader: _Reader, line: str, number: int) -> None:
    if match := CABLE.match(line):
        if not reader.device:
            remedy = "begin with a device: `SW36 leaf-1`"
            raise UsageError("a cable before any device", where=f"{reader.file}:{number}", remedy=remedy)
        cable = PlannedCable(
            source=_port(reader.device, match[1], match[2]),
            destination=_port(match[4], match[5], match[6]),
            line=number,
        )
        reader.models.setdefault(cable.destination.device, match[3])
        if cable.ends not in reader.seen:
            reader.seen.add(cable.ends)
            reader.cables.append(cable)
    elif match := _DEVICE.match(line):
        reader.device = match[2]
        reader.owners.add(match[2])
        reader.models[match[2]] = match[1]
    else:
        message = f"not understood: {line[:60]!r}"
        raise UsageError(message, where=f"{reader.file}:{number}", remedy="write `P1 -> HCA node001 P1`")


def _port(device: str, board: str, number: str) -> PortName:
    """Return the port. A switch's only board (`U1`) is the switch; another one is an adapter, or its only port."""
    name = board.rstrip("/")
    port = str(int(number))
    if chassis := board_of(f"{name}/P{port}"):
        return PortName(device, chassis)
    if name in ("", "U1"):
        return PortName(device, port)
    return PortName(device, name if port == "1" else f"{name}/{port}")

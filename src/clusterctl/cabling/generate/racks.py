"""Where the devices of a generated fabric stand, and what they are called by it: `a01u09`, `leaf-c04u17`."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Location

RACK_UNITS = 48
_SWITCH_PITCH = 2
"""A switch and its cable manager."""


@dataclass(frozen=True, slots=True)
class RackLayout:
    """Hosts of `host_units` units fill the first racks from below, switches the next ones.

    `host_prefix` numbers the hosts (`node001`) instead of naming them by position.
    """

    hosts_per_rack: int = 4
    host_units: int = 8
    switches_per_rack: int = 16
    racks_per_row: int = 16
    host_prefix: str = ""

    def check(self) -> None:
        """Raise UsageError where a rack is too low."""
        used = self.hosts_per_rack * self.host_units
        if used > RACK_UNITS:
            message = f"{self.hosts_per_rack} hosts of {self.host_units} units need {used}, a rack has {RACK_UNITS}"
            raise UsageError(message, where="--hosts-per-rack", remedy="give fewer hosts per rack, or lower ones")
        if self.switches_per_rack * _SWITCH_PITCH > RACK_UNITS:
            message = f"{self.switches_per_rack} switches with cable managers do not fit into {RACK_UNITS} units"
            raise UsageError(message, where="--switches-per-rack", remedy=f"at most {RACK_UNITS // _SWITCH_PITCH}")


@dataclass(frozen=True, slots=True)
class Placed:
    """Names in the order asked for, and where each stands."""

    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    locations: Mapping[str, Location]


def place(hosts: int, roles: Iterable[str], room: RackLayout) -> Placed:
    """Return the placement. `roles` of the switches (`leaf`, `spine`, `core`): in the order that fills their racks."""
    room.check()
    racks = -(-hosts // room.hosts_per_rack)
    locations: dict[str, Location] = {}
    digits = max(3, len(str(hosts)))
    names = []
    for number in range(hosts):
        rack, slot = divmod(number, room.hosts_per_rack)
        location = Location(_rack_name(rack, room), slot * room.host_units + 1)
        name = f"{room.host_prefix}{number + 1:0{digits}}" if room.host_prefix else _position(location)
        locations[name] = location
        names.append(name)
    switches = []
    for number, role in enumerate(roles):
        rack, slot = divmod(number, room.switches_per_rack)
        location = Location(_rack_name(racks + rack, room), slot * _SWITCH_PITCH + 1)
        name = f"{role}-{_position(location)}"
        locations[name] = location
        switches.append(name)
    return Placed(tuple(names), tuple(switches), locations)


def _position(location: Location) -> str:
    return f"{location.rack.lower()}u{location.unit:02}"


def _rack_name(number: int, room: RackLayout) -> str:
    """Return the rack's name: `A01` is the first rack of the first row; after row `Z` comes `AA`."""
    row, column = divmod(number, room.racks_per_row)
    letters = ""
    row += 1
    while row:
        row, letter = divmod(row - 1, len(string.ascii_uppercase))
        letters = string.ascii_uppercase[letter] + letters
    return f"{letters}{column + 1:02}"

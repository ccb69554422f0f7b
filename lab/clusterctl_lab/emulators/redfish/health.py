"""The health of parts, and the resulting health of the machine.

A BMC rolls up the health of its sensors and its parts (recorded at HPE: one drive is Critical, and so are its storage,
the chassis and the system). An absent part does not count: the inventory contains only the parts that were found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl_lab.machine import Dimm, Drive, Fan, Machine, Psu

OK, CRITICAL = "OK", "Critical"
INLET_CRITICAL_C = 42
"""Upper critical threshold of the inlet sensor, as recorded at Dell, Supermicro and HPE."""


@dataclass(frozen=True, slots=True)
class Rollups:
    """The roll-ups of a machine's subsystems, each OK or Critical."""

    power: str
    storage: str
    temperature: str
    memory: str
    fans: str

    @property
    def system(self) -> str:
        return _worst((self.power, self.storage, self.temperature, self.memory, self.fans))


def rollups(machine: Machine) -> Rollups:
    return Rollups(
        power=_worst(of_psu(psu) for psu in machine.psus),
        storage=of_drives(machine.drives),
        temperature=of_inlet(machine),
        memory=_worst(of_dimm(dimm) for dimm in machine.dimms),
        fans=_worst(of_fan(fan) for fan in machine.fans),
    )


def of_psu(psu: Psu) -> str:
    return CRITICAL if psu.failed else OK


def of_dimm(dimm: Dimm) -> str:
    return CRITICAL if dimm.failed else OK


def of_fan(fan: Fan) -> str:
    """Return a fan's health. While the machine is off, a fan that its BMC saw stopped stays Critical until it turns
    again.
    """
    return CRITICAL if fan.failed else OK


def of_drive(drive: Drive) -> str:
    return CRITICAL if drive.failed else OK


def of_inlet(machine: Machine) -> str:
    return CRITICAL if machine.inlet_c >= INLET_CRITICAL_C else OK


def of_drives(drives: Iterable[Drive]) -> str:
    return _worst(of_drive(drive) for drive in drives)


def _worst(healths: Iterable[str]) -> str:
    return CRITICAL if CRITICAL in set(healths) else OK

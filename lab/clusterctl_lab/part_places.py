"""Where memory modules and fans sit: what each vendor's BMC calls the place, and what its event log calls it.

Sixteen modules of 128 GiB in every machine, one on each channel of two CPUs. The recorded Supermicro and DGX have 32 of
64 GiB; sixteen keep the trees small.

dell        recorded (R750): DIMM A1 to A8 on the first CPU, B1 to B8 on the second; fans System Board Fan1A and on. In
            logs DIMM_A1 and 1A, the arguments of MEM0001 and FAN0001
supermicro  recorded: P1-DIMMA1 to P2-DIMMH2, two sockets on each channel. In logs DIMMA1(CPU1), published as ipmitool
            prints it; fans are FAN1 and on
hpe         recorded: PROC 1 DIMM 1 and on, 16 sockets for each CPU, and which of them are filled first. In logs
            Processor 1, DIMM 1, as in messages of iLOEvents 3.7; fans are Fan 1 and on
openbmc     recorded: DevType2_DIMM0 and on, two for each channel; and one of the two rotors of each fan, SPD_FAN_SYS1_F
            and on. That the log's sensors have the same names is taken from its temperatures
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusterctl_lab.machine import Dimm, Fan
from clusterctl_lab.vendor import Vendor

CPUS, CHANNELS = 2, 8
DIMM_MIB = 128 * 1024
_HPE_FILLED = (1, 3, 5, 7, 10, 12, 14, 16)


@dataclass(frozen=True, slots=True)
class Place:
    """`slot` by the BMC's inventory, `in_log` by its event log."""

    slot: str
    in_log: str


def _dell(cpu: int, channel: int) -> Place:
    name = f"{'AB'[cpu]}{channel + 1}"
    return Place(f"DIMM {name}", f"DIMM_{name}")


def _supermicro(cpu: int, channel: int) -> Place:
    name = f"DIMM{'ABCDEFGH'[channel]}1"
    return Place(f"P{cpu + 1}-{name}", f"{name}(CPU{cpu + 1})")


def _hpe(cpu: int, channel: int) -> Place:
    number = _HPE_FILLED[channel]
    return Place(f"PROC {cpu + 1} DIMM {number}", f"Processor {cpu + 1}, DIMM {number}")


def _openbmc(cpu: int, channel: int) -> Place:
    name = f"DevType2_DIMM{2 * (CHANNELS * cpu + channel)}"
    return Place(name, name)


_MODULES: Mapping[Vendor, Callable[[int, int], Place]] = {
    Vendor.DELL: _dell,
    Vendor.SUPERMICRO: _supermicro,
    Vendor.HPE: _hpe,
    Vendor.OPENBMC: _openbmc,
}
_FANS: Mapping[Vendor, tuple[int, str, str]] = {
    Vendor.DELL: (6, "System Board Fan{}A", "{}A"),
    Vendor.SUPERMICRO: (6, "FAN{}", "FAN{}"),
    Vendor.HPE: (6, "Fan {}", "{}"),
    Vendor.OPENBMC: (12, "SPD_FAN_SYS{}_F", "SPD_FAN_SYS{}_F"),
}
"""How many, and their names by number, counted from 1."""


def dimms(vendor: Vendor, machine: int) -> tuple[Dimm, ...]:
    """The modules of a machine as it is delivered, CPU by CPU."""
    places = [_MODULES[vendor](cpu, channel) for cpu in range(CPUS) for channel in range(CHANNELS)]
    numbered = enumerate(places)
    return tuple(Dimm(p.slot, p.in_log, f"MEM{machine:04d}{number:02d}", DIMM_MIB) for number, p in numbered)


def fans(vendor: Vendor) -> tuple[Fan, ...]:
    """Of every machine of that vendor."""
    count, slot, in_log = _FANS[vendor]
    return tuple(Fan(slot.format(number), in_log.format(number)) for number in range(1, count + 1))

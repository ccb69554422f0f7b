"""What a sweep found at each address, with what leases, lists and the site's plan say of it.

A machine is known by its serial; a MAC address leads to a serial only where a list says so. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusterctl.fleet.bmc import Lease, Listed, Planned, Sighting
from clusterctl.fleet.node import Mac


@dataclass(frozen=True, slots=True)
class Entry:
    """One address that answered, with all that is known of it; `planned` and `listed` are its lines there."""

    sighting: Sighting
    mac: Mac | None = None
    hostname: str = ""
    planned: Planned | None = None
    listed: Listed | None = None

    @property
    def address(self) -> str:
        return self.sighting.address

    @property
    def serial(self) -> str:
        return self.sighting.serial or ""

    @property
    def name(self) -> str:
        """Empty where neither plan nor list names it."""
        if self.planned is not None:
            return self.planned.name
        return self.listed.name if self.listed is not None else ""

    @property
    def place(self) -> tuple[str, int | None]:
        """Rack and unit: the plan's, else the list's."""
        told = (self.planned, self.listed)
        return next(((one.rack, one.unit) for one in told if one is not None and one.rack), ("", None))


def entries_of(
    sightings: Iterable[Sighting], leases: Iterable[Lease], listed: Sequence[Listed], planned: Sequence[Planned]
) -> tuple[Entry, ...]:
    """In the order of `sightings`."""
    by_address = {lease.address: lease for lease in leases}
    by_serial = {item.serial.lower(): item for item in listed if item.serial}
    by_mac = {item.bmc_mac: item for item in listed if item.bmc_mac is not None}
    plan_by_serial = {item.serial.lower(): item for item in planned if item.serial}
    plan_by_address = {item.address: item for item in planned if not item.serial}
    entries = []
    for sighting in sightings:
        lease = by_address.get(sighting.address)
        mac = sighting.bmc_mac or (lease.mac if lease is not None else None)
        serial = (sighting.serial or "").lower()
        line = (by_serial.get(serial) if serial else None) or (by_mac.get(mac) if mac is not None else None)
        known = serial or (line.serial.lower() if line is not None else "")
        plan = (plan_by_serial.get(known) if known else None) or plan_by_address.get(sighting.address)
        entries.append(Entry(sighting, mac, lease.hostname if lease is not None else "", plan, line))
    return tuple(entries)

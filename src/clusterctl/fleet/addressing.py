"""Whose address is whose: what a sweep found, joined with DHCP leases, lists of machines and the site's plan. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.bmc import Lease, Listed, Outcome, Planned, Sighting
from clusterctl.fleet.conflicts import Conflict, Kind, conflicts_of
from clusterctl.fleet.sighted import Entry, entries_of

_HARMLESS = frozenset({Kind.MOVED, Kind.UNPLANNED, Kind.NOT_FOUND, Kind.NO_REDFISH})
"""Nothing of these keeps what was found out of the sheet."""
_SETTLED = frozenset({Kind.MOVED, Kind.UNPLANNED})


@dataclass(frozen=True, slots=True)
class Addressing:
    """`sound` are the entries that may be written to a sheet: identified, and in no conflict but that they moved."""

    entries: tuple[Entry, ...]
    conflicts: tuple[Conflict, ...]
    sound: tuple[Entry, ...]

    def settled(self) -> Addressing:
        """Once `sound` is written to the sheet: it no longer lacks them, nor has them at another address."""
        written = {entry.address for entry in self.sound}
        left = (found for found in self.conflicts if not (found.kind in _SETTLED and written & {*found.subjects}))
        return replace(self, conflicts=tuple(left))


def join(
    sightings: Sequence[Sighting],
    *,
    asked: Collection[str],
    leases: Iterable[Lease] = (),
    listed: Iterable[Listed] = (),
    planned: Sequence[Planned] = (),
) -> Addressing:
    """`asked`: every address of the sweep; the plan's others are nobody's fault."""
    entries = entries_of(sightings, leases, tuple(listed), planned)
    conflicts = conflicts_of(entries, planned, asked)
    barred = {word.casefold() for found in conflicts if found.kind not in _HARMLESS for word in found.subjects if word}
    identified = (entry for entry in entries if entry.sighting.outcome is Outcome.IDENTIFIED)
    sound = tuple(entry for entry in identified if not {entry.address, entry.serial.casefold()} & barred)
    return Addressing(entries, conflicts, sound)

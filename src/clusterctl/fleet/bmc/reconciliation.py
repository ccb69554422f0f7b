"""What a sweep found at each address, compared with the leases, the lists and the site's plan.

A machine is known by its serial; a MAC address leads to a serial only where a list gives it. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.bmc.observation import BmcObservation, Lease, Listed, Planned, SweepOutcome
from clusterctl.fleet.node import Mac


@dataclass(frozen=True, slots=True)
class Entry:
    """One address that answered, with all that is known of it; `planned` and `listed` are its lines there."""

    observation: BmcObservation
    mac: Mac | None = None
    hostname: str = ""
    planned: Planned | None = None
    listed: Listed | None = None

    @property
    def address(self) -> str:
        return self.observation.address

    @property
    def serial(self) -> str:
        return self.observation.serial or ""

    @property
    def name(self) -> str:
        """The name in plan or list; empty where it has none."""
        if self.planned is not None:
            return self.planned.name
        return self.listed.name if self.listed is not None else ""

    @property
    def place(self) -> tuple[str, int | None]:
        """Rack and unit: the plan's, else the list's."""
        sources = (self.planned, self.listed)
        return next(((one.rack, one.unit) for one in sources if one is not None and one.rack), ("", None))


def entries_of(
    observations: Iterable[BmcObservation],
    leases: Iterable[Lease],
    listed: Sequence[Listed],
    planned: Sequence[Planned],
) -> tuple[Entry, ...]:
    """Return the entries in the order of `observations`."""
    index = _Index(
        leases={lease.address: lease for lease in leases},
        lines_by_serial={item.serial.lower(): item for item in listed if item.serial},
        lines_by_mac={item.bmc_mac: item for item in listed if item.bmc_mac is not None},
        plans_by_serial={item.serial.lower(): item for item in planned if item.serial},
        plans_by_address={item.address: item for item in planned if not item.serial},
    )
    return tuple(map(index.entry, observations))


@dataclass(frozen=True, slots=True)
class _Index:
    """Leases by address; lines of lists by serial and BMC MAC; planned nodes by serial, else by address."""

    leases: Mapping[str, Lease]
    lines_by_serial: Mapping[str, Listed]
    lines_by_mac: Mapping[Mac | None, Listed]
    plans_by_serial: Mapping[str, Planned]
    plans_by_address: Mapping[str, Planned]

    def entry(self, observation: BmcObservation) -> Entry:
        """Return what lease, lists and plan have about an address."""
        lease = self.leases.get(observation.address)
        mac = observation.bmc_mac or (lease.mac if lease is not None else None)
        line = self.lines_by_serial.get((observation.serial or "").lower()) or self.lines_by_mac.get(mac)
        plan = None if observation.outcome is SweepOutcome.OTHER_DEVICE else self._plan(observation, line)
        return Entry(observation, mac, lease.hostname if lease is not None else "", plan, line)

    def _plan(self, observation: BmcObservation, line: Listed | None) -> Planned | None:
        """Return the planned node of the serial that the BMC or the list gives, else of the address."""
        serial = observation.serial or (line.serial if line is not None else "")
        return self.plans_by_serial.get(serial.lower()) or self.plans_by_address.get(observation.address)


class ConflictKind(enum.Enum):
    """What does not fit together."""

    TWO_ADDRESSES = "two_addresses"
    OTHER_MACHINE = "other_machine"
    OTHER_SERIAL = "other_serial"
    OTHER_PLACE = "other_place"
    SAME_PLACE = "same_place"
    NO_REDFISH = "no_redfish"
    NOT_FOUND = "not_found"
    UNPLANNED = "unplanned"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Conflict:
    """`subjects` are addresses, serials and names of nodes that it concerns, for readers.

    `addresses` are those of the machines that it concerns. They alone decide: a BMC may report the address or the
    serial of another machine as its own serial.
    """

    kind: ConflictKind
    subjects: tuple[str, ...]
    cause: str
    remedy: str
    addresses: tuple[str, ...] = ()


def conflicts_of(entries: Sequence[Entry], planned: Sequence[Planned], asked: Collection[str]) -> tuple[Conflict, ...]:
    """Return the result. `asked`: every address of the sweep; the plan's other addresses are not judged."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.planned is not None:
            found.setdefault(entry.planned.name, []).append(entry)
    world = _World(entries, planned, asked, {entry.address: entry for entry in entries}, found)
    return tuple(conflict for find in _FINDERS for conflict in find(world))


@dataclass(frozen=True, slots=True)
class _World:
    """`at` is by address, `found` by the name of a planned node."""

    entries: Sequence[Entry]
    planned: Sequence[Planned]
    asked: Collection[str]
    at: Mapping[str, Entry]
    found: Mapping[str, list[Entry]]


def _two_addresses(world: _World) -> Iterator[Conflict]:
    for entries in _shared(world.entries, lambda entry: entry.serial.lower()):
        addresses = tuple(entry.address for entry in entries)
        macs = {entry.mac for entry in entries}
        one = len(macs) == 1 and None not in macs
        why = "it is one BMC with two addresses" if one else "two machines have it, or one BMC answers twice"
        remedy = "leave the address out that is not wanted: --exclude" if one else "have the vendor program the serials"
        cause = f"serial {entries[0].serial} answers at {' and '.join(addresses)}: {why}"
        yield Conflict(ConflictKind.TWO_ADDRESSES, (entries[0].serial, *addresses), cause, remedy, addresses)


def _other_machine(world: _World) -> Iterator[Conflict]:
    """Yield planned machines with another one at their address, while the planned one answers nowhere."""
    for plan in world.planned:
        entry = world.at.get(plan.address)
        if entry is None or not plan.serial or not entry.serial or world.found.get(plan.name):
            continue
        cause = f"{plan.name} at {plan.address} has serial {entry.serial}, planned is {plan.serial} ({plan.where})"
        remedy = f"find out which machine is in {plan.name}'s place, then correct the sheet or swap them"
        subjects = (plan.name, plan.address, entry.serial)
        yield Conflict(ConflictKind.OTHER_MACHINE, subjects, cause, remedy, (entry.address,))


def _other_serial(world: _World) -> Iterator[Conflict]:
    for entry in world.entries:
        line = entry.listed
        if line is None or not _other(line.serial, entry.serial):
            continue
        cause = f"BMC {entry.mac} at {entry.address} is in serial {entry.serial}, but {line.where} has {line.serial}"
        remedy = "correct the list, or find out whose board was put into which machine"
        subjects = (entry.address, entry.serial, line.serial)
        yield Conflict(ConflictKind.OTHER_SERIAL, subjects, cause, remedy, (entry.address,))


def _other_place(world: _World) -> Iterator[Conflict]:
    for entry in world.entries:
        plan, line = entry.planned, entry.listed
        if plan is None or line is None or not plan.rack or not line.rack:
            continue
        if (plan.rack.lower(), plan.unit) == (line.rack.lower(), line.unit):
            continue
        theirs, ours = _place(line.rack, line.unit), _place(plan.rack, plan.unit)
        cause = (
            f"{plan.name} (serial {entry.serial}) stands in {theirs} by {line.where}, planned is {ours} ({plan.where})"
        )
        remedy = "look where it stands, then correct the wrong one"
        subjects = (plan.name, entry.address, entry.serial)
        yield Conflict(ConflictKind.OTHER_PLACE, subjects, cause, remedy, (entry.address,))


def _same_place(world: _World) -> Iterator[Conflict]:
    known = [entry for entry in world.entries if entry.place[1] is not None and not _contradicts(entry)]
    for entries in _shared(known, lambda entry: _key(*entry.place)):
        if len({entry.serial.lower() for entry in entries}) > 1:
            yield _one_place(list(map(_machine, entries)), entries)
    yield from _in_planned_place(world, [entry for entry in known if entry.planned is None])


def _contradicts(entry: Entry) -> bool:
    """Return whether the machine's serial is not the one that its line has: then the line's place is not its own."""
    line = entry.listed
    return entry.planned is None and line is not None and _other(line.serial, entry.serial)


def _other(one: str, two: str) -> bool:
    """Return whether both are known serials, and not the same."""
    return bool(one and two) and one.lower() != two.lower()


def _in_planned_place(world: _World, unplanned: Iterable[Entry]) -> Iterator[Conflict]:
    """Yield machines without a plan in the place of a planned node that no machine was found for."""
    free = [plan for plan in world.planned if plan.rack and plan.unit is not None and not world.found.get(plan.name)]
    places = {_key(plan.rack, plan.unit): plan for plan in free}
    for entry in unplanned:
        plan = places.get(_key(*entry.place))
        if plan is not None:
            yield _one_place([_machine(entry), f"{plan.name} ({plan.where})"], [entry])


def _machine(entry: Entry) -> str:
    return f"{entry.serial or 'a machine'} at {entry.address}"


def _one_place(names: Sequence[str], entries: Sequence[Entry]) -> Conflict:
    cause = f"{' and '.join(names)} are both in {_place(*entries[0].place)}, by sheet and lists"
    subjects = tuple(word for entry in entries for word in (entry.address, entry.serial) if word)
    remedy = "look which of them is there, then correct the wrong one"
    return Conflict(ConflictKind.SAME_PLACE, subjects, cause, remedy, tuple(entry.address for entry in entries))


def _not_found(world: _World) -> Iterator[Conflict]:
    """Yield the planned machines that the sweep did not find.

    A peer that answers without an identity has an outcome of its own.
    """
    for plan in world.planned:
        if plan.address not in world.asked or world.found.get(plan.name):
            continue
        entry = world.at.get(plan.address)
        if entry is None:
            cause = f"{plan.name}: no BMC answers at {plan.address}, and its serial nowhere else ({plan.where})"
            yield Conflict(
                ConflictKind.NOT_FOUND, (plan.name, plan.address), cause, "check its power, its cable and its address"
            )
        elif entry.observation.outcome is SweepOutcome.OTHER_DEVICE:
            cause = f"{plan.name}: {entry.observation.cause} at {plan.address} ({plan.where})"
            remedy = "correct the address in the sheet"
            yield Conflict(ConflictKind.OTHER_MACHINE, (plan.name, plan.address), cause, remedy, (plan.address,))
        elif entry.observation.outcome is SweepOutcome.NO_REDFISH:
            cause = f"{plan.name}: what answers at {plan.address} has no Redfish ({plan.where})"
            yield Conflict(ConflictKind.NO_REDFISH, (plan.name, plan.address), cause, entry.observation.remedy)


def _unplanned(world: _World) -> Iterator[Conflict]:
    if not world.planned:
        return
    for entry in world.entries:
        if entry.planned is None and entry.serial:
            cause = f"serial {entry.serial} at {entry.address} is in no plan"
            remedy = "add it to the sheet (--write FILE), or leave its address out (--exclude)"
            subjects = (entry.address, entry.serial)
            yield Conflict(ConflictKind.UNPLANNED, subjects, cause, remedy, (entry.address,))


def _moved(world: _World) -> Iterator[Conflict]:
    for name, entries in world.found.items():
        plan = entries[0].planned
        if plan is None or len(entries) > 1 or entries[0].address == plan.address or not entries[0].serial:
            continue
        cause = f"{name} (serial {entries[0].serial}) answers at {entries[0].address}, planned is {plan.address}"
        remedy = "bring the sheet up to date: --write FILE"
        address = entries[0].address
        yield Conflict(ConflictKind.MOVED, (name, address), cause, remedy, (address,))


_FINDERS: tuple[Callable[[_World], Iterator[Conflict]], ...] = (
    _two_addresses,
    _other_machine,
    _other_serial,
    _other_place,
    _same_place,
    _not_found,
    _unplanned,
    _moved,
)


def _shared(entries: Iterable[Entry], key: Callable[[Entry], str]) -> Iterator[list[Entry]]:
    """Yield the entries with equal keys, where these are not empty."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return (group for name, group in groups.items() if name and len(group) > 1)


def _key(rack: str, unit: int | None) -> str:
    return f"{rack.lower()} {unit}"


def _place(rack: str, unit: int | None) -> str:
    return f"{rack} U{unit}" if unit is not None else rack


_HARMLESS = frozenset({ConflictKind.MOVED, ConflictKind.UNPLANNED, ConflictKind.NOT_FOUND, ConflictKind.NO_REDFISH})
"""Nothing of these keeps what was found out of the sheet."""
_SETTLED = frozenset({ConflictKind.MOVED, ConflictKind.UNPLANNED})


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """`sound` are the entries that may be written to a sheet: identified, and in no conflict but that they moved."""

    entries: tuple[Entry, ...]
    conflicts: tuple[Conflict, ...]
    accepted: tuple[Entry, ...]

    def settled(self) -> Reconciliation:
        """Return the state once `sound` is written to the sheet: it lacks none, and has none at another address."""
        written = {entry.address for entry in self.accepted}
        left = (found for found in self.conflicts if not (found.kind in _SETTLED and written & {*found.addresses}))
        return replace(self, conflicts=tuple(left))


def join(
    observations: Sequence[BmcObservation],
    *,
    asked: Collection[str],
    leases: Iterable[Lease] = (),
    listed: Iterable[Listed] = (),
    planned: Sequence[Planned] = (),
) -> Reconciliation:
    """Return the result. `asked`: every address of the sweep; the plan's other addresses are not judged."""
    entries = entries_of(observations, leases, tuple(listed), planned)
    conflicts = conflicts_of(entries, planned, asked)
    barred = {address for found in conflicts if found.kind not in _HARMLESS for address in found.addresses}
    identified = (entry for entry in entries if entry.observation.outcome is SweepOutcome.IDENTIFIED)
    accepted = tuple(entry for entry in identified if entry.address not in barred)
    return Reconciliation(entries, conflicts, accepted)

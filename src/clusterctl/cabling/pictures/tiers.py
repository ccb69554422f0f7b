"""Devices by tier and rack, each with what is wrong with its links."""

from __future__ import annotations

import enum
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.explain.verify import CablingVerification
from clusterctl.cabling.infer.rules import tiers as switch_tiers
from clusterctl.cabling.names import named_cables
from clusterctl.cabling.pictures.marks import Mark, MarkKind
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.natural_order import natural_key

_GUID = re.compile(r" \[[0-9a-f]{16}\]$")
_NUMBER = re.compile(r"[\W_]*\d+\D*$")
_DIGITS = re.compile(r"\d+")
_FEWEST_IN_GROUP = 4
_TIERS = ("hosts", "leaf switches", "spine switches", "core switches")
_APART = "not connected to any host"


class State(enum.Enum):
    """A device, by the worst of it. The value is what the legend calls it."""

    FINE = "nothing wrong seen"
    SUSPECT = "warnings only"
    TOUCHED = "links to absent devices missing (their number), nothing else"
    BAD = "bad links (their number)"
    ABSENT = "planned, not seen"
    STRANGE = "not planned, but there"

    @property
    def code(self) -> str:
        """A name for style sheets."""
        return self.name.lower()

    @property
    def short(self) -> str:
        """The state in two or three words, without its number."""
        return _SHORT[self]


_SHORT = {
    State.FINE: "nothing wrong",
    State.SUSPECT: "warnings",
    State.TOUCHED: "misses absent devices",
    State.BAD: "bad links",
    State.ABSENT: "not seen",
    State.STRANGE: "not planned",
}


@dataclass(frozen=True, slots=True)
class SwitchTile:
    """One device: `planned` and `seen` count its cables, `marks` are those that something is wrong with."""

    device: str
    tier: str
    group: str
    state: State
    planned: int
    seen: int
    marks: tuple[Mark, ...]

    @property
    def links(self) -> int:
        """How many links something is wrong with."""
        return len({frozenset((mark.a, mark.b)) for mark in self.marks})

    @property
    def description(self) -> str:
        """The tile as text, for screen readers: `leaf-1, rack A01: 2 missing, 1 slow`."""
        counts = Counter(mark.kind for mark in self.marks)
        wrong = ", ".join(f"{counts[kind]} {kind.code}" for kind in MarkKind if counts[kind])
        if self.state in (State.ABSENT, State.STRANGE):
            wrong = "; ".join(filter(None, (self.state.value, wrong)))
        return f"{self.device}, {self.group}: {wrong or self.state.value}"


@dataclass(frozen=True, slots=True)
class Group:
    """The devices of one tier in one rack; of one kind of names, where the plan has no racks."""

    name: str
    tiles: tuple[SwitchTile, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """A tier, the core on top."""

    name: str
    groups: tuple[Group, ...]

    @property
    def tiles(self) -> tuple[SwitchTile, ...]:
        return tuple(tile for group in self.groups for tile in group.tiles)


def bands(
    plan: WiringPlan, fabric: Fabric, verification: CablingVerification, found: Iterable[Mark]
) -> tuple[Band, ...]:
    """Return every planned and every cabled device in exactly one band."""
    planned = [(cable.source.device, cable.destination.device) for cable in plan.cables]
    cables = named_cables(fabric, verification.names)
    seen = [(min(cable.ends).device, max(cable.ends).device) for cable in cables]
    devices = _Devices(_degrees(planned), _degrees(seen), _marks_by_device(found))
    adapters = {verification.names[port].device for port in verification.names if _is_adapter(fabric, port)}
    tiers = _tiers(plan.hosts | adapters, planned, seen)
    names = sorted(devices.wanted.keys() | devices.there.keys() | plan.hosts, key=natural_key)
    group_of = _groups(plan, names, tiers)
    rows: dict[int, dict[str, list[SwitchTile]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        row = tiers.get(name, len(tiers))
        rows[row][group_of[name]].append(devices.tile(name, _tier(tiers.get(name)), group_of[name]))
    return tuple(_band(groups) for _, groups in sorted(rows.items(), reverse=True))


def _band(groups: Mapping[str, Sequence[SwitchTile]]) -> Band:
    tier = next(iter(groups.values()))[0].tier
    return Band(tier, tuple(Group(name, tuple(groups[name])) for name in sorted(groups, key=natural_key)))


def _marks_by_device(found: Iterable[Mark]) -> dict[str, list[Mark]]:
    marks: dict[str, list[Mark]] = defaultdict(list)
    for mark in found:
        for device in {mark.a.device, mark.b.device}:
            marks[device].append(mark)
    return marks


def _tier(number: int | None) -> str:
    if number is None:
        return _APART
    return _TIERS[number] if number < len(_TIERS) else f"switches of tier {number}"


def _degrees(pairs: Iterable[tuple[str, str]]) -> Counter[str]:
    return Counter(device for pair in pairs for device in pair)


@dataclass(frozen=True, slots=True)
class _Devices:
    """`wanted`: planned cables by device; `there`: cables that are up; `wrong`: what is wrong with them."""

    wanted: Counter[str]
    there: Counter[str]
    wrong: Mapping[str, Sequence[Mark]]

    def tile(self, name: str, tier: str, group: str) -> SwitchTile:
        """Return a device with its state."""
        marks = tuple(self.wrong.get(name, ()))
        return SwitchTile(name, tier, group, self._state(name, marks), self.wanted[name], self.there[name], marks)

    def _is_absent(self, name: str) -> bool:
        """Return whether the plan has cables of the device, and none is up."""
        return self.wanted[name] > 0 and not self.there[name]

    def _state(self, name: str, marks: Sequence[Mark]) -> State:
        if self._is_absent(name):
            return State.ABSENT
        if not self.wanted[name] and self.there[name]:
            return State.STRANGE
        if not marks:
            return State.FINE
        if all(self._is_of_an_absent_device(mark) for mark in marks):
            return State.TOUCHED
        return State.SUSPECT if {mark.kind for mark in marks} == {MarkKind.SUSPECT} else State.BAD

    def _is_of_an_absent_device(self, mark: Mark) -> bool:
        return mark.kind is MarkKind.MISSING and (self._is_absent(mark.a.device) or self._is_absent(mark.b.device))


def _namesakes(tiers: Mapping[str, int], devices: Iterable[str]) -> dict[str, int]:
    """Return the tiers of devices without one, by the tier of most devices with names that differ in numbers only."""
    alike: dict[str, Counter[int]] = defaultdict(Counter)
    for device, tier in tiers.items():
        alike[_pattern(device)][tier] += 1
    rest = (device for device in devices if device not in tiers)
    return {device: alike[_pattern(device)].most_common(1)[0][0] for device in rest if alike.get(_pattern(device))}


def _is_adapter(fabric: Fabric, port: PortId) -> bool:
    return fabric.devices[port.guid].kind is DeviceKind.CA


def _tiers(hosts: Iterable[str], planned: Iterable[tuple[str, str]], seen: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the tier of each device: hosts are 0, switches with enough hosts 1, and so on upwards.

    A management host on a spine makes it no leaf. Switches that the rule does not reach have the tier of most switches
    with such names, else one above the nearest. A leaf whose hosts are all absent is no core switch.
    """
    tiers = dict.fromkeys(hosts, 0)
    pairs = [*planned, *seen]
    trunks = [(a, b) for a, b in pairs if tiers.keys().isdisjoint((a, b))]
    cables = {frozenset((PortName(a, str(n)), PortName(b, str(n)))) for n, (a, b) in enumerate(trunks)}
    both_ways = [*pairs, *((b, a) for a, b in pairs)]
    hosts_at = Counter(device for device, far in both_ways if far in tiers and device not in tiers)
    tiers |= {device: level + 1 for device, level in switch_tiers(cables, hosts_at).items()}
    near = _neighbours(pairs)
    tiers |= _leaves_without_hosts(tiers, hosts_at, near)
    tiers |= _namesakes(tiers, near)
    return _spread(tiers, near)


def _neighbours(pairs: Iterable[tuple[str, str]]) -> Mapping[str, set[str]]:
    near: dict[str, set[str]] = defaultdict(set)
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    return near


def _leaves_without_hosts(
    tiers: Mapping[str, int], with_hosts: Collection[str], near: Mapping[str, Collection[str]]
) -> dict[str, int]:
    """Return the tiers of switches that stand two above most switches with such names, below the same switches."""
    alike: dict[str, Counter[int]] = defaultdict(Counter)
    for device, tier in tiers.items():
        alike[_pattern(device)][tier] += 1
    usual = {
        name: tier for name, counts in alike.items() for tier, times in counts.items() if 2 * times > counts.total()
    }
    there = ((device, tier) for device, tier in tiers.items() if device not in with_hosts)
    return {
        device: tier - 2
        for device, tier in there
        if usual.get(_pattern(device)) == tier - 2 > 0 and all(tiers.get(far) == tier - 1 for far in near[device])
    }


def _spread(tiers: Mapping[str, int], near: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return the tiers, and for each device without one the tier above its nearest neighbour that has one."""
    found, layer = dict(tiers), set(tiers)
    while layer:
        fresh = {other: found[device] + 1 for device in sorted(layer) for other in near[device] if other not in found}
        found |= fresh
        layer = set(fresh)
    return found


def _groups(plan: WiringPlan, devices: Iterable[str], tiers: Mapping[str, int]) -> dict[str, str]:
    """Return the group of each device: its rack, else what it shares of its name with at least a few of its tier."""
    groups: dict[str, str] = {}
    rest: dict[int | None, list[str]] = defaultdict(list)
    for device in devices:
        location = plan.locations.get(device)
        if location is not None and location.rack:
            groups[device] = f"rack {location.rack}"
        else:
            rest[tiers.get(device)].append(device)
    for names in rest.values():
        for stem in (_stem, _shorter_stem, _pattern):
            found = {name: stem(name) for name in names}
            if len(names) >= _FEWEST_IN_GROUP * len(set(found.values())):
                break
        groups |= found
    return groups


def _stem(name: str) -> str:
    return f"{_NUMBER.sub('', _GUID.sub('', name)) or name}…"


def _shorter_stem(name: str) -> str:
    return f"{_NUMBER.sub('', _NUMBER.sub('', _GUID.sub('', name))) or name}…"


def _pattern(name: str) -> str:
    return _DIGITS.sub("#", _GUID.sub("", name))

"""Devices by tier and rack, each with what is wrong with its links."""

from __future__ import annotations

import enum
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.explain.verify import Verification
from clusterctl.cabling.infer.rules import tiers as switch_tiers
from clusterctl.cabling.names import named_cables
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.natural_order import natural_key
from clusterctl_cli.pictures.marks import Mark, MarkKind

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


@dataclass(frozen=True, slots=True)
class Tile:
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
    def told(self) -> str:
        """In words, for those who do not see the picture: `leaf-1, rack A01: 2 missing, 1 slow`."""
        counts = Counter(mark.kind for mark in self.marks)
        wrong = ", ".join(f"{counts[kind]} {kind.code}" for kind in MarkKind if counts[kind])
        if self.state in (State.ABSENT, State.STRANGE):
            wrong = "; ".join(filter(None, (self.state.value, wrong)))
        return f"{self.device}, {self.group}: {wrong or self.state.value}"


@dataclass(frozen=True, slots=True)
class Group:
    """The devices of one tier in one rack; of one kind of names, where the plan has no racks."""

    name: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """A tier, the core on top."""

    name: str
    groups: tuple[Group, ...]

    @property
    def tiles(self) -> tuple[Tile, ...]:
        return tuple(tile for group in self.groups for tile in group.tiles)


def bands(plan: WiringPlan, fabric: Fabric, verification: Verification, found: Iterable[Mark]) -> tuple[Band, ...]:
    """Every planned and every cabled device in exactly one band."""
    planned = [(cable.source.device, cable.destination.device) for cable in plan.cables]
    cables = named_cables(fabric, verification.names)
    seen = [(min(cable.ends).device, max(cable.ends).device) for cable in cables]
    wrong: dict[str, list[Mark]] = defaultdict(list)
    for mark in found:
        for device in {mark.a.device, mark.b.device}:
            wrong[device].append(mark)
    wanted, there = _degrees(planned), _degrees(seen)
    adapters = {verification.names[port].device for port in verification.names if _is_adapter(fabric, port)}
    tiers = _tiers(plan.hosts | adapters, planned, seen)
    rows: dict[int, dict[str, list[Tile]]] = defaultdict(lambda: defaultdict(list))
    absent = {device for device in wanted if not there[device]}
    devices = sorted(wanted.keys() | there.keys() | plan.hosts, key=natural_key)
    groups_of = _groups(plan, devices, tiers)
    for device in devices:
        tier = tiers.get(device)
        row, group = len(tiers) if tier is None else tier, groups_of[device]
        state = _state(device, wanted, there, wrong[device], absent)
        tile = Tile(device, _tier(tier), group, state, wanted[device], there[device], tuple(wrong[device]))
        rows[row][group].append(tile)
    return tuple(
        Band(
            next(iter(groups.values()))[0].tier,
            tuple(Group(name, tuple(groups[name])) for name in sorted(groups, key=natural_key)),
        )
        for _, groups in sorted(rows.items(), reverse=True)
    )


def _tier(number: int | None) -> str:
    if number is None:
        return _APART
    return _TIERS[number] if number < len(_TIERS) else f"switches of tier {number}"


def _degrees(pairs: Iterable[tuple[str, str]]) -> Counter[str]:
    return Counter(device for pair in pairs for device in pair)


def _state(
    device: str, wanted: Mapping[str, int], there: Mapping[str, int], wrong: list[Mark], absent: Container[str]
) -> State:
    if device in absent:
        return State.ABSENT
    if not wanted.get(device) and there.get(device):
        return State.STRANGE
    if not wrong:
        return State.FINE
    if all(mark.kind is MarkKind.MISSING and (mark.a.device in absent or mark.b.device in absent) for mark in wrong):
        return State.TOUCHED
    return State.SUSPECT if {mark.kind for mark in wrong} == {MarkKind.SUSPECT} else State.BAD


def _namesakes(tiers: Mapping[str, int], devices: Iterable[str]) -> dict[str, int]:
    """Return the tiers of devices without one, by the tier of most devices whose names differ in numbers only."""
    alike: dict[str, Counter[int]] = defaultdict(Counter)
    for device, tier in tiers.items():
        alike[_pattern(device)][tier] += 1
    rest = (device for device in devices if device not in tiers)
    return {device: alike[_pattern(device)].most_common(1)[0][0] for device in rest if alike.get(_pattern(device))}


def _is_adapter(fabric: Fabric, port: PortId) -> bool:
    return fabric.devices[port.guid].kind is DeviceKind.CA


def _tiers(hosts: Iterable[str], planned: Iterable[tuple[str, str]], seen: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the tier of each device: hosts are 0, switches with enough hosts 1, and so on upwards.

    A management host on a spine makes it no leaf. Switches that the rule does not reach (a leaf without hosts) have the
    tier of most switches with such names, else one above the nearest.
    """
    tiers = dict.fromkeys(hosts, 0)
    pairs = [*planned, *seen]
    trunks = {
        frozenset((PortName(a, str(n)), PortName(b, str(n))))
        for n, (a, b) in enumerate(pairs)
        if not {a, b} & tiers.keys()
    }
    hosts_at = Counter(
        device for a, b in pairs for device, far in ((a, b), (b, a)) if far in tiers and device not in tiers
    )
    tiers |= {device: level + 1 for device, level in switch_tiers(trunks, hosts_at).items()}
    tiers |= _namesakes(tiers, {device for pair in pairs for device in pair})
    near: dict[str, set[str]] = defaultdict(set)
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    layer = set(tiers)
    while layer:
        fresh = {other: tiers[device] + 1 for device in sorted(layer) for other in near[device] if other not in tiers}
        tiers |= fresh
        layer = set(fresh)
    return tiers


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

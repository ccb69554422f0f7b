"""In which order switches can go out of service, as for new firmware: few at once, and nothing is cut off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.cabling.isolation import tiers_of
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric
from clusterctl.fleet.node import Guid

KEPT = 0.5
"""Each switch keeps this share of its links to other switches while a wave is out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveRules:
    """What the waves must leave alone.

    hosts    the host of each adapter; an adapter of an unknown host holds its switch back
    busy     hosts that must keep every rail, with the reason
    masters  devices at which a subnet manager is master
    at_once  switches of a wave
    absent   pairs of switches, for each link between them that is out of use now
    canary   whether the first wave is one switch
    """

    hosts: Mapping[Guid, str]
    busy: Mapping[str, str] = field(default_factory=dict)
    masters: Collection[Guid] = ()
    at_once: int = 4
    absent: Sequence[tuple[Guid, Guid]] = ()
    canary: bool = True


@dataclass(frozen=True, slots=True)
class SwitchRefusal:
    """Why a switch stays in service. `other`: the switch that the reason is about, where it is another one."""

    reason: str
    other: Guid | None = None

    def text(self, name_of: Callable[[Guid], str]) -> str:
        """Return the reason, with the other switch's name."""
        return self.reason if self.other is None else f"{name_of(self.other)} {self.reason}"


@dataclass(frozen=True, slots=True)
class SwitchWaves:
    """`waves`: the first is one switch, the canary; those far from hosts come first. `refusals`: why others wait."""

    waves: tuple[tuple[Guid, ...], ...]
    refusals: Mapping[Guid, SwitchRefusal]


def plan_waves(fabric: Fabric, wanted: Iterable[Guid], rules: WaveRules) -> SwitchWaves:
    """Return the waves. Between two of them all switches of the first one are back."""
    bench = _Bench(fabric, rules)
    refusals: dict[Guid, SwitchRefusal] = {}
    left: list[Guid] = []
    for guid in sorted(dict.fromkeys(wanted), key=bench.order):
        refusal = bench.against(guid, ()) or bench.held(guid)
        if refusal is not None:
            refusals[guid] = refusal
        else:
            left.append(guid)
    waves: list[tuple[Guid, ...]] = []
    while left:
        wave: list[Guid] = []
        most = rules.at_once if waves or not rules.canary else 1
        for guid in left:
            if len(wave) < most and bench.against(guid, wave) is None:
                wave.append(guid)
        waves.append(tuple(wave))
        left = [guid for guid in left if guid not in wave]
    return SwitchWaves(tuple(waves), refusals)


def adapters_behind(fabric: Fabric) -> Mapping[Guid, frozenset[Guid]]:
    """Return the adapters that are linked to each switch."""
    found: dict[Guid, set[Guid]] = defaultdict(set)
    for link in fabric.cables():
        for near, far in ((link.a.guid, link.b.guid), (link.b.guid, link.a.guid)):
            if fabric.devices[near].kind is DeviceKind.SWITCH and fabric.devices[far].kind is not DeviceKind.SWITCH:
                found[near].add(far)
    return {guid: frozenset(adapters) for guid, adapters in found.items()}


class _Bench:
    """The fabric by its switches: their links to each other, and the adapters behind them."""

    def __init__(self, fabric: Fabric, rules: WaveRules) -> None:
        self._rules = rules
        self._links: dict[Guid, dict[Guid, int]] = defaultdict(dict)
        self._behind: dict[Guid, set[Guid]] = defaultdict(set)
        self._absent: dict[Guid, int] = defaultdict(int)
        for end in (end for pair in rules.absent for end in pair):
            self._absent[end] += 1
        cables = fabric.cables()
        self._tiers = tiers_of(fabric, cables)
        switches = {guid for guid, one in fabric.devices.items() if one.kind is DeviceKind.SWITCH}
        for link in cables:
            for near, far in ((link.a.guid, link.b.guid), (link.b.guid, link.a.guid)):
                if near in switches and far in switches:
                    self._links[near][far] = self._links[near].get(far, 0) + 1
                elif near in switches:
                    self._behind[near].add(far)
        self._seen = switches
        self._part = self._parts()

    def order(self, guid: Guid) -> tuple[int, Guid]:
        """Return the sort key: what is far from the hosts has more ways around it."""
        return -self._tiers.get(guid, 0), guid

    def held(self, guid: Guid) -> SwitchRefusal | None:
        """Return why the switch stays in service whatever the wave; None where it may go out."""
        rules, behind = self._rules, self._behind[guid]
        if guid not in self._seen:
            return SwitchRefusal("it is not in the fabric")
        if not {guid, *behind}.isdisjoint(rules.masters):
            return SwitchRefusal("the master subnet manager is behind it: hand it over to another leaf first")
        if unknown := sorted(one for one in behind if one not in rules.hosts):
            return SwitchRefusal(f"it is unknown which host has the adapter {unknown[0]}")
        busy = sorted({rules.hosts[one] for one in behind} & rules.busy.keys())
        more = f", and {len(busy) - 1} more hosts" if busy[1:] else ""
        return SwitchRefusal(f"{busy[0]} is behind it: {rules.busy[busy[0]]}{more}") if busy else None

    def against(self, guid: Guid, wave: Collection[Guid]) -> SwitchRefusal | None:
        """Return why the switch cannot be out together with the wave; None where it can."""
        out = {guid, *wave}
        rails = {self._rules.hosts.get(one) for one in self._behind[guid]}
        others = {self._rules.hosts.get(one) for other in wave for one in self._behind[other]}
        if shared := sorted(host for host in rails & others if host):
            return SwitchRefusal(f"{shared[0]} would lose two rails")
        for other in sorted(self._links[guid].keys() - out):
            all_ = sum(self._links[other].values()) + self._absent[other]
            kept = sum(links for end, links in self._links[other].items() if end not in out)
            if kept < KEPT * all_:
                return SwitchRefusal(f"would keep {kept} of its {all_} links to switches", other)
        return None if self._joined(guid, out) else SwitchRefusal("it is the last way between other switches")

    def _joined(self, guid: Guid, out: Collection[Guid]) -> bool:
        """Return whether the other switches of its part of the fabric still reach each other."""
        left = {one for one, part in self._part.items() if part == self._part.get(guid)} - set(out)
        return not left or len(self._reached(next(iter(left)), out)) == len(left)

    def _parts(self) -> dict[Guid, Guid]:
        """Return for each switch the first one of its part: rails may be networks of their own."""
        parts: dict[Guid, Guid] = {}
        for guid in sorted(self._seen):
            if guid not in parts:
                parts |= dict.fromkeys(self._reached(guid, ()), guid)
        return parts

    def _reached(self, start: Guid, out: Collection[Guid]) -> set[Guid]:
        seen, waiting = {start}, [start]
        while waiting:
            fresh = self._links[waiting.pop()].keys() - seen - set(out)
            seen |= fresh
            waiting += fresh
        return seen

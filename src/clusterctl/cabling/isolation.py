"""Which switch ports may be disabled: few at a time, and never what the fabric or a host cannot spare."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid

MOST_PORTS = 10
MOST_SHARE = 0.005
"""Of the links: at most this many are out at a time, by count and by share."""
Pair = frozenset[Guid]
"""Two switches that are cabled to each other."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Disable `port`; `peer` is the port at the other end of the cable, as it must be found right before."""

    port: PortId
    peer: PortId


@dataclass(frozen=True, slots=True)
class IsolationRefusal:
    """Why a link stays as it is, and what to do instead; `host` is the link's adapter where it has one."""

    link: Link
    reason: str
    remedy: str
    host: Guid | None = None


@dataclass(frozen=True, slots=True)
class CutPlan:
    """`budget`: how many links may be out at a time, `out` of them are already."""

    budget: int
    out: int
    cuts: tuple[Cut, ...]
    refusals: tuple[IsolationRefusal, ...]


@dataclass(frozen=True, slots=True)
class Isolation:
    """The disabled ports: `twins` is the planned number of cables of each pair of switches, where known."""

    cuts: tuple[Cut, ...] = ()
    twins: Mapping[Pair, int] | None = None


def budget_of(links: int) -> int:
    """Return the smaller of 10 and 0.5 % of the links, at least 1.

    NVIDIA's isolation plugin of UFM takes the larger of the two (`MAX_NUM_ISOLATE` of pdr_deterministic,
    https://github.com/Mellanox/ufm_sdk_3.0). Here the smaller one counts: a port that is disabled
    carries nothing, while one that UFM isolates stays up, and wrong counters must not cost a small fabric 10 uplinks.
    """
    return max(1, min(MOST_PORTS, int(links * MOST_SHARE)))


def plan_cuts(fabric: Fabric, wanted: Iterable[Link], existing: Isolation) -> CutPlan:
    """Return the plan, in the order of `wanted`. `fabric` is the present one, `existing` what is disabled in it."""
    cables = fabric.cables()
    bench = _Bench(fabric, cables, existing, budget_of(len(cables) + len(existing.cuts)))
    for link in dict.fromkeys(wanted):
        bench.consider(link)
    return CutPlan(bench.budget, len(existing.cuts), tuple(bench.cuts), tuple(bench.refusals))


class _Bench:
    """What is left of the fabric while one cut after the other is decided on."""

    def __init__(self, fabric: Fabric, cables: tuple[Link, ...], existing: Isolation, budget: int) -> None:
        self.fabric, self.budget = fabric, budget
        self.cuts: list[Cut] = []
        self.refusals: list[IsolationRefusal] = []
        self._links = set(cables)
        self._tiers = tiers_of(fabric, cables)
        self._out = len(existing.cuts)
        self._hit = {self._lower(cut.port.guid, cut.peer.guid) for cut in existing.cuts}
        self._live = Counter(frozenset((link.a.guid, link.b.guid)) for link in cables)
        own = self._live + Counter(frozenset((cut.port.guid, cut.peer.guid)) for cut in existing.cuts)
        self._twins = {pair: max(count, (existing.twins or {}).get(pair, 0)) for pair, count in own.items()}

    def consider(self, link: Link) -> None:
        reason, remedy = self._against(link)
        if reason:
            self.refusals.append(IsolationRefusal(link, reason, remedy, self._adapter(link)))
            return
        lower = self._lower(link.a.guid, link.b.guid)
        port, peer = (link.a, link.b) if link.a.guid == lower else (link.b, link.a)
        self.cuts.append(Cut(port, peer))
        self._out += 1
        self._hit.add(lower)
        self._live[frozenset((link.a.guid, link.b.guid))] -= 1
        self._links.discard(link)

    def _against(self, link: Link) -> tuple[str, str]:
        """Return the first rule against it, and the remedy; empty where none is."""
        pair = frozenset((link.a.guid, link.b.guid))
        rules = (
            (link not in self._links, ("it is not up, or no longer where it was", "read the fabric again")),
            (self._adapter(link), ("it is a host's own rail", "quarantine the host; its port stays as it is")),
            (
                self._out >= self.budget,
                (f"the budget is used up: {self.budget} at a time", "repair and enable others first"),
            ),
            (
                self._lower(*sorted(pair)) in self._hit,
                ("another uplink of the same switch is out", "repair and enable that one first"),
            ),
            (
                self._twins.get(pair, 0) > 1 and self._live[pair] == 1,
                ("it is the last of its twins between these two switches", "repair and enable a twin first"),
            ),
        )
        found = next((words for broken, words in rules if broken), None)
        if found is None and not _reach(self._links - {link}, link.a.guid, link.b.guid):
            return "it is the last way between what is at its two ends", "repair it while it is in use"
        return found or ("", "")

    def _adapter(self, link: Link) -> Guid | None:
        ends = (link.a.guid, link.b.guid)
        known = (self.fabric.devices[guid] for guid in ends if guid in self.fabric.devices)
        return next((device.guid for device in known if device.kind is not DeviceKind.SWITCH), None)

    def _lower(self, a: Guid, b: Guid) -> Guid:
        """Return the switch nearer to the hosts: the link is its uplink."""
        far = len(self._tiers) + 1
        return min((a, b), key=lambda guid: (self._tiers.get(guid, far), guid))


def tiers_of(fabric: Fabric, cables: Iterable[Link]) -> dict[Guid, int]:
    """Return the number of cables from each switch to the next adapter."""
    near = _neighbours(cables)
    tiers = {guid: 0 for guid, device in fabric.devices.items() if device.kind is not DeviceKind.SWITCH}
    layer: AbstractSet[Guid] = frozenset(tiers)
    while layer:
        fresh = {other: tiers[guid] + 1 for guid in layer for other in near.get(guid, ()) if other not in tiers}
        tiers |= fresh
        layer = fresh.keys()
    return tiers


def _reach(links: Iterable[Link], start: Guid, goal: Guid) -> bool:
    near = _neighbours(links)
    seen, waiting = {start}, [start]
    while waiting:
        fresh = near.get(waiting.pop(), set()) - seen
        seen |= fresh
        waiting += fresh
    return goal in seen


def _neighbours(links: Iterable[Link]) -> dict[Guid, set[Guid]]:
    near: dict[Guid, set[Guid]] = defaultdict(set)
    for link in links:
        near[link.a.guid].add(link.b.guid)
        near[link.b.guid].add(link.a.guid)
    return near

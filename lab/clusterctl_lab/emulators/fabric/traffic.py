"""Traffic over the simulated fabric: what its ports count of the flows that hosts send.

The bytes between the hosts are real, over TCP. The counters are played: a flow counts `FULL` of its link's rate at each
port of its way, whatever the machine that carries the lab manages. The way is that of OpenSM's real tables.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_lab.emulators.fabric.topology import Cable, End
from clusterctl_lab.machine import Hca, Machine

FULL = 0.975
"""Share of its rate that a healthy link carries both ways, as measured on NDR (docs/how-to/burn-plan.md: the goal)."""
NOTES = "run/lock/clusterctl-lab-flows"
_MOST_NOTES = 4096
_MOST_BYTES = 1024
_WORD_BITS = 32
_SWITCH = re.compile(r"Unicast lids .* guid 0x([0-9a-f]+) ")
_ENTRY = re.compile(r"0x([0-9a-f]+) (\d+) .*portguid 0x([0-9a-f]+):")
_HIGHEST = {"SymbolErrorCounter": 0xFFFF, "PortRcvErrors": 0xFFFF, "LinkDownedCounter": 0xFF}
_DATA = ("PortXmitData", "PortRcvData")


@dataclass(frozen=True, slots=True)
class Flow:
    """From one adapter to another, by GUID. Times in Unix seconds; `ended` is None while it runs.

    What a killed process has sent since the last reading is not known: it counts nothing more.
    """

    note: str
    source: str
    target: str
    began: float
    ended: float | None


def flows_noted(roots: Iterable[Path]) -> Iterator[Flow]:
    """Yield the flows that hosts have noted below their file systems' roots; what is no note is passed over."""
    for root in roots:
        try:
            notes = sorted((root / NOTES).glob("*.json"))[:_MOST_NOTES]
        except OSError:
            continue
        for note in notes:
            try:
                with note.open("rb") as file:
                    found = json.loads(file.read(_MOST_BYTES))
                    runs = found["ended"] is None and _is_locked(file.fileno())
                began = float(found["began"])
                ended = None if runs else float(found["ended"] or began)
                yield Flow(f"{note}:{began}", found["source"], found["target"], began, ended)
            except (OSError, ValueError, KeyError, TypeError):
                continue


def _is_locked(descriptor: int) -> bool:
    """Return whether the process that wrote the note lives: it holds a lock on it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@dataclass(frozen=True, slots=True)
class Tables:
    """Forwarding tables: out port by LID for each switch, by its GUID; and LIDs by port GUID."""

    exits: Mapping[str, Mapping[int, int]]
    lids: Mapping[str, int]


def parse_tables(text: str) -> Tables:
    """Return the tables that `dump_fts` printed."""
    exits: dict[str, dict[int, int]] = {}
    lids: dict[str, int] = {}
    switch: dict[int, int] = {}
    for line in text.splitlines():
        if match := _SWITCH.match(line):
            switch = exits.setdefault(match[1], {})
        elif match := _ENTRY.match(line):
            switch[int(match[1], 16)] = int(match[2])
            lids[match[3]] = int(match[1], 16)
    return Tables(exits, lids)


def way_of(source: str, target: str, tables: Tables, cables: Iterable[Cable]) -> list[Cable]:
    """Return the cables from adapter to adapter, each with its sending end first; none where packets are lost."""
    far = {near: other for pair in cables for near, other in (pair, pair[::-1])}
    near, way = End(f"H-{source}", 1), list[Cable]()
    lid = tables.lids.get(f"{int(target, 16) + 1:016x}")  # ibsim gives port 1 of an adapter the GUID after its own
    while near in far and lid is not None and len(way) <= len(tables.exits) + 1:
        way.append((near, far[near]))
        node = far[near].node
        if node == f"H-{target}":
            return way
        near = End(node, tables.exits.get(node[2:], {}).get(lid, 0))
    return []


class PlayedCounters:
    """The counters of all ports, as far as flows have made them grow."""

    def __init__(self) -> None:
        self._values: dict[tuple[End, str], float] = {}
        self._counted: dict[str, float] = {}
        self._downs: set[str] = set()

    def play(
        self, flows: Iterable[Flow], tables: Tables, cables: Iterable[Cable], machines: Iterable[Machine], now: float
    ) -> list[str]:
        """Count what the flows have sent since the last call; return ibsim's commands that set what has changed."""
        hcas = {hca.guid: hca for machine in machines for hca in machine.hcas}
        plugged, changed = tuple(cables), set[tuple[End, str]]()
        for flow in flows:
            seconds = self._new_seconds(flow, now)
            source, target = hcas.get(flow.source), hcas.get(flow.target)
            if seconds <= 0 or source is None or target is None:
                continue
            way = way_of(flow.source, flow.target, tables, plugged)
            words = _share(source, target) * min(source.rate_gbps, target.rate_gbps) * 1e9 / _WORD_BITS * seconds
            for near, far in way:
                changed |= {self._add(near, "PortXmitData", words), self._add(far, "PortRcvData", words)}
            for end, hca in ((way[0][1], source), (way[-1][0], target)) if way else ():
                changed |= self._errors(end, hca, seconds)
        return [
            f'PerformanceSet "{end.node}"[{end.port}] {_field(name)}={self._shown(end, name)}'
            for end, name in sorted(changed)
        ]

    def _new_seconds(self, flow: Flow, now: float) -> float:
        """Return the seconds of the flow that were not counted yet."""
        until = min(now, flow.ended or now)
        since = self._counted.get(flow.note, flow.began)
        self._counted[flow.note] = max(since, until)
        return until - since

    def _errors(self, end: End, hca: Hca, seconds: float) -> set[tuple[End, str]]:
        """Count the errors of a bad adapter or cable at the switch's port; a flap at both its ends, once."""
        changed = {
            self._add(end, name, per_hour / 3600 * seconds)
            for name, per_hour in (
                ("SymbolErrorCounter", hca.errors.symbol_per_hour),
                ("PortRcvErrors", hca.errors.receive_per_hour),
            )
            if per_hour
        }
        if hca.errors.load_downs and hca.guid not in self._downs:
            self._downs.add(hca.guid)
            for port in (end, End(f"H-{hca.guid}", 1)):
                changed.add(self._add(port, "LinkDownedCounter", hca.errors.load_downs))
        return changed

    def _add(self, end: End, name: str, value: float) -> tuple[End, str]:
        self._values[end, name] = self._values.get((end, name), 0.0) + value
        return end, name

    def _shown(self, end: End, name: str) -> int:
        return min(int(self._values[end, name]), _HIGHEST.get(name, 2**63))


def _share(source: Hca, target: Hca) -> float:
    """Return the share of its rate that a flow reaches; a shaped adapter slows it."""
    slow = max((hca.shaping.share for hca in (source, target) if hca.shaping is not None), default=0.0)
    return FULL * (1 - slow)


def _field(name: str) -> str:
    return f"{'PortCountersExtended' if name in _DATA else 'PortCounters'}.{name}"

"""All addresses of a sweep, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from ipaddress import ip_address

from clusterctl.edges.redfish.sweep.port_scan import Door, knock
from clusterctl.fleet.bmc import Sighting
from clusterctl.ports import Deadline

VISITS_AT_ONCE = 64
_WAKE_SECONDS = 0.2
_TOLD_EACH = 64
"""Addresses between two words on progress, of thousands that are refused at once."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is: addresses knocked at, doors that were open, visits that are over."""

    asked: int
    open: int
    visited: int


@dataclass(frozen=True, slots=True)
class Found:
    """Everybody who answers, by address; and what each address that was asked had to say to a knock."""

    sightings: tuple[Sighting, ...]
    doors: Mapping[str, Door]

    def count(self, door: Door) -> int:
        return sum(found is door for found in self.doors.values())


Visit = Callable[[str, Deadline], Sighting]
Watch = Callable[[Progress], None]


def sweep(
    hosts: Iterable[str],
    port: int,
    visit: Visit,
    deadline: Deadline,
    *,
    watch: Watch = lambda _: None,
    at_once: int = VISITS_AT_ONCE,
) -> Found:
    """Knock at every host and visit whoever opens.

    Raises as `Deadline.check` and `visit`, once every session is closed.
    """
    doors: dict[str, Door] = {}
    visits: list[Future[Sighting]] = []
    over: list[Future[Sighting]] = []

    def tell() -> None:
        watch(Progress(len(doors), len(visits), len(over)))

    with ThreadPoolExecutor(at_once, thread_name_prefix="sweep") as pool:
        try:
            for host, door in knock(hosts, port, deadline):
                doors[host] = door
                if door is Door.OPEN:
                    visits.append(pool.submit(visit, host, deadline))
                    visits[-1].add_done_callback(over.append)
                if len(doors) % _TOLD_EACH == 0:
                    tell()
            tell()
            pending = set(visits)
            while pending:
                _, pending = wait(pending, timeout=_WAKE_SECONDS)
                tell()
            deadline.check("looking at BMCs")
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return Found(tuple(sorted((future.result() for future in visits), key=lambda seen: _key(seen.address))), doors)


def _key(address: str) -> tuple[int, int]:
    parsed = ip_address(address)
    return parsed.version, int(parsed)

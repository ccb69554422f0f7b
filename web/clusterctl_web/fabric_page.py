"""The fabric as a drawing: tiers, racks, the ports of each device, bad links, counters over time, search."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clusterctl.cabling.labels import plan_labels
from clusterctl.cabling.pictures import geometry
from clusterctl.cabling.pictures.finding_lines import FindingLine, lines_by_rack
from clusterctl.cabling.pictures.geometry import Chart, draw
from clusterctl.cabling.pictures.marks import MarkKind, marks
from clusterctl.cabling.pictures.port_maps import RACK_UNITS, Elevation, PortMap, device_ports, elevations
from clusterctl.cabling.pictures.tiers import Band, State, SwitchTile, bands
from clusterctl.cabling.pictures.timeline import BAR_HEIGHT, BAR_WIDTH, Timeline, timeline
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.site_fabric import SiteFabric, site_fabric
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.rendering import Renderer

KEPT_S = 10.0
"""The fabric is judged again at most this often, and only where the journal has new events."""
MOST_HITS = 100
LONGEST_QUERY = 80


@dataclass(frozen=True, slots=True)
class FabricView:
    """All that the pages draw of one reading. `ports`: by device."""

    fabric: SiteFabric
    bands: tuple[Band, ...]
    chart: Chart
    ports: dict[str, PortMap]
    racks: tuple[Elevation, ...]
    findings: list[tuple[str, list[FindingLine]]]
    timeline: Timeline | None

    @property
    def tiles(self) -> Iterator[SwitchTile]:
        return (tile for band in self.bands for tile in band.tiles)

    def search(self, query: str) -> list[SwitchTile]:
        """Return the devices that have each word in their name, rack, or the far end of a port."""
        words = query.lower().split()
        hits = (tile for tile in self.tiles if all(word in self._text(tile) for word in words))
        return list(islice(hits, MOST_HITS))

    def _text(self, tile: SwitchTile) -> str:
        found = self.ports.get(tile.device)
        far = " ".join(cell.far for _, cells in found.boards for cell in cells) if found else ""
        return f"{tile.device} {tile.group} {tile.tier} {far}".lower()


def view(fabric: SiteFabric) -> FabricView:
    """Return the drawing of a fabric."""
    report = fabric.report
    plan, seen, verification, counters = report.plan, report.fabric, report.verification, report.counters
    found = marks(plan, seen, verification, counters.health if counters else None)
    rows = bands(plan, seen, verification, found)
    labels = plan_labels(plan, seen, verification.names)
    return FabricView(
        fabric=fabric,
        bands=rows,
        chart=draw(rows, found),
        ports=device_ports(rows, plan, verification, found, labels),
        racks=elevations(rows, plan),
        findings=lines_by_rack(verification, counters.health if counters else None),
        timeline=timeline(seen.cables(), counters.readings, counters.moments, counters.labels) if counters else None,
    )


@dataclass
class LiveFabric:
    """The last view, computed again where the journal has changed. Thread-safe: one computes, the others wait."""

    live: LiveFleet
    _view: FabricView | None = None
    _seq: int = -1
    _made: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def current(self) -> FabricView | None:
        """Return the view; None where the fabric was never read."""
        seq = self.live.refresh()
        with self._lock:
            if seq != self._seq and (self._seq < 0 or time.monotonic() - self._made >= KEPT_S):
                found = site_fabric(self.live.context)
                self._view = view(found) if found is not None else None
                self._seq, self._made = seq, time.monotonic()
            return self._view


@dataclass(frozen=True, slots=True)
class FabricPages:
    """The pages below /fabric."""

    fabric: LiveFabric
    renderer: Renderer

    def routes(self) -> list[Route]:
        return [Route("/fabric", self.overview), Route("/fabric/devices/{name:path}", self.device)]

    async def overview(self, request: Request) -> Response:
        return await run_in_threadpool(self._overview, request)

    def _overview(self, request: Request) -> Response:
        found = self.fabric.current()
        query = request.query_params.get("q", "")[:LONGEST_QUERY].strip()
        tiles = list(found.tiles) if found else []
        return self.renderer.html(
            request,
            "fabric.html.j2",
            view=found,
            query=query,
            hits=found.search(query) if found and query else [],
            most_hits=MOST_HITS,
            counts=_counts(tiles),
            troubled=[tile for tile in tiles if tile.state not in (State.FINE, State.TOUCHED)],
            touched=[tile for tile in tiles if tile.state is State.TOUCHED],
            states=list(State),
            mark_kinds=list(MarkKind),
            tile=geometry.TILE,
            bar=(BAR_WIDTH, BAR_HEIGHT),
            rack_units=RACK_UNITS,
        )

    async def device(self, request: Request) -> Response:
        return await run_in_threadpool(self._device, request, request.path_params["name"])

    def _device(self, request: Request, name: str) -> Response:
        found = self.fabric.current()
        tile = next((tile for tile in found.tiles if tile.device == name), None) if found else None
        if found is None or tile is None:
            raise UsageError(f"the fabric has no device {name!r}", where=name, remedy="the fabric page lists them")
        names = {node.name for node in self.fabric.live.summaries()}
        return self.renderer.html(
            request, "fabric_device.html.j2", view=found, tile=tile, map=found.ports.get(name), is_node=name in names
        )


def _counts(tiles: list[SwitchTile]) -> list[tuple[State, int]]:
    """Return how many devices are in each state, the states that occur."""
    found = [(state, sum(tile.state is state for tile in tiles)) for state in State]
    return [(state, count) for state, count in found if count]
